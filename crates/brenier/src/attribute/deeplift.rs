//! DeepLIFT and DeepSHAP: how the difference from a reference travels through the network.
//!
//! ```text
//! Phi_i = m_i (x_i - x'_i),   sum_i Phi_i = f(x) - f(x')        (rescale rule; Shrikumar et al., 2017)
//! Phi_i = mean over x' of m_i (x_i - x'_i)                      (DeepSHAP; Lundberg and Lee, 2017)
//! ```
//!
//! One way back through the network for a reference, and the sum is exact: every operator accounts for the whole
//! difference of its output ([how](onnx_grad::backward::deeplift)). What is not exact is the meaning: the multiplier
//! of a unit is the slope of a straight line in that unit's input, whatever the others do meanwhile.

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::seq::index;
use serde::{Deserialize, Serialize};

use super::draws::generator;
use super::expected_gradients::background;
use super::moments::Moments;
use super::rows::{MICRO_BATCH, check_inputs};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{Baseline, Certificate, Completeness, Context, Explanation, Limits, Meaning, Sampling};
use crate::predictor::{OnnxPredictor, PairPredictor, Score};
use crate::{Error, Result, error};

/// DeepLIFT with the rescale rule, from one reference for each input.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeepLift {
    /// The reference.
    pub baseline: Baseline,
    /// Seed of a reference that is drawn.
    pub seed: u64,
}

/// DeepLIFT averaged over rows of data as references.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeepShap {
    /// The most references for an input. They are drawn where there are more rows, otherwise all rows are taken.
    pub samples: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for DeepShap {
    /// 100 references.
    fn default() -> Self {
        Self { samples: 100, seed: 0 }
    }
}

impl DeepLift {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "deeplift";

    /// Explains each row of `inputs`; one evaluation of the multipliers each.
    ///
    /// # Errors
    /// If the model has an operator that no rule keeps the sum for, or there is no such baseline.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        check_inputs(predictor, inputs, targets)?;
        let baselines = self.baseline.of(inputs, Score::shape(predictor), self.seed, context)?;
        let references = |example: usize| Ok(baselines.row(example).to_owned().insert_axis(Axis(0)));
        explain(Self::NAME, predictor, inputs, targets, references, |_| None)
    }
}

impl DeepShap {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "deep-shap";

    /// Explains each row of `inputs`; one evaluation of the multipliers for each reference.
    ///
    /// # Errors
    /// If the context has no data, or data of another shape, or the model an operator without a rule.
    pub fn explain(
        &self,
        predictor: &OnnxPredictor,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        if self.samples == 0 {
            return Err(Error::Zero { what: "the number of samples" });
        }
        check_inputs(predictor, inputs, targets)?;
        let rows = background(Self::NAME, predictor, context)?;
        let drawn = rows.len() > self.samples;
        let keys = context.keys(inputs);
        let references = |example: usize| {
            let chosen: Vec<usize> = match drawn {
                true => {
                    let mut rng = generator(self.seed, keys[example], 0);
                    index::sample(&mut rng, rows.len(), self.samples).into_vec()
                }
                false => (0..rows.len()).collect(),
            };
            rows.rows_f64(&chosen)
        };
        let sampling =
            |errors: Option<&Array1<f64>>| drawn.then(|| Sampling::new(self.seed, self.samples, errors));
        explain(Self::NAME, predictor, inputs, targets, references, sampling)
    }
}

/// What was found for an input so far.
struct Account {
    credit: Moments,
    score: f64,
    reference_scores: f64,
    references: usize,
}

/// The mean over references of multiplier times difference, a few pairs of input and reference at a time.
fn explain(
    method: &str,
    predictor: &OnnxPredictor,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    references: impl Fn(usize) -> Result<Array2<f64>>,
    sampling: impl Fn(Option<&Array1<f64>>) -> Option<Sampling>,
) -> Result<Vec<Explanation>> {
    let pairs = predictor.pairs()?;
    let nothing = |_| Account {
        credit: Moments::new(inputs.ncols()),
        score: 0.0,
        reference_scores: 0.0,
        references: 0,
    };
    let mut accounts: Vec<Account> = (0..targets.len()).map(nothing).collect();
    let mut waiting: Vec<(usize, Array1<f64>)> = Vec::new();
    for example in 0..targets.len() {
        for reference in references(example)?.rows() {
            waiting.push((example, reference.to_owned()));
            if waiting.len() == MICRO_BATCH {
                settle(&pairs, inputs, targets, &mut waiting, &mut accounts)?;
            }
        }
    }
    settle(&pairs, inputs, targets, &mut waiting, &mut accounts)?;
    let explained = accounts.into_iter().enumerate().map(|(example, account)| {
        let (values, errors) = (account.credit.mean(), account.credit.mean_error());
        let one = account.references == 1;
        let reference_score = account.reference_scores / account.references as f64;
        let certificate = Certificate {
            completeness: Some(Completeness::new(values.sum(), reference_score, account.score)),
            gradient_evaluations: account.references,
            score_evaluations: account.references,
            sampling: sampling(errors.as_ref()),
            ..Certificate::new(method, example, targets[example], account.score)
        };
        Ok(Explanation {
            values,
            shape: Score::shape(predictor).to_vec(),
            reference: if one { Some(references(example)?.row(0).to_owned()) } else { None },
            input: inputs.row(example).to_owned(),
            standard_errors: errors.filter(|_| !one),
            certificate: certificate.judged(&Limits::default()),
        })
    });
    explained.collect()
}

/// Runs the pairs that wait and adds what is found to their accounts.
fn settle(
    pairs: &PairPredictor,
    inputs: ArrayView2<f64>,
    targets: &[usize],
    waiting: &mut Vec<(usize, Array1<f64>)>,
    accounts: &mut [Account],
) -> Result<()> {
    if waiting.is_empty() {
        return Ok(());
    }
    let examples: Vec<usize> = waiting.iter().map(|(example, _)| *example).collect();
    let (x, aims): (_, Vec<usize>) =
        (inputs.select(Axis(0), &examples), examples.iter().map(|&example| targets[example]).collect());
    let references = Array2::from_shape_fn(x.dim(), |(row, i)| waiting[row].1[i]);
    let found = pairs.multipliers(x.view(), references.view(), &aims)?;
    for (row, &example) in examples.iter().enumerate() {
        let multipliers = found.multipliers.row(row);
        error::expect_finite("multiplier", example, 1.0, multipliers)?;
        let account = &mut accounts[example];
        account.credit.push((&multipliers * &(&x.row(row) - &references.row(row))).view());
        account.score = found.scores[row];
        account.reference_scores += found.reference_scores[row];
        account.references += 1;
    }
    waiting.clear();
    Ok(())
}

impl DeepLift {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &[],
        help: "slopes from a baseline in place of derivatives; sums up, and is fast",
        needs: &[Need::Gradients, Need::Model],
        uses: &[Setting::Baseline, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            DeepLift { baseline: settings.baseline.unwrap_or_default(), seed: settings.seed }.into()
        },
        page: MethodPage {
            credit: r"$m_i\,(x_i-x'_i)$, with $\Delta y/\Delta x$ for the derivative of each nonlinearity",
            sums_to: "$f(x)-f(x')$, exactly",
            cost: "1 (twice the forward part)",
            use_it: "where `ig` is too slow, on networks of layers and activations",
            refuses: "a closure; softmax and normalisation inside the network",
        },
    }];
}

impl Explainer for DeepLift {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        _: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(context.require_model(Self::NAME)?, inputs, targets, context)
    }
}

impl DeepShap {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["deep-lift-shap", "deep-explainer"],
        help: "deeplift averaged over baselines from the data",
        needs: &[Need::Gradients, Need::Model, Need::Data],
        uses: &[Setting::Samples, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let samples = settings.samples.unwrap_or(DeepShap::default().samples);
            DeepShap { samples, seed: settings.seed }.into()
        },
        page: MethodPage {
            credit: r"$\mathrm{mean}_{x'}\,m_i\,(x_i-x'_i)$ over rows of data",
            sums_to: r"$f(x)-\overline{f(x')}$, exactly",
            cost: "$n$ = 100, and $n$ scores",
            use_it: "for Shapley values of a network, fast and approximate",
            refuses: "a run without background data; what `deeplift` refuses",
        },
    }];
}

impl Explainer for DeepShap {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn run(
        &self,
        _: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(context.require_model(Self::NAME)?, inputs, targets, context)
    }
}
