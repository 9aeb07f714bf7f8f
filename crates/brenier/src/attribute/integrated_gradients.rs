//! Integrated Gradients: the path integral along the straight line from a baseline.
//!
//! ```text
//! Phi_i = (x_i - b_i) int_0^1 d_i f(b + t (x - b)) dt        (Sundararajan et al., 2017)
//! ```

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::check_inputs;
use super::{Allocation, Baseline, Context, Explanation, Request, Sampling};
use crate::Result;
use crate::path::Line;
use crate::predictor::Score;

/// Integrated Gradients.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IntegratedGradients {
    /// Where the line starts.
    pub baseline: Baseline,
    /// How credit is given along it.
    pub allocation: Allocation,
    /// Seed of a baseline that is drawn.
    pub seed: u64,
}

impl IntegratedGradients {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "ig";

    /// Explains each row of `inputs`; as many gradient evaluations as the rule needs.
    ///
    /// # Errors
    /// If the baseline needs something that the context does not have.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        Ok(self.explain_with_paths(score, inputs, targets, context)?.0)
    }

    /// As [`IntegratedGradients::explain`], with the lines.
    pub fn explain_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<(Vec<Explanation>, Vec<Line>)> {
        check_inputs(score, inputs, targets)?;
        let baselines = self.baseline.of(inputs, score.shape(), self.seed, context)?;
        let lines: Result<Vec<Line>> =
            baselines.rows().into_iter().zip(inputs.rows()).map(|(from, to)| Line::new(from, to)).collect();
        let lines = lines?;
        let requests = requests(&lines, targets);
        let mut explanations = self.allocation.explain_all(Self::NAME, score, &requests)?;
        if self.baseline == Baseline::Noise {
            for explanation in &mut explanations {
                explanation.certificate.sampling = Some(Sampling::new(self.seed, 1, None));
            }
        }
        Ok((explanations, lines))
    }
}

/// A request for each path and its target.
pub(super) fn requests<'a, P: crate::path::Path>(paths: &'a [P], targets: &[usize]) -> Vec<Request<'a>> {
    let pairs = paths.iter().zip(targets).enumerate();
    pairs.map(|(example, (path, &target))| Request { example, path, target }).collect()
}
