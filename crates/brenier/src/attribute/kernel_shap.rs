//! KernelSHAP: Shapley values as the best additive account of the values of coalitions.
//!
//! ```text
//! min_phi  sum_S w(S) (v(S) - v(none) - sum_{i in S} phi_i)^2     with  sum_i phi_i = v(all) - v(none)
//! w(S) = (M - 1) / (C(M, |S|) |S| (M - |S|))                      phi = P b + A^-1 1 (..) ,  A = sum_S w z z'
//! ```
//!
//! Over all coalitions the solution is the Shapley value (Lundberg and Lee, 2017). Over some it is an estimate:
//! [`coalitions`](super::coalitions) enumerates the sizes that weigh most and draws pairs from the others. The
//! constraint is solved exactly, so credit sums to the score's change however few coalitions were asked for.
//!
//! The standard error is that of the estimating equation (the "sandwich"): with residuals `e(S)`, every drawn pair
//! moves the solution by `P (z e + z' e') w`, where `P = A^-1 - A^-1 1 1' A^-1 / (1' A^-1 1)`, and pairs are
//! independent of each other.

use nalgebra::{DMatrix, DVector};
use ndarray::{Array1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::coalitions::{Pair, Plan};
use super::draws::generator;
use super::perturbation::{Case, Finding, Question};
use super::shapley_values::MOST_GROUPS;
use super::spec::{Explainer, MethodPage, MethodSpec, Setting};
use super::{Absence, Context, Explanation, Grouping, Groups, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

/// How many coalitions are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Coalitions {
    /// As many as the shap package asks for: `2 M + 2048` for `M` groups, or all where that is fewer.
    #[default]
    Usual,
    /// All of them, which gives exact Shapley values. For at most 20 groups.
    All,
    /// This many, or all where that is fewer.
    Sampled {
        /// Coalitions besides the empty and the full one.
        count: usize,
    },
}

/// KernelSHAP over groups of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelShap {
    /// Which features are present or absent together.
    pub groups: Grouping,
    /// What stands in for absent ones.
    pub absence: Absence,
    /// How many coalitions are asked for.
    pub coalitions: Coalitions,
    /// The seed of the draws.
    pub seed: u64,
    /// The largest batch that the score is given, in rows; what takes about 8 MB where not given.
    pub micro_batch: Option<usize>,
}

impl Default for KernelShap {
    /// Every feature by itself, zero where it is absent, as many coalitions as the shap package asks for.
    fn default() -> Self {
        Self {
            groups: Grouping::Each,
            absence: Absence::default(),
            coalitions: Coalitions::Usual,
            seed: 0,
            micro_batch: None,
        }
    }
}

/// The weighted sums that the least-squares problem consists of.
struct Normal {
    matrix: DMatrix<f64>,
    vector: DVector<f64>,
}

/// The solution, and the matrix `P` by which residuals move it.
struct Solution {
    credit: DVector<f64>,
    influence: DMatrix<f64>,
}

impl KernelShap {
    /// The method's name.
    pub const NAME: &'static str = "kernel-shap";

    /// Explains output `targets[i]` of row `i`.
    ///
    /// # Errors
    /// All coalitions of more than 20 groups; fewer coalitions than determine the credit; scores that are not
    /// finite.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        let question = Question { score, inputs, targets, context };
        question.answer(Self::NAME, self.absence, self.seed, self.micro_batch, |case| self.find(case))
    }

    fn find(&self, case: &Case) -> Result<Finding> {
        let (groups, active) = case.groups(&self.groups)?;
        let (reference_score, score, mut evaluations) = case.ends()?;
        let change = score - reference_score;
        let mut credit = Array1::zeros(groups.count());
        let finding =
            |credit: &Array1<f64>, errors: Option<Array1<f64>>, evaluations, samples: usize| Finding {
                credit: groups.spread(credit),
                standard_errors: errors.map(|errors| groups.spread(&errors)),
                reference_score: Some(reference_score),
                score,
                evaluations,
                drawn: (samples > 0).then_some((self.seed, samples)),
            };
        if let [] | [_] = active.as_slice() {
            // Nothing, or one group that has all the credit: there is nothing to split.
            active.iter().for_each(|&group| credit[group] = change);
            return Ok(finding(&credit, None, evaluations, 0));
        }
        let plan = self.plan(active.len())?;
        let mut normal = Normal::zero(active.len());
        let present =
            |coalition: &Vec<bool>, mask: &mut [f64]| leave_present(&groups, &active, coalition, mask);
        evaluations += case.values(
            plan.enumerated(),
            |(coalition, _), mask| present(coalition, mask),
            |(coalition, weight), value| normal.add(&coalition, weight, value - reference_score),
        )?;
        let pairs = plan.draw(&mut generator(self.seed, case.key, 0));
        let weight = plan.weight_of_a_draw(&pairs);
        let sides = pairs.iter().flat_map(|pair| [pair.members.clone(), pair.complement()]);
        let mut values = Vec::with_capacity(2 * pairs.len());
        evaluations += case.values(sides, present, |_, value| values.push(value - reference_score))?;
        for (pair, value) in pairs.iter().zip(values.chunks_exact(2)) {
            normal.add(&pair.members, pair.draws as f64 * weight, value[0]);
            normal.add(&pair.complement(), pair.draws as f64 * weight, value[1]);
        }
        let solution = normal.solve(change).ok_or(Error::TooFewCoalitions {
            groups: active.len(),
            coalitions: plan.enumerated_count() + 2 * pairs.len(),
        })?;
        active.iter().zip(&solution.credit).for_each(|(&group, value)| credit[group] = *value);
        let errors = solution.standard_errors(&pairs, &values, weight);
        let errors = errors.map(|errors| {
            let mut all = Array1::zeros(groups.count());
            active.iter().zip(&errors).for_each(|(&group, error)| all[group] = *error);
            all
        });
        Ok(finding(&credit, errors, evaluations, 2 * pairs.len()))
    }

    fn plan(&self, groups: usize) -> Result<Plan> {
        match self.coalitions {
            Coalitions::All if groups > MOST_GROUPS => {
                Err(Error::TooManyGroups { groups, most: MOST_GROUPS })
            }
            Coalitions::All => Ok(Plan::new(groups, usize::MAX)),
            Coalitions::Usual => Ok(Plan::new(groups, 2 * groups + 2048)),
            Coalitions::Sampled { count: 0 } => Err(Error::Zero { what: "the number of coalitions" }),
            Coalitions::Sampled { count } => Ok(Plan::new(groups, count)),
        }
    }
}

/// The mask of a coalition: its groups are present, the other active ones absent. The rest makes no difference.
fn leave_present(groups: &Groups, active: &[usize], coalition: &[bool], mask: &mut [f64]) {
    mask.fill(1.0);
    for (&group, _) in active.iter().zip(coalition).filter(|(_, present)| !**present) {
        groups.members(group).iter().for_each(|&feature| mask[feature] = 0.0);
    }
}

impl Normal {
    fn zero(groups: usize) -> Normal {
        Normal { matrix: DMatrix::zeros(groups, groups), vector: DVector::zeros(groups) }
    }

    fn add(&mut self, coalition: &[bool], weight: f64, value: f64) {
        let members: Vec<usize> = (0..coalition.len()).filter(|&i| coalition[i]).collect();
        for &i in &members {
            self.vector[i] += weight * value;
            members.iter().for_each(|&j| self.matrix[(i, j)] += weight);
        }
    }

    /// `phi = A^-1 (b - 1 (1' A^-1 b - change) / (1' A^-1 1))`; `None` where the coalitions leave it open.
    fn solve(self, change: f64) -> Option<Solution> {
        let groups = self.vector.len();
        let factor = self.matrix.cholesky()?;
        let pivots = factor.l_dirty().diagonal();
        if pivots.min() < 1e-7 * pivots.max() {
            return None;
        }
        let inverse = factor.inverse();
        let ones = &inverse * DVector::repeat(groups, 1.0);
        let free = &inverse * self.vector;
        let credit = &free - &ones * ((free.sum() - change) / ones.sum());
        let influence = &inverse - &ones * ones.transpose() / ones.sum();
        Some(Solution { credit, influence })
    }
}

impl Solution {
    /// The standard error of every group's credit over the draws; `None` where fewer than two pairs were drawn.
    fn standard_errors(&self, pairs: &[Pair], values: &[f64], weight: f64) -> Option<DVector<f64>> {
        let draws: usize = pairs.iter().map(|pair| pair.draws).sum();
        if draws < 2 {
            return None;
        }
        let groups = self.credit.len();
        let residual = |coalition: &[bool], value: f64| {
            value - coalition.iter().zip(&self.credit).filter(|(z, _)| **z).map(|(_, phi)| phi).sum::<f64>()
        };
        let (mut sum, mut squares) = (DVector::zeros(groups), DVector::zeros(groups));
        for (pair, value) in pairs.iter().zip(values.chunks_exact(2)) {
            let complement = pair.complement();
            let (e, e_complement) = (residual(&pair.members, value[0]), residual(&complement, value[1]));
            let push = DVector::from_iterator(
                groups,
                pair.members.iter().map(|&member| weight * if member { e } else { e_complement }),
            );
            let moved = &self.influence * push;
            sum += &moved * pair.draws as f64;
            squares += moved.component_mul(&moved) * pair.draws as f64;
        }
        let n = draws as f64;
        // The variance of a sum of n independent pushes. Residuals are smaller than deviations from the truth, since
        // the credit was fitted to them; the last factor makes up for it.
        let fitted = ((groups - 1) as f64).min(n / 2.0);
        let variance = |i: usize| (squares[i] - sum[i] * sum[i] / n) * n / (n - 1.0) * n / (n - fitted);
        Some(DVector::from_fn(groups, |i, _| variance(i).max(0.0).sqrt()))
    }
}

impl KernelShap {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["kernel-explainer"],
        help: "Shapley values of groups of features, by weighted least squares",
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
            let coalitions =
                settings.samples.map_or(Coalitions::Usual, |count| Coalitions::Sampled { count });
            let (absence, seed) = (settings.absence(), settings.seed);
            KernelShap { groups, absence, coalitions, seed, ..KernelShap::default() }.into()
        },
        page: MethodPage {
            credit: "Shapley value of the feature's group, by weighted least squares",
            sums_to: r"$f(x)-\overline{f(\text{nothing of }x)}$",
            cost: "no gradients; $2M+2048$ scores for $M$ groups",
            use_it: "for any model, over groups of features",
            refuses: "too few coalitions for the groups",
        },
    }];
}

impl Explainer for KernelShap {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, shape: &[usize]) -> Option<usize> {
        let groups = self.groups.expected(shape);
        // One group has all the credit; its plan says the rest.
        let coalitions = self.plan(groups.max(2)).ok()?.count_all();
        Some((coalitions + 1) * self.absence.rows() + 1)
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
