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
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Allocation, Context, Explanation, Meaning, Method, Settings, WithPaths, boxed};
use crate::path::{DdimPath, Path, ddim};
use crate::predictor::Score;
use crate::{Error, Remedy, Result};

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
                Remedy::GiveDiffusionModel,
            ));
        };
        if model.shape() != score.shape() {
            return Err(refuse(
                format!(
                    "the diffusion model is for inputs of shape {:?}, the model for {:?}",
                    model.shape(),
                    score.shape()
                ),
                "use a diffusion model that was trained on this model's data".into(),
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

impl Ddim {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "path along the trajectory of a diffusion model",
        needs: &[Need::Gradients, Need::Diffusion],
        uses: &[Setting::InversionSteps, Setting::Rule, Setting::Flow],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: "path integral along the DDIM trajectory of a diffusion model",
            sums_to: "$f(x)-f(x_0)$",
            cost: "as the tolerance needs, or $K$; and 50 evaluations of the diffusion model",
            use_it: "to compare with a flow: the diffusion baseline of the paper",
            refuses: "a run without a diffusion model, one of another shape",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        Self::PLAIN.with_idgi(
            "ddim+idgi",
            &[Setting::InversionSteps, Setting::Steps, Setting::Flow],
            |settings| build(settings.idgi(), settings),
        ),
    ];
}

impl Explainer for Ddim {
    fn spec(&self) -> &'static MethodSpec {
        self.allocation.spec(Self::SPECS)
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets, context)
    }

    fn run_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        let mut paths = Vec::new();
        let keep = &mut |part| paths.extend(part);
        let explanations = self.explain_and_keep(score, inputs, targets, context, keep)?;
        Ok(boxed((explanations, paths)))
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let inversion_steps = settings.inversion_steps.unwrap_or(Ddim::default().inversion_steps);
    Ddim { inversion_steps, allocation }.into()
}
