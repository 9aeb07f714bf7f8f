//! Densities and principal directions of a fitted Gaussian.
//!
//! ```text
//! log N(x | m, S) = -1/2 ((x - m)^T S^-1 (x - m) + log det S + d log 2 pi)
//! ```

use nalgebra::{Cholesky, DMatrix};
use ndarray::{Array1, Array2, ArrayView2, Axis};

use super::gaussian::{Covariance, Gaussian};
use super::matrix::{eigen, product, to_nalgebra};
use crate::error::{Error, Result, expect_shape};

impl Gaussian {
    /// The logarithm of the density at each row.
    ///
    /// ```
    /// use brenier::transport::Gaussian;
    /// use ndarray::array;
    ///
    /// let wide = Gaussian::new(array![1.0].view(), array![[4.0]].view())?;
    /// let exact = -0.5 * (0.25 + 4f64.ln() + std::f64::consts::TAU.ln());
    /// assert!((wide.log_densities(array![[2.0]].view())?[0] - exact).abs() < 1e-12);
    /// # Ok::<(), brenier::Error>(())
    /// ```
    ///
    /// # Errors
    /// Rows with another number of features, and a covariance that is not positive definite.
    pub fn log_densities(&self, rows: ArrayView2<f64>) -> Result<Array1<f64>> {
        expect_shape("the rows", &[rows.nrows(), self.features()], rows.shape())?;
        let gaps = &rows - &self.mean;
        let squares = |x: &Array2<f64>| x.map_axis(Axis(1), |row| row.dot(&row));
        let (lengths, log_determinant) = match &self.covariance {
            Covariance::Whole(matrix) => {
                let Some(factor) = Cholesky::new(to_nalgebra(matrix)) else {
                    return Err(Error::Setting {
                        name: "the covariance",
                        value: "a matrix that is not positive definite".to_string(),
                        needs: "a density needs one that is",
                        hint: "fit it with more shrinkage".into(),
                    });
                };
                let columns = DMatrix::from_fn(gaps.ncols(), gaps.nrows(), |i, j| gaps[[j, i]]);
                let solved = factor.l_dirty().solve_lower_triangular(&columns);
                let solved = solved.unwrap_or(columns);
                let lengths = solved.column_iter().map(|column| column.norm_squared()).collect();
                let diagonal = factor.l_dirty().diagonal();
                (lengths, 2.0 * diagonal.iter().map(|v| v.ln()).sum::<f64>())
            }
            Covariance::LowRank { basis, variances, rest } => {
                let along = product(gaps.view(), basis.view());
                let inside = (&along / &variances.mapv(f64::sqrt)).mapv(|v| v * v).sum_axis(Axis(1));
                let outside = (squares(&gaps) - squares(&along)) / *rest;
                let others = (self.features() - variances.len()) as f64;
                (inside + outside, variances.mapv(f64::ln).sum() + others * rest.ln())
            }
        };
        let constant = log_determinant + self.features() as f64 * std::f64::consts::TAU.ln();
        Ok(lengths.mapv(|length: f64| -0.5 * (length + constant)))
    }

    /// The directions that have a variance of their own, those with the most first: their standard deviations, and
    /// themselves as orthonormal columns.
    pub fn principal_directions(&self) -> (Array1<f64>, Array2<f64>) {
        let (variances, directions) = match &self.covariance {
            Covariance::Whole(matrix) => eigen(matrix),
            Covariance::LowRank { basis, variances, .. } => (variances.clone(), basis.clone()),
        };
        (variances.mapv(|variance| variance.max(0.0).sqrt()), directions)
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::{Gaussian, GaussianConfig, Rank, Shrinkage};
    use ndarray::{Array2, array};

    #[test]
    fn both_forms_of_a_covariance_have_the_same_density() {
        // Nine rows have eight directions: the low-rank form is exact.
        let rows = Array2::from_shape_fn((9, 20), |(i, j)| ((3 * i + 7 * j) as f64 * 0.9).sin());
        let shrinkage = Shrinkage::Fixed { amount: 0.2 };
        let fit = |rank| Gaussian::fit(rows.view(), &GaussianConfig { shrinkage, rank }).unwrap();
        let (whole, low) = (fit(Rank::Full), fit(Rank::AtMost { directions: 8 }));
        let at = rows.mapv(|v| 1.5 * v + 0.1);
        let (a, b) = (whole.log_densities(at.view()).unwrap(), low.log_densities(at.view()).unwrap());
        assert!((&a - &b).iter().all(|gap| gap.abs() < 1e-6 * a[0].abs()), "{a} {b}");
    }

    #[test]
    fn the_first_direction_is_the_widest() {
        let wide = Gaussian::new(array![0.0, 0.0].view(), array![[1.0, 0.0], [0.0, 9.0]].view()).unwrap();
        let (deviations, directions) = wide.principal_directions();
        assert_eq!((deviations, directions.shape()), (array![3.0, 1.0], [2, 2].as_slice()));
        assert!((directions[[1, 0]].abs() - 1.0).abs() < 1e-12);
        let narrow = Gaussian::new(array![0.0].view(), array![[-1.0]].view()).unwrap();
        assert!(narrow.log_densities(array![[0.0]].view()).is_err());
    }
}
