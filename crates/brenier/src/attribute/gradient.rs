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
use super::spec::{Explainer, MethodPage, MethodSpec, Need};
use super::{Certificate, Context, Explanation, Meaning};
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

impl Gradient {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["saliency", "vanilla-gradient"],
        help: "slope of the score at the input",
        needs: &[Need::Gradients],
        uses: &[],
        meaning: Meaning::Sensitivity,
        build: |_| Gradient {}.into(),
        page: MethodPage {
            credit: r"$\partial_i f(x)$",
            sums_to: "nothing",
            cost: "1",
            use_it: "as a first look, and as the base of others",
            refuses: "a model without a gradient",
        },
    }];
}

impl Explainer for Gradient {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        _: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets)
    }
}
