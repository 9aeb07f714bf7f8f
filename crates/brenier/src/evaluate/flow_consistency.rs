//! Flow Consistency Error: `FCE = 1/K sum_k |(x_{k+1} - x_k)/dt - v(x_k, t_k)|^2`. Lower is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec, needed};
use super::{Cases, Comparable, Direction, PathGrid};
use crate::Result;

/// Flow Consistency Error, on this grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowConsistency(pub PathGrid);

impl FlowConsistency {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "fce",
        aliases: &["flow-consistency-error"],
        help: "how far the path is from following the flow",
        needs: &[MetricNeed::Path, MetricNeed::Flow],
        uses: &[MetricSetting::Steps],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: true,
        build: |settings| FlowConsistency(PathGrid::of(settings)).into(),
        page: MetricPage {
            formula: r"$\frac1K\sum_k\lvert(x_{k+1}-x_k)/\Delta t-v(x_k,t_k)\rvert^2$",
            range: "0 to ∞",
            says: "the path follows the learned flow, if the grid is fine: in 50 steps, the paper's and the default, its difference quotient may count for more than the flow (400 steps tell more)",
            does_not_say: "that the flow is right; the flow's own trace does well by construction",
        },
    }];
}

impl Measure for FlowConsistency {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let field = needed(self.spec(), cases.context.flows.first())?;
        self.0.consistency(cases, *field)
    }
}
