//! What a map of an image shows: credit of pixels, or of superpixels.
//!
//! ```text
//! pixels:        m_p = sum over channels c of Phi_cp
//! superpixels:   m_p = sum over the pixels q of p's superpixel of m_q
//! ```
//!
//! Either way the parts of a map sum to the whole credit. A superpixel has the colour of its sum: "this region has done 1.3
//! for the score".

use ndarray::ArrayView1;

use crate::Result;
use crate::attribute::{Explanation, Grouping, Slic};
use crate::evaluate::Channels;

/// The part of magnitudes that the colours tell apart: beyond this percentile the colour stays full.
pub const TOLD_APART: f64 = 0.995;

/// A map of an image, as its colours show it.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownMap {
    /// What each pixel shows, row by row.
    pub pixels: Vec<f64>,
    /// The parts that are told apart, each once: pixels, or superpixels. They sum to the whole credit.
    pub parts: Vec<f64>,
}

impl ShownMap {
    /// The map of an explanation of an image, by about so many superpixels where that is asked for.
    ///
    /// # Errors
    /// Superpixels of what is no image, or none of them.
    pub fn of(explanation: &Explanation, superpixels: Option<usize>) -> Result<ShownMap> {
        let pixels = Channels::SignedSum.map(explanation.values.view(), &explanation.shape).to_vec();
        let Some(count) = superpixels else { return Ok(ShownMap { parts: pixels.clone(), pixels }) };
        let labels = superpixel_labels(explanation.input.view(), &explanation.shape, count)?;
        let mut parts = vec![0.0; labels.iter().max().map_or(0, |last| last + 1)];
        labels.iter().zip(&pixels).for_each(|(&label, credit)| parts[label] += credit);
        Ok(ShownMap { pixels: labels.iter().map(|&label| parts[label]).collect(), parts })
    }

    /// The value that has the full colour: the 99.5th percentile of magnitudes (nearest rank), or the largest where that is
    /// 0. Of a few parts all count.
    pub fn scale(&self) -> f64 {
        full_colour(self.parts.iter().map(|v| v.abs()))
    }
}

/// The superpixel of every pixel of an image, about so many in all.
pub(super) fn superpixel_labels(image: ArrayView1<f64>, shape: &[usize], count: usize) -> Result<Vec<usize>> {
    let groups = Grouping::Superpixels(Slic { segments: count, ..Slic::default() }).groups(shape, image)?;
    let pixels = shape.iter().rev().take(2).product();
    Ok(groups.labels()[..pixels].to_vec())
}

fn full_colour(magnitudes: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = magnitudes.collect();
    sorted.sort_by(f64::total_cmp);
    let rank = (TOLD_APART * sorted.len() as f64).ceil() as usize;
    let chosen = sorted.get(rank.saturating_sub(1)).copied().filter(|scale| *scale > 0.0);
    chosen.or(sorted.last().copied()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Certificate;
    use ndarray::Array1;

    #[test]
    fn a_few_extremes_do_not_set_the_scale() {
        let ramp = |extreme: f64| (0..1000).map(move |i| if i < 5 { extreme } else { f64::from(i) });
        assert_eq!(full_colour(ramp(1e6)), 999.0);
        assert_eq!(full_colour(ramp(0.0)), 994.0);
        // Up to 200 pixels have none to spare, and credit on a single pixel is seen.
        assert_eq!(full_colour([1.0, 2.0, 50.0].into_iter()), 50.0);
        assert_eq!(full_colour((0..1000).map(|i| if i == 7 { 3.0 } else { 0.0 })), 3.0);
        assert_eq!(full_colour(std::iter::empty()), 0.0);
    }

    /// An image of a dark and a bright half: credit over superpixels stays on its half, and sums to the same.
    #[test]
    fn superpixels_have_the_sum_of_their_pixels() {
        let side = 16;
        let input = Array1::from_shape_fn(3 * side * side, |i| if i % side < side / 2 { 0.0 } else { 1.0 });
        let values = Array1::from_shape_fn(3 * side * side, |i| {
            (i as f64 * 0.7).sin() + f64::from(i % side < side / 2)
        });
        let explanation = Explanation {
            values,
            shape: vec![3, side, side],
            reference: None,
            input,
            standard_errors: None,
            certificate: Certificate::new("ig", 0, 0, 1.0),
        };
        let whole: f64 = explanation.values.sum();
        let pixels = ShownMap::of(&explanation, None).unwrap();
        let regions = ShownMap::of(&explanation, Some(8)).unwrap();
        for map in [&pixels, &regions] {
            assert!((map.parts.iter().sum::<f64>() - whole).abs() < 1e-9 * whole, "{whole}");
        }
        assert!((4..=16).contains(&regions.parts.len()), "{}", regions.parts.len());
        // A region shows what all its pixels sum to.
        let first = regions.pixels[0];
        let sum: f64 =
            regions.pixels.iter().zip(&pixels.pixels).filter(|(r, _)| **r == first).map(|(_, p)| p).sum();
        assert!((sum - first).abs() < 1e-9, "{sum} {first}");
        // No region has pixels of both halves.
        for row in 0..side {
            let (left, right) = (regions.pixels[row * side + 7], regions.pixels[row * side + 8]);
            assert_ne!(left, right, "row {row}");
        }
        assert!(ShownMap::of(&explanation, Some(0)).is_err());
    }
}
