//! Integrated Gradients: the path integral along the straight line from a baseline.
//!
//! ```text
//! Phi_i = (x_i - b_i) int_0^1 d_i f(b + t (x - b)) dt        (Sundararajan et al., 2017)
//! ```

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::rows::check_inputs;
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{
    Allocation, Baseline, Context, Explanation, Meaning, Method, Request, Sampling, Settings, WithPaths,
    boxed,
};
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

impl IntegratedGradients {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &["integrated-gradients"],
        help: "path integral along the straight line from a baseline",
        needs: &[Need::GradientsOrTrees],
        uses: &[Setting::Baseline, Setting::Rule, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: r"$(x_i-b_i)\int\partial_i f(b+t(x-b))\,\mathrm dt$",
            sums_to: "$f(x)-f(b)$",
            cost: "as the tolerance needs, or $K$",
            use_it: "where a baseline means something",
            refuses: "a mean without data, a blur of something that is no image",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        // Shares of squared gradients need gradients.
        MethodSpec {
            needs: &[Need::Gradients],
            ..Self::PLAIN.with_idgi(
                "ig+idgi",
                &[Setting::Baseline, Setting::Steps, Setting::Seed, Setting::Data],
                |settings| build(settings.idgi(), settings),
            )
        },
    ];
}

impl Explainer for IntegratedGradients {
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
        Ok(boxed(self.explain_with_paths(score, inputs, targets, context)?))
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let baseline = settings.baseline.unwrap_or_default();
    IntegratedGradients { baseline, allocation, seed: settings.seed }.into()
}
