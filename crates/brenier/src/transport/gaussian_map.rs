//! The optimal map between two Gaussians, as a map and as a flow.
//!
//! ```text
//! T(x) = m_B + G (x - m_A),    G = S_A^(-1/2) (S_A^(1/2) S_B S_A^(1/2))^(1/2) S_A^(-1/2)
//! W2^2 = |m_B - m_A|^2 + tr(S_A + S_B - 2 (S_A^(1/2) S_B S_A^(1/2))^(1/2))
//! ```
//!
//! (Peyre and Cuturi, Computational Optimal Transport, 2.31.) `G` is symmetric and positive definite, so it is kept as
//! eigenvectors `V` with gains `g`, and one gain `c` for all directions outside of `V`:
//!
//! ```text
//! G = c I + V diag(g - c) V^T,    G^-1 the same with 1/c and 1/g
//! ```
//!
//! A particle moves in a straight line from `x` to `T(x)` at constant speed. Seen from where it is at time `t`
//! (displacement interpolation, McCann 1997), a direction of gain `g` has the velocity
//!
//! ```text
//! v = m_B - m_A + h (y - m_t),    h = (g - 1) / (1 - t + t g),    m_t = (1 - t) m_A + t m_B
//! ```
//!
//! which makes this a [`VelocityField`]: its trace from an input is the straight line to `T^-1` of it.
//!
//! **Whole covariances**: with `S_A = L L^T`, `G = L^-T (L^T S_B L)^(1/2) L^-1` (it solves `G S_A G = S_B`, and the
//! positive solution is unique), a Cholesky and two symmetric eigen-decompositions. **Low rank**: in the span `Q` of both
//! bases the covariances are small matrices, and that of `A` is diagonal; outside of it both are multiples of the
//! identity and `c = (s_B / s_A)^(1/2)`.
//!
//! **Units**: with a unit for each feature, distances are measured in units, `|(y - x) / unit|`. A feature of unit 0
//! weighs nothing and keeps its value.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis, concatenate, s};

use super::gaussian::{Covariance, Gaussian};
use super::matrix::{eigen, from_nalgebra, orthonormal, product, scale_columns, to_nalgebra};
use crate::error::{Error, Result, expect_shape};
use crate::field::{StraightStarts, VelocityField};

/// The optimal map from one Gaussian to another.
///
/// ```
/// use brenier::transport::{Gaussian, GaussianMap};
/// use ndarray::array;
///
/// // In one dimension: T(x) = m_B + (sigma_B / sigma_A) (x - m_A).
/// let a = Gaussian::new(array![1.0].view(), array![[4.0]].view())?;
/// let b = Gaussian::new(array![0.0].view(), array![[9.0]].view())?;
/// let map = GaussianMap::between(&a, &b)?;
/// assert!((map.apply(array![[3.0]].view())?[[0, 0]] - 3.0).abs() < 1e-12);
/// assert!((map.squared_distance() - (1.0 + 1.0)).abs() < 1e-12);
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GaussianMap {
    shape: Vec<usize>,
    from: Array1<f64>,
    to: Array1<f64>,
    /// Of each feature; 0 where it weighs nothing.
    unit: Array1<f64>,
    /// `[features, directions]`, orthonormal columns, in units.
    basis: Array2<f64>,
    gains: Array1<f64>,
    outside: f64,
    squared_distance: f64,
    /// What values of rows can be, where that is known.
    bounds: Option<(f64, f64)>,
}

/// `G` in eigenvectors, and `tr (S_A^(1/2) S_B S_A^(1/2))^(1/2)`.
struct Gain {
    basis: Array2<f64>,
    gains: Array1<f64>,
    outside: f64,
    overlap: f64,
}

impl GaussianMap {
    /// The map that carries `from` to `to` at least cost.
    ///
    /// # Errors
    /// Gaussians of different dimension, and a covariance that is not positive definite.
    pub fn between(from: &Gaussian, to: &Gaussian) -> Result<Self> {
        expect_shape("the mean of the second Gaussian", &[from.features()], &[to.features()])?;
        let gain = match (&from.covariance, &to.covariance) {
            (
                Covariance::LowRank { basis: u, variances: a, rest: s },
                Covariance::LowRank { basis: w, variances: b, rest: r },
            ) => low_rank((u, a, *s), (w, b, *r))?,
            _ => whole(&from.covariance(), &to.covariance())?,
        };
        let trace = |g: &Gaussian| g.variances().sum();
        let apart = &to.mean - &from.mean;
        let squared_distance = apart.dot(&apart) + trace(from) + trace(to) - 2.0 * gain.overlap;
        Ok(Self {
            shape: vec![from.features()],
            from: from.mean.clone(),
            to: to.mean.clone(),
            unit: Array1::ones(from.features()),
            basis: gain.basis,
            gains: gain.gains,
            outside: gain.outside,
            squared_distance: squared_distance.max(0.0),
            bounds: None,
        })
    }

    /// The same map for rows of this shape.
    ///
    /// # Errors
    /// If the shape has another number of features.
    pub fn with_shape(mut self, shape: &[usize]) -> Result<Self> {
        expect_shape("the shape of a row", &[self.from.len()], &[shape.iter().product()])?;
        self.shape = shape.to_vec();
        Ok(self)
    }

    /// The map for rows in a user's numbers, where the Gaussians were fitted to rows divided by these units.
    ///
    /// # Errors
    /// If there is not a unit for each feature, or one is negative or not finite.
    pub fn with_units(mut self, unit: ArrayView1<f64>) -> Result<Self> {
        expect_shape("the units", self.from.shape(), unit.shape())?;
        if let Some(bad) = unit.iter().find(|u| !(u.is_finite() && **u >= 0.0)) {
            return Err(Error::Setting {
                name: "the unit of a feature",
                value: bad.to_string(),
                needs: "it must be 0 or a positive number",
                hint: "the feature's standard deviation".into(),
            });
        }
        self.from *= &unit;
        self.to *= &unit;
        self.unit = unit.to_owned();
        Ok(self)
    }

    /// The map for rows whose values lie between two numbers, such as pixels: where [`VelocityField::straight_starts`]
    /// would leave them, it keeps to them. `apply` and `invert` are the map itself.
    pub fn with_bounds(mut self, low: f64, high: f64) -> Self {
        self.bounds = Some((low, high));
        self
    }

    /// `T(x)` for each row.
    ///
    /// # Errors
    /// If the rows have another number of features.
    pub fn apply(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.carry(x, &self.from, &self.to, |gain| gain)
    }

    /// `T^-1(x)` for each row: its counterpart in the population that the map starts from.
    ///
    /// # Errors
    /// If the rows have another number of features.
    pub fn invert(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        self.carry(x, &self.to, &self.from, |gain| 1.0 / gain)
    }

    /// The counterpart of each row, kept within the bounds where there are any, with how far it was moved for that.
    ///
    /// # Errors
    /// If the rows have another number of features.
    pub fn starts(&self, x: ArrayView2<f64>) -> Result<StraightStarts> {
        let mut states = self.invert(x)?;
        let lengths = |rows: Array2<f64>| rows.map_axis(Axis(1), |row| row.dot(&row).sqrt());
        let misses = lengths(self.apply(states.view())? - x);
        let clipped = self.bounds.map(|(low, high)| {
            let ways = lengths(&states - &x);
            let kept = states.mapv(|value| value.clamp(low, high));
            let moved = lengths(&kept - &states);
            states = kept;
            ndarray::Zip::from(&moved).and(&ways).map_collect(|m, w| if *m == 0.0 { 0.0 } else { m / w })
        });
        Ok(StraightStarts { states, misses, clipped })
    }

    /// Where the straight line that ends at each row is at time `t`: `(1 - t) T^-1(x) + t x`.
    ///
    /// # Errors
    /// If the rows have another number of features.
    pub fn geodesic(&self, x: ArrayView2<f64>, t: f64) -> Result<Array2<f64>> {
        Ok((1.0 - t) * self.invert(x)? + t * &x)
    }

    /// `W2^2` between the two Gaussians, in units.
    pub fn squared_distance(&self) -> f64 {
        self.squared_distance
    }

    /// By how much each principal direction is stretched; one more for all others where they are many.
    pub fn gains(&self) -> (ArrayView1<'_, f64>, Option<f64>) {
        (self.gains.view(), (self.gains.len() < self.from.len()).then_some(self.outside))
    }

    fn carry(
        &self,
        x: ArrayView2<f64>,
        from: &Array1<f64>,
        to: &Array1<f64>,
        of: impl Fn(f64) -> f64,
    ) -> Result<Array2<f64>> {
        expect_shape("the rows to be carried", &[x.nrows(), self.from.len()], x.shape())?;
        let (gains, outside) = (self.gains.mapv(&of), of(self.outside));
        let mut carried = self.stretch(&x - from, |_, mut inner| inner *= &(&gains - outside), |_| outside);
        carried += to;
        self.keep_weightless(&mut carried, |row, feature| x[[row, feature]]);
        Ok(carried)
    }

    /// `c y + V (k (V^T y))` for each row `y`, both factors by the number of the row.
    fn stretch(
        &self,
        mut y: Array2<f64>,
        inside: impl Fn(usize, ndarray::ArrayViewMut1<f64>),
        outside: impl Fn(usize) -> f64,
    ) -> Array2<f64> {
        let per_unit = self.unit.mapv(|u| if u > 0.0 { 1.0 / u } else { 0.0 });
        y.rows_mut().into_iter().for_each(|mut row| row *= &per_unit);
        let mut inner = product(y.view(), self.basis.view());
        inner.rows_mut().into_iter().enumerate().for_each(|(i, row)| inside(i, row));
        let moved = product(inner.view(), self.basis.t());
        y.rows_mut().into_iter().enumerate().for_each(|(i, mut row)| row *= outside(i));
        y += &moved;
        y.rows_mut().into_iter().for_each(|mut row| row *= &self.unit);
        y
    }

    fn keep_weightless(&self, rows: &mut Array2<f64>, value: impl Fn(usize, usize) -> f64) {
        for (feature, _) in self.unit.iter().enumerate().filter(|(_, unit)| **unit == 0.0) {
            for row in 0..rows.nrows() {
                rows[[row, feature]] = value(row, feature);
            }
        }
    }
}

impl VelocityField for GaussianMap {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        expect_shape("the batch of states", &[times.len(), self.from.len()], x.shape())?;
        let rate = |gain: f64, t: f64| (gain - 1.0) / (1.0 - t + t * gain);
        let apart = &self.to - &self.from;
        let mut y = x.to_owned();
        for (mut row, &t) in y.rows_mut().into_iter().zip(times) {
            row -= &self.from;
            row.scaled_add(-t, &apart);
        }
        let inside = |i: usize, mut inner: ndarray::ArrayViewMut1<f64>| {
            let beyond = rate(self.outside, times[i]);
            inner.iter_mut().zip(&self.gains).for_each(|(v, &gain)| *v *= rate(gain, times[i]) - beyond);
        };
        let mut velocity = self.stretch(y, inside, |i| rate(self.outside, times[i]));
        velocity += &apart;
        self.keep_weightless(&mut velocity, |_, _| 0.0);
        Ok(velocity)
    }

    /// The population at time 0 is data: nothing is claimed about its distribution.
    fn normal_coordinates(&self, _x: ArrayView2<f64>) -> Option<Array2<f64>> {
        None
    }

    fn straight_starts(&self, x: ArrayView2<f64>) -> Option<Result<StraightStarts>> {
        Some(self.starts(x))
    }
}

fn whole(a: &Array2<f64>, b: &Array2<f64>) -> Result<Gain> {
    let Some(cholesky) = to_nalgebra(a).cholesky() else {
        return Err(not_definite(eigen(a).0));
    };
    let lower = from_nalgebra(&cholesky.l());
    let middle = product(lower.t(), product(b.view(), lower.view()).view());
    let (values, vectors) = eigen(&middle);
    if values.iter().any(|v| v.is_nan() || *v <= 0.0) {
        return Err(not_definite(eigen(b).0));
    }
    let roots = values.mapv(f64::sqrt);
    // L^-T (middle)^(1/2) L^-1 = Z diag(roots) Z^T with L^T Z = vectors.
    let solved = cholesky.l_dirty().tr_solve_lower_triangular(&to_nalgebra(&vectors));
    let Some(solved) = solved else { return Err(not_definite(eigen(a).0)) };
    let turned = from_nalgebra(&solved);
    let gain = product(scale_columns(turned.clone(), &roots).view(), turned.t());
    let (gains, basis) = eigen(&symmetric(gain));
    Ok(Gain { basis, gains, outside: 1.0, overlap: roots.sum() })
}

type LowRank<'a> = (&'a Array2<f64>, &'a Array1<f64>, f64);

fn low_rank((u, a, rest_a): LowRank, (w, b, rest_b): LowRank) -> Result<Gain> {
    // A basis of both: that of A, and what that of B adds.
    let mut added = w.to_owned();
    for _ in 0..2 {
        added = &added - &product(u.view(), product(u.t(), added.view()).view());
    }
    let added = orthonormal(added, 1e-7);
    let added = orthonormal(&added - &product(u.view(), product(u.t(), added.view()).view()), 0.5);
    let joint = concatenate(Axis(1), &[u.view(), added.view()])
        .map_err(|_| Error::Zero { what: "the number of directions" })?;
    let size = joint.ncols();
    let of_a = Array1::from_shape_fn(size, |i| if i < a.len() { a[i] } else { rest_a });
    let inner = product(joint.t(), w.view());
    let mut of_b = product(scale_columns(inner.clone(), &b.mapv(|v| v - rest_b)).view(), inner.t());
    of_b.diag_mut().iter_mut().for_each(|v| *v += rest_b);
    let roots = of_a.mapv(f64::sqrt);
    let middle = scale_rows(scale_columns(of_b, &roots), &roots);
    let (values, vectors) = eigen(&symmetric(middle));
    if values.iter().any(|v| v.is_nan() || *v <= 0.0) {
        return Err(not_definite(values));
    }
    let half = values.mapv(|v| v.sqrt().sqrt());
    let factor = scale_rows(scale_columns(vectors, &half), &roots.mapv(f64::recip));
    let (gains, turned) = eigen(&product(factor.view(), factor.t()));
    let others = (u.nrows() - size) as f64;
    let overlap = values.mapv(f64::sqrt).sum() + others * (rest_a * rest_b).sqrt();
    let outside = (rest_b / rest_a).sqrt();
    Ok(Gain { basis: product(joint.view(), turned.slice(s![.., ..])), gains, outside, overlap })
}

fn scale_rows(mut matrix: Array2<f64>, factors: &Array1<f64>) -> Array2<f64> {
    matrix.columns_mut().into_iter().for_each(|mut column| column *= factors);
    matrix
}

fn symmetric(matrix: Array2<f64>) -> Array2<f64> {
    0.5 * (&matrix + &matrix.t())
}

fn not_definite(values: Array1<f64>) -> Error {
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    Error::NotPositiveDefinite { what: "the covariance", eigenvalue: smallest }
}
