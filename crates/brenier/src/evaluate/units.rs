//! What is removed together: pixels, single features, or groups such as superpixels.
//!
//! ```text
//! rank of a unit = mean over its pixels of the map m
//! ```
//!
//! The mean, not the sum: a large superpixel must not come first for being large.

use ndarray::ArrayView1;
use serde::{Deserialize, Serialize};

use super::map::pixel_count;
use super::{Cases, Channels};
use crate::Result;
use crate::attribute::{Grouping, Groups, Meaning};

/// What is removed together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "units", rename_all = "kebab-case")]
pub enum Units {
    /// Pixels, with all their channels; features of what is no image.
    #[default]
    Pixels,
    /// Every feature by itself, also the channels of a pixel.
    Features,
    /// Groups of features, such as superpixels of the input.
    Groups {
        /// How features are put into groups.
        grouping: Grouping,
    },
}

impl Units {
    /// The units of one input.
    pub(super) fn of(&self, shape: &[usize], input: ArrayView1<f64>) -> Result<Groups> {
        match self {
            Units::Pixels => {
                let pixels = pixel_count(shape, input.len());
                Grouping::Given { labels: (0..input.len()).map(|feature| feature % pixels).collect() }
            }
            Units::Features => Grouping::Each,
            Units::Groups { grouping } => grouping.clone(),
        }
        .groups(shape, input)
    }

    /// The number by which each unit is ranked. Without a choice of channels the method decides: credit is
    /// ranked by its sign, sensitivity by its size.
    pub(super) fn ranks(
        &self,
        groups: &Groups,
        cases: &Cases,
        example: usize,
        channels: Option<Channels>,
    ) -> Vec<f64> {
        let values = cases.values.row(example);
        let channels = channels.unwrap_or(match cases.meaning {
            Meaning::Credit => Channels::SignedSum,
            Meaning::Sensitivity => Channels::AbsoluteSum,
        });
        // Single features are not put together with the other channels of their pixel.
        let shape = if *self == Units::Features { &[][..] } else { cases.shape() };
        let map = channels.map(values, shape);
        let mean = |group: usize| {
            // A pixel counts once, not once for each of its channels: rounding must not part equal pixels.
            let mut pixels: Vec<usize> = groups.members(group).iter().map(|f| f % map.len()).collect();
            pixels.sort_unstable();
            pixels.dedup();
            pixels.iter().map(|&pixel| map[pixel]).sum::<f64>() / pixels.len() as f64
        };
        (0..groups.count()).map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, array};

    use super::*;
    use crate::ValueFn;

    #[test]
    fn units_are_ranked_by_the_mean_over_their_pixels() {
        let score = ValueFn::new(&[2, 1, 3], |_, _| 0.0);
        let values = array![[1.0, -5.0, 2.0, 1.0, 1.0, 0.5]];
        let mut cases = Cases::new(&score, Array2::zeros((1, 6)), vec![0], values).unwrap();
        let ranks = |units: &Units, cases: &Cases, channels| {
            let groups = units.of(cases.shape(), cases.inputs.row(0)).unwrap();
            units.ranks(&groups, cases, 0, channels)
        };
        assert_eq!(ranks(&Units::Pixels, &cases, None), [2.0, -4.0, 2.5]);
        assert_eq!(ranks(&Units::Pixels, &cases, Some(Channels::Maximum)), [1.0, 5.0, 2.0]);
        assert_eq!(ranks(&Units::Features, &cases, None), [1.0, -5.0, 2.0, 1.0, 1.0, 0.5]);
        let halves = Units::Groups { grouping: Grouping::Given { labels: vec![0, 0, 1] } };
        assert_eq!(ranks(&halves, &cases, None), [-1.0, 2.5]);
        cases.meaning = Meaning::Sensitivity;
        assert_eq!(ranks(&Units::Pixels, &cases, None), [2.0, 6.0, 2.5]);
    }
}
