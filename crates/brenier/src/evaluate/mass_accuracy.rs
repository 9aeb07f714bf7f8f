//! Mass accuracy: `sum_{p in T} m_p / sum_p m_p`, how much of the credit falls on the planted truth `T`. Higher is better.

use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Comparable, Direction, PlantedTruth};
use crate::Result;

/// Mass accuracy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MassAccuracy(pub PlantedTruth);

impl MassAccuracy {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: "mass-accuracy",
        aliases: &[],
        help: "share of the credit on what truly decides",
        needs: &[MetricNeed::Truth],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| MassAccuracy(PlantedTruth::of(settings)).into(),
        page: MetricPage {
            formula: r"$\sum_{p\in T}m_p/\sum_p m_p$",
            range: "0 to 1",
            says: "credit falls on what is known to decide",
            does_not_say: "anything on data where that is not known",
        },
    }];
}

impl Measure for MassAccuracy {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.0.mass(cases))
    }
}
