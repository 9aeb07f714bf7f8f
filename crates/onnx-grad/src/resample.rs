//! `Resize` along one axis: which elements, and how much of each, make up an element of the result.
//!
//! The map is linear, so its rows serve the evaluator (`A x`) and the gradient (`A^T dy`) alike. With mode
//! "nearest" it jumps: a coordinate of 2.9999998 is another pixel than 3. Engines reckon in float32, so the
//! coordinates here are float32 too, in the order of operations of ONNX Runtime.

use crate::graph::Node;

/// The elements that one element of the result is made of, with their weights.
pub(crate) type Row = Vec<(usize, f64)>;

/// How an axis is resized: the attributes of a `Resize` node.
#[derive(Debug, Clone)]
pub(crate) struct Resampling<'a> {
    mode: &'a str,
    coordinates: &'a str,
    nearest: &'a str,
    cubic: f64,
    exclude_outside: bool,
}

/// The size of an axis of `size` elements after scaling.
///
/// In float32: 3 times the float32 nearest to 7/3 must be 7.
pub(crate) fn scaled(size: i64, scale: f64) -> i64 {
    (size as f32 * scale as f32).floor() as i64
}

impl<'a> Resampling<'a> {
    pub(crate) fn of(node: &'a Node) -> Resampling<'a> {
        Resampling {
            mode: node.string("mode", "nearest"),
            coordinates: node.string("coordinate_transformation_mode", "half_pixel"),
            nearest: node.string("nearest_mode", "round_prefer_floor"),
            cubic: f64::from(node.float("cubic_coeff_a", -0.75)),
            exclude_outside: node.int("exclude_outside", 0) != 0,
        }
    }

    /// A row for each of the `resized` elements; the error names an attribute that is not known.
    pub(crate) fn rows(&self, size: usize, resized: usize, scale: f64) -> Result<Vec<Row>, String> {
        (0..resized)
            .map(|o| self.row(self.coordinate(o as f32, size as f32, resized as f32, scale as f32)?, size))
            .collect()
    }

    /// Where element `o` of `m` lies on the axis of `n` elements.
    fn coordinate(&self, o: f32, n: f32, m: f32, scale: f32) -> Result<f32, String> {
        let half_pixel = (o + 0.5) / scale - 0.5;
        Ok(match self.coordinates {
            "half_pixel" => half_pixel,
            "half_pixel_symmetric" => {
                // The result has a whole number of pixels; what is cut off is cut on both sides.
                let offset = n / 2.0 * (1.0 - m / (scale * n));
                (f64::from(offset) + (f64::from(o) + 0.5) / f64::from(scale) - 0.5) as f32
            }
            "pytorch_half_pixel" if m > 1.0 => half_pixel,
            "pytorch_half_pixel" => 0.0,
            "align_corners" if m > 1.0 => o * (n - 1.0) / (m - 1.0),
            "align_corners" => 0.0,
            "asymmetric" => o / scale,
            "tf_half_pixel_for_nn" => (o + 0.5) / scale,
            other => return Err(format!("coordinate_transformation_mode '{other}' is not implemented")),
        })
    }

    fn row(&self, at: f32, size: usize) -> Result<Row, String> {
        let last = size as f64 - 1.0;
        let clamped = |i: f64| i.clamp(0.0, last) as usize;
        if self.mode == "nearest" {
            let pick = match self.nearest {
                "round_prefer_floor" => (at - 0.5).ceil(),
                "round_prefer_ceil" => (at + 0.5).floor(),
                "floor" => at.floor(),
                "ceil" => at.ceil(),
                other => return Err(format!("nearest_mode '{other}' is not implemented")),
            };
            return Ok(vec![(clamped(f64::from(pick)), 1.0)]);
        }
        let at = f64::from(at);
        match self.mode {
            "linear" => {
                let inside = at.clamp(0.0, last);
                let (low, part) = (inside.floor(), inside.fract());
                Ok(vec![(clamped(low), 1.0 - part), (clamped(low + 1.0), part)])
            }
            "cubic" => {
                let taps = (-1..=2)
                    .map(|k| at.floor() + f64::from(k))
                    .map(|i| (i, keys((at - i).abs(), self.cubic)));
                if !self.exclude_outside {
                    return Ok(taps.map(|(i, weight)| (clamped(i), weight)).collect());
                }
                let inside: Vec<(f64, f64)> = taps.filter(|(i, _)| (0.0..=last).contains(i)).collect();
                let total: f64 = inside.iter().map(|(_, weight)| weight).sum();
                Ok(inside.into_iter().map(|(i, weight)| (i as usize, weight / total)).collect())
            }
            other => Err(format!("mode '{other}' is not implemented")),
        }
    }
}

/// Keys' cubic convolution kernel at distance `d`.
fn keys(d: f64, a: f64) -> f64 {
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn resampling(
        mode: &'static str,
        coordinates: &'static str,
        nearest: &'static str,
    ) -> Resampling<'static> {
        Resampling { mode, coordinates, nearest, cubic: -0.75, exclude_outside: false }
    }

    /// The elements that "nearest" picks.
    fn picks(how: &Resampling<'_>, size: usize, scale: f64) -> Vec<usize> {
        let rows = how.rows(size, scaled(size as i64, scale) as usize, scale).unwrap();
        rows.into_iter().map(|row| row[0].0).collect()
    }

    #[test]
    fn every_row_sums_to_one() {
        for mode in ["nearest", "linear", "cubic"] {
            for exclude_outside in [false, true] {
                let how =
                    Resampling { exclude_outside, ..resampling(mode, "half_pixel", "round_prefer_floor") };
                for row in how.rows(5, 8, 1.6).unwrap() {
                    assert!((row.iter().map(|(_, w)| w).sum::<f64>() - 1.0).abs() < 1e-12);
                }
            }
        }
    }

    /// A coordinate that is 0 but for the last bit: in float64 it comes out as 1.4e-17 and is rounded up to
    /// another pixel. What is expected here is what ONNX Runtime 1.31 picks.
    #[test]
    fn whole_coordinates_fall_where_engines_put_them() {
        let symmetric = resampling("nearest", "half_pixel_symmetric", "ceil");
        assert_eq!(picks(&symmetric, 3, 1.5), [0, 1, 2, 2]);
        let halves = resampling("nearest", "half_pixel", "floor");
        assert_eq!(picks(&halves, 3, f64::from(1.0f32 / 3.0)), [1]);
        assert_eq!(picks(&halves, 4, f64::from(0.6f32)), [0, 2]);
    }

    #[test]
    fn sizes_are_reckoned_in_float32() {
        assert_eq!(scaled(3, f64::from(7.0f32 / 3.0)), 7);
        // More than there are numbers for is the largest of them, not a negative one.
        assert_eq!(scaled(3, 1e300), i64::MAX);
    }

    #[test]
    fn an_unknown_attribute_is_named() {
        let message = resampling("nearest", "sideways", "floor").rows(3, 6, 2.0).unwrap_err();
        assert_eq!(message, "coordinate_transformation_mode 'sideways' is not implemented");
    }
}
