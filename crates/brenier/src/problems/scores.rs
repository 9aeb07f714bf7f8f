//! Scores whose credit is known in closed form, each with its exact solution.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::{Result, Score};

/// Implements [`Score`] from a function of one example, since every score here has a single output.
macro_rules! score_by_row {
    ($name:ty) => {
        impl Score for $name {
            fn shape(&self) -> &[usize] {
                &self.shape
            }

            fn values(&self, x: ArrayView2<f64>, _targets: &[usize]) -> Result<Array1<f64>> {
                Ok(x.rows().into_iter().map(|row| self.value(row)).collect())
            }

            fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
                let mut gradients = Array2::zeros(x.raw_dim());
                for (mut to, row) in gradients.rows_mut().into_iter().zip(x.rows()) {
                    to.assign(&self.gradient(row));
                }
                Ok((self.values(x, targets)?, gradients))
            }
        }
    };
}

/// `f(x) = sum_i sin(x_i)`, the additive score of appendix F.1.
///
/// Exact credit on any path: `sin(x1_i) - sin(x0_i)` (Prop. additive_scores).
#[derive(Debug, Clone)]
pub struct SineSum {
    shape: [usize; 1],
}

impl SineSum {
    /// In so many dimensions.
    pub fn new(dimension: usize) -> Self {
        Self { shape: [dimension] }
    }

    fn value(&self, x: ArrayView1<f64>) -> f64 {
        x.iter().map(|v| v.sin()).sum()
    }

    fn gradient(&self, x: ArrayView1<f64>) -> Array1<f64> {
        x.mapv(f64::cos)
    }

    /// The exact credit on any path between two points.
    pub fn exact_credit(&self, reference: ArrayView1<f64>, input: ArrayView1<f64>) -> Array1<f64> {
        input.mapv(f64::sin) - reference.mapv(f64::sin)
    }
}

score_by_row!(SineSum);

/// `f(x) = b + w . x`. Exact credit on any path: `w_i (x1_i - x0_i)`.
#[derive(Debug, Clone)]
pub struct LinearScore {
    weights: Array1<f64>,
    offset: f64,
    shape: [usize; 1],
}

impl LinearScore {
    /// With the given weights and offset.
    pub fn new(weights: Array1<f64>, offset: f64) -> Self {
        Self { shape: [weights.len()], weights, offset }
    }

    fn value(&self, x: ArrayView1<f64>) -> f64 {
        self.offset + self.weights.dot(&x)
    }

    fn gradient(&self, _x: ArrayView1<f64>) -> Array1<f64> {
        self.weights.clone()
    }

    /// The exact credit on any path between two points.
    pub fn exact_credit(&self, reference: ArrayView1<f64>, input: ArrayView1<f64>) -> Array1<f64> {
        &self.weights * &(&input - &reference)
    }
}

score_by_row!(LinearScore);

/// `f(x) = x^T Q x / 2 + w . x` with symmetric `Q`: the smallest score with interactions.
///
/// On the straight line the gradient is linear in time, so the exact credit is that of its midpoint:
/// `(Q (x0 + x1)/2 + w)_i (x1_i - x0_i)`.
#[derive(Debug, Clone)]
pub struct QuadraticScore {
    matrix: Array2<f64>,
    weights: Array1<f64>,
    shape: [usize; 1],
}

impl QuadraticScore {
    /// From any square matrix, of which the symmetric part counts, and the linear weights.
    pub fn new(matrix: ArrayView2<f64>, weights: Array1<f64>) -> Result<Self> {
        crate::error::expect_shape("the quadratic form", &[weights.len(), weights.len()], matrix.shape())?;
        Ok(Self { shape: [weights.len()], matrix: 0.5 * (&matrix + &matrix.t()), weights })
    }

    fn value(&self, x: ArrayView1<f64>) -> f64 {
        0.5 * x.dot(&self.matrix.dot(&x)) + self.weights.dot(&x)
    }

    fn gradient(&self, x: ArrayView1<f64>) -> Array1<f64> {
        self.matrix.dot(&x) + &self.weights
    }

    /// The exact credit on the straight line between two points.
    pub fn exact_line_credit(&self, reference: ArrayView1<f64>, input: ArrayView1<f64>) -> Array1<f64> {
        let middle = 0.5 * (&reference + &input);
        self.gradient(middle.view()) * (&input - &reference)
    }
}

score_by_row!(QuadraticScore);

/// `f(x) = sum_j a_j tanh(w_j . x)`: smooth, with interactions, and with known bounds on its derivatives.
///
/// Since `|tanh'| <= 1` and `|tanh''| <= 4/(3 sqrt 3)`, everywhere
///
/// ```text
/// |grad f| <= sum_j |a_j| |w_j|,    |Hessian f| <= 4/(3 sqrt 3) sum_j |a_j| |w_j|^2
/// ```
#[derive(Debug, Clone)]
pub struct TanhSum {
    amplitudes: Array1<f64>,
    directions: Array2<f64>,
    shape: [usize; 1],
}

impl TanhSum {
    /// From amplitudes `[terms]` and directions `[terms, features]`.
    pub fn new(amplitudes: Array1<f64>, directions: Array2<f64>) -> Result<Self> {
        let expected = [amplitudes.len(), directions.ncols()];
        crate::error::expect_shape("the directions", &expected, directions.shape())?;
        Ok(Self { shape: [directions.ncols()], amplitudes, directions })
    }

    fn value(&self, x: ArrayView1<f64>) -> f64 {
        self.amplitudes.dot(&self.directions.dot(&x).mapv(f64::tanh))
    }

    fn gradient(&self, x: ArrayView1<f64>) -> Array1<f64> {
        let slopes = self.directions.dot(&x).mapv(|z| 1.0 - z.tanh().powi(2));
        (&self.amplitudes * &slopes).dot(&self.directions)
    }

    fn weighted_norms(&self, power: i32) -> f64 {
        let norms = self.directions.rows().into_iter().map(|row| row.dot(&row).sqrt().powi(power));
        self.amplitudes.iter().zip(norms).map(|(a, norm)| a.abs() * norm).sum()
    }

    /// A bound on the norm of the gradient.
    pub fn gradient_bound(&self) -> f64 {
        self.weighted_norms(1)
    }

    /// A bound on the norm of the Hessian, which is also a Lipschitz constant of the gradient.
    pub fn hessian_bound(&self) -> f64 {
        4.0 / (3.0 * 3.0_f64.sqrt()) * self.weighted_norms(2)
    }
}

score_by_row!(TanhSum);
