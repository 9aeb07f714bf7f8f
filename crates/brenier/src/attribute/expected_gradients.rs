//! Expected Gradients: Integrated Gradients averaged over references that are drawn from the data.
//!
//! ```text
//! Phi_i = E [ (x_i - x'_i) d_i f(x' + t (x - x')) ],   x' ~ data,  t ~ U(0, 1)      (Erion et al., 2021)
//! ```
//!
//! One gradient a draw, reference and time drawn together, so the mean is unbiased and its standard error is
//! that of independent draws. Credit sums to `f(x) - mean f(x')` up to sampling error. The mean is taken over
//! the references that were drawn, which takes as many scores again and is what tells how far the sum is off.

use ndarray::{Array1, ArrayView2};
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::moments::Moments;
use super::rows::{Row, check_inputs, input_rows, stream_gradients, stream_values};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Certificate, Completeness, Context, Explanation, Limits, Meaning, Sampling};
use crate::data::Dataset;
use crate::path::stack_rows;
use crate::predictor::Score;
use crate::{Error, Result, error};

/// Expected Gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExpectedGradients {
    /// Number of draws.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for ExpectedGradients {
    /// 200 draws.
    fn default() -> Self {
        Self { samples: 200, seed: 0 }
    }
}

/// One draw: the ends of a straight line and a time on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Where the line starts.
    pub reference: Array1<f64>,
    /// Where it ends: the input, or the input with noise.
    pub input: Array1<f64>,
    /// The time on it, 0 at the reference and 1 at the input.
    pub time: f64,
}

impl ExpectedGradients {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "expected-gradients";

    /// Explains each row of `inputs`; `samples` gradient and `samples` score evaluations each.
    ///
    /// # Errors
    /// If the context has no data, or data of another shape.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        let background = background(Self::NAME, score, context)?;
        let keys = context.keys(inputs);
        let draw = |example: usize, sample: usize| {
            let mut rng = generator(self.seed, keys[example], sample);
            let (reference, time) = start(background, &mut rng)?;
            Ok(Draw { reference, input: inputs.row(example).to_owned(), time })
        };
        self.explain_with(score, inputs, targets, draw)
    }

    /// As [`ExpectedGradients::explain`] with draws from elsewhere, by the number of the example and of the
    /// draw. Asked twice for a draw, the closure must answer the same.
    pub fn explain_with(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        draw: impl Fn(usize, usize) -> Result<Draw>,
    ) -> Result<Vec<Explanation>> {
        average(Self::NAME, score, inputs, targets, (self.samples, self.seed), true, draw)
    }
}

/// The rows that references are drawn from.
pub(super) fn background<'a>(method: &str, score: &dyn Score, context: &'a Context) -> Result<&'a Dataset> {
    let data = context.require_data(method)?;
    data.require_rows(1, "a background")?;
    error::expect_shape("a row of the data", score.shape(), data.shape())?;
    Ok(data)
}

/// A row to start from, and a time on the line from there.
pub(super) fn start(background: &Dataset, rng: &mut impl Rng) -> Result<(Array1<f64>, f64)> {
    let reference = background.rows_f64(&[rng.random_range(0..background.len())])?.row(0).to_owned();
    Ok((reference, rng.random::<f64>()))
}

/// The mean over draws of gradient times difference. Where `complete`, credit is held to the score's change.
pub(super) fn average(
    method: &str,
    score: &dyn Score,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    (samples, seed): (usize, u64),
    complete: bool,
    draw: impl Fn(usize, usize) -> Result<Draw>,
) -> Result<Vec<Explanation>> {
    if samples == 0 {
        return Err(Error::Zero { what: "the number of samples" });
    }
    check_inputs(score, inputs, targets)?;
    let draws = |references: bool| {
        let draw = &draw;
        targets.iter().enumerate().flat_map(move |(example, &target)| {
            (0..samples).map(move |sample| {
                let Draw { reference, input, time } = draw(example, sample)?;
                let difference = &input - &reference;
                let (state, time) =
                    if references { (reference, 0.0) } else { (reference + time * &difference, time) };
                Ok(Row { example, target, time, state, tag: difference })
            })
        })
    };
    let mut moments = vec![Moments::new(score.features()); targets.len()];
    if let Some(trees) = score.trees() {
        // The whole line of each draw at once, exactly: the time that was drawn is not needed.
        for (example, &target) in targets.iter().enumerate() {
            for sample in 0..samples {
                let Draw { reference, input, .. } = draw(example, sample)?;
                let points = stack_rows(&[reference, input]);
                moments[example].push(trees.path_credit(points.view(), target)?.view());
            }
        }
    } else {
        stream_gradients(score, draws(false), |row, _, gradient| {
            moments[row.example].push((&row.tag * &gradient).view());
        })?;
    }
    let mut reference_scores = vec![0.0; targets.len()];
    if complete {
        stream_values(score, draws(true), |row, value| {
            reference_scores[row.example] += value / samples as f64;
        })?;
    }
    let mut explanations = Vec::with_capacity(targets.len());
    stream_values(score, input_rows(inputs, targets), |row, value| {
        let (values, errors) = (moments[row.example].mean(), moments[row.example].mean_error());
        let completeness =
            complete.then(|| Completeness::new(values.sum(), reference_scores[row.example], value));
        let certificate = Certificate {
            completeness,
            gradient_evaluations: if score.trees().is_some() { 0 } else { samples },
            score_evaluations: if complete { samples + 1 } else { 1 },
            sampling: Some(Sampling::new(seed, samples, errors.as_ref())),
            ..Certificate::new(method, row.example, row.target, value)
        };
        explanations.push(Explanation {
            values,
            shape: score.shape().to_vec(),
            reference: None,
            input: row.state.clone(),
            standard_errors: errors,
            certificate: certificate.judged(&Limits::default()),
        });
    })?;
    Ok(explanations)
}

impl ExpectedGradients {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["gradient-explainer"],
        help: "ig averaged over baselines drawn from the data",
        needs: &[Need::GradientsOrTrees, Need::Data],
        uses: &[Setting::Samples, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let samples = settings.samples.unwrap_or(ExpectedGradients::default().samples);
            ExpectedGradients { samples, seed: settings.seed }.into()
        },
        page: MethodPage {
            credit: r"$\mathrm E\,(x_i-x'_i)\,\partial_i f(x'+t(x-x'))$",
            sums_to: r"$f(x)-\overline{f(x')}$, up to sampling",
            cost: "$n$ = 200, and $n$ scores",
            use_it: "where no single baseline is right and data are at hand",
            refuses: "a run without background data",
        },
    }];
}

impl Explainer for ExpectedGradients {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        Some(self.samples.saturating_mul(2))
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
}
