//! The Cholesky factor of a covariance, and one covariance against another.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// `S = L L^T`.
#[derive(Debug, Clone)]
pub(super) struct Factor(Cholesky<f64, Dyn>);

impl Factor {
    /// Of a matrix whose upper triangle is given row by row; nothing where it is not positive definite.
    pub(super) fn of(upper: &[f64], size: usize) -> Option<Factor> {
        Cholesky::new(whole(upper, size)?).map(Factor)
    }

    /// `x^T S^-1 x`.
    pub(super) fn squared_length(&self, x: &[f64]) -> f64 {
        let x = DVector::from_column_slice(x);
        x.dot(&self.0.solve(&x))
    }
}

/// The matrix whose upper triangle is given row by row.
fn whole(upper: &[f64], size: usize) -> Option<DMatrix<f64>> {
    let mut matrix = DMatrix::zeros(size, size);
    let mut values = upper.iter();
    for i in 0..size {
        for j in i..size {
            let value = *values.next()?;
            (matrix[(i, j)], matrix[(j, i)]) = (value, value);
        }
    }
    Some(matrix)
}

/// The eigenvalues of `S^-1 C`, those of `L^-1 C L^-T`.
pub(super) fn eigenvalues_against(c: &[f64], s: &[f64], size: usize) -> Option<Vec<f64>> {
    let factor = Cholesky::new(whole(s, size)?)?;
    let half = factor.l().solve_lower_triangular(&whole(c, size)?)?;
    let both = factor.l().solve_lower_triangular(&half.transpose())?;
    Some(both.symmetric_eigenvalues().iter().map(|value| value.max(0.0)).collect())
}
