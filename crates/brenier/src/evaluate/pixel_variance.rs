//! Pixel variance across seeds: how much each pixel's credit moves. Lower is better; 0 means equal maps.
//!
//! ```text
//! 1/P sum_p Var_s m_sp          maps m of seeds s = 1..S, normalised;  Var with 1/S
//! ```
//!
//! "The average pointwise variance of normalized attribution maps" in the paper, which does not say how they are
//! normalised: by the largest absolute value here, or to the range from 0 to 1. It rewards maps that are small
//! nearly everywhere: one outlier shrinks all the rest.

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};

use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction, Normalisation};
use crate::Result;

/// Pixel variance across seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PixelVariance {
    /// How channels become one map.
    pub channels: Channels,
    /// The common scale of the maps.
    pub normalisation: Normalisation,
}

impl PixelVariance {
    /// The metric's name.
    pub const NAME: &'static str = "pixel-variance";

    /// The mean variance of each example's maps.
    pub(super) fn scores(&self, cases: &Cases) -> Vec<Option<f64>> {
        let score = |example: usize| {
            let maps = normalised_maps(cases, example, self.channels, self.normalisation);
            let count = maps.len() as f64;
            let sum = maps.iter().fold(Array1::<f64>::zeros(maps[0].len()), |sum, map| sum + map);
            let mean = sum / count;
            let square = |map: &Array1<f64>| (map - &mean).mapv(|v: f64| v * v).sum();
            maps.iter().map(square).sum::<f64>() / (count * mean.len() as f64)
        };
        (0..cases.len()).map(|example| Some(score(example))).collect()
    }
}

/// The maps of one example by all seeds, on a common scale.
pub(super) fn normalised_maps(
    cases: &Cases,
    example: usize,
    channels: Channels,
    normalisation: Normalisation,
) -> Vec<Array1<f64>> {
    let map = |values: ArrayView1<f64>| normalisation.apply(&channels.map(values, cases.shape()));
    let own = std::iter::once(map(cases.values.row(example)));
    own.chain(cases.repeats.iter().map(|repeat| map(repeat.row(example)))).collect()
}

impl PixelVariance {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &[],
        help: "variance of the map across seeds",
        needs: &[MetricNeed::Seeds],
        uses: &[MetricSetting::Channels],
        direction: Direction::Lower,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| {
            let channels = settings.channels.unwrap_or_default();
            PixelVariance { channels, ..PixelVariance::default() }.into()
        },
        page: MetricPage {
            formula: r"$\frac1P\sum_p\mathrm{Var}_s\,m_{sp}$ over seeds $s$",
            range: "0 to 1",
            says: "other seeds give the same map",
            does_not_say: "that the map is right: a constant answer is stable",
        },
    }];
}

impl Measure for PixelVariance {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        Ok(self.scores(cases))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::ValueFn;

    #[test]
    fn the_variance_of_normalised_maps() {
        let score = ValueFn::new(&[2], |_, _| 0.0);
        let (values, other) = (array![[2.0, 1.0]], array![[10.0, -5.0]]);
        let cases = Cases {
            repeats: vec![other.view()],
            ..Cases::new(&score, Array2::zeros((1, 2)), vec![0], values).unwrap()
        };
        // Normalised: (1, 0.5) and (1, -0.5).
        assert_eq!(PixelVariance::default().scores(&cases), [Some(0.125)]);
        let range = PixelVariance { normalisation: Normalisation::Range, ..PixelVariance::default() };
        assert_eq!(range.scores(&cases), [Some(0.0)]);
    }
}
