//! The Cholesky factor of a covariance.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// `S = L L^T`.
#[derive(Debug, Clone)]
pub(super) struct Factor(Cholesky<f64, Dyn>);

impl Factor {
    /// Of a matrix whose upper triangle is given row by row; nothing where it is not positive definite.
    pub(super) fn of(upper: &[f64], size: usize) -> Option<Factor> {
        let mut matrix = DMatrix::zeros(size, size);
        let mut values = upper.iter();
        for i in 0..size {
            for j in i..size {
                let value = *values.next()?;
                (matrix[(i, j)], matrix[(j, i)]) = (value, value);
            }
        }
        Cholesky::new(matrix).map(Factor)
    }

    /// `x^T S^-1 x`.
    pub(super) fn squared_length(&self, x: &[f64]) -> f64 {
        let x = DVector::from_column_slice(x);
        x.dot(&self.0.solve(&x))
    }
}
