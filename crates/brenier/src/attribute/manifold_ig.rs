//! Manifold IG: the path integral along a geodesic of the geometry that a flow has learned.
//!
//! ```text
//! gamma(s) = F((1 - s) F^-1(b) + s F^-1(x));     Phi_i = int d_i f(gamma) gamma_i' ds
//! ```
//!
//! `F` carries the flow's reference to the data. The metric is the Euclidean one of the reference, seen in the data: the
//! geodesic is a straight line there. This is not the metric of Zaher et al. ("Manifold Integrated Gradients", 2024), which
//! a decoder of few latent variables pulls back from pixel space: pulled back by an invertible flow that metric is flat, and
//! its geodesics are the straight lines of `ig`. From `transport` it differs in where it starts: at a baseline that somebody
//! has chosen, and not where the flow says that the input comes from.

use ndarray::{ArrayView2, s};
use serde::{Deserialize, Serialize};

use super::integrated_gradients::requests;
use super::rows::{MICRO_BATCH, check_inputs};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::transport::{expect_fitting, over_flows};
use super::{
    Allocation, Baseline, Context, Explanation, Meaning, Method, Sampling, Settings, WithPaths, boxed,
};
use crate::Result;
use crate::flow::VelocityField;
use crate::path::{LatentLine, Solver, latent_lines};
use crate::predictor::Score;

/// Credit along the straight line where a flow comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ManifoldIg {
    /// Where the path starts.
    pub baseline: Baseline,
    /// Steps at which the flow is asked for the path.
    pub points: usize,
    /// How states are carried.
    pub solver: Solver,
    /// How credit is given along the path.
    pub allocation: Allocation,
    /// Seed of a baseline that is drawn.
    pub seed: u64,
}

impl Default for ManifoldIg {
    /// From zero, with 32 steps.
    fn default() -> Self {
        Self {
            baseline: Baseline::Zero,
            points: 32,
            solver: Solver::default(),
            allocation: Allocation::default(),
            seed: 0,
        }
    }
}

impl ManifoldIg {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "manifold-ig";

    /// Explains each row of `inputs` under every flow of the context; with several, credit is their mean and has
    /// standard errors.
    ///
    /// # Errors
    /// If the context has no flow, or one of another shape, or the baseline needs something that it does not have.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        over_flows(Self::NAME, context, |flow| Ok(self.along(flow, score, inputs, targets, context)?.0))
    }

    fn along(
        &self,
        flow: &dyn VelocityField,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<(Vec<Explanation>, Vec<LatentLine>)> {
        check_inputs(score, inputs, targets)?;
        expect_fitting(Self::NAME, flow, score)?;
        let baselines = self.baseline.of(inputs, score.shape(), self.seed, context)?;
        let mut lines = Vec::with_capacity(targets.len());
        for first in (0..targets.len()).step_by(MICRO_BATCH) {
            let rows = s![first..(first + MICRO_BATCH).min(targets.len()), ..];
            let part =
                latent_lines(flow, baselines.slice(rows), inputs.slice(rows), self.points, &self.solver);
            lines.extend(part.map_err(|error| error.counted_from(first))?);
        }
        let mut explanations = self.allocation.explain_all(Self::NAME, score, &requests(&lines, targets))?;
        if self.baseline == Baseline::Noise {
            for explanation in &mut explanations {
                explanation.certificate.sampling = Some(Sampling::new(self.seed, 1, None));
            }
        }
        Ok((explanations, lines))
    }
}

impl ManifoldIg {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &["manifold-integrated-gradients"],
        help: "path from a baseline that is straight where a flow comes from",
        needs: &[Need::GradientsOrTrees, Need::Flow],
        uses: &[
            Setting::Baseline,
            Setting::SolverTolerance,
            Setting::Rule,
            Setting::Seed,
            Setting::Data,
            Setting::Flow,
        ],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: "path integral along the geodesic of the flow's geometry",
            sums_to: "$f(x)-f(b)$",
            cost: "as the tolerance needs, or $K$; and 35 ways through the flow",
            use_it: "where a baseline means something, and the way should lead through what the data look like",
            refuses: "a run without a flow, a flow of another shape; a mean without data",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        // Shares of squared gradients need gradients.
        MethodSpec {
            needs: &[Need::Gradients, Need::Flow],
            ..Self::PLAIN.with_idgi(
                "manifold-ig+idgi",
                &[
                    Setting::Baseline,
                    Setting::SolverTolerance,
                    Setting::Steps,
                    Setting::Seed,
                    Setting::Data,
                    Setting::Flow,
                ],
                |settings| build(settings.idgi(), settings),
            )
        },
    ];
}

impl Explainer for ManifoldIg {
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
        match context.flows.as_slice() {
            [flow] => Ok(boxed(self.along(*flow, score, inputs, targets, context)?)),
            _ => Ok((self.run(score, inputs, targets, context)?, Vec::new())),
        }
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let default = ManifoldIg::default();
    ManifoldIg {
        baseline: settings.baseline.unwrap_or_default(),
        solver: settings.solver_tolerance.map_or(default.solver, Solver::adaptive),
        allocation,
        seed: settings.seed,
        ..default
    }
    .into()
}
