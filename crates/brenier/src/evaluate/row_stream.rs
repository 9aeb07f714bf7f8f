//! Rows of metrics on their way through a score, a large batch at a time.
//!
//! A metric makes rows one after the other, of whatever example; the score sees as many together as take 8 MB,
//! so that all workers are busy and memory does not grow with the number of rows.

use ndarray::ArrayView1;

use crate::score::{Score, ScoreStream};
use crate::{Error, Result};

/// What a batch of rows may take, in bytes.
const BATCH_BYTES: usize = 8 << 20;

/// Collects rows, asks for their scores together, and hands each to the sink with its tag.
pub(super) struct RowStream<'a, T, F> {
    stream: ScoreStream<'a, (usize, usize, T)>,
    /// Rows that are done, for messages.
    done: usize,
    sink: F,
}

impl<'a, T, F: FnMut(T, f64)> RowStream<'a, T, F> {
    pub(super) fn new(score: &'a dyn Score, sink: F) -> Self {
        let most = (BATCH_BYTES / (8 * score.features().max(1))).clamp(32, 1024);
        RowStream { stream: ScoreStream::new(score, most), done: 0, sink }
    }

    /// One more row.
    pub(super) fn push(&mut self, row: ArrayView1<f64>, target: usize, example: usize, tag: T) -> Result<()> {
        let full = self.stream.push(target, (example, target, tag), |_, mut to| to.assign(&row));
        if full { self.flush() } else { Ok(()) }
    }

    /// The last rows.
    pub(super) fn finish(mut self) -> Result<()> {
        self.flush()
    }

    fn flush(&mut self) -> Result<()> {
        let (done, sink) = (&mut self.done, &mut self.sink);
        self.stream.values(|(example, target, tag), value| {
            if !value.is_finite() {
                return Err(Error::PerturbedScore { example, row: *done, target, value });
            }
            *done += 1;
            sink(tag, value);
            Ok(())
        })
    }
}
