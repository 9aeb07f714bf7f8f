//! Infidelity: how far credit is from what the score loses when parts are replaced. Lower is better; 0 is exact.
//!
//! ```text
//! INFD = E_S (a_S - d_S)^2,     rescaled:  E_S (beta a_S - d_S)^2,   beta = E a d / E a^2
//! ```
//!
//! (Yeh et al., "On the (In)fidelity and Sensitivity of Explanations", 2019, with removal of subsets as the
//! perturbation; their code rescales by the best beta, which a heat map without units needs.) It has the units of
//! the squared score, and asks for the credit of single subsets: Shapley values, which are means over many, are not
//! exact under it for scores with interactions.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, Subsets};
use crate::Result;

/// Infidelity under removal of random subsets.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Infidelity {
    /// Which subsets are replaced.
    pub subsets: Subsets,
    /// Whether credit is first multiplied by the number that makes infidelity least.
    pub rescaled: bool,
}

impl Infidelity {
    /// The metric's name.
    pub const NAME: &'static str = "infidelity";

    /// The infidelity of each explanation.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let score = |pairs: &Vec<(f64, f64)>| {
            let mean = |part: &dyn Fn(f64, f64) -> f64| {
                pairs.iter().map(|&(a, d)| part(a, d)).sum::<f64>() / pairs.len() as f64
            };
            let square = mean(&|a, _| a * a);
            let beta = match self.rescaled {
                true if square > 0.0 => mean(&|a, d| a * d) / square,
                _ => 1.0,
            };
            Some(mean(&|a, d| (beta * a - d).powi(2)))
        };
        Ok(self.subsets.pairs(cases)?.iter().map(score).collect())
    }
}

impl Infidelity {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &[],
        help: "squared gap between credit and what removals cost",
        needs: &[],
        uses: &[MetricSetting::Samples, MetricSetting::Units, MetricSetting::Seed],
        direction: Direction::Lower,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| Infidelity { subsets: Subsets::of(settings), ..Infidelity::default() }.into(),
        page: MetricPage {
            formula: r"$\mathrm E_S(a_S-d_S)^2$",
            range: "0 to ∞, units of the squared score",
            says: "credit predicts what single removals cost",
            does_not_say: "the same for other sizes of subset; Shapley values are means over many",
        },
    }];
}

impl Measure for Infidelity {
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
    use crate::attribute::Meaning;
    use crate::problems::LinearScore;

    #[test]
    fn exact_credit_of_a_linear_score_has_none() {
        let weights = array![2.0, -1.0, 0.5, 3.0];
        let score = LinearScore::new(weights.clone(), 1.0);
        let input = array![[1.0, 2.0, -1.0, 0.5]];
        let credit = &input * &weights;
        let of = |values: Array2<f64>, meaning, rescaled| {
            let cases = Cases { meaning, ..Cases::new(&score, input.clone(), vec![0], values).unwrap() };
            // Subsets of all units: the only subset loses all credit, 2 - 2 - 0.5 + 1.5 = 1.
            let subsets = Subsets { fraction: 1.0, samples: 3, ..Subsets::default() };
            Infidelity { subsets, rescaled }.scores(&cases).unwrap()[0].unwrap()
        };
        assert!(of(credit.clone(), Meaning::Credit, false) < 1e-24);
        assert!((of(3.0 * &credit, Meaning::Credit, false) - 4.0).abs() < 1e-12);
        assert!(of(3.0 * &credit, Meaning::Credit, true) < 1e-24);
        assert!(of(weights.insert_axis(ndarray::Axis(0)), Meaning::Sensitivity, false) < 1e-24);
        assert!((of(Array2::zeros((1, 4)), Meaning::Credit, true) - 1.0).abs() < 1e-12);
    }
}
