//! Structural similarity across seeds: whether maps look alike, window by window. Higher is better, at most 1.
//!
//! ```text
//! SSIM = mean over windows of  (2 ma mb + c1)(2 cov + c2) / ((ma^2 + mb^2 + c1)(va + vb + c2))
//! c1 = (0.01 L)^2,  c2 = (0.03 L)^2,  L the width of the range of values
//! ```
//!
//! (Wang et al., 2004.) In the form that scikit-image has by default: windows of 7 x 7 with equal weights
//! (`gaussian_weights=False`), variances and covariance with `n - 1`, and only windows that lie within the image.
//! Maps are normalised first, and L is the width of that range: 2 for division by the largest absolute value, 1 for
//! the range from 0 to 1. Flat regions agree almost whatever they hold, so sparse maps look alike.

use ndarray::{Array1, ArrayView2};
use serde::{Deserialize, Serialize};

use super::pixel_variance::normalised_maps;
use super::rank_correlation::mean_over_pairs;
use super::spec::{Measure, MetricNeed, MetricPage, MetricSetting, MetricSpec};
use super::{Cases, Channels, Comparable, Direction, Normalisation};
use crate::attribute::image;
use crate::{Error, Result, error};

/// Structural similarity across seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ssim {
    /// The side of the window in pixels, odd.
    pub window: usize,
    /// How channels become one map.
    pub channels: Channels,
    /// The common scale of the maps.
    pub normalisation: Normalisation,
}

impl Default for Ssim {
    /// Windows of 7 pixels, the signed sum over channels, division by the largest absolute value.
    fn default() -> Self {
        Self { window: 7, channels: Channels::SignedSum, normalisation: Normalisation::LargestAbsolute }
    }
}

impl Ssim {
    /// The metric's name.
    pub const NAME: &'static str = "ssim";

    /// The mean similarity over all pairs of seeds, for each example.
    pub(super) fn scores(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        let [_, height, width] = image("SSIM", cases.shape())?;
        let range = self.normalisation.width().ok_or(Error::Setting {
            name: "the normalisation of maps for SSIM",
            value: "none".to_string(),
            needs: "the range of values must be known",
            hint: "divide by the largest absolute value".into(),
        })?;
        check(height, width, self.window)?;
        let view = |map: &Array1<f64>| map.to_shape((height, width)).map(|map| map.into_owned()).ok();
        let score = |example: usize| {
            let maps = normalised_maps(cases, example, self.channels, self.normalisation);
            let maps: Vec<_> = maps.iter().filter_map(view).collect();
            mean_over_pairs(&maps, |a, b| structural_similarity(a.view(), b.view(), range, self.window).ok())
        };
        Ok((0..cases.len()).map(score).collect())
    }
}

fn check(height: usize, width: usize, window: usize) -> Result<()> {
    if window >= 3 && window % 2 == 1 && window <= height.min(width) {
        return Ok(());
    }
    Err(Error::Setting {
        name: "the window of SSIM",
        value: format!("{window} for maps of {height} x {width} pixels"),
        needs: "it is an odd number of pixels, at least 3, that fits into the map",
        hint: "7 is the default; for small images choose 3".into(),
    })
}

/// The structural similarity of two maps whose values span a range of this width; 1 if they are equal.
///
/// # Errors
/// Maps of different shapes; a window that is even or does not fit; a range that is not positive.
pub fn structural_similarity(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    range: f64,
    window: usize,
) -> Result<f64> {
    error::expect_shape("the second map", a.shape(), b.shape())?;
    check(a.nrows(), a.ncols(), window)?;
    if !(range > 0.0 && range.is_finite()) {
        return Err(Error::Setting {
            name: "the range of SSIM",
            value: range.to_string(),
            needs: "it is the width of the range of values, above 0",
            hint: "2 for values from -1 to 1".into(),
        });
    }
    let (c1, c2) = ((0.01 * range).powi(2), (0.03 * range).powi(2));
    let count = (window * window) as f64;
    let side = (window, window);
    let similarity = |a: ArrayView2<f64>, b: ArrayView2<f64>| {
        let (ma, mb) = (a.sum() / count, b.sum() / count);
        let (mut va, mut vb, mut cov) = (0.0, 0.0, 0.0);
        for (x, y) in a.iter().zip(b.iter()) {
            va += (x - ma).powi(2);
            vb += (y - mb).powi(2);
            cov += (x - ma) * (y - mb);
        }
        let [va, vb, cov] = [va, vb, cov].map(|sum| sum / (count - 1.0));
        (2.0 * ma * mb + c1) * (2.0 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2))
    };
    let places = (a.nrows() - window + 1) * (a.ncols() - window + 1);
    let windows = a.windows(side).into_iter().zip(b.windows(side));
    Ok(windows.map(|(a, b)| similarity(a, b)).sum::<f64>() / places as f64)
}

impl Ssim {
    pub(super) const SPECS: &'static [MetricSpec] = &[MetricSpec {
        name: Self::NAME,
        aliases: &["structural-similarity"],
        help: "structural similarity of maps across seeds",
        needs: &[MetricNeed::Seeds, MetricNeed::Image],
        uses: &[MetricSetting::Channels],
        direction: Direction::Higher,
        comparable: Comparable::Methods,
        usual: false,
        build: |settings| {
            let channels = settings.channels.unwrap_or_default();
            Ssim { channels, ..Ssim::default() }.into()
        },
        page: MetricPage {
            formula: "structural similarity of maps, mean over pairs of seeds",
            range: "−1 to 1",
            says: "other seeds give the same map",
            does_not_say: "that the map is right: a constant answer is stable",
        },
    }];
}

impl Measure for Ssim {
    fn spec(&self) -> &'static MetricSpec {
        &Self::SPECS[0]
    }

    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>> {
        self.scores(cases)
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::*;

    #[test]
    fn equal_and_constant_maps_in_closed_form() {
        let map = Array2::from_shape_fn((9, 8), |(i, j)| ((i * 8 + j) as f64 * 0.7).sin());
        let same = structural_similarity(map.view(), map.view(), 2.0, 7).unwrap();
        assert!((same - 1.0).abs() < 1e-14);
        // Constant maps 0.5 and -0.25: no variance, only the means.
        let constant = |v: f64| Array2::from_elem((7, 7), v);
        let found = structural_similarity(constant(0.5).view(), constant(-0.25).view(), 2.0, 7).unwrap();
        let c1 = 4e-4;
        assert!((found - (-0.25 + c1) / (0.25 + 0.0625 + c1)).abs() < 1e-14);
        assert!(structural_similarity(map.view(), map.view(), 2.0, 9).is_err());
        assert!(structural_similarity(map.view(), map.view(), 2.0, 4).is_err());
        assert!(structural_similarity(map.view(), map.view(), 0.0, 7).is_err());
    }
}
