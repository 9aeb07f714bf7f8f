//! DDIM: the path integral along the deterministic trajectory of a diffusion model.
//!
//! ```text
//! x_b = alpha_b (x_a - sigma_a e) / alpha_a + sigma_b e,  e = eps(x_a, t_a);     Phi = int grad f(gamma) * d gamma
//! ```
//!
//! `gamma` is the polyline through the states of the inversion, from noise at time 0 to the input at time 1. The
//! paper's diffusion baseline.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::check_inputs;
use super::{Allocation, Context, Explanation};
use crate::path::{DdimPath, Path, ddim};
use crate::predictor::Score;
use crate::{Error, Result};

/// Credit along a DDIM trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ddim {
    /// Steps of the inversion.
    pub inversion_steps: usize,
    /// How credit is given along the trajectory.
    pub allocation: Allocation,
}

impl Default for Ddim {
    /// 50 steps.
    fn default() -> Self {
        Self { inversion_steps: 50, allocation: Allocation::default() }
    }
}

impl Ddim {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "ddim";

    /// Explains each row of `inputs`; inputs are inverted a micro-batch at a time.
    ///
    /// # Errors
    /// If the context has no diffusion model, or one of another shape.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain_and_keep(score, inputs, targets, context, &mut |_| {})
    }

    /// As [`Ddim::explain`]; the paths of each micro-batch are handed to `keep`.
    pub(super) fn explain_and_keep(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
        keep: &mut dyn FnMut(Vec<DdimPath>),
    ) -> Result<Vec<Explanation>> {
        check_inputs(score, inputs, targets)?;
        let refuse =
            |reason: String, remedy| Error::Method { method: Self::NAME.to_string(), reason, remedy };
        let Some(model) = context.diffusion else {
            return Err(refuse(
                "there is no diffusion model to follow".to_string(),
                "give one that was trained on the model's data (--flow ddpm.onnx)",
            ));
        };
        if model.shape() != score.shape() {
            return Err(refuse(
                format!(
                    "the diffusion model is for inputs of shape {:?}, the model for {:?}",
                    model.shape(),
                    score.shape()
                ),
                "use a diffusion model that was trained on this model's data",
            ));
        }
        self.allocation.explain_traced(
            Self::NAME,
            score,
            inputs,
            targets,
            |rows, follow| {
                let paths = ddim(model, rows, self.inversion_steps)?;
                follow(&paths.iter().map(|path| path as &dyn Path).collect::<Vec<_>>());
                Ok(paths)
            },
            keep,
        )
    }
}
