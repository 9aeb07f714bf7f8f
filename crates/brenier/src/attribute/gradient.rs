//! The gradient of the score: in which direction, and how fast, each feature changes it.
//!
//! ```text
//! Phi_i = d_i f(x)
//! ```
//!
//! A slope, not a share: it sums to nothing in particular (Simonyan et al., 2014).

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::{check_inputs, input_rows, stream_gradients};
use super::{Certificate, Explanation};
use crate::Result;
use crate::predictor::Score;

/// The gradient at the input. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Gradient {}

impl Gradient {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "gradient";

    /// The gradient at each row of `inputs`; one gradient evaluation each.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        at_inputs(Self::NAME, score, inputs, targets, |gradient, _| gradient)
    }
}

/// One gradient at each input, and what is made of it and of the input.
pub(super) fn at_inputs(
    method: &str,
    score: &dyn Score,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    credit: impl Fn(f64, f64) -> f64,
) -> Result<Vec<Explanation>> {
    check_inputs(score, inputs, targets)?;
    let mut explanations = Vec::with_capacity(targets.len());
    stream_gradients(score, input_rows(inputs, targets), |row, value, gradient| {
        explanations.push(Explanation {
            values: gradient.iter().zip(&row.state).map(|(&g, &x)| credit(g, x)).collect(),
            shape: score.shape().to_vec(),
            reference: None,
            input: row.state.clone(),
            standard_errors: None,
            certificate: Certificate {
                gradient_evaluations: 1,
                ..Certificate::new(method, row.example, row.target, value)
            },
        });
    })?;
    Ok(explanations)
}
