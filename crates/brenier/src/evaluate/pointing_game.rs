//! Pointing game: 1 if the highest pixel is true, else 0. Higher is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, PlantedTruth};
use crate::Result;

/// The pointing game.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PointingGame(pub PlantedTruth);

impl PointingGame {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "pointing-game",
        aliases: &[],
        help: "whether the highest truly decides",
        needs: &[MetricNeed::Truth],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| PointingGame(PlantedTruth::of(settings)).into(),
        page: MetricPage {
            formula: "whether the highest is true",
            range: "0 or 1; a share where several are equally high",
            says: "credit falls on what is known to decide",
            does_not_say: "anything on data where that is not known",
        },
    }];
}

impl Measure for PointingGame {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.0.pointing(cases))
    }
}
