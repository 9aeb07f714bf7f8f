//! Shapley values by their definition: every subset of the groups is asked for.
//!
//! ```text
//! phi_i = sum_{S without i} |S|! (M - |S| - 1)! / M!  (v(S + i) - v(S))
//! ```
//!
//! The only split of `v(all) - v(none)` that is efficient, symmetric, linear and gives nothing to groups that
//! never matter (Shapley, 1953). It costs `2^M` subsets times the background rows, so it is for few groups; it
//! is also what the sampled methods are measured against.

use ndarray::{Array1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::perturbation::{Case, Finding, Question};
use super::spec::{Explainer, MethodPage, MethodSpec, Setting};
use super::{Absence, Context, Explanation, Grouping, Meaning};
use crate::predictor::Score;
use crate::{Error, Result};

/// The most groups whose subsets are all asked for: about a million subsets.
pub(super) const MOST_GROUPS: usize = 20;

/// Exact Shapley values of groups of features.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShapleyValues {
    /// Which features are present or absent together.
    pub groups: Grouping,
    /// What stands in for absent ones.
    pub absence: Absence,
    /// The largest batch that the score is given, in rows; what takes about 8 MB where not given.
    pub micro_batch: Option<usize>,
}

impl Default for ShapleyValues {
    /// Every feature by itself, zero where it is absent.
    fn default() -> Self {
        Self { groups: Grouping::Each, absence: Absence::default(), micro_batch: None }
    }
}

impl ShapleyValues {
    /// The method's name.
    pub const NAME: &'static str = "shapley-values";

    /// Explains output `targets[i]` of row `i`.
    ///
    /// ```
    /// use brenier::attribute::{Context, ShapleyValues};
    /// use brenier::ScoreFn;
    /// use ndarray::array;
    ///
    /// // f(x) = x0 + x1 x2: the two that only work together share the product.
    /// let score = ScoreFn::new(&[3], |x, _| (x[0] + x[1] * x[2], array![1.0, x[2], x[1]]));
    /// let explanations = ShapleyValues::default().explain(&score, array![[5.0, 2.0, 3.0]].view(), &[0], &Context::default())?;
    /// assert_eq!(explanations[0].values, array![5.0, 3.0, 3.0]);
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// More than 20 groups that differ from what stands in for them; scores that are not finite.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        let question = Question { score, inputs, targets, context };
        question.answer(Self::NAME, self.absence, 0, self.micro_batch, |case| self.find(case))
    }

    fn find(&self, case: &Case) -> Result<Finding> {
        let (groups, active) = case.groups(&self.groups)?;
        let count = active.len();
        if count > MOST_GROUPS {
            return Err(Error::TooManyGroups { groups: count, most: MOST_GROUPS });
        }
        // weights[s] = s! (M - s - 1)! / M!, for a group that joins a subset of s.
        let mut weights = vec![1.0 / count.max(1) as f64];
        for s in 1..count {
            weights.push(weights[s - 1] * s as f64 / (count - s) as f64);
        }
        let mut credit = Array1::zeros(groups.count());
        let mut ends = (0.0, 0.0);
        let everything = (1_u32 << count) - 1;
        let evaluations = case.values(
            0..=everything,
            |subset, mask| {
                mask.fill(1.0);
                let absent = active.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 0);
                absent.flat_map(|(_, &g)| groups.members(g)).for_each(|&feature| mask[feature] = 0.0);
            },
            |subset, value| {
                if subset == 0 {
                    ends.0 = value;
                }
                if subset == everything {
                    ends.1 = value;
                }
                // Differences from the first value: large scores do not drown small differences.
                let (size, value) = (subset.count_ones() as usize, value - ends.0);
                for (i, &group) in active.iter().enumerate() {
                    credit[group] +=
                        if subset >> i & 1 == 1 { weights[size - 1] * value } else { -weights[size] * value };
                }
            },
        )?;
        Ok(Finding {
            credit: groups.spread(&credit),
            standard_errors: None,
            reference_score: Some(ends.0),
            score: ends.1,
            evaluations,
            drawn: None,
        })
    }
}

impl ShapleyValues {
    pub(super) const SPECS: &'static [MethodSpec] = &[MethodSpec {
        name: Self::NAME,
        aliases: &["exact-explainer", "exact-shapley-values"],
        help: "Shapley values by their definition, for up to 20 groups",
        needs: &[],
        uses: &[Setting::Baseline, Setting::Absence, Setting::Groups, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| {
            let groups = settings.groups.clone().unwrap_or_default();
            ShapleyValues { groups, absence: settings.absence(), ..ShapleyValues::default() }.into()
        },
        page: MethodPage {
            credit: "Shapley value of the feature's group, by its definition",
            sums_to: r"$f(x)-\overline{f(\text{nothing of }x)}$",
            cost: "no gradients; $2^M$ scores",
            use_it: "where there are few groups and the answer must be exact",
            refuses: "more than 20 groups",
        },
    }];
}

impl Explainer for ShapleyValues {
    fn spec(&self) -> &'static MethodSpec {
        &Self::SPECS[0]
    }

    fn evaluations(&self, shape: &[usize]) -> Option<usize> {
        let subsets = 1_usize.checked_shl(self.groups.expected(shape).min(MOST_GROUPS) as u32)?;
        Some(subsets * self.absence.rows())
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
