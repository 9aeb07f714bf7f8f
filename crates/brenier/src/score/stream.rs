//! Rows on their way through a score, as many together as suit it.
//!
//! Whoever looks at many points writes them into one buffer, each with what it knows of it, and takes the answers in the
//! order of the rows. A row's answer depends on that row only, so results do not depend on what went together; and memory
//! grows neither with the number of samples nor with that of steps. What an answer that is no number means is for the
//! owner to say.

use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1};

use super::Score;
use crate::{Result, error};

/// Bytes that rows may take while they wait: of large images there are fewer.
const BATCH_BYTES: usize = 64 << 20;

/// The rows of a batch of at most so many, given the features of each.
pub(crate) fn rows_at_once(most: usize, features: usize) -> usize {
    most.min((BATCH_BYTES / (8 * features.max(1))).max(1))
}

/// Rows that wait for their scores or gradients.
pub(crate) struct ScoreStream<'a, T> {
    score: &'a dyn Score,
    capacity: usize,
    rows: Vec<f64>,
    targets: Vec<usize>,
    tags: Vec<T>,
}

impl<'a, T> ScoreStream<'a, T> {
    /// At most so many rows together, and fewer where they are long.
    pub(crate) fn new(score: &'a dyn Score, most: usize) -> Self {
        let capacity = rows_at_once(most.max(1), score.features());
        Self { score, capacity, rows: Vec::new(), targets: Vec::new(), tags: Vec::new() }
    }

    /// One more row, which `write` fills in by its tag; it is zero before. True where the batch is full and wants to be sent.
    pub(crate) fn push(&mut self, target: usize, tag: T, write: impl FnOnce(&T, ArrayViewMut1<f64>)) -> bool {
        let begin = self.rows.len();
        if begin == 0 {
            // Once for all: growing by doubling would hold large rows twice.
            self.rows.reserve_exact(self.capacity * self.score.features());
        }
        self.rows.resize(begin + self.score.features(), 0.0);
        write(&tag, ArrayViewMut1::from(&mut self.rows[begin..]));
        self.targets.push(target);
        self.tags.push(tag);
        self.is_full()
    }

    /// Whether the batch wants to be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.tags.len() >= self.capacity
    }

    /// The scores of all rows that wait, handed to `sink` in their order.
    pub(crate) fn values(&mut self, mut sink: impl FnMut(T, f64) -> Result<()>) -> Result<()> {
        if self.tags.is_empty() {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let values = self.score.values(self.batch(&rows)?, &self.targets)?;
        drop(rows);
        self.expect_one_each(&values)?;
        self.targets.clear();
        self.tags.drain(..).zip(values).try_for_each(|(tag, value)| sink(tag, value))
    }

    /// The scores and gradients of all rows that wait, handed to `sink` in their order.
    pub(crate) fn gradients(
        &mut self,
        mut sink: impl FnMut(T, f64, ArrayView1<f64>) -> Result<()>,
    ) -> Result<()> {
        if self.tags.is_empty() {
            return Ok(());
        }
        // Of large images the rows take much room: they go before anything is made of the answers.
        let rows = std::mem::take(&mut self.rows);
        let (values, gradients) = self.score.gradients(self.batch(&rows)?, &self.targets)?;
        drop(rows);
        self.expect_one_each(&values)?;
        error::expect_shape(
            "the score's gradients",
            &[self.tags.len(), self.score.features()],
            gradients.shape(),
        )?;
        self.targets.clear();
        let answers = values.into_iter().zip(gradients.rows());
        self.tags.drain(..).zip(answers).try_for_each(|(tag, (value, gradient))| sink(tag, value, gradient))
    }

    fn batch<'b>(&self, rows: &'b [f64]) -> Result<ArrayView2<'b, f64>> {
        let shape = (self.tags.len(), self.score.features());
        ArrayView2::from_shape(shape, rows).map_err(|_| crate::Error::Shape {
            what: "a batch of points".to_string(),
            expected: vec![shape.0, shape.1],
            found: vec![rows.len()],
        })
    }

    fn expect_one_each(&self, values: &Array1<f64>) -> Result<()> {
        error::expect_shape("the score's values", &[self.tags.len()], values.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScoreFn;
    use ndarray::array;

    #[test]
    fn answers_come_in_order_whatever_goes_together() {
        let score = ScoreFn::new(&[2], |x, target| (x[0] * 10.0 + target as f64, array![x[1], 1.0]));
        for most in [1, 2, 3, 100] {
            let mut stream = ScoreStream::new(&score, most);
            let mut seen = Vec::new();
            for k in 0..7 {
                // The buffer is zero again for every row.
                let full = stream.push(k % 3, k, |_, mut row| {
                    if k != 4 {
                        row.fill(k as f64)
                    }
                });
                assert_eq!(full, (k + 1) % most == 0, "{most} {k}");
                if full {
                    stream
                        .gradients(|tag, value, gradient| {
                            seen.push((tag, value, gradient[0]));
                            Ok(())
                        })
                        .unwrap();
                }
            }
            stream
                .gradients(|tag, value, gradient| {
                    seen.push((tag, value, gradient[0]));
                    Ok(())
                })
                .unwrap();
            let expected: Vec<_> = (0..7_usize)
                .map(|k| (k, if k == 4 { 0.0 } else { k as f64 }))
                .map(|(k, x)| (k, 10.0 * x + (k % 3) as f64, x))
                .collect();
            assert_eq!(seen, expected, "{most}");
        }
    }

    #[test]
    fn a_score_that_forgets_a_row_is_refused() {
        struct Short;
        impl Score for Short {
            fn shape(&self) -> &[usize] {
                &[1]
            }
            fn values(&self, _x: ArrayView2<f64>, _targets: &[usize]) -> Result<Array1<f64>> {
                Ok(array![1.0])
            }
            fn gradients(
                &self,
                x: ArrayView2<f64>,
                _targets: &[usize],
            ) -> Result<(Array1<f64>, ndarray::Array2<f64>)> {
                Ok((Array1::zeros(x.nrows()), ndarray::Array2::zeros((1, 1))))
            }
        }
        let mut stream = ScoreStream::new(&Short, 9);
        stream.push(0, (), |(), _| {});
        stream.push(0, (), |(), _| {});
        assert!(stream.values(|(), _| Ok(())).unwrap_err().to_string().contains("the score's values"));
        let mut stream = ScoreStream::new(&Short, 9);
        stream.push(0, (), |(), _| {});
        stream.push(0, (), |(), _| {});
        assert!(
            stream.gradients(|(), _, _| Ok(())).unwrap_err().to_string().contains("the score's gradients")
        );
    }
}
