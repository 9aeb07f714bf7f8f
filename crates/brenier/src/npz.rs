//! Archives of arrays, `.npz`, a few rows at a time.
//!
//! A run over many inputs writes its arrays in parts. At its end the parts become one archive, and a page reads the
//! first rows of it: neither holds more than one row in memory, however many there are. Numbers are copied as the
//! bytes they are, so what is joined has the bits of its parts.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ndarray::{Array, Array1, Dimension};
use ndarray_npy::{WritableElement, WriteNpyExt};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::error::{Error, Result};
use crate::npy::Header;
use crate::whole_file::{Failure, Packing, write_with};

type Archive = ZipArchive<BufReader<File>>;

/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 16;

/// One array of an archive, read row by row.
pub(crate) struct RowReader {
    header: Header,
    numbers: Box<dyn Read>,
    buffer: Vec<u8>,
}

impl RowReader {
    /// The array of this name, or nothing where the archive has none.
    pub(crate) fn open(path: &Path, name: &str) -> std::result::Result<Option<RowReader>, Failure> {
        expect_honest(path)?;
        let mut archive = open(path)?;
        let member = format!("{name}.npy");
        if !archive.file_names().any(|found| found == member) {
            return Ok(None);
        }
        let mut found = archive.by_name(&member)?;
        if found.compression() != CompressionMethod::Stored {
            // Not written by a run of ours; whoever compressed it had it in memory, too.
            let mut bytes = Vec::new();
            found.read_to_end(&mut bytes)?;
            return RowReader::new(Cursor::new(bytes)).map(Some);
        }
        let (start, size) = (found.data_start(), found.size());
        let mut file = BufReader::new(crate::readable::open(path)?);
        file.seek(SeekFrom::Start(start))?;
        RowReader::new(file.take(size)).map(Some)
    }

    fn new(mut numbers: impl Read + 'static) -> std::result::Result<RowReader, Failure> {
        let (header, _) = Header::read(&mut numbers)?;
        if header.fortran_order && header.shape.len() > 1 {
            return Err(
                "it has an array in Fortran's order; in NumPy, save numpy.ascontiguousarray(x)".into()
            );
        }
        let buffer = vec![0; header.row_bytes()?];
        Ok(RowReader { header, numbers: Box::new(numbers), buffer })
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.header.rows()
    }

    /// The shape of one row.
    pub(crate) fn row_shape(&self) -> &[usize] {
        self.header.row_shape()
    }

    /// The next row of an array of `f64`.
    pub(crate) fn next_row(&mut self) -> std::result::Result<Array1<f64>, Failure> {
        if self.header.descr != "<f8" {
            return Err(format!("it has an array of '{}' where float64 is needed", self.header.descr).into());
        }
        self.numbers.read_exact(&mut self.buffer)?;
        let numbers = self.buffer.chunks_exact(8).map(|bytes| {
            let mut number = [0; 8];
            number.copy_from_slice(bytes);
            f64::from_le_bytes(number)
        });
        Ok(numbers.collect())
    }
}

/// Joins archives along the first axis, array by array. An array that one of them lacks is left out; one that is
/// given whole takes the place of what the parts say.
///
/// # Errors
/// If the rows of an array are not of one shape and type, or a file cannot be read or written.
pub(crate) fn join(parts: &[PathBuf], whole: &[Whole], packing: Packing, into: &Path) -> Result<()> {
    let unreadable = |path: &Path, source: Failure| Error::Read { path: path.to_owned(), source };
    let mut names: Vec<String> = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let archive = open(part).map_err(|e| unreadable(part, e))?;
        if i == 0 {
            names = archive.file_names().map(String::from).collect();
        }
        names.retain(|name| archive.index_for_name(name).is_some());
    }
    names.retain(|name| whole.iter().all(|array| array.member() != *name));
    let mut joined = Vec::with_capacity(names.len());
    for name in &names {
        joined.push(joined_header(parts, name)?);
    }
    write_with(into, |file| {
        let mut archive = ZipWriter::new(file);
        let filled = whole
            .iter()
            .try_for_each(|array| -> std::result::Result<(), Failure> {
                archive.start_file(array.member(), options(packing, array.bytes.len() as u64))?;
                Ok(archive.write_all(&array.bytes)?)
            })
            .and_then(|()| {
                let mut arrays = names.iter().zip(&joined);
                arrays.try_for_each(|(name, header)| fill(&mut archive, parts, name, header, packing))
            });
        if let Err(error) = filled {
            // Dropped, it would try to end the archive on a disk that is full, and complain on stderr by itself.
            std::mem::forget(archive);
            return Err(error);
        }
        archive.finish()?;
        Ok(())
    })
}

/// An array that is small enough to be given whole, as the bytes of a `.npy` file.
pub(crate) struct Whole {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Whole {
    /// An array under this name.
    pub(crate) fn new<T: WritableElement, D: Dimension>(
        name: &'static str,
        array: &Array<T, D>,
    ) -> std::result::Result<Whole, Failure> {
        let mut bytes = Vec::new();
        array.write_npy(&mut bytes)?;
        Ok(Whole { name, bytes })
    }

    fn member(&self) -> String {
        format!("{}.npy", self.name)
    }
}

/// How an array of so many bytes is stored.
fn options(packing: Packing, bytes: u64) -> SimpleFileOptions {
    let method = match packing {
        Packing::Plain => CompressionMethod::Stored,
        Packing::Compressed => CompressionMethod::Deflated,
    };
    // The header is the smaller part of the margin.
    let large = bytes + (1 << 24) > u64::from(u32::MAX);
    SimpleFileOptions::default().compression_method(method).large_file(large)
}

/// The header of all rows of an array together.
fn joined_header(parts: &[PathBuf], name: &str) -> Result<Header> {
    let mut whole: Option<Header> = None;
    for part in parts {
        let read = || -> std::result::Result<Header, Failure> {
            let mut archive = open(part)?;
            Ok(Header::read(&mut archive.by_name(name)?)?.0)
        };
        let found = read().map_err(|source| Error::Read { path: part.clone(), source })?;
        match &mut whole {
            None => whole = Some(found),
            Some(whole) if whole.descr == found.descr && whole.row_shape() == found.row_shape() => {
                whole.shape[0] += found.rows();
            }
            Some(whole) => {
                let source = format!(
                    "its array {name} has rows of shape {:?} and type '{}', those before it {:?} and '{}'",
                    found.row_shape(),
                    found.descr,
                    whole.row_shape(),
                    whole.descr
                );
                return Err(Error::Read { path: part.clone(), source: source.into() });
            }
        }
    }
    whole.ok_or(Error::Zero { what: "the number of parts to be joined" })
}

/// Writes one array: a header, and the numbers of all parts behind it.
fn fill<W: Write + Seek>(
    archive: &mut ZipWriter<W>,
    parts: &[PathBuf],
    name: &str,
    header: &Header,
    packing: Packing,
) -> std::result::Result<(), Failure> {
    let bytes = header.row_bytes()? as u64 * header.rows() as u64;
    archive.start_file(name, options(packing, bytes))?;
    header.write(archive)?;
    // In chunks of one size, whatever the sizes of the parts: how a number is packed may depend on the chunk.
    let mut chunk = Vec::with_capacity(CHUNK);
    for part in parts {
        let mut from = open(part)?;
        let mut member = from.by_name(name)?;
        Header::read(&mut member)?;
        while (&mut member).take((CHUNK - chunk.len()) as u64).read_to_end(&mut chunk)? > 0 {
            if chunk.len() == CHUNK {
                archive.write_all(&chunk)?;
                chunk.clear();
            }
        }
    }
    Ok(archive.write_all(&chunk)?)
}

fn open(path: &Path) -> std::result::Result<Archive, Failure> {
    Ok(ZipArchive::new(BufReader::new(crate::readable::open(path)?))?)
}

/// Unpacked bytes that nobody asks questions about.
const HARMLESS: u64 = 1 << 30;
/// Unpacked bytes for each packed one beyond which an archive is made to fill memory: numbers do not pack so well.
const DENSEST: u64 = 100;

/// Refuses an archive whose arrays declare more than they hold, or that unpacks to far more than it is, before anybody
/// makes room for it.
pub(crate) fn expect_honest(path: &Path) -> std::result::Result<(), Failure> {
    let mut archive = open(path)?;
    for place in 0..archive.len() {
        let mut member = archive.by_index(place)?;
        let (name, size, packed) = (member.name().to_string(), member.size(), member.compressed_size());
        if size > HARMLESS.max(packed.saturating_mul(DENSEST)) {
            return Err(format!("{name} would take {size} bytes unpacked, and has {packed}").into());
        }
        if size > crate::memory::most() {
            let most = crate::memory::most();
            return Err(format!("{name} would take {size} bytes, and memory is limited to {most}").into());
        }
        if name.ends_with(".npy") {
            let (header, start) = Header::read(&mut member).map_err(|e| format!("{name}: {e}"))?;
            header.expect_within(size.saturating_sub(start)).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole_file::write_arrays;
    use ndarray::{Array2, array};
    use ndarray_npy::NpzReader;

    fn part(folder: &Path, name: &str, rows: &Array2<f64>, extra: bool, packing: Packing) -> PathBuf {
        let path = folder.join(name);
        write_arrays(&path, packing, |npz| {
            npz.add_array("values", rows)?;
            npz.add_array("targets", &Array1::from_iter(0..rows.nrows() as i64))?;
            if extra {
                npz.add_array("references", rows)?;
            }
            Ok(())
        })
        .unwrap();
        path
    }

    #[test]
    fn joined_arrays_have_the_rows_of_their_parts() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (a, b) = (array![[1.0, 2.0]], array![[3.0, f64::MIN_POSITIVE], [5.0, 6.0]]);
        let parts = [
            part(folder, "a.npz", &a, true, Packing::Plain),
            part(folder, "b.npz", &b, false, Packing::Compressed),
        ];
        let whole = folder.join("whole.npz");
        join(&parts, &[Whole::new("offsets", &array![7_u64]).unwrap()], Packing::Plain, &whole).unwrap();
        let mut npz = NpzReader::new(File::open(&whole).unwrap()).unwrap();
        assert_eq!(npz.names().unwrap(), ["offsets", "values", "targets"], "what one part lacks is left out");
        let values: Array2<f64> = npz.by_name("values").unwrap();
        assert_eq!(values, array![[1.0, 2.0], [3.0, f64::MIN_POSITIVE], [5.0, 6.0]]);
        assert_eq!(npz.by_name::<ndarray::OwnedRepr<i64>, ndarray::Ix1>("targets").unwrap(), array![0, 0, 1]);

        for path in [&whole, &parts[1]] {
            let mut rows = RowReader::open(path, "values").unwrap().unwrap();
            let skipped = rows.rows() - 2;
            (0..skipped).for_each(|_| drop(rows.next_row().unwrap()));
            assert_eq!(rows.row_shape(), [2]);
            assert_eq!(rows.next_row().unwrap(), array![3.0, f64::MIN_POSITIVE]);
            assert_eq!(rows.next_row().unwrap(), array![5.0, 6.0]);
            assert!(rows.next_row().is_err());
        }
        assert!(RowReader::open(&whole, "references").unwrap().is_none());
    }

    #[test]
    fn how_rows_were_parted_does_not_show() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let rows = Array2::from_shape_fn((5000, 3), |(i, j)| ((i * i + j) as f64 / 7.0).sin());
        let joined = |name: &str, cuts: &[usize]| {
            let ends = cuts.iter().chain([&5000]);
            let parts: Vec<PathBuf> = [0]
                .iter()
                .chain(cuts)
                .zip(ends)
                .map(|(&from, &to)| {
                    let some = rows.slice(ndarray::s![from..to, ..]).to_owned();
                    part(folder, &format!("{name}-{from}.npz"), &some, false, Packing::Plain)
                })
                .collect();
            let parts: Vec<PathBuf> = parts.into_iter().collect();
            let whole = folder.join(name);
            join(&parts, &[], Packing::Compressed, &whole).unwrap();
            let mut npz = NpzReader::new(File::open(&whole).unwrap()).unwrap();
            assert_eq!(npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::Ix2>("values").unwrap(), rows);
            ZipArchive::new(File::open(&whole).unwrap())
                .unwrap()
                .by_name("values.npy")
                .unwrap()
                .compressed_size()
        };
        assert_eq!(joined("one.npz", &[1, 1700, 3111]), joined("other.npz", &[2500]));
    }

    #[test]
    fn rows_of_two_shapes_are_not_joined() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let parts = [
            part(folder, "a.npz", &array![[1.0, 2.0]], false, Packing::Plain),
            part(folder, "b.npz", &array![[1.0]], false, Packing::Plain),
        ];
        let told = join(&parts, &[], Packing::Plain, &folder.join("whole.npz")).unwrap_err().to_string();
        assert!(told.contains("rows of shape [1]"), "{told}");
        assert!(!folder.join("whole.npz").exists());
    }
}
