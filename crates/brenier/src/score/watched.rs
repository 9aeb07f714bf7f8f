//! A score that tells how much it is asked, so that a long explanation of one input can be watched and stopped.

use std::ops::ControlFlow;

use ndarray::{Array1, Array2, ArrayView2};

use super::{Score, Trees};
use crate::packed::PackedInputs;
use crate::{Error, Result};

/// A [`Score`] that says after every batch how many rows it had.
///
/// ```
/// use std::cell::Cell;
/// use std::ops::ControlFlow;
///
/// use brenier::{Score, ScoreFn, Watched};
/// use ndarray::array;
///
/// let square = ScoreFn::new(&[1], |x, _| (x.dot(&x), 2.0 * &x));
/// let rows = Cell::new(0);
/// let tell = |more| {
///     rows.set(rows.get() + more);
///     ControlFlow::Continue(())
/// };
/// Watched::new(&square, &tell).values(array![[1.0], [2.0]].view(), &[0, 0])?;
/// assert_eq!(rows.get(), 2);
/// # Ok::<(), brenier::Error>(())
/// ```
pub struct Watched<'a> {
    score: &'a dyn Score,
    tell: &'a dyn Fn(usize) -> ControlFlow<()>,
}

impl<'a> Watched<'a> {
    /// Where `tell` breaks off, the score answers no more ([`Error::Stopped`]).
    pub fn new(score: &'a dyn Score, tell: &'a dyn Fn(usize) -> ControlFlow<()>) -> Self {
        Self { score, tell }
    }

    fn told(&self, rows: usize) -> Result<()> {
        if (self.tell)(rows).is_break() { Err(Error::Stopped) } else { Ok(()) }
    }
}

impl Score for Watched<'_> {
    fn shape(&self) -> &[usize] {
        self.score.shape()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        let values = self.score.values(x, targets)?;
        self.told(x.nrows())?;
        Ok(values)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let found = self.score.gradients(x, targets)?;
        self.told(x.nrows())?;
        Ok(found)
    }

    fn features(&self) -> usize {
        self.score.features()
    }

    fn inputs(&self) -> Option<&PackedInputs> {
        self.score.inputs()
    }

    fn trees(&self) -> Option<&dyn Trees> {
        self.score.trees()
    }
}
