//! Completeness residual: by how much credit misses the score's change. Lower is better.
//!
//! ```text
//! r = | sum_i Phi_i - (f(x) - f(x_0)) |
//! ```
//!
//! In units of the score. The account is the method's own; `completeness.rs` has the columns of the paper's table.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSpec};
use super::{Cases, Comparable, Direction};
use crate::Result;

/// Completeness residual. There is nothing to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompletenessResidual {}

impl CompletenessResidual {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "completeness-residual",
        aliases: &[],
        help: "by how much credit misses the score's change",
        needs: &[MetricNeed::Account],
        uses: &[],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: false,
        build: |_| CompletenessResidual {}.into(),
        page: MetricPage {
            formula: r"$\lvert\sum_i\Phi_i-(f(x)-f(x_0))\rvert$",
            range: "0 to ∞, units of the score",
            says: "the accounting balances",
            does_not_say: "that credit went to the right features",
        },
    }];
}

impl Measure for CompletenessResidual {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(cases.completeness.iter().map(|account| account.map(|account| account.residual)).collect())
    }
}
