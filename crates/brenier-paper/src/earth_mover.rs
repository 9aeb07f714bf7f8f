//! The earth mover's distance between a map and the truth, as XAI-TRIS scores it.
//!
//! ```text
//! EMD = min over plans of  sum_pq pi_pq |p - q|,   from |c| / sum |c| to the truth, equal on its pixels
//! score = 1 - EMD / D,   D the length of the image's diagonal from the first to the last pixel
//! ```
//!
//! Plans have whole masses here, so a map is rounded to parts of ten million; what that changes in the distance is below a
//! hundred-thousandth of a pixel.

use brenier::transport::plan;
use brenier::{Error, Result};
use ndarray::Array2;

/// Parts of each pixel of the truth.
const PARTS: u64 = 1 << 24;

/// The score of a map `[height * width]` against its truth, from 0 to 1; none where one of them is empty.
///
/// # Errors
/// A map of another size than the image.
pub(super) fn earth_mover_score(
    map: &[f64],
    truth: &[bool],
    [height, width]: [usize; 2],
) -> Result<Option<f64>> {
    if map.len() != height * width || truth.len() != map.len() {
        return Err(Error::Shape {
            what: "a map".to_string(),
            expected: vec![height * width, height * width],
            found: vec![map.len(), truth.len()],
        });
    }
    let on: Vec<usize> = (0..truth.len()).filter(|&pixel| truth[pixel]).collect();
    let total: f64 = map.iter().map(|value| value.abs()).sum();
    let diagonal = ((height - 1) as f64).hypot((width - 1) as f64);
    if on.is_empty() || total <= 0.0 || diagonal == 0.0 {
        return Ok(None);
    }
    let whole = PARTS * on.len() as u64;
    let masses = rounded(map, total, whole);
    let at = |pixel: usize| ((pixel / width) as f64, (pixel % width) as f64);
    let cost = Array2::from_shape_fn((on.len(), map.len()), |(i, j)| {
        let (a, b) = (at(on[i]), at(j));
        (a.0 - b.0).hypot(a.1 - b.1)
    });
    let best = plan(cost.view(), &vec![PARTS; on.len()], &masses)?;
    let moved: f64 = best.pairs.iter().map(|pair| pair.mass as f64 * cost[[pair.from, pair.to]]).sum();
    Ok(Some(1.0 - moved / whole as f64 / diagonal))
}

/// Whole numbers in the proportions of the map that sum to `whole`: rounded down, and what is left goes to those that lost most.
fn rounded(map: &[f64], total: f64, whole: u64) -> Vec<u64> {
    let exact: Vec<f64> = map.iter().map(|value| value.abs() / total * whole as f64).collect();
    let mut masses: Vec<u64> = exact.iter().map(|value| *value as u64).collect();
    let mut order: Vec<usize> = (0..map.len()).collect();
    order.sort_by(|&a, &b| exact[b].fract().total_cmp(&exact[a].fract()));
    let mut left = whole.saturating_sub(masses.iter().sum());
    for &pixel in order.iter().cycle() {
        if left == 0 {
            break;
        }
        masses[pixel] += 1;
        left -= 1;
    }
    // Rounding of the quotients can give a few too many.
    let mut over = masses.iter().sum::<u64>() - whole;
    for mass in &mut masses {
        let less = over.min(*mass);
        (*mass, over) = (*mass - less, over - less);
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_in_closed_form() {
        let score = |map: &[f64], truth: &[bool]| earth_mover_score(map, truth, [1, 5]).unwrap();
        let truth = [true, false, false, false, false];
        assert_eq!(score(&[3.0, 0.0, 0.0, 0.0, 0.0], &truth), Some(1.0));
        // All of it moves four pixels, which is the diagonal.
        assert_eq!(score(&[0.0, 0.0, 0.0, 0.0, -2.0], &truth), Some(0.0));
        // In one dimension: the area between the distribution functions, here 1/2 * 1 + 1/4 * 1.
        let half = score(&[2.0, 1.0, 1.0, 0.0, 0.0], &truth).unwrap();
        assert!((half - (1.0 - 0.75 / 4.0)).abs() < 1e-6, "{half}");
        assert_eq!(score(&[0.0; 5], &truth), None);
        assert_eq!(score(&[1.0; 5], &[false; 5]), None);
        assert!(earth_mover_score(&[1.0; 4], &truth, [1, 5]).is_err());
    }

    #[test]
    fn two_pixels_are_served_by_their_nearest() {
        // A uniform map on 2x2 and a truth of one column: half of the mass moves by one pixel.
        let score = earth_mover_score(&[1.0; 4], &[true, false, true, false], [2, 2]).unwrap().unwrap();
        assert!((score - (1.0 - 0.5 / 2.0_f64.sqrt())).abs() < 1e-6, "{score}");
        // Proportions that are not whole parts.
        let third = earth_mover_score(&[1.0, 1.0, 1.0], &[true, false, false], [1, 3]).unwrap().unwrap();
        assert!((third - (1.0 - 1.0 / 2.0)).abs() < 1e-6, "{third}");
        assert_eq!(rounded(&[1.0, 1.0, 1.0], 3.0, 100).iter().sum::<u64>(), 100);
    }
}
