//! GradientSHAP: Expected Gradients from noisy copies of the input.
//!
//! ```text
//! Phi_i = E [ (x_i + e_i - x'_i) d_i f(x' + t (x + e - x')) ],   e ~ N(0, sigma^2 I),  x' ~ data,  t ~ U(0, 1)
//! ```
//!
//! As Captum has it: the line ends at the noisy copy, and the difference is taken there too. With noise, credit
//! sums to the change of the smoothed score, `E f(x + e) - E f(x')`, and not to that of the score itself; so a
//! sum is claimed only where there is no noise.

use ndarray::{Array1, ArrayView2};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::expected_gradients::{Draw, average, background, start};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Context, Explanation, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

/// GradientSHAP.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GradientShap {
    /// Number of draws.
    pub samples: usize,
    /// Standard deviation of the noise, in the units of the input.
    pub noise: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for GradientShap {
    /// 200 draws without noise.
    fn default() -> Self {
        Self { samples: 200, noise: 0.0, seed: 0 }
    }
}

impl GradientShap {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "gradient-shap";

    /// Explains each row of `inputs`; `samples` gradient evaluations each, and `samples` scores without noise.
    /// References are rows of the context's data.
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
                needs: "it is a standard deviation, at least 0",
                hint: "0.1".into(),
            });
        }
        let background = background(Self::NAME, score, context)?;
        let keys = context.keys(inputs);
        let draw = |example: usize, sample: usize| {
            let mut rng = generator(self.seed, keys[example], sample);
            let (reference, time) = start(background, &mut rng)?;
            let mut noise = || -> f64 { StandardNormal.sample(&mut rng) };
            let noise = Array1::from_shape_fn(inputs.ncols(), |_| self.noise * noise());
            Ok(Draw { reference, input: &inputs.row(example) + &noise, time })
        };
        self.explain_with(score, inputs, targets, draw)
    }

    /// As [`GradientShap::explain`] with draws from elsewhere, by the number of the example and of the draw.
    /// Asked twice for a draw, the closure must answer the same.
    pub fn explain_with(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        draw: impl Fn(usize, usize) -> Result<Draw>,
    ) -> Result<Vec<Explanation>> {
        let complete = self.noise == 0.0;
        average(Self::NAME, score, inputs, targets, (self.samples, self.seed), complete, draw)
    }
}

impl GradientShap {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "expected-gradients from noisy copies of the input",
        needs: &[Need::Gradients, Need::Data],
        uses: &[Setting::Samples, Setting::Noise, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let default = GradientShap::default();
            let samples = settings.samples.unwrap_or(default.samples);
            let noise = settings.noise.unwrap_or(default.noise);
            GradientShap { samples, noise, seed: settings.seed }.into()
        },
        page: MethodPage {
            credit: r"$\mathrm E\,(x_i+e_i-x'_i)\,\partial_i f(x'+t(x+e-x'))$",
            sums_to: r"$f(x)-\overline{f(x')}$ without noise, up to sampling; with noise not claimed",
            cost: "$n$ = 200",
            use_it: "where no single baseline is right and data are at hand",
            refuses: "a run without background data",
        },
    }];
}

impl Explainer for GradientShap {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
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
