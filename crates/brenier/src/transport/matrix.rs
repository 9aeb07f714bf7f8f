//! Products of matrices over blocks, and the symmetric eigen-decomposition.
//!
//! A block has a fixed size and one core computes it, so the number of cores changes no bit.

use nalgebra::{DMatrix, SymmetricEigen};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, ShapeBuilder, s};
use rayon::prelude::*;

/// Rows of the result that one core computes at a time.
const BLOCK: usize = 128;

/// `a b`.
pub(super) fn product(a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut result = Array2::zeros((a.nrows(), b.ncols()));
    let parts: Vec<_> =
        result.axis_chunks_iter_mut(Axis(0), BLOCK).zip(a.axis_chunks_iter(Axis(0), BLOCK)).collect();
    parts.into_par_iter().for_each(|(mut into, rows)| general_mat_mul(1.0, &rows, &b, 0.0, &mut into));
    result
}

/// Adds `x^T x` to the upper triangle of `sum`.
pub(super) fn add_square(sum: &mut Array2<f64>, x: ArrayView2<f64>) {
    let parts: Vec<_> = sum.axis_chunks_iter_mut(Axis(0), BLOCK).enumerate().collect();
    parts.into_par_iter().for_each(|(part, mut into)| {
        let (first, count) = (part * BLOCK, into.nrows());
        let columns = x.slice(s![.., first..first + count]);
        let rest = x.slice(s![.., first..]);
        general_mat_mul(1.0, &columns.t(), &rest, 1.0, &mut into.slice_mut(s![.., first..]));
    });
}

/// Copies the upper triangle to the lower.
pub(super) fn mirror(matrix: &mut Array2<f64>) {
    for i in 0..matrix.nrows() {
        for j in 0..i {
            matrix[[i, j]] = matrix[[j, i]];
        }
    }
}

/// Eigenvalues of a symmetric matrix, largest first, and their vectors as columns.
pub(super) fn eigen(matrix: &Array2<f64>) -> (Array1<f64>, Array2<f64>) {
    let n = matrix.nrows();
    if n == 0 {
        return (Array1::zeros(0), Array2::zeros((0, 0)));
    }
    let eigen = SymmetricEigen::new(to_nalgebra(matrix));
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| eigen.eigenvalues[j].total_cmp(&eigen.eigenvalues[i]));
    let values = order.iter().map(|&i| eigen.eigenvalues[i]).collect();
    let mut vectors = Array2::zeros((n, n).f());
    for (to, &from) in order.iter().enumerate() {
        vectors.column_mut(to).iter_mut().zip(eigen.eigenvectors.column(from)).for_each(|(a, b)| *a = *b);
    }
    (values, vectors)
}

pub(super) fn to_nalgebra(matrix: &Array2<f64>) -> DMatrix<f64> {
    DMatrix::from_row_iterator(matrix.nrows(), matrix.ncols(), matrix.iter().copied())
}

pub(super) fn from_nalgebra(matrix: &DMatrix<f64>) -> Array2<f64> {
    Array2::from_shape_fn(matrix.shape(), |(i, j)| matrix[(i, j)])
}

/// Scales column `j` by `factors[j]`.
pub(super) fn scale_columns(mut matrix: Array2<f64>, factors: &Array1<f64>) -> Array2<f64> {
    matrix.rows_mut().into_iter().for_each(|mut row| row *= factors);
    matrix
}

/// An orthonormal basis of the columns of `y`; directions shorter than `shortest` times the longest column (or than
/// `shortest` itself, if all columns are shorter than 1) are left out.
///
/// The eigenvectors of `y^T y` are orthogonal combinations of the columns; a second round removes what rounding left.
pub(super) fn orthonormal(y: Array2<f64>, shortest: f64) -> Array2<f64> {
    let mut basis = y;
    for round in 0..2 {
        let (values, vectors) = eigen(&product(basis.t(), basis.view()));
        let floor =
            if round == 0 { shortest.powi(2) * values.first().copied().unwrap_or(0.0).max(1.0) } else { 0.5 };
        let kept = values.iter().take_while(|&&value| value > floor).count();
        let turned = product(basis.view(), vectors.slice(s![.., ..kept]));
        basis = scale_columns(turned, &values.slice(s![..kept]).mapv(|value| 1.0 / value.sqrt()));
    }
    basis
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, columns: usize) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns), |(i, j)| ((i * 37 + j * 101 + i * j * 13) as f64 * 0.7).sin())
    }

    #[test]
    fn blocks_give_the_whole_product() {
        let (a, b) = (numbers(300, 70), numbers(70, 40));
        let gap = product(a.view(), b.view()) - a.dot(&b);
        assert!(gap.iter().all(|v| v.abs() < 1e-12));
        let x = numbers(50, 290);
        let mut sum = Array2::ones((290, 290));
        add_square(&mut sum, x.view());
        mirror(&mut sum);
        assert!((sum - x.t().dot(&x) - 1.0).iter().all(|v| v.abs() < 1e-11));
    }

    #[test]
    fn one_core_or_two_give_the_same_bits() {
        let x = numbers(400, 300);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let mut sum = Array2::zeros((300, 300));
                add_square(&mut sum, x.view());
                (product(x.t(), x.view()), sum)
            })
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn a_basis_is_orthonormal_spans_the_columns_and_drops_what_is_there_twice() {
        let x = numbers(60, 5);
        let twice = ndarray::concatenate(Axis(1), &[x.view(), (2.0 * &x).view()]).unwrap();
        let basis = orthonormal(twice, 1e-7);
        assert_eq!(basis.ncols(), 5);
        let unit = basis.t().dot(&basis) - Array2::<f64>::eye(5);
        assert!(unit.iter().all(|v| v.abs() < 1e-13), "{unit:?}");
        let missed = &x - &basis.dot(&basis.t().dot(&x));
        assert!(missed.iter().all(|v| v.abs() < 1e-10));
    }
}
