//! Gradient times input: the first-order share of each feature in the score.
//!
//! ```text
//! Phi_i = x_i d_i f(x)
//! ```
//!
//! For a score that is linear in its input without an offset, and for ReLU networks without biases, credit
//! sums to the score; for others it sums to nothing in particular, so no sum is claimed.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::Explanation;
use super::gradient::at_inputs;
use crate::Result;
use crate::predictor::Score;

/// Gradient times input. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GradientInput {}

impl GradientInput {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "gradient-input";

    /// Gradient times input at each row of `inputs`; one gradient evaluation each.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        at_inputs(Self::NAME, score, inputs, targets, |gradient, input| gradient * input)
    }
}
