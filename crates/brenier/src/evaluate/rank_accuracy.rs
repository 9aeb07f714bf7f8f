//! Rank accuracy: `|{the |T| highest p} in T| / |T|`, how many of the highest are true. Higher is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, PlantedTruth};
use crate::Result;

/// Rank accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RankAccuracy(pub PlantedTruth);

impl RankAccuracy {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "rank-accuracy",
        aliases: &[],
        help: "share of the highest that truly decide",
        needs: &[MetricNeed::Truth],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| RankAccuracy(PlantedTruth::of(settings)).into(),
        page: MetricPage {
            formula: r"true ones among the $\lvert T\rvert$ highest, over $\lvert T\rvert$",
            range: "0 to 1",
            says: "credit falls on what is known to decide",
            does_not_say: "anything on data where that is not known",
        },
    }];
}

impl Measure for RankAccuracy {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.0.rank(cases))
    }
}
