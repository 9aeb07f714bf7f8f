//! Squared distances between all rows of two populations.
//!
//! ```text
//! |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 <x_i, y_j>
//! ```
//!
//! as one product of matrices. The mean of all rows is taken off first: distances do not change, and less is lost in
//! the difference of large numbers. What rounding leaves below 0 is 0.

use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::matrix::product;
use crate::error::{Result, expect_shape};

/// Squared distances, `[rows of x, rows of y]`.
///
/// # Errors
/// Rows with different numbers of features.
pub fn squared_distances(x: ArrayView2<f64>, y: ArrayView2<f64>) -> Result<Array2<f64>> {
    expect_shape("the second set of rows", &[y.nrows(), x.ncols()], y.shape())?;
    let count = (x.nrows() + y.nrows()).max(1) as f64;
    let middle = (x.sum_axis(Axis(0)) + y.sum_axis(Axis(0))) / count;
    let (x, y) = (&x - &middle, &y - &middle);
    let lengths = |z: &Array2<f64>| -> Array1<f64> { z.rows().into_iter().map(|r| r.dot(&r)).collect() };
    let (of_x, of_y) = (lengths(&x), lengths(&y));
    let mut distances = product(x.view(), y.t());
    for (mut row, a) in distances.rows_mut().into_iter().zip(&of_x) {
        row.zip_mut_with(&of_y, |d, b| *d = (a + b - 2.0 * *d).max(0.0));
    }
    Ok(distances)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_the_sums_of_squared_differences() {
        let x = Array2::from_shape_fn((7, 5), |(i, j)| 1e3 + ((i * 5 + j) as f64).sin());
        let y = Array2::from_shape_fn((4, 5), |(i, j)| 1e3 + ((i * 3 + j) as f64).cos());
        let found = squared_distances(x.view(), y.view()).unwrap();
        for ((i, j), &d) in found.indexed_iter() {
            let gap = &x.row(i) - &y.row(j);
            assert!((d - gap.dot(&gap)).abs() < 1e-12, "{d}");
        }
        assert!(squared_distances(x.view(), y.slice(ndarray::s![.., ..4])).is_err());
    }
}
