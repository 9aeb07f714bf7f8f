//! Rows on their way through a score, a large batch at a time.
//!
//! A metric makes rows one after the other, of whatever example; the score sees as many together as take 8 MB,
//! so that all workers are busy and memory does not grow with the number of rows. Answers come back in the order
//! of the rows, and each row's answer depends on that row only, so results do not depend on the batch.

use ndarray::{Array2, ArrayView1, s};

use crate::predictor::Score;
use crate::{Error, Result, error};

/// What a batch of rows may take, in bytes.
const BATCH_BYTES: usize = 8 << 20;

/// Collects rows, asks for their scores together, and hands each to the sink with its tag.
pub(super) struct RowStream<'a, T, F> {
    score: &'a dyn Score,
    rows: Array2<f64>,
    targets: Vec<usize>,
    tags: Vec<(usize, T)>,
    /// Rows that are done, for messages.
    done: usize,
    sink: F,
}

impl<'a, T, F: FnMut(T, f64)> RowStream<'a, T, F> {
    pub(super) fn new(score: &'a dyn Score, sink: F) -> Self {
        let features = score.features();
        let capacity = (BATCH_BYTES / (8 * features.max(1))).clamp(32, 1024);
        let rows = Array2::zeros((capacity, features));
        RowStream { score, rows, targets: Vec::new(), tags: Vec::new(), done: 0, sink }
    }

    /// One more row.
    pub(super) fn push(&mut self, row: ArrayView1<f64>, target: usize, example: usize, tag: T) -> Result<()> {
        self.rows.row_mut(self.tags.len()).assign(&row);
        self.targets.push(target);
        self.tags.push((example, tag));
        if self.tags.len() == self.rows.nrows() { self.flush() } else { Ok(()) }
    }

    /// The last rows.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let count = self.tags.len();
        if count == 0 {
            return Ok(());
        }
        let values = self.score.values(self.rows.slice(s![..count, ..]), &self.targets)?;
        error::expect_shape("the score's values", &[count], values.shape())?;
        for ((example, tag), (&value, &target)) in self.tags.drain(..).zip(values.iter().zip(&self.targets)) {
            if !value.is_finite() {
                return Err(Error::PerturbedScore { example, row: self.done, target, value });
            }
            self.done += 1;
            (self.sink)(tag, value);
        }
        self.targets.clear();
        Ok(())
    }
}
