//! SmoothGrad and its relatives: what the gradient does in the neighbourhood of the input.
//!
//! ```text
//! g_s = grad f(x + e_s),   e_s ~ N(0, sigma^2 I),   sigma = noise (max x - min x)
//!
//! smoothgrad          Phi = mean_s g_s               (Smilkov et al., 2017)
//! smoothgrad-squared  Phi = mean_s g_s^2             (Hooker et al., 2019)
//! vargrad             Phi = mean_s (g_s - mean g)^2  (Adebayo et al., 2018)
//! ```
//!
//! The noise is relative to the range of each input, as in the paper. The draws of an example follow from the
//! seed, the input and the draw's number alone. Draws stream through the score; only their moments
//! are kept, and those give every feature's standard error.

use ndarray::{Array1, ArrayView1, ArrayView2};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::moments::Moments;
use super::rows::{Row, check_inputs, input_rows, stream_gradients, stream_values};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Certificate, Context, Explanation, Meaning, Method, Sampling, Settings};
use crate::predictor::Score;
use crate::{Error, Result};

/// What is taken of the gradients around the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Smoothing {
    /// Their mean: SmoothGrad.
    #[default]
    Mean,
    /// The mean of their squares: SmoothGrad-squared.
    Square,
    /// Their variance: VarGrad.
    Variance,
}

/// Gradients at noisy copies of the input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SmoothGrad {
    /// What is taken of the gradients.
    pub smoothing: Smoothing,
    /// Number of noisy copies.
    pub samples: usize,
    /// Standard deviation of the noise, as a fraction of the input's range (largest minus smallest value).
    pub noise: f64,
    /// Seed of the noise.
    pub seed: u64,
}

impl Default for SmoothGrad {
    /// The mean over 50 copies with noise of 15 % of the range.
    fn default() -> Self {
        Self { smoothing: Smoothing::Mean, samples: 50, noise: 0.15, seed: 0 }
    }
}

impl SmoothGrad {
    /// The name on the command line and in certificates.
    pub fn name(&self) -> &'static str {
        self.spec().name
    }

    /// Explains each row of `inputs`; `samples` gradient evaluations each.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::Setting {
                name: "the noise",
                value: self.noise.to_string(),
                needs: "it is a fraction of the input's range, at least 0",
                hint: "0.15".into(),
            });
        }
        check_inputs(score, inputs, targets)?;
        let keys = context.keys(inputs);
        self.explain_with(score, inputs, targets, |example, sample| {
            let sigma = self.noise * range(inputs.row(example));
            let mut rng = generator(self.seed, keys[example], sample);
            Array1::from_shape_fn(inputs.ncols(), |_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                sigma * z
            })
        })
    }

    /// As [`SmoothGrad::explain`] with noise from elsewhere: what is added to the example in each sample.
    pub fn explain_with(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        noise: impl Fn(usize, usize) -> Array1<f64>,
    ) -> Result<Vec<Explanation>> {
        if self.samples == 0 {
            return Err(Error::Zero { what: "the number of samples" });
        }
        check_inputs(score, inputs, targets)?;
        let mut moments = vec![Moments::new(score.features()); targets.len()];
        let rows = targets.iter().enumerate().flat_map(|(example, &target)| {
            let noise = &noise;
            (0..self.samples).map(move |sample| {
                let state = &inputs.row(example) + &noise(example, sample);
                Ok(Row { example, target, time: 1.0, state, tag: () })
            })
        });
        stream_gradients(score, rows, |row, _, gradient| match self.smoothing {
            Smoothing::Square => moments[row.example].push(gradient.mapv(|g| g * g).view()),
            _ => moments[row.example].push(gradient),
        })?;
        let mut explanations = Vec::with_capacity(targets.len());
        stream_values(score, input_rows(inputs, targets), |row, value| {
            let moments = &moments[row.example];
            let (values, errors) = match self.smoothing {
                Smoothing::Variance => (moments.variance(), moments.variance_error()),
                _ => (moments.mean(), moments.mean_error()),
            };
            explanations.push(Explanation {
                values,
                shape: score.shape().to_vec(),
                reference: None,
                input: row.state.clone(),
                certificate: Certificate {
                    gradient_evaluations: self.samples,
                    score_evaluations: 1,
                    sampling: Some(Sampling::new(self.seed, self.samples, errors.as_ref())),
                    ..Certificate::new(self.name(), row.example, row.target, value)
                },
                standard_errors: errors,
            });
        })?;
        Ok(explanations)
    }
}

fn range(row: ArrayView1<f64>) -> f64 {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let smallest = row.iter().copied().fold(f64::INFINITY, f64::min);
    (largest - smallest).max(0.0)
}

impl SmoothGrad {
    pub(super) const SPECS: &'static [MethodSpec] = &[
        MethodSpec {
            name: "smoothgrad",
            aliases: &[],
            help: "mean gradient over noisy copies of the input",
            needs: &[Need::Gradients],
            uses: &[Setting::Samples, Setting::Noise, Setting::Seed],
            meaning: Meaning::Sensitivity,
            build: |settings| build(Smoothing::Mean, settings),
            page: MethodPage {
                credit: r"$\mathrm E\,\partial_i f(x+e)$",
                sums_to: "nothing",
                cost: "$n$ = 50",
                use_it: "where the gradient is noisy",
                refuses: "negative noise, no draws",
            },
        },
        MethodSpec {
            name: "smoothgrad-squared",
            aliases: &["smoothgrad-sq"],
            help: "mean squared gradient over noisy copies",
            needs: &[Need::Gradients],
            uses: &[Setting::Samples, Setting::Noise, Setting::Seed],
            meaning: Meaning::Sensitivity,
            build: |settings| build(Smoothing::Square, settings),
            page: MethodPage {
                credit: r"$\mathrm E\,(\partial_i f(x+e))^2$",
                sums_to: "nothing",
                cost: "$n$ = 50",
                use_it: "where the gradient is noisy",
                refuses: "negative noise, no draws",
            },
        },
        MethodSpec {
            name: "vargrad",
            aliases: &[],
            help: "variance of the gradient over noisy copies",
            needs: &[Need::Gradients],
            uses: &[Setting::Samples, Setting::Noise, Setting::Seed],
            meaning: Meaning::Sensitivity,
            build: |settings| build(Smoothing::Variance, settings),
            page: MethodPage {
                credit: r"$\mathrm{Var}\,\partial_i f(x+e)$",
                sums_to: "nothing",
                cost: "$n$ = 50",
                use_it: "where the gradient is noisy",
                refuses: "negative noise, no draws",
            },
        },
    ];
}

impl Explainer for SmoothGrad {
    fn spec(&self) -> &'static MethodSpec {
        match self.smoothing {
            Smoothing::Mean => &Self::SPECS[0],
            Smoothing::Square => &Self::SPECS[1],
            Smoothing::Variance => &Self::SPECS[2],
        }
    }

    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        Some(self.samples)
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

fn build(smoothing: Smoothing, settings: &Settings) -> Method {
    let default = SmoothGrad::default();
    let samples = settings.samples.unwrap_or(default.samples);
    let noise = settings.noise.unwrap_or(default.noise);
    SmoothGrad { smoothing, samples, noise, seed: settings.seed }.into()
}
