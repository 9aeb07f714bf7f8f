//! The header of numpy's `.npy` format, so that arrays can be read and joined a few rows at a time.
//!
//! ```text
//! \x93NUMPY  major minor  length of the text  {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//! ```
//!
//! `ndarray-npy` reads and writes whole arrays. A run over many inputs must not hold them all, so it needs to know
//! where the rows begin and how long a row is. What a header declares is checked before anything is allocated.

use std::io::{BufReader, Read, Write};
use std::path::Path;

use crate::whole_file::Failure;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Headers are padded so that the numbers begin at a multiple of this.
const ALIGNMENT: usize = 64;
/// No array that is read here needs a longer text.
const LONGEST_TEXT: usize = 1 << 16;

/// What a `.npy` file says of its array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The element type in numpy's words, such as `<f8`.
    pub(crate) descr: String,
    /// Whether the first axis is the fastest.
    pub(crate) fortran_order: bool,
    /// The size of each axis; the first is the row.
    pub(crate) shape: Vec<usize>,
}

/// Refuses a `.npy` file that declares more than it holds, before anybody makes room for it.
pub(crate) fn expect_honest(path: &Path) -> Result<(), Failure> {
    let file = crate::readable::open(path)?;
    if !file.metadata()?.is_file() {
        return Err("it is not an ordinary file".into());
    }
    let bytes = file.metadata()?.len();
    let (header, start) = Header::read(&mut BufReader::new(file))?;
    header.expect_within(bytes.saturating_sub(start))
}

impl Header {
    /// Reads a header; the reader then stands at the first number. Also gives the header's length in bytes.
    pub(crate) fn read(from: &mut impl Read) -> Result<(Header, u64), Failure> {
        let mut start = [0; 8];
        from.read_exact(&mut start)?;
        if &start[..6] != MAGIC {
            return Err("it does not begin as a .npy array does".into());
        }
        let (length, before) = if start[6] == 1 {
            let mut length = [0; 2];
            from.read_exact(&mut length)?;
            (usize::from(u16::from_le_bytes(length)), 10)
        } else {
            let mut length = [0; 4];
            from.read_exact(&mut length)?;
            (u32::from_le_bytes(length) as usize, 12)
        };
        if length > LONGEST_TEXT {
            return Err(format!("its header declares a text of {length} bytes").into());
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)?;
        let text = String::from_utf8(text)?;
        let header = Header::parse(&text).ok_or_else(|| format!("its header is not understood: {text}"))?;
        Ok((header, (before + length) as u64))
    }

    /// Refuses an array that declares more bytes than there are behind its header.
    pub(crate) fn expect_within(&self, bytes: u64) -> Result<(), Failure> {
        let declared = (self.rows() as u64).checked_mul(self.row_bytes()? as u64);
        match declared {
            Some(declared) if declared <= bytes => Ok(()),
            _ => Err(format!("it declares shape {:?}, but has {bytes} bytes of numbers", self.shape).into()),
        }
    }

    fn parse(text: &str) -> Option<Header> {
        let after = |key: &str| {
            let rest = &text[text.find(&format!("'{key}'"))? + key.len() + 2..];
            Some(rest.trim_start().strip_prefix(':')?.trim_start())
        };
        let descr = after("descr")?.strip_prefix('\'')?.split('\'').next()?.to_string();
        let fortran_order = after("fortran_order")?.starts_with("True");
        let axes = after("shape")?.strip_prefix('(')?.split(')').next()?;
        let shape = axes
            .split(',')
            .map(str::trim)
            .filter(|axis| !axis.is_empty())
            .map(|axis| axis.trim_end_matches('L').parse().ok())
            .collect::<Option<Vec<usize>>>()?;
        Some(Header { descr, fortran_order, shape })
    }

    /// Writes the header as numpy's version 1.0.
    pub(crate) fn write(&self, into: &mut impl Write) -> Result<(), Failure> {
        let axes: String = self.shape.iter().map(|axis| format!("{axis}, ")).collect();
        let order = if self.fortran_order { "True" } else { "False" };
        let axes = if self.shape.len() == 1 { axes.trim_end() } else { axes.trim_end_matches(", ") };
        let mut text =
            format!("{{'descr': '{}', 'fortran_order': {order}, 'shape': ({axes}), }}", self.descr);
        let unpadded = MAGIC.len() + 4 + text.len() + 1;
        text.push_str(&" ".repeat(unpadded.next_multiple_of(ALIGNMENT) - unpadded));
        text.push('\n');
        into.write_all(MAGIC)?;
        into.write_all(&[1, 0])?;
        into.write_all(&u16::try_from(text.len())?.to_le_bytes())?;
        Ok(into.write_all(text.as_bytes())?)
    }

    /// The number of rows: the first axis. A single number is one row.
    pub(crate) fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The shape of one row.
    pub(crate) fn row_shape(&self) -> &[usize] {
        self.shape.get(1..).unwrap_or_default()
    }

    /// Bytes of one element: the number at the end of `descr`.
    pub(crate) fn element_bytes(&self) -> Result<usize, Failure> {
        let digits = self.descr.trim_start_matches(|c: char| !c.is_ascii_digit());
        digits.parse().map_err(|_| format!("its element type is '{}'", self.descr).into())
    }

    /// Bytes of one row.
    pub(crate) fn row_bytes(&self) -> Result<usize, Failure> {
        let elements = self.row_shape().iter().try_fold(1_usize, |product, axis| product.checked_mul(*axis));
        let bytes = elements.and_then(|count| count.checked_mul(self.element_bytes().ok()?));
        bytes.ok_or_else(|| format!("it declares rows of shape {:?}", self.row_shape()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array3};
    use ndarray_npy::WriteNpyExt;

    #[test]
    fn headers_of_others_are_read_and_ours_are_read_by_others() {
        let mut bytes = Vec::new();
        Array3::<f32>::zeros((2, 3, 4)).write_npy(&mut bytes).unwrap();
        let (header, length) = Header::read(&mut &bytes[..]).unwrap();
        assert_eq!((header.descr.as_str(), header.fortran_order), ("<f4", false));
        assert_eq!((header.rows(), header.row_shape(), header.row_bytes().unwrap()), (2, &[3, 4][..], 48));
        assert_eq!(bytes.len() as u64, length + 96);

        for shape in [vec![5], vec![2, 3], vec![]] {
            let header = Header { descr: "<i8".into(), fortran_order: false, shape };
            let mut bytes = Vec::new();
            header.write(&mut bytes).unwrap();
            assert_eq!(bytes.len() % ALIGNMENT, 0);
            assert_eq!(Header::read(&mut &bytes[..]).unwrap(), (header, bytes.len() as u64));
        }
        let mut bytes = Vec::new();
        Header { descr: "<f8".into(), fortran_order: false, shape: vec![2] }.write(&mut bytes).unwrap();
        bytes.extend(1.5_f64.to_le_bytes());
        bytes.extend(2.5_f64.to_le_bytes());
        let read: Array1<f64> = ndarray_npy::ReadNpyExt::read_npy(&bytes[..]).unwrap();
        assert_eq!(read.to_vec(), [1.5, 2.5]);
    }

    #[test]
    fn a_header_that_lies_allocates_nothing() {
        let told = |bytes: &[u8]| Header::read(&mut &bytes[..]).unwrap_err().to_string();
        assert!(told(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("declares a text of 4294967295 bytes"));
        assert!(told(b"PK\x03\x04    ").contains("does not begin"));
        let huge = Header { descr: "<f8".into(), fortran_order: false, shape: vec![1, 1 << 40, 1 << 40] };
        assert!(huge.row_bytes().unwrap_err().to_string().contains("declares rows of shape"));
    }
}
