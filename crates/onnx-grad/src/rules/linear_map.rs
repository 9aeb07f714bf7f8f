//! Maps that are linear along one axis: padding by reflection, resizing.
//!
//! Such a map is a matrix `A` with one row for every element it makes, and its gradient is `A^T`. The rows
//! have few entries, but a matrix product along an axis is what engines do best, and one page serves every
//! mode of `Pad` and `Resize`.

use super::Step;
use crate::build::Value;
use crate::error::Result;
use crate::tensor::{DType, TensorData};

/// Row by row, which elements (and how much of each) make up an element of the output.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LinearMap {
    pub(super) inputs: usize,
    pub(super) rows: Vec<Vec<(usize, f64)>>,
}

impl LinearMap {
    /// Every output is one input.
    pub(super) fn picks(inputs: usize, picks: impl Iterator<Item = usize>) -> LinearMap {
        LinearMap { inputs, rows: picks.map(|i| vec![(i, 1.0)]).collect() }
    }

    /// `Some(k)` where every input is repeated `k` times in a row.
    pub(super) fn repeats(&self) -> Option<usize> {
        let times = self.rows.len() / self.inputs.max(1);
        let repeats = self.rows.len() == times * self.inputs
            && self.rows.iter().enumerate().all(|(o, row)| *row == [(o / times, 1.0)]);
        (repeats && times > 0).then_some(times)
    }

    /// Applies `A^T` along `axis` of `dy`.
    pub(super) fn transposed(&self, step: &mut Step<'_>, dy: &str, axis: usize) -> Result<Value> {
        let rank = step.shape(dy)?.len();
        let (outputs, inputs) = (self.rows.len(), self.inputs);
        step.table(&[outputs as i64, inputs as i64])?;
        let dtype = step.b.fact(dy).dtype.unwrap_or(DType::F32);
        let mut matrix = vec![0.0; outputs * inputs];
        for (o, row) in self.rows.iter().enumerate() {
            for &(i, weight) in row {
                matrix[o * inputs + i] += weight;
            }
        }
        if axis + 2 == rank {
            // Second to last: the transpose from the left.
            let transpose: Vec<f64> =
                (0..inputs * outputs).map(|k| matrix[(k % outputs) * inputs + k / outputs]).collect();
            let left = step.b.constant(TensorData::from_f64(dtype, &[inputs, outputs], &transpose));
            return Ok(step.b.matmul(&left, dy));
        }
        let right = step.b.constant(TensorData::from_f64(dtype, &[outputs, inputs], &matrix));
        let mut perm: Vec<usize> = (0..rank).collect();
        perm.swap(axis, rank - 1);
        let moved = step.b.transpose(dy, &perm);
        let product = step.b.matmul(&moved, &right);
        Ok(step.b.transpose(&product, &perm))
    }
}

/// Where the elements of a padded axis come from.
pub(super) fn padding(mode: &str, size: i64, before: i64, after: i64) -> Option<LinearMap> {
    let source = |place: i64| match mode {
        "edge" => Some(place.clamp(0, size - 1)),
        "wrap" => Some(place.rem_euclid(size)),
        "reflect" => {
            let period = (2 * (size - 1)).max(1);
            let folded = place.rem_euclid(period);
            Some(if folded < size { folded } else { period - folded })
        }
        _ => None,
    };
    let picks: Option<Vec<usize>> =
        (-before..size + after).map(|p| source(p).and_then(|s| usize::try_from(s).ok())).collect();
    Some(LinearMap::picks(size as usize, picks?.into_iter()))
}

/// How one axis is resized.
#[derive(Debug, Clone)]
pub(super) struct Resampling {
    pub(super) mode: String,
    pub(super) coordinates: String,
    pub(super) nearest: String,
    pub(super) cubic: f64,
    pub(super) exclude_outside: bool,
}

impl Resampling {
    /// The map from `size` to `resized` elements; `None` for modes that are not known.
    pub(super) fn map(&self, size: usize, resized: usize, scale: f64) -> Option<LinearMap> {
        let rows = (0..resized).map(|o| self.row(o as f64, size, resized, scale)).collect::<Option<_>>()?;
        Some(LinearMap { inputs: size, rows })
    }

    fn row(&self, o: f64, size: usize, resized: usize, scale: f64) -> Option<Vec<(usize, f64)>> {
        let (n, m) = (size as f64, resized as f64);
        let at = match self.coordinates.as_str() {
            "half_pixel" => (o + 0.5) / scale - 0.5,
            "half_pixel_symmetric" => {
                let adjustment = m / (scale * n);
                n / 2.0 * (1.0 - adjustment) + (o + 0.5) / scale - 0.5
            }
            "pytorch_half_pixel" => {
                if resized > 1 {
                    (o + 0.5) / scale - 0.5
                } else {
                    0.0
                }
            }
            "align_corners" => {
                if resized > 1 {
                    o * (n - 1.0) / (m - 1.0)
                } else {
                    0.0
                }
            }
            "asymmetric" => o / scale,
            _ => return None,
        };
        let clamp = |i: f64| i.clamp(0.0, n - 1.0) as usize;
        let floor = at.floor();
        match self.mode.as_str() {
            "nearest" => {
                let pick = match self.nearest.as_str() {
                    "round_prefer_floor" => (at - 0.5).ceil(),
                    "round_prefer_ceil" => (at + 0.5).floor(),
                    "floor" => floor,
                    "ceil" => at.ceil(),
                    _ => return None,
                };
                Some(vec![(clamp(pick), 1.0)])
            }
            "linear" => {
                let inside = at.clamp(0.0, n - 1.0);
                let part = inside - inside.floor();
                Some(vec![(clamp(inside.floor()), 1.0 - part), (clamp(inside.floor() + 1.0), part)])
            }
            "cubic" => {
                let (a, t) = (self.cubic, at - floor);
                let near = |d: f64| ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0;
                let far = |d: f64| ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a;
                let mut taps = vec![
                    (floor - 1.0, far(t + 1.0)),
                    (floor, near(t)),
                    (floor + 1.0, near(1.0 - t)),
                    (floor + 2.0, far(2.0 - t)),
                ];
                if self.exclude_outside {
                    taps.retain(|(i, _)| (0.0..n).contains(i));
                    let total: f64 = taps.iter().map(|(_, w)| w).sum();
                    taps.iter_mut().for_each(|(_, w)| *w /= total);
                }
                Some(taps.into_iter().map(|(i, w)| (clamp(i), w)).collect())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_does_not_repeat_the_edge() {
        let map = padding("reflect", 3, 2, 1).unwrap();
        let picks: Vec<usize> = map.rows.iter().map(|r| r[0].0).collect();
        assert_eq!(picks, [2, 1, 0, 1, 2, 1]);
    }

    #[test]
    fn every_row_sums_to_one() {
        for mode in ["nearest", "linear", "cubic"] {
            for exclude_outside in [false, true] {
                let resampling = Resampling {
                    mode: mode.into(),
                    coordinates: "half_pixel".into(),
                    nearest: "round_prefer_floor".into(),
                    cubic: -0.75,
                    exclude_outside,
                };
                for row in resampling.map(5, 8, 1.6).unwrap().rows {
                    assert!((row.iter().map(|(_, w)| w).sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn upsampling_by_two_repeats() {
        let map = LinearMap::picks(3, [0, 0, 1, 1, 2, 2].into_iter());
        assert_eq!(map.repeats(), Some(2));
    }
}
