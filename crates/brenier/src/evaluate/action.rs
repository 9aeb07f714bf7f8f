//! Kinetic action of the path: `A = sum_k |x_{k+1} - x_k|^2 / dt`. Lower is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, PathGrid};
use crate::Result;

/// Kinetic action of the path, on this grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Action(pub PathGrid);

impl Action {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "action",
        aliases: &["kinetic-action"],
        help: "kinetic action of the path",
        needs: &[MetricNeed::Path],
        uses: &[MetricSetting::Steps],
        direction: Direction::Lower,
        comparable: Comparable::NotByConstruction,
        usual: false,
        build: |settings| Action(PathGrid::of(settings)).into(),
        page: MetricPage {
            formula: r"$\sum_k\lvert x_{k+1}-x_k\rvert^2/\Delta t$",
            range: r"at least $\lvert x_K-x_0\rvert^2$",
            says: "the path is short, or straight",
            does_not_say: "that it is optimal, or near the data: a straight line in pixels is the straightest of all",
        },
    }];
}

impl Measure for Action {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.0.actions(cases)
    }
}
