//! Defect of the path as a solution of the flow: `1/K sum_k |x'(t) - v(x, t)|^2` at `t = t_k + dt/2`. Lower is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec, needed};
use super::{Cases, Comparable, Direction, PathGrid};
use crate::Result;

/// Defect of the path as a solution of the flow, on this grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FlowDefect(pub PathGrid);

impl FlowDefect {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "flow-defect",
        aliases: &[],
        help: "the same at the path's own tangent, without the error of the grid",
        needs: &[MetricNeed::Path, MetricNeed::Flow],
        uses: &[MetricSetting::Steps],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: false,
        build: |settings| FlowDefect(PathGrid::of(settings)).into(),
        page: MetricPage {
            formula: r"$\frac1K\sum_k\lvert x'(t)-v(x(t),t)\rvert^2$ at $t=t_k+\Delta t/2$",
            range: "0 to ∞",
            says: r"the path follows the learned flow, without the error of the difference quotient: on a path that follows the flow exactly FCE is about $\Delta t^2/4\,\lvert x''\rvert^2$, the defect 0",
            does_not_say: "that the flow is right; the flow's own trace does well by construction",
        },
    }];
}

impl Measure for FlowDefect {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let field = needed(self.spec(), cases.context.flows.first())?;
        self.0.defects(cases, *field)
    }
}
