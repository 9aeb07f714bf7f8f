//! Relative residual: by how much credit misses the score's change, over that change. Lower is better.
//!
//! ```text
//! | sum_i Phi_i - (f(x) - f(x_0)) | / | f(x) - f(x_0) |
//! ```
//!
//! Not defined where the score does not change.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSpec};
use super::{Cases, Comparable, Direction};
use crate::Result;

/// Completeness residual over the size of the score's change. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RelativeResidual {}

impl RelativeResidual {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "relative-residual",
        aliases: &[],
        help: "the same over the size of that change",
        needs: &[MetricNeed::Account],
        uses: &[],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: true,
        build: |_| RelativeResidual {}.into(),
        page: MetricPage {
            formula: r"$\lvert\sum_i\Phi_i-(f(x)-f(x_0))\rvert/\lvert f(x)-f(x_0)\rvert$",
            range: "0 to ∞",
            says: "the accounting balances",
            does_not_say: "that credit went to the right features",
        },
    }];
}

impl Measure for RelativeResidual {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(cases.completeness.iter().map(|a| a.and_then(|a| a.relative_residual)).collect())
    }
}
