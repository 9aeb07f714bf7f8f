//! Rows of a `.npy` file of floats, read when they are asked for.
//!
//! A file may hold more rows than fit into memory. Only its header is read when it is opened; the size that it
//! declares is held against the size of the file before anything is allocated.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use ndarray::Array2;

use super::DataError;
use crate::error::{Error, Result};
use crate::npy::Header;
use crate::whole_file::Failure;

/// A `.npy` file of float32 or float64 whose first axis is the example.
#[derive(Debug, Clone)]
pub struct NpyRows {
    path: PathBuf,
    header: Header,
    /// Where the numbers begin.
    start: u64,
    /// Whether the whole array is one example, without an axis for examples.
    single: bool,
}

/// Refuses a `.npy` file that declares more than it holds, before anybody makes room for it.
///
/// # Errors
/// If it is no such file, or does so.
pub fn expect_honest_npy(path: &Path) -> Result<()> {
    crate::npy::expect_honest(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

impl NpyRows {
    /// Opens a file of floats; nothing where it holds other numbers or lies in Fortran's order.
    ///
    /// # Errors
    /// If it is no `.npy` file, or shorter than it declares.
    pub fn open(path: &Path) -> Result<Option<NpyRows>> {
        let read = || -> std::result::Result<Option<NpyRows>, Failure> {
            let file = crate::readable::open(path)?;
            let bytes = file.metadata()?.len();
            let (header, start) = Header::read(&mut BufReader::new(file))?;
            header.expect_within(bytes.saturating_sub(start))?;
            let fortran = header.fortran_order && header.shape.len() > 1;
            if fortran || !matches!(header.descr.as_str(), "<f4" | "<f8") {
                return Ok(None);
            }
            Ok(Some(NpyRows { path: path.to_owned(), header, start, single: false }))
        };
        read().map_err(|source| Error::Read { path: path.to_owned(), source })
    }

    /// The same array as one example.
    pub fn as_one_example(self) -> NpyRows {
        NpyRows { single: true, ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The shape of the whole array.
    pub fn array_shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        if self.single { 1 } else { self.header.rows() }
    }

    /// Whether there are no examples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shape of one example.
    pub fn shape(&self) -> &[usize] {
        if self.single { &self.header.shape } else { self.header.row_shape() }
    }

    /// The examples in a range, flat: `[examples, features]`.
    ///
    /// # Errors
    /// If the file has become shorter, or a number is not finite.
    pub fn rows(&self, range: Range<usize>) -> Result<Array2<f64>> {
        let features: usize = self.shape().iter().product();
        let read = || -> std::result::Result<Array2<f64>, Failure> {
            let width = self.header.element_bytes()?;
            let mut file = crate::readable::open(&self.path)?;
            file.seek(SeekFrom::Start(self.start + (range.start * features * width) as u64))?;
            let mut bytes = vec![0; range.len() * features * width];
            file.read_exact(&mut bytes)?;
            let numbers: Vec<f64> = match width {
                4 => bytes.as_chunks().0.iter().map(|b| f64::from(f32::from_le_bytes(*b))).collect(),
                _ => bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
            };
            Ok(Array2::from_shape_vec((range.len(), features), numbers)?)
        };
        let rows = read().map_err(|source| Error::Read { path: self.path.clone(), source })?;
        if let Some(((row, feature), &value)) = rows.indexed_iter().find(|(_, value)| !value.is_finite()) {
            return Err(DataError::NotFinite {
                data: self.path.display().to_string(),
                row: range.start + row,
                place: format!("feature {feature}"),
                value,
            }
            .into());
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array3, array};
    use ndarray_npy::write_npy;

    #[test]
    fn rows_come_in_ranges_and_in_both_precisions() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        write_npy(&path, &Array3::from_shape_fn((4, 2, 1), |(i, j, _)| (10 * i + j) as f32)).unwrap();
        let rows = NpyRows::open(&path).unwrap().unwrap();
        assert_eq!((rows.len(), rows.shape()), (4, &[2, 1][..]));
        assert_eq!(rows.rows(1..3).unwrap(), array![[10.0, 11.0], [20.0, 21.0]]);
        let one = rows.as_one_example();
        assert_eq!((one.len(), one.shape(), one.rows(0..1).unwrap().ncols()), (1, &[4, 2, 1][..], 8));

        write_npy(&path, &array![[1.0, f64::NAN]]).unwrap();
        let told = NpyRows::open(&path).unwrap().unwrap().rows(0..1).unwrap_err().to_string();
        assert!(told.contains("feature 1"), "{told}");
        write_npy(&path, &array![[1_i64, 2]]).unwrap();
        assert!(NpyRows::open(&path).unwrap().is_none());
    }

    #[test]
    fn a_file_shorter_than_it_declares_is_refused_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let mut bytes = Vec::new();
        let header = Header { descr: "<f8".into(), fortran_order: false, shape: vec![1 << 40, 4] };
        header.write(&mut bytes).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let told = NpyRows::open(&path).unwrap_err().to_string();
        assert!(told.contains("declares shape [1099511627776, 4], but has"), "{told}");
    }
}
