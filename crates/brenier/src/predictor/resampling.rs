//! Resizing an axis as a matrix, so that it can be part of a model's graph and has an exact gradient.
//!
//! ```text
//! y_k = sum_j A_kj x_j,   A_kj ~ max(0, 1 - |j + 1/2 - (k + 1/2) r| / max(r, 1)),   r = n_in / n_out
//! ```
//!
//! with rows that sum to 1: bilinear interpolation, whose triangle grows with the step when an image shrinks. That is
//! what image libraries do when they resize with antialiasing, and what our own reader of images does.

use ndarray::Array2;

/// The matrix `[out, in]` that resizes an axis.
pub fn resampling(from: usize, to: usize) -> Array2<f64> {
    let ratio = from as f64 / to as f64;
    let reach = ratio.max(1.0);
    let mut matrix = Array2::from_shape_fn((to, from), |(k, j)| {
        let centre = (k as f64 + 0.5) * ratio;
        (1.0 - ((j as f64 + 0.5) - centre).abs() / reach).max(0.0)
    });
    for mut row in matrix.rows_mut() {
        let sum = row.sum();
        row /= sum;
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, array};

    #[test]
    fn constants_stay_and_lines_stay_lines_inside() {
        for (from, to) in [(5, 5), (4, 8), (8, 4), (7, 3), (3, 7)] {
            let a = resampling(from, to);
            assert!(a.rows().into_iter().all(|row| (row.sum() - 1.0).abs() < 1e-12));
            // x_j at the centre of pixel j; y_k at the centre of pixel k, away from the border.
            let line = Array1::from_iter((0..from).map(|j| j as f64 + 0.5));
            let ratio = from as f64 / to as f64;
            for (k, y) in a.dot(&line).iter().enumerate() {
                let centre = (k as f64 + 0.5) * ratio;
                let inside = centre >= ratio.max(1.0) && centre <= from as f64 - ratio.max(1.0);
                let symmetric = (ratio - ratio.round()).abs() < 1e-12 || ratio < 1.0;
                assert!(!inside || !symmetric || (y - centre).abs() < 1e-12, "{from} to {to}: {y} {centre}");
            }
        }
        assert_eq!(resampling(3, 3), Array2::<f64>::eye(3));
        assert_eq!(resampling(1, 2), array![[1.0], [1.0]]);
    }

    /// The same numbers as the library that reads images.
    #[test]
    fn images_are_resized_as_when_they_are_read() {
        use image::{ImageBuffer, Luma, imageops};
        let pixel = |x: u32, y: u32| ((x * 7 + y * 13 + x * y) % 11) as f32 / 10.0;
        let picture = ImageBuffer::from_fn(9, 6, |x, y| Luma([pixel(x, y)]));
        for (width, height) in [(4, 3), (13, 8), (9, 2)] {
            let theirs = imageops::resize(&picture, width, height, imageops::FilterType::Triangle);
            let input = Array2::from_shape_fn((6, 9), |(y, x)| f64::from(pixel(x as u32, y as u32)));
            let ours =
                resampling(6, height as usize).dot(&input).dot(&resampling(9, width as usize).t().to_owned());
            for ((y, x), value) in ours.indexed_iter() {
                let expected = f64::from(theirs.get_pixel(x as u32, y as u32).0[0]);
                assert!((value - expected).abs() < 1e-5, "{width} x {height}: {value} {expected}");
            }
        }
    }
}
