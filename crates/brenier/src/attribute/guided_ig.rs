//! Guided Integrated Gradients: a path that moves first where the score cares least.
//!
//! ```text
//! step k:  move the features with the smallest |d_i f(x)| until  |x - input|_1 = (1 - k/K) |baseline - input|_1
//!          with every feature's progress within  [k/K - r, k/K + r]      (Kapishnikov et al., 2021)
//! ```
//!
//! The path depends on the score, so the method is not linear in it. The algorithm is that of the authors'
//! implementation: in each pass of a step the given fraction of the features that can still move, those with
//! the smallest gradients, move on; passes repeat until the step's distance is covered. States and credit
//! are carried along; nothing else is kept, so memory does not grow with the steps.

use ndarray::{Array1, ArrayView1, ArrayView2, Zip};
use serde::{Deserialize, Serialize};

use super::idgi::Step;
use super::rows::{MICRO_BATCH, Row, check_inputs, stream_gradients, stream_values};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{
    Baseline, Certificate, Completeness, Context, Explanation, Limits, Meaning, Method, PathCertificate,
    Rule, Sampling, Settings,
};
use crate::path::PathEvidence;
use crate::predictor::Score;
use crate::{Error, Result};

/// Distances that agree to this, relatively or absolutely, are equal.
const CLOSE: f64 = 1e-9;

/// What a step's movement is multiplied with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepCredit {
    /// The gradient at the step's start, as published. Order 1.
    Left,
    /// The mean of the gradients at both ends, which are there anyway; one more gradient in all. Order 2.
    #[default]
    Trapezoid,
    /// Not the movement but the step's change of score, in proportion to squared gradients; see
    /// [`Idgi`](super::Idgi).
    Idgi,
}

/// Guided Integrated Gradients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GuidedIg {
    /// Where the path starts.
    pub baseline: Baseline,
    /// Number of steps.
    pub steps: usize,
    /// The fraction of the features that move in one pass of a step, from 0 to 1.
    pub fraction: f64,
    /// How far a feature's progress may be from the straight line's, from 0 (the straight line) to 1 (anywhere).
    pub max_distance: f64,
    /// How credit is given.
    pub credit: StepCredit,
    /// Seed of a baseline that is drawn.
    pub seed: u64,
}

impl Default for GuidedIg {
    /// From zero, in the authors' 200 steps with a quarter of the features and a distance of 0.02.
    fn default() -> Self {
        Self {
            baseline: Baseline::Zero,
            steps: 200,
            fraction: 0.25,
            max_distance: 0.02,
            credit: StepCredit::Trapezoid,
            seed: 0,
        }
    }
}

impl GuidedIg {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "guided-ig";

    /// Explains each row of `inputs`; `steps` gradient evaluations each, and one more for the last.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.check()?;
        check_inputs(score, inputs, targets)?;
        let baselines = self.baseline.of(inputs, score.shape(), self.seed, context)?;
        let mut explanations = Vec::with_capacity(targets.len());
        // Examples walk abreast, so that every step is a micro-batch.
        for first in (0..targets.len()).step_by(MICRO_BATCH) {
            let examples = first..(first + MICRO_BATCH).min(targets.len());
            let mut walks: Vec<Walk> = examples
                .map(|example| Walk::new(example, targets[example], baselines.row(example)))
                .collect();
            self.walk(score, inputs, &mut walks)?;
            explanations.extend(walks.into_iter().map(|walk| {
                let reference = baselines.row(walk.example).to_owned();
                self.certify(score, inputs.row(walk.example), reference, walk)
            }));
        }
        Ok(explanations)
    }

    fn check(&self) -> Result<()> {
        Rule::Left { steps: self.steps }.check()?;
        for (name, value) in [("the fraction", self.fraction), ("the largest distance", self.max_distance)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::Setting {
                    name,
                    value: value.to_string(),
                    needs: "it lies between 0 and 1",
                    hint: "0.25 and 0.02 are the defaults".into(),
                });
            }
        }
        Ok(())
    }

    fn walk(&self, score: &dyn Score, inputs: ArrayView2<f64>, walks: &mut [Walk]) -> Result<()> {
        for step in 0..self.steps {
            let time = step as f64 / self.steps as f64;
            let rows: Vec<_> = walks.iter().enumerate().map(|(i, walk)| Ok(walk.row(i, time))).collect();
            stream_gradients(score, rows.into_iter(), |row, value, gradient| {
                let walk = &mut walks[row.tag];
                if step == 0 {
                    walk.reference_score = value;
                }
                walk.arrive(self.credit, value, gradient);
                let before = walk.state.clone();
                self.advance(walk, inputs.row(row.example), gradient, step);
                walk.leave(self.credit, before, value, gradient);
            })?;
        }
        // The last state is the input up to rounding; it is the input's own score that counts.
        let ends: Vec<_> = walks
            .iter_mut()
            .enumerate()
            .map(|(i, walk)| {
                walk.state.assign(&inputs.row(walk.example));
                Ok(walk.row(i, 1.0))
            })
            .collect();
        let mut end = |row: &Row<usize>, value: f64, gradient: ArrayView1<f64>| {
            walks[row.tag].arrive(self.credit, value, gradient);
            walks[row.tag].score = value;
        };
        match self.credit {
            StepCredit::Trapezoid => stream_gradients(score, ends.into_iter(), end),
            _ => stream_values(score, ends.into_iter(), |row, value| end(row, value, row.state.view())),
        }
    }

    /// One step: passes over the features with the smallest gradients until the distance is covered.
    fn advance(&self, walk: &mut Walk, input: ArrayView1<f64>, gradient: ArrayView1<f64>, step: usize) {
        let steps = self.steps as f64;
        let progress = (step as f64 + 1.0) / steps;
        let least = (progress - self.max_distance).max(0.0);
        let most = (progress + self.max_distance).min(1.0);
        let baseline = &walk.baseline;
        let total: f64 = Zip::from(&input).and(baseline).fold(0.0, |sum, x, b| sum + (x - b).abs());
        let target = total * (1.0 - (step as f64 + 1.0) / steps);
        let bound = |share: f64| baseline + &((&input - baseline) * share);
        let (lower, upper) = (bound(least), bound(most));
        // Features that cannot move any more are as if their gradient were infinite.
        let mut size = gradient.mapv(f64::abs);
        let state = &mut walk.state;
        loop {
            for i in 0..state.len() {
                let way = input[i] - baseline[i];
                if way != 0.0 && (state[i] - baseline[i]) / way < least {
                    state[i] = lower[i];
                }
            }
            let left: f64 = Zip::from(&*state).and(&input).fold(0.0, |sum, x, end| sum + (x - end).abs());
            if (left - target).abs() <= CLOSE * left.abs().max(target.abs()).max(1.0) {
                return;
            }
            for i in 0..state.len() {
                if state[i] == upper[i] {
                    size[i] = f64::INFINITY;
                }
            }
            let threshold = lower_quantile(&size, self.fraction);
            let moves = |i: usize| size[i] <= threshold && size[i] != f64::INFINITY;
            let reach: f64 =
                (0..state.len()).filter(|&i| moves(i)).map(|i| (state[i] - upper[i]).abs()).sum();
            let share = (left - target) / reach;
            if reach == 0.0 || share <= 0.0 {
                return;
            }
            for i in (0..state.len()).filter(|&i| moves(i)) {
                state[i] = if share > 1.0 { upper[i] } else { state[i] + (upper[i] - state[i]) * share };
            }
            if share <= 1.0 {
                return;
            }
        }
    }

    fn certify(
        &self,
        score: &dyn Score,
        input: ArrayView1<f64>,
        reference: Array1<f64>,
        walk: Walk,
    ) -> Explanation {
        let steps = self.steps;
        let distance = (&input - &reference).mapv(|d| d * d).sum().sqrt();
        let (rule, name, extra) = match self.credit {
            StepCredit::Left => (Rule::Left { steps }, Self::NAME.to_string(), 0),
            StepCredit::Trapezoid => (Rule::Trapezoid { steps }, Self::NAME.to_string(), 1),
            StepCredit::Idgi => (Rule::Left { steps }, format!("{}+idgi", Self::NAME), 0),
        };
        let used = if self.credit == StepCredit::Idgi { "idgi" } else { rule.name() };
        let certificate = Certificate {
            completeness: Some(Completeness::new(walk.credit.sum(), walk.reference_score, walk.score)),
            gradient_evaluations: steps + extra,
            score_evaluations: 1 - extra,
            path: Some(PathCertificate {
                rule,
                rule_used: used.to_string(),
                relative_disagreement: None,
                relative_map_error: None,
                kinetic_action: walk.squares * steps as f64,
                geometric_path_straightness: (distance > 0.0).then(|| walk.length / distance),
                evidence: PathEvidence { kind: "guided".into(), ..PathEvidence::default() },
            }),
            sampling: (self.baseline == Baseline::Noise).then(|| Sampling::new(self.seed, 1, None)),
            ..Certificate::new(&name, walk.example, walk.target, walk.score)
        };
        Explanation {
            values: walk.credit,
            shape: score.shape().to_vec(),
            reference: Some(reference),
            input: input.to_owned(),
            standard_errors: None,
            certificate: certificate.judged(&Limits::default()),
        }
    }
}

/// One example on its way.
struct Walk {
    example: usize,
    target: usize,
    baseline: Array1<f64>,
    state: Array1<f64>,
    credit: Array1<f64>,
    /// How far the last step moved, for the half of its credit that the next gradient gives.
    moved: Array1<f64>,
    open: Option<Step>,
    reference_score: f64,
    score: f64,
    length: f64,
    squares: f64,
}

impl Walk {
    fn new(example: usize, target: usize, baseline: ArrayView1<f64>) -> Self {
        let zeros = Array1::zeros(baseline.len());
        Self {
            example,
            target,
            baseline: baseline.to_owned(),
            state: baseline.to_owned(),
            credit: zeros.clone(),
            moved: zeros,
            open: None,
            reference_score: f64::NAN,
            score: f64::NAN,
            length: 0.0,
            squares: 0.0,
        }
    }

    fn row(&self, tag: usize, time: f64) -> Row<usize> {
        Row { example: self.example, target: self.target, time, state: self.state.clone(), tag }
    }

    /// What a step's end adds to its credit.
    fn arrive(&mut self, credit: StepCredit, value: f64, gradient: ArrayView1<f64>) {
        match credit {
            StepCredit::Left => {}
            StepCredit::Trapezoid => {
                self.credit.zip_mut_with(&(&self.moved * &gradient), |sum, part| *sum += 0.5 * part);
            }
            StepCredit::Idgi => {
                if let Some(step) = self.open.take() {
                    step.close(value, &mut self.credit);
                }
            }
        }
    }

    /// What a step's start gives it.
    fn leave(&mut self, credit: StepCredit, before: Array1<f64>, value: f64, gradient: ArrayView1<f64>) {
        self.moved = &self.state - &before;
        let square = self.moved.dot(&self.moved);
        self.squares += square;
        self.length += square.sqrt();
        let weight = match credit {
            StepCredit::Left => 1.0,
            StepCredit::Trapezoid => 0.5,
            StepCredit::Idgi => {
                self.open = Some(Step::new(value, gradient));
                return;
            }
        };
        self.credit.zip_mut_with(&(&self.moved * &gradient), |sum, part| *sum += weight * part);
    }
}

/// The value below which the fraction lies, the lower neighbour where it falls between two.
fn lower_quantile(values: &Array1<f64>, fraction: f64) -> f64 {
    let mut sorted = values.to_vec();
    let index = (fraction * (sorted.len() - 1) as f64).floor() as usize;
    *sorted.select_nth_unstable_by(index, f64::total_cmp).1
}

impl GuidedIg {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &["guided-integrated-gradients"],
        help: "path on which features with small gradients move first",
        needs: &[Need::Gradients],
        uses: &[Setting::Baseline, Setting::Steps, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| build(GuidedIg::default().credit, settings),
        page: MethodPage {
            credit: "path integral; features with small gradients move first",
            sums_to: "$f(x)-f(b)$",
            cost: "$K+1$ = 201",
            use_it: "where Integrated Gradients are noisy; not linear in the score",
            refuses: "fractions outside 0 to 1",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        Self::PLAIN.with_idgi(
            "guided-ig+idgi",
            &[Setting::Baseline, Setting::Steps, Setting::Seed, Setting::Data],
            |settings| build(StepCredit::Idgi, settings),
        ),
    ];
}

impl Explainer for GuidedIg {
    fn spec(&self) -> &'static MethodSpec {
        match self.credit {
            StepCredit::Left | StepCredit::Trapezoid => &Self::SPECS[0],
            StepCredit::Idgi => &Self::SPECS[1],
        }
    }

    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        Some(self.steps + 1)
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

fn build(credit: StepCredit, settings: &Settings) -> Method {
    let default = GuidedIg::default();
    let baseline = settings.baseline.unwrap_or_default();
    let steps = settings.steps.unwrap_or(default.steps);
    GuidedIg { baseline, steps, credit, seed: settings.seed, ..default }.into()
}
