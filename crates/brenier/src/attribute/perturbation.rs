//! Asking a score about inputs of which parts are left out: what all methods without gradients share.
//!
//! ```text
//! v(m) = (1 / B) sum_b f(m x + (1 - m) r_b)          m: how much of each feature is present, r_b: what stands in
//! ```
//!
//! A method is a list of masks and a sum over their values. Masks are made one after the other, their rows stream
//! through the score in micro-batches, and only values are kept: memory does not grow with the number of masks or
//! of background rows. Sums run in the order of the masks, so results do not depend on the micro-batch.

mod absence;
pub(super) mod surrogate;

use std::collections::VecDeque;

pub use absence::Absence;
use ndarray::{Array1, ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use super::draws::Key;
use super::rows::check_inputs;
use super::{Certificate, Completeness, Context, Explanation, Grouping, Groups, Limits, Sampling};
use crate::score::{Score, ScoreStream};
use crate::{Error, Result, error};

/// What a batch of rows may take, in bytes: enough to keep all workers busy on a small model.
const BATCH_BYTES: usize = 8 << 20;

/// What sums of credit may be off by, relative to its size, for no reason but rounding.
const ROUNDING: f64 = 1e-12;

/// One input and one of its scores, to be asked about with parts left out.
pub(super) struct Case<'a> {
    pub score: &'a dyn Score,
    pub input: ArrayView1<'a, f64>,
    pub target: usize,
    pub example: usize,
    /// What it draws by.
    pub key: Key,
    /// The rows that stand in for what is absent.
    pub stand_ins: ArrayView2<'a, f64>,
    pub micro_batch: usize,
}

/// What a method found for one case.
pub(super) struct Finding {
    pub credit: Array1<f64>,
    pub standard_errors: Option<Array1<f64>>,
    /// The score with nothing present, where credit claims to sum to the difference from it.
    pub reference_score: Option<f64>,
    /// The score of the input.
    pub score: f64,
    pub evaluations: usize,
    /// Seed and number of draws, where something was drawn.
    pub drawn: Option<(u64, usize)>,
}

/// What is asked of a method.
pub(super) struct Question<'a, 'b> {
    pub score: &'a dyn Score,
    pub inputs: ArrayView2<'a, f64>,
    pub targets: &'a [usize],
    pub context: &'a Context<'b>,
}

impl Question<'_, '_> {
    /// Explains every row by itself.
    pub(super) fn answer(
        &self,
        method: &str,
        absence: Absence,
        seed: u64,
        micro_batch: Option<usize>,
        mut find: impl FnMut(&Case) -> Result<Finding>,
    ) -> Result<Vec<Explanation>> {
        let Question { score, inputs, targets, context } = *self;
        check_inputs(score, inputs, targets)?;
        let micro_batch = match micro_batch {
            Some(0) => return Err(Error::Zero { what: "the number of rows of a micro-batch" }),
            Some(rows) => rows,
            None => (BATCH_BYTES / (8 * score.features().max(1))).clamp(32, 1024),
        };
        let stand_ins = absence.stand_ins(inputs, score.shape(), seed, context)?;
        let keys = context.keys(inputs);
        let explain = |(example, (input, &target)): (usize, (ArrayView1<f64>, &usize))| {
            let key = keys[example];
            let stand_ins = stand_ins.of(example);
            let case = Case { score, input, target, example, key, stand_ins, micro_batch };
            let finding = find(&case)?;
            Ok(case.certify(method, finding))
        };
        inputs.rows().into_iter().zip(targets).enumerate().map(explain).collect()
    }
}

impl Case<'_> {
    /// Sends masks through the score. `present` writes how much of every feature an item leaves present (1 all,
    /// 0 none); `take` receives the items with their values, in order. Returns the evaluations of the score.
    pub(super) fn values<T>(
        &self,
        items: impl IntoIterator<Item = T>,
        present: impl Fn(&T, &mut [f64]),
        mut take: impl FnMut(T, f64),
    ) -> Result<usize> {
        let mut stream = ScoreStream::new(self.score, self.micro_batch);
        let mut mask = vec![0.0; self.input.len()];
        let mut evaluations = 0;
        // Items whose rows are under way, and the sum over the rows of the first of them.
        let mut waiting = VecDeque::new();
        let mut sum = (0.0, 0);
        let mut send = |stream: &mut ScoreStream<()>, waiting: &mut VecDeque<T>| {
            stream.values(|(), value| {
                self.check(value, evaluations)?;
                evaluations += 1;
                sum = (sum.0 + value, sum.1 + 1);
                if sum.1 == self.stand_ins.nrows() {
                    if let Some(item) = waiting.pop_front() {
                        take(item, sum.0 / sum.1 as f64);
                    }
                    sum = (0.0, 0);
                }
                Ok(())
            })
        };
        for item in items {
            present(&item, &mut mask);
            waiting.push_back(item);
            for stand_in in self.stand_ins.rows() {
                if stream.push(self.target, (), |(), row| self.blend(&mask, stand_in, row)) {
                    send(&mut stream, &mut waiting)?;
                }
            }
        }
        send(&mut stream, &mut waiting)?;
        Ok(evaluations)
    }

    /// The scores with everything absent and with everything present, and the evaluations they took.
    pub(super) fn ends(&self) -> Result<(f64, f64, usize)> {
        let mut reference_score = 0.0;
        let evaluations = self.values([()], |_, mask| mask.fill(0.0), |_, value| reference_score = value)?;
        Ok((reference_score, self.input_score()?, evaluations + 1))
    }

    /// The score of the input itself.
    pub(super) fn input_score(&self) -> Result<f64> {
        let values = self.score.values(self.input.insert_axis(Axis(0)), &[self.target])?;
        error::expect_shape("the score's values", &[1], values.shape())?;
        self.check(values[0], 0)?;
        Ok(values[0])
    }

    /// The groups of this input, and those among them that are not the same present or absent: the others make
    /// no difference and have no credit.
    pub(super) fn groups(&self, grouping: &Grouping) -> Result<(Groups, Vec<usize>)> {
        let groups = grouping.groups(self.score.shape(), self.input)?;
        let differs =
            |&feature: &usize| self.stand_ins.column(feature).iter().any(|r| *r != self.input[feature]);
        let active = (0..groups.count()).filter(|&g| groups.members(g).iter().any(differs)).collect();
        Ok((groups, active))
    }

    /// What the input is compared with: the row that stands in, or the mean of the rows that do.
    pub(super) fn reference(&self) -> Array1<f64> {
        self.stand_ins.mean_axis(Axis(0)).unwrap_or_else(|| Array1::zeros(self.input.len()))
    }

    fn blend(&self, mask: &[f64], stand_in: ArrayView1<f64>, mut row: ArrayViewMut1<f64>) {
        for (i, to) in row.iter_mut().enumerate() {
            // Whole features are copied, not computed: rounding must not make an absent feature a new value.
            *to = match mask[i] {
                1.0 => self.input[i],
                0.0 => stand_in[i],
                part => part * self.input[i] + (1.0 - part) * stand_in[i],
            };
        }
    }

    fn check(&self, value: f64, row: usize) -> Result<()> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Error::PerturbedScore { example: self.example, row, target: self.target, value })
    }

    fn certify(&self, method: &str, finding: Finding) -> Explanation {
        let Finding { credit, standard_errors, reference_score, score, evaluations, drawn } = finding;
        let completeness = reference_score.map(|reference| Completeness::new(credit.sum(), reference, score));
        // Where the score is nearly the same at both ends, rounding is all that is left to divide by.
        let rounding = ROUNDING * credit.iter().map(|value| value.abs()).sum::<f64>();
        let balanced = completeness.is_some_and(|account| account.residual <= rounding);
        let certificate = Certificate {
            completeness,
            score_evaluations: evaluations,
            sampling: drawn.map(|(seed, samples)| Sampling::new(seed, samples, standard_errors.as_ref())),
            ..Certificate::new(method, self.example, self.target, score)
        };
        Explanation {
            values: credit,
            shape: self.score.shape().to_vec(),
            reference: (self.stand_ins.nrows() == 1).then(|| self.reference()),
            input: self.input.to_owned(),
            standard_errors,
            certificate: if balanced {
                certificate.balanced()
            } else {
                certificate.judged(&Limits::default())
            },
        }
    }
}
