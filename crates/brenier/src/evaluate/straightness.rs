//! Geometric Path Straightness: `GPS = sum_k |x_{k+1} - x_k| / |x_K - x_0|`. Neither is better; 1 is a straight path.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, PathGrid};
use crate::Result;

/// Geometric Path Straightness, on this grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Straightness(pub PathGrid);

impl Straightness {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "gps",
        aliases: &["geometric-path-straightness", "straightness"],
        help: "length of the path over the distance of its ends",
        needs: &[MetricNeed::Path],
        uses: &[MetricSetting::Steps],
        direction: Direction::Neither,
        comparable: Comparable::Methods,
        usual: true,
        build: |settings| Straightness(PathGrid::of(settings)).into(),
        page: MetricPage {
            formula: r"$\sum_k\lvert x_{k+1}-x_k\rvert/\lvert x_K-x_0\rvert$",
            range: "at least 1",
            says: "the path is short, or straight",
            does_not_say: "that it is optimal, or near the data: a straight line in pixels is the straightest of all",
        },
    }];
}

impl Measure for Straightness {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.0.straightness(cases)
    }
}
