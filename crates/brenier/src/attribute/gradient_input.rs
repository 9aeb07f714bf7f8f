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

use super::gradient::at_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need};
use super::{Context, Explanation, Meaning};
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

impl GradientInput {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["input-x-gradient", "gradient-x-input", "gradient-times-input"],
        help: "slope times the value of each feature",
        needs: &[Need::Gradients],
        uses: &[],
        meaning: Meaning::Credit,
        build: |_| GradientInput {}.into(),
        page: MethodPage {
            credit: r"$x_i\,\partial_i f(x)$",
            sums_to: "$f(x)$ if $f$ is linear, or a ReLU network without biases; not claimed",
            cost: "1",
            use_it: "beside others that people know it from",
            refuses: "a model without a gradient",
        },
    }];
}

impl Explainer for GradientInput {
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
