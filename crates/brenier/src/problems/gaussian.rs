//! Transport between two Gaussians: the optimal one, and the one that Rectified Flow finds.
//!
//! **Optimal transport.** Between `N(m0, S0)` and `N(m1, S1)` the optimal map is affine,
//!
//! ```text
//! T(x) = m1 + A (x - m0),    A = S0^(-1/2) (S0^(1/2) S1 S0^(1/2))^(1/2) S0^(-1/2)
//! W2^2 = |m1 - m0|^2 + tr(S0 + S1 - 2 (S0^(1/2) S1 S0^(1/2))^(1/2))
//! ```
//!
//! (Bures and Wasserstein; Peyre and Cuturi, Computational Optimal Transport, 2.31). A particle moves straight,
//! `x_t = m_t + M_t (x_0 - m0)` with `M_t = (1 - t) I + t A` and `m_t = (1 - t) m0 + t m1`; solving for `x_0`
//! gives the velocity field `v(x, t) = m1 - m0 + (A - I) M_t^-1 (x - m_t)`.
//!
//! **Rectified Flow.** Its field is the conditional mean `v(x, t) = E[z1 - z0 | (1-t) z0 + t z1 = x]`. With
//! `z0` and `z1` independent all three are jointly Gaussian, so the conditional mean is a linear regression:
//!
//! ```text
//! S_t = Cov(x_t)          = (1-t)^2 S0 + t^2 S1
//! C_t = Cov(z1 - z0, x_t) = t S1 - (1-t) S0
//! v(x, t) = m1 - m0 + C_t S_t^-1 (x - m_t)
//! ```
//!
//! If S0 and S1 commute, `C_t = S_t'/2` in the common eigenbasis, the flow is `x_t = m_t + S_t^(1/2) S0^(-1/2)
//! (x_0 - m0)`, and its endpoint map is the optimal one although its paths are curved: for `N(0,1) -> N(0,s)`
//! the scale is `r(t) = sqrt((1-t)^2 + t^2 s)`. If they do not commute, the endpoint map is a different one and
//! costs more: straightening the paths (Reflow) does not repair that. Straight is not optimal.

use nalgebra::{DMatrix, DVector, SymmetricEigen};
use ndarray::{Array1, Array2, ArrayView1, ArrayView2};
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::{Error, Result, VelocityField, error};

/// A normal distribution with a positive definite covariance.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: DVector<f64>,
    covariance: DMatrix<f64>,
    root: DMatrix<f64>,
}

impl Gaussian {
    /// From a mean and a covariance, which must be symmetric and positive definite.
    pub fn new(mean: ArrayView1<f64>, covariance: ArrayView2<f64>) -> Result<Self> {
        error::expect_shape("the covariance", &[mean.len(), mean.len()], covariance.shape())?;
        let covariance = DMatrix::from_fn(mean.len(), mean.len(), |i, j| covariance[[i, j]]);
        let covariance = 0.5 * (&covariance + covariance.transpose());
        let root = symmetric_power(&covariance, 0.5)?;
        Ok(Self { mean: DVector::from_iterator(mean.len(), mean.iter().copied()), covariance, root })
    }

    /// `N(0, variance I)` in `dimension` dimensions.
    pub fn isotropic(dimension: usize, variance: f64) -> Result<Self> {
        Self::new(Array1::zeros(dimension).view(), (variance * Array2::<f64>::eye(dimension)).view())
    }

    /// The number of dimensions.
    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    /// Draws rows, `[count, dimension]`.
    pub fn sample(&self, count: usize, rng: &mut impl Rng) -> Array2<f64> {
        let mut rows = Array2::zeros((count, self.dimension()));
        for mut row in rows.rows_mut() {
            let z = DVector::from_fn(self.dimension(), |_, _| StandardNormal.sample(rng));
            let x = &self.mean + &self.root * z;
            row.iter_mut().zip(x.iter()).for_each(|(to, from)| *to = *from);
        }
        rows
    }
}

/// A power of a symmetric positive definite matrix by its eigenvalues.
fn symmetric_power(matrix: &DMatrix<f64>, power: f64) -> Result<DMatrix<f64>> {
    let eigen = SymmetricEigen::new(matrix.clone());
    let smallest = eigen.eigenvalues.iter().copied().fold(f64::INFINITY, f64::min);
    if smallest.is_nan() || smallest <= 0.0 {
        return Err(Error::NotPositiveDefinite { what: "the covariance", eigenvalue: smallest });
    }
    let powers = DMatrix::from_diagonal(&eigen.eigenvalues.map(|value| value.powf(power)));
    Ok(&eigen.eigenvectors * powers * eigen.eigenvectors.transpose())
}

/// The optimal transport between two Gaussians.
#[derive(Debug, Clone)]
pub struct OptimalTransport {
    from: Gaussian,
    to: Gaussian,
    map: DMatrix<f64>,
    cost: f64,
    shape: [usize; 1],
}

impl OptimalTransport {
    /// From the reference distribution to the data's.
    pub fn new(from: Gaussian, to: Gaussian) -> Result<Self> {
        error::expect_shape("the data's mean", &[from.dimension()], &[to.dimension()])?;
        let middle = symmetric_power(&(&from.root * &to.covariance * &from.root), 0.5)?;
        let inverse = symmetric_power(&from.covariance, -0.5)?;
        let cost = (&to.mean - &from.mean).norm_squared()
            + (&from.covariance + &to.covariance - 2.0 * &middle).trace();
        let map = &inverse * middle * &inverse;
        Ok(Self { shape: [from.dimension()], from, to, map, cost })
    }

    /// The optimal cost, which is also the action of this flow: W2 squared.
    pub fn squared_distance(&self) -> f64 {
        self.cost
    }

    /// The optimal map `T`.
    pub fn map(&self, x: ArrayView1<f64>) -> Array1<f64> {
        let x = DVector::from_iterator(x.len(), x.iter().copied());
        (&self.to.mean + &self.map * (x - &self.from.mean)).iter().copied().collect()
    }

    /// The reference endpoint of an input, `T^-1`.
    pub fn inverse_map(&self, x: ArrayView1<f64>) -> Array1<f64> {
        let x = DVector::from_iterator(x.len(), x.iter().copied()) - &self.to.mean;
        let back = self.map.clone().lu().solve(&x).unwrap_or(x);
        (&self.from.mean + back).iter().copied().collect()
    }
}

impl VelocityField for OptimalTransport {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        let identity = DMatrix::<f64>::identity(self.shape[0], self.shape[0]);
        affine_velocity(x, times, &self.from.mean, &self.to.mean, |t| {
            let spread = (1.0 - t) * &identity + t * &self.map;
            // Both are functions of A, so they commute.
            let inverse = spread.try_inverse()?;
            Some((&self.map - &identity) * inverse)
        })
    }
}

/// The exact Rectified Flow between two Gaussians with independent coupling ("1-RF").
#[derive(Debug, Clone)]
pub struct RectifiedTransport {
    from: Gaussian,
    to: Gaussian,
    shape: [usize; 1],
}

impl RectifiedTransport {
    /// From the reference distribution to the data's.
    pub fn new(from: Gaussian, to: Gaussian) -> Result<Self> {
        error::expect_shape("the data's mean", &[from.dimension()], &[to.dimension()])?;
        Ok(Self { shape: [from.dimension()], from, to })
    }

    /// What the endpoint map `z0 -> z1` of an affine flow costs, `E|z1 - z0|^2`, given the images of the
    /// origin and of the unit vectors (row 0 and rows 1.. of `images`, starting from `m0` and `m0 + e_i`).
    ///
    /// With `B` the linear part: `|B-image of m0 - m0|^2 + tr((B - I) S0 (B - I)^T)`.
    pub fn endpoint_cost(&self, images: ArrayView2<f64>) -> Result<f64> {
        let d = self.shape[0];
        error::expect_shape("the images of the unit vectors", &[d + 1, d], images.shape())?;
        let offset = DVector::from_fn(d, |i, _| images[[0, i]] - self.from.mean[i]);
        let excess = DMatrix::from_fn(d, d, |i, j| {
            images[[j + 1, i]] - images[[0, i]] - if i == j { 1.0 } else { 0.0 }
        });
        Ok(offset.norm_squared() + (&excess * &self.from.covariance * excess.transpose()).trace())
    }
}

impl VelocityField for RectifiedTransport {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        affine_velocity(x, times, &self.from.mean, &self.to.mean, |t| {
            let spread = (1.0 - t).powi(2) * &self.from.covariance + t * t * &self.to.covariance;
            let regression = t * &self.to.covariance - (1.0 - t) * &self.from.covariance;
            Some(regression * spread.try_inverse()?)
        })
    }
}

/// `v(x, t) = m1 - m0 + G_t (x - m_t)`, with the matrix computed anew only when the time changes.
fn affine_velocity(
    x: ArrayView2<f64>,
    times: &[f64],
    from: &DVector<f64>,
    to: &DVector<f64>,
    matrix: impl Fn(f64) -> Option<DMatrix<f64>>,
) -> Result<Array2<f64>> {
    error::expect_shape("the batch of states", &[times.len(), from.len()], x.shape())?;
    let mut velocity = Array2::zeros(x.raw_dim());
    let mut known: Option<(f64, DMatrix<f64>)> = None;
    for (i, (row, &t)) in x.rows().into_iter().zip(times).enumerate() {
        if known.as_ref().is_none_or(|(time, _)| *time != t) {
            let gain = matrix(t)
                .ok_or(Error::NotPositiveDefinite { what: "the covariance on the way", eigenvalue: 0.0 })?;
            known = Some((t, gain));
        }
        if let Some((_, gain)) = &known {
            let state = DVector::from_iterator(row.len(), row.iter().copied());
            let v = (to - from) + gain * (state - ((1.0 - t) * from + t * to));
            velocity.row_mut(i).iter_mut().zip(v.iter()).for_each(|(slot, value)| *slot = *value);
        }
    }
    Ok(velocity)
}
