//! Scores against a planted truth: features that are known to decide. Higher is better, from 0 to 1.
//!
//! ```text
//! mass accuracy  = sum_{p in T} m_p / sum_p m_p               how much of the credit falls on the truth T
//! rank accuracy  = |{the |T| highest p} in T| / |T|           how many of the highest are true
//! pointing game  = 1 if the highest p is in T, else 0
//! ```
//!
//! (Arras et al., "CLEVR-XAI", 2022; Zhang et al., "Top-down Neural Attention", 2018.) `m` is the map with its
//! negative part set to 0. By default channels are added up by absolute value, so that credit against the score
//! counts as attention too; the signed sum counts credit for the score only. Equal values share their places: a
//! constant map gets what guessing would get, whatever the order of the features. A pixel is true if one of its
//! channels is. The truth must be all that decides: a mask of where the object is, is not that.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::map::pixel_count;
use super::{Cases, Channels, MetricSettings};

/// How maps are held against the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlantedTruth {
    /// How channels become one map.
    pub channels: Channels,
}

impl Default for PlantedTruth {
    /// The sum of absolute values over channels.
    fn default() -> Self {
        Self { channels: Channels::AbsoluteSum }
    }
}

impl PlantedTruth {
    /// With what is given.
    pub(super) fn of(settings: &MetricSettings) -> PlantedTruth {
        PlantedTruth { channels: settings.channels.unwrap_or(PlantedTruth::default().channels) }
    }

    /// The share of the credit that falls on the truth; not defined where there is none.
    pub(super) fn mass(&self, cases: &Cases) -> Vec<Option<f64>> {
        self.each(cases, |map, truth| {
            let total: f64 = map.iter().sum();
            let on_truth: f64 = map.iter().zip(truth).filter(|(_, true_)| **true_).map(|(m, _)| m).sum();
            (total > 0.0).then(|| on_truth / total)
        })
    }

    /// The share of the truth among as many highest pixels; not defined where nothing is true.
    pub(super) fn rank(&self, cases: &Cases) -> Vec<Option<f64>> {
        self.each(cases, |map, truth| {
            let size = truth.iter().filter(|true_| **true_).count();
            (size > 0).then(|| true_among_highest(map, truth, size) / size as f64)
        })
    }

    /// Whether the highest pixel is true.
    pub(super) fn pointing(&self, cases: &Cases) -> Vec<Option<f64>> {
        self.each(cases, |map, truth| Some(true_among_highest(map, truth, 1)))
    }

    fn each(&self, cases: &Cases, score: impl Fn(&[f64], &[bool]) -> Option<f64>) -> Vec<Option<f64>> {
        let Some(masks) = &cases.truth else { return vec![None; cases.len()] };
        let one = |(values, mask): (ArrayView1<f64>, ArrayView1<bool>)| {
            let map = self.channels.map(values, cases.shape()).mapv(|m| m.max(0.0)).to_vec();
            let mut truth = vec![false; pixel_count(cases.shape(), mask.len())];
            let pixels = truth.len();
            mask.iter().enumerate().for_each(|(feature, &true_)| truth[feature % pixels] |= true_);
            score(&map, &truth)
        };
        cases.values.rows().into_iter().zip(masks.rows()).map(one).collect()
    }
}

/// How many of the `count` highest are true, where equal values at the border share the places that are left.
fn true_among_highest(map: &[f64], truth: &[bool], count: usize) -> f64 {
    let mut sorted = map.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let border = sorted[count - 1];
    let (mut above, mut true_above, mut equal, mut true_equal) = (0, 0, 0, 0);
    for (&value, &true_) in map.iter().zip(truth) {
        if value > border {
            above += 1;
            true_above += usize::from(true_);
        } else if value == border {
            equal += 1;
            true_equal += usize::from(true_);
        }
    }
    true_above as f64 + (count - above) as f64 * true_equal as f64 / equal as f64
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::ValueFn;

    #[test]
    fn accuracies_in_closed_form() {
        let score = ValueFn::new(&[1, 1, 4], |_, _| 0.0);
        let truth = array![[true, true, false, false]];
        let of = |values: Array2<f64>, channels| {
            let cases = Cases {
                truth: Some(truth.view()),
                ..Cases::new(&score, Array2::zeros((1, 4)), vec![0], values).unwrap()
            };
            let planted = PlantedTruth { channels };
            [planted.mass(&cases)[0], planted.rank(&cases)[0], planted.pointing(&cases)[0]]
        };
        let values = array![[4.0, -1.0, 3.0, 0.0]];
        assert_eq!(of(values.clone(), Channels::AbsoluteSum), [Some(5.0 / 8.0), Some(0.5), Some(1.0)]);
        assert_eq!(of(values, Channels::SignedSum), [Some(4.0 / 7.0), Some(0.5), Some(1.0)]);
        // A constant map is a guess, and no credit is no mass.
        assert_eq!(of(array![[2.0; 4]], Channels::Maximum), [Some(0.5); 3]);
        assert_eq!(of(array![[0.0; 4]], Channels::Maximum), [None, Some(0.5), Some(0.5)]);
        assert_eq!(of(array![[0.0, 0.0, 1.0, 0.0]], Channels::Maximum)[1], Some(1.0 / 3.0 * 2.0 / 2.0));
    }

    #[test]
    fn a_pixel_is_true_if_a_channel_is() {
        let score = ValueFn::new(&[2, 1, 2], |_, _| 0.0);
        let truth = array![[false, false, true, false]];
        let values = array![[1.0, 1.0, 1.0, 1.0]];
        let cases = Cases {
            truth: Some(truth.view()),
            ..Cases::new(&score, Array2::zeros((1, 4)), vec![0], values).unwrap()
        };
        assert_eq!(PlantedTruth::default().mass(&cases), [Some(0.5)]);
    }
}
