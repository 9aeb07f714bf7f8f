//! From credit for features to one number for each pixel, and to a common scale.
//!
//! ```text
//! signed sum  m_p = sum_c Phi_cp      absolute sum  m_p = sum_c |Phi_cp|      maximum  m_p = max_c |Phi_cp|
//! ```
//!
//! The paper sums or takes absolute values over colour channels "depending on the visualization protocol". Where
//! it says which, the metric's default follows it; where it does not, the signed sum is the default, because it
//! alone keeps completeness. What is not an image has no channels: each feature stands for itself.

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};

/// How the credit of the colour channels becomes one number for a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channels {
    /// The sum: credit for and against cancels, and the map sums to what the credit sums to.
    #[default]
    SignedSum,
    /// The sum of the absolute values.
    AbsoluteSum,
    /// The largest absolute value.
    Maximum,
}

impl Channels {
    /// The map of an explanation: `[height * width]` for an image `[channels, height, width]`, and a number for
    /// each feature otherwise.
    pub fn map(&self, values: ArrayView1<f64>, shape: &[usize]) -> Array1<f64> {
        let pixels = pixel_count(shape, values.len());
        let mut map = Array1::zeros(pixels);
        for (feature, &value) in values.iter().enumerate() {
            let pixel: &mut f64 = &mut map[feature % pixels];
            *pixel = match self {
                Channels::SignedSum => *pixel + value,
                Channels::AbsoluteSum => *pixel + value.abs(),
                Channels::Maximum => pixel.max(value.abs()),
            };
        }
        map
    }
}

/// The number of pixels of an image with channels, else of features.
pub(super) fn pixel_count(shape: &[usize], features: usize) -> usize {
    match *shape {
        [_, height, width] => height * width,
        _ => features,
    }
}

/// How maps are brought to a common scale before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalisation {
    /// Not at all.
    None,
    /// Divided by the largest absolute value, so that values lie in -1 to 1 and zero stays zero.
    #[default]
    LargestAbsolute,
    /// Shifted and scaled to the range from 0 to 1.
    Range,
}

impl Normalisation {
    /// The map on the common scale. One that has nothing to scale by (all zero, or constant) stays zero.
    pub fn apply(&self, map: &Array1<f64>) -> Array1<f64> {
        let low = map.iter().copied().fold(f64::INFINITY, f64::min);
        let high = map.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (shift, scale) = match self {
            Normalisation::None => (0.0, 1.0),
            Normalisation::LargestAbsolute => (0.0, high.abs().max(low.abs())),
            Normalisation::Range => (low, high - low),
        };
        if scale > 0.0 { map.mapv(|v| (v - shift) / scale) } else { Array1::zeros(map.len()) }
    }

    /// The width of the range that values can have, where the scale decides it.
    pub(super) fn width(&self) -> Option<f64> {
        match self {
            Normalisation::None => None,
            Normalisation::LargestAbsolute => Some(2.0),
            Normalisation::Range => Some(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn channels_are_put_together_as_they_say() {
        let values = array![1.0, -2.0, 3.0, 4.0];
        let map = |channels: Channels, shape: &[usize]| channels.map(values.view(), shape).to_vec();
        assert_eq!(map(Channels::SignedSum, &[2, 1, 2]), [4.0, 2.0]);
        assert_eq!(map(Channels::AbsoluteSum, &[2, 1, 2]), [4.0, 6.0]);
        assert_eq!(map(Channels::Maximum, &[2, 1, 2]), [3.0, 4.0]);
        assert_eq!(map(Channels::SignedSum, &[4]), [1.0, -2.0, 3.0, 4.0]);
        assert_eq!(map(Channels::Maximum, &[4]), [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn scales_are_common() {
        let map = array![-1.0, 0.0, 3.0];
        assert_eq!(Normalisation::LargestAbsolute.apply(&map), array![-1.0 / 3.0, 0.0, 1.0]);
        assert_eq!(Normalisation::Range.apply(&map), array![0.0, 0.25, 1.0]);
        assert_eq!(Normalisation::None.apply(&map), map);
        assert_eq!(Normalisation::Range.apply(&array![2.0, 2.0]), array![0.0, 0.0]);
        assert_eq!(Normalisation::LargestAbsolute.apply(&array![0.0]), array![0.0]);
    }
}
