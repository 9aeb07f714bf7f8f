//! A model of which all outputs can be seen.

use ndarray::{Array2, ArrayView2};

use super::ValuePredictor;
use crate::error::Result;

/// A model of which all outputs can be seen, to find the highest.
pub trait Outputs: Sync {
    /// The scores of all outputs, `[rows, outputs]`.
    ///
    /// # Errors
    /// What the model says.
    fn outputs(&self, x: ArrayView2<f64>) -> Result<Array2<f64>>;
}

impl Outputs for ValuePredictor {
    fn outputs(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.all_scores(x)
    }
}
