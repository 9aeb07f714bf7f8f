//! LIME: the coefficients of a linear model that is fitted to the score around the input.
//!
//! ```text
//! min_{b, beta}  sum_k w_k (v(z_k) - b - z_k' beta)^2 + penalty(beta),     z_k in {0, 1}^M,  P(z = 1) = 1/2
//! w_k = exp(- distance(x, x_k)^2 / (2 width^2))
//! ```
//!
//! (Ribeiro, Singh and Guestrin, 2016.) The defaults are Captum's: groups are present with probability 1/2, the
//! distance is the cosine distance between the input and the masked input, the width 1, and the linear model a
//! lasso with `alpha` 0.01 in scikit-learn's convention. A coefficient is what the presence of its group is worth
//! near the input; coefficients do not sum to the score's change, and do not claim to.
//!
//! The standard error is a jackknife: the draws are dealt into twenty blocks, and the fit is repeated without each.
//! It includes that a lasso may select other groups from other draws.

use ndarray::{Array1, ArrayView1, ArrayView2};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::perturbation::surrogate::Moments;
use super::perturbation::{Case, Finding, Question};
use super::spec::{Explainer, MethodPage, MethodSpec, Setting};
use super::{Absence, Context, Explanation, Grouping, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

pub use super::perturbation::surrogate::Surrogate;

/// Blocks of the jackknife.
const BLOCKS: usize = 20;

/// How far a masked input is from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distance {
    /// One minus the cosine of the angle between them; 1 where one of them is zero.
    #[default]
    Cosine,
    /// The length of their difference.
    Euclidean,
}

/// A local linear model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Lime {
    /// Which features are present or absent together.
    pub groups: Grouping,
    /// What stands in for absent ones.
    pub absence: Absence,
    /// The number of masked inputs.
    pub samples: usize,
    /// How far a masked input is from the input.
    pub distance: Distance,
    /// The distance at which a masked input's weight falls to `exp(-1/2)`.
    pub kernel_width: f64,
    /// The linear model.
    pub surrogate: Surrogate,
    /// The seed of the draws.
    pub seed: u64,
    /// The largest batch that the score is given, in rows; what takes about 8 MB where not given.
    pub micro_batch: Option<usize>,
}

impl Default for Lime {
    /// Captum's lasso and kernel, with 1000 masked inputs.
    fn default() -> Self {
        Self {
            groups: Grouping::Each,
            absence: Absence::default(),
            samples: 1000,
            distance: Distance::Cosine,
            kernel_width: 1.0,
            surrogate: Surrogate::default(),
            seed: 0,
            micro_batch: None,
        }
    }
}

/// A masked input: which groups are present, its weight and its score.
struct Draw {
    present: Vec<bool>,
    weight: f64,
    value: f64,
}

impl Lime {
    /// The method's name.
    pub const NAME: &'static str = "lime";

    /// Explains output `targets[i]` of row `i`.
    ///
    /// # Errors
    /// Settings with which nothing can be fitted; scores that are not finite.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.surrogate.check()?;
        let refuse = |name, value: String, needs, hint: &'static str| {
            Err(Error::Setting { name, value, needs, hint: hint.into() })
        };
        if self.samples < 2 * BLOCKS {
            let needs = "the standard error takes at least 40";
            return refuse(
                "the number of masked inputs",
                self.samples.to_string(),
                needs,
                "1000 is the default",
            );
        }
        if !(self.kernel_width > 0.0 && self.kernel_width.is_finite()) {
            let needs = "it is a positive number";
            return refuse("the kernel width", self.kernel_width.to_string(), needs, "1 is the default");
        }
        let question = Question { score, inputs, targets, context };
        question.answer(Self::NAME, self.absence, self.seed, self.micro_batch, |case| self.find(case))
    }

    fn find(&self, case: &Case) -> Result<Finding> {
        let groups = self.groups.groups(case.score.shape(), case.input)?;
        let score = case.input_score()?;
        let mut rng = generator(self.seed, case.key, 0);
        let coalitions = (0..self.samples)
            .map(|_| (0..groups.count()).map(|_| rng.random_bool(0.5)).collect::<Vec<bool>>());
        let reference = case.reference();
        let leave = |present: &Vec<bool>, mask: &mut [f64]| {
            for (to, &group) in mask.iter_mut().zip(groups.labels()) {
                *to = f64::from(present[group]);
            }
        };
        let mut drawn = Vec::with_capacity(self.samples);
        let evaluations = case.values(coalitions, leave, |present, value| {
            let masked: Array1<f64> = (0..case.input.len())
                .map(|i| if present[groups.labels()[i]] { case.input[i] } else { reference[i] })
                .collect();
            let weight = self.weight(case.input, masked.view());
            // Relative to the input's score: the intercept takes up the rest.
            drawn.push(Draw { present, weight, value: value - score });
        })?;
        let (coefficients, errors) = self.fit(groups.count(), &drawn)?;
        Ok(Finding {
            credit: groups.spread(&coefficients),
            standard_errors: Some(groups.spread(&errors)),
            reference_score: None,
            score,
            evaluations: evaluations + 1,
            drawn: Some((self.seed, self.samples)),
        })
    }

    /// `exp(- distance^2 / (2 width^2))`.
    fn weight(&self, input: ArrayView1<f64>, masked: ArrayView1<f64>) -> f64 {
        let squared = match self.distance {
            Distance::Cosine => {
                let lengths = (input.dot(&input) * masked.dot(&masked)).sqrt();
                let cosine = if lengths > 0.0 { input.dot(&masked) / lengths } else { 0.0 };
                (1.0 - cosine).powi(2)
            }
            Distance::Euclidean => input.iter().zip(masked).map(|(a, b)| (a - b).powi(2)).sum(),
        };
        (-squared / (2.0 * self.kernel_width.powi(2))).exp()
    }

    /// The coefficients over all draws, and their standard errors by leaving out a block at a time.
    fn fit(&self, groups: usize, drawn: &[Draw]) -> Result<(Array1<f64>, Array1<f64>)> {
        let gather = |draws: &mut dyn Iterator<Item = &Draw>| {
            let mut moments = Moments::zero(groups);
            draws.for_each(|draw| moments.add(&draw.present, draw.weight, draw.value));
            moments
        };
        let all = gather(&mut drawn.iter());
        let whole = self.surrogate.fit(&all, None)?;
        let mut sum = Array1::<f64>::zeros(groups);
        let mut squares = Array1::<f64>::zeros(groups);
        for block in 0..BLOCKS {
            let without = all.minus(&gather(&mut drawn.iter().skip(block).step_by(BLOCKS)));
            let gap = self.surrogate.fit(&without, Some(&whole))? - &whole;
            squares += &(&gap * &gap);
            sum += &gap;
        }
        let blocks = BLOCKS as f64;
        let variance = (squares - &sum * &sum / blocks) * ((blocks - 1.0) / blocks);
        Ok((whole, variance.mapv(|v| v.max(0.0).sqrt())))
    }
}

impl Lime {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["lime-base"],
        help: "coefficients of a linear model fitted around the input",
        needs: &[],
        uses: &[
            Setting::Samples,
            Setting::Baseline,
            Setting::Absence,
            Setting::Groups,
            Setting::Seed,
            Setting::Data,
        ],
        meaning: Meaning::Credit,
        build: |settings| {
            let groups = settings.groups.clone().unwrap_or(Grouping::Natural);
            let samples = settings.samples.unwrap_or(Lime::default().samples);
            let (absence, seed) = (settings.absence(), settings.seed);
            Lime { groups, absence, samples, seed, ..Lime::default() }.into()
        },
        page: MethodPage {
            credit: "coefficient of a local linear model",
            sums_to: "nothing",
            cost: "no gradients; 1000 scores",
            use_it: "for any model, beside others that people know it from",
            refuses: "see [its page](perturbation-methods.md)",
        },
    }];
}

impl Explainer for Lime {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        Some(self.samples.saturating_mul(self.absence.rows()))
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

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use ndarray::{Array2, Axis};
    use ndarray_npy::NpzReader;

    use super::*;
    use crate::predictor::{PredictorConfig, ValuePredictor};

    /// Captum's coefficients from the same draws (fixtures/perturbation).
    #[test]
    fn the_same_draws_give_captums_coefficients() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/perturbation");
        let open = |name: &str| NpzReader::new(File::open(folder.join(name)).unwrap()).unwrap();
        let (mut mlp, mut lime) = (open("mlp.npz"), open("lime.npz"));
        let inputs: Array2<f64> = mlp.by_name("inputs").unwrap();
        let targets: Array1<i64> = mlp.by_name("targets").unwrap();
        let groups: Array1<i64> = mlp.by_name("groups").unwrap();
        let masks: Array2<i64> = lime.by_name("masks").unwrap();
        let model = ValuePredictor::load(folder.join("mlp.onnx"), &PredictorConfig::default()).unwrap();
        let lasso = |alpha| Surrogate::Lasso { alpha };
        for (name, surrogate, distance, kernel_width) in [
            ("lasso", lasso(0.01), Distance::Cosine, 1.0),
            ("euclidean", lasso(0.05), Distance::Euclidean, 2.5),
            ("ridge", Surrogate::Ridge { alpha: 1.5 }, Distance::Cosine, 0.5),
        ] {
            let method = Lime { surrogate, distance, kernel_width, ..Lime::default() };
            let draw = |mask: ArrayView1<i64>| {
                let present: Vec<bool> = mask.iter().map(|&z| z == 1).collect();
                let masked: Array1<f64> =
                    (0..12).map(|i| if present[groups[i] as usize] { inputs[(0, i)] } else { 0.0 }).collect();
                let weight = method.weight(inputs.row(0), masked.view());
                let value =
                    model.values(masked.view().insert_axis(Axis(0)), &[targets[0] as usize]).unwrap()[0];
                Draw { present, weight, value }
            };
            let drawn: Vec<Draw> = masks.rows().into_iter().map(draw).collect();
            let (found, _) = method.fit(masks.ncols(), &drawn).unwrap();
            let expected: Array1<f64> = lime.by_name(name).unwrap();
            // Captum keeps draws, weights and scores in float32.
            let gap = (&found - &expected).mapv(f64::abs);
            assert!(gap.iter().all(|gap| *gap < 2e-6), "{name}: {found} {expected}");
        }
    }
}
