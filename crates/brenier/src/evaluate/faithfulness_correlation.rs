//! Faithfulness correlation: whether subsets with more credit cost the score more. Higher is better, from -1 to 1.
//!
//! ```text
//! corr_S (a_S, d_S)          Pearson's, over random subsets of equal size
//! ```
//!
//! (Bhatt et al., "Evaluating and Aggregating Feature-based Model Explanations", 2020.) It does not see the scale of
//! the credit, nor what is common to all subsets. It is not defined where credit or score is the same for all
//! of them, and with few subsets it is noisy.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, Subsets, pearson};
use crate::Result;

/// Faithfulness correlation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FaithfulnessCorrelation {
    /// Which subsets are replaced.
    pub subsets: Subsets,
}

impl FaithfulnessCorrelation {
    /// The metric's name.
    pub const NAME: &'static str = "faithfulness-correlation";

    /// The correlation for each explanation.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let correlation = |pairs: &Vec<(f64, f64)>| {
            let (credit, lost): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            pearson(&credit, &lost)
        };
        Ok(self.subsets.pairs(cases)?.iter().map(correlation).collect())
    }
}

impl FaithfulnessCorrelation {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &[],
        help: "correlation of credit with what removals cost",
        needs: &[],
        uses: &[MetricSetting::Samples, MetricSetting::Units, MetricSetting::Seed],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: true,
        build: |settings| FaithfulnessCorrelation { subsets: Subsets::of(settings) }.into(),
        page: MetricPage {
            formula: r"$\mathrm{corr}_S(a_S,d_S)$",
            range: "−1 to 1",
            says: "subsets with more credit cost more",
            does_not_say: "anything of the scale of credit",
        },
    }];
}

impl Measure for FaithfulnessCorrelation {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.scores(cases)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::problems::LinearScore;

    #[test]
    fn exact_credit_of_a_linear_score_is_faithful() {
        let weights = array![2.0, -1.0, 0.5, 3.0, 1.0];
        let score = LinearScore::new(weights.clone(), 1.0);
        let input = array![[1.0, 2.0, -1.0, 0.5, 0.1]];
        let of = |values: Array2<f64>| {
            let cases = Cases::new(&score, input.clone(), vec![0], values).unwrap();
            FaithfulnessCorrelation::default().scores(&cases).unwrap()[0]
        };
        let credit = &input * &weights;
        assert!((of(7.0 * &credit).unwrap() - 1.0).abs() < 1e-12);
        assert!((of(-&credit).unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(of(Array2::zeros((1, 5))), None);
    }
}
