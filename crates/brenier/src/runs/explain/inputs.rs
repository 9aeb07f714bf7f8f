//! Where inputs come from.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};
use sha2::{Digest, Sha256};

use crate::data::{Dataset, NpyRows};
use crate::error::Result;

/// Rows in the fingerprint that are held at a time.
const CHUNK: usize = 256;

/// Inputs that can be asked for a few at a time.
pub trait Inputs {
    /// How many there are.
    fn count(&self) -> usize;

    /// Those in a range, flat: `[rows, features]`.
    ///
    /// # Errors
    /// If they cannot be read.
    fn rows(&self, range: Range<usize>) -> Result<Array2<f64>>;

    /// The name of one, such as its file.
    fn name(&self, _row: usize) -> Option<String> {
        None
    }
}

impl Inputs for ArrayView2<'_, f64> {
    fn count(&self) -> usize {
        self.nrows()
    }

    fn rows(&self, range: Range<usize>) -> Result<Array2<f64>> {
        Ok(self.slice(s![range, ..]).to_owned())
    }
}

impl Inputs for Dataset {
    fn count(&self) -> usize {
        self.len()
    }

    fn rows(&self, range: Range<usize>) -> Result<Array2<f64>> {
        self.rows_f64(&range.collect::<Vec<_>>())
    }

    fn name(&self, row: usize) -> Option<String> {
        Some(Dataset::name(self, row))
    }
}

impl Inputs for NpyRows {
    fn count(&self) -> usize {
        self.len()
    }

    fn rows(&self, range: Range<usize>) -> Result<Array2<f64>> {
        NpyRows::rows(self, range)
    }

    fn name(&self, row: usize) -> Option<String> {
        Some(format!("{}#{row}", self.path().display()))
    }
}

/// SHA-256 over the little-endian bytes of all rows, in order.
pub(super) fn fingerprint(inputs: &dyn Inputs) -> Result<String> {
    let mut hash = Sha256::new();
    for first in (0..inputs.count()).step_by(CHUNK) {
        let rows = inputs.rows(first..(first + CHUNK).min(inputs.count()))?;
        let bytes: Vec<u8> = rows.iter().flat_map(|value| value.to_le_bytes()).collect();
        hash.update(&bytes);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
