//! Where inputs come from.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, s};
use sha2::{Digest, Sha256};

use crate::data::{Dataset, NpyRows};
use crate::error::Result;
use crate::fingerprint_row;
use crate::text::Tokens;

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

    /// The tokens of one, where it is text.
    fn tokens(&self, _row: usize) -> Option<Tokens> {
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

/// A fingerprint of the inputs of a range: SHA-256 over those of its rows, in order. Certificates hold these, so that it can be
/// told from them too. Rows that cannot be read are an error, or count as such where `skipping` says so.
pub(super) fn fingerprint(inputs: &dyn Inputs, range: Range<usize>, skipping: bool) -> Result<String> {
    let mut all = Fingerprints::default();
    for first in range.clone().step_by(CHUNK) {
        let some = first..(first + CHUNK).min(range.end);
        match inputs.rows(some.clone()) {
            Ok(rows) => rows.rows().into_iter().for_each(|row| all.add(Some(&fingerprint_row(row)))),
            Err(_) if skipping => some.for_each(|row| {
                let one = inputs.rows(row..row + 1).ok();
                all.add(one.map(|rows| fingerprint_row(rows.row(0))).as_deref());
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(all.finish())
}

/// Fingerprints of rows, one after another.
#[derive(Default)]
pub(super) struct Fingerprints(Sha256);

impl Fingerprints {
    /// The next row; none where it could not be read.
    pub(super) fn add(&mut self, row: Option<&str>) {
        self.0.update(row.unwrap_or("unreadable"));
        self.0.update(b"\n");
    }

    /// The fingerprint of all.
    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
