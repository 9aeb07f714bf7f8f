//! Penalised linear models fitted to weighted draws: LIME's lasso and ridge.
//!
//! ```text
//! lasso:  1 / (2 W) sum_k w_k (y_k - b - z_k' beta)^2 + alpha |beta|_1,      W = sum_k w_k
//! ridge:            sum_k w_k (y_k - b - z_k' beta)^2 + alpha |beta|_2^2
//! ```
//!
//! Both are scikit-learn's conventions, intercept unpenalised. Everything a fit needs are the weighted first and
//! second moments of the draws, `M x M` numbers, from which the means are taken out first.

use nalgebra::{DMatrix, DVector};
use ndarray::Array1;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Sweeps of the lasso over all coefficients.
const SWEEPS: usize = 10_000;
/// The lasso is done when no coefficient moves by more than this part of the largest.
const TOLERANCE: f64 = 1e-11;

/// A linear model with a penalty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Surrogate {
    /// Few coefficients differ from zero.
    Lasso {
        /// Weight of the absolute sizes.
        alpha: f64,
    },
    /// All coefficients are somewhat smaller.
    Ridge {
        /// Weight of the squares.
        alpha: f64,
    },
}

impl Default for Surrogate {
    /// Captum's: a lasso with 0.01.
    fn default() -> Self {
        Surrogate::Lasso { alpha: 0.01 }
    }
}

/// Weighted moments of draws `z` with values `y`.
#[derive(Clone)]
pub(in crate::attribute) struct Moments {
    weight: f64,
    first: DVector<f64>,
    second: DMatrix<f64>,
    value: f64,
    product: DVector<f64>,
}

impl Moments {
    pub(in crate::attribute) fn zero(groups: usize) -> Moments {
        Moments {
            weight: 0.0,
            first: DVector::zeros(groups),
            second: DMatrix::zeros(groups, groups),
            value: 0.0,
            product: DVector::zeros(groups),
        }
    }

    pub(in crate::attribute) fn add(&mut self, present: &[bool], weight: f64, value: f64) {
        let members: Vec<usize> = (0..present.len()).filter(|&i| present[i]).collect();
        self.weight += weight;
        self.value += weight * value;
        for &i in &members {
            self.first[i] += weight;
            self.product[i] += weight * value;
            members.iter().for_each(|&j| self.second[(i, j)] += weight);
        }
    }

    pub(in crate::attribute) fn minus(&self, other: &Moments) -> Moments {
        Moments {
            weight: self.weight - other.weight,
            first: &self.first - &other.first,
            second: &self.second - &other.second,
            value: self.value - other.value,
            product: &self.product - &other.product,
        }
    }

    /// Second moments around the means, as the intercept leaves them.
    fn centred(&self) -> (DMatrix<f64>, DVector<f64>) {
        let mean = &self.first / self.weight;
        (&self.second - &self.first * mean.transpose(), &self.product - mean * self.value)
    }
}

impl Surrogate {
    /// Refuses a penalty that is none.
    pub(in crate::attribute) fn check(self) -> Result<()> {
        let (Surrogate::Lasso { alpha } | Surrogate::Ridge { alpha }) = self;
        if alpha > 0.0 && alpha.is_finite() {
            return Ok(());
        }
        Err(Error::Setting {
            name: "the penalty of the linear model",
            value: alpha.to_string(),
            needs: "it is a positive number",
            hint: "0.01 is the default".into(),
        })
    }

    /// The coefficients; a lasso starts from those given.
    pub(in crate::attribute) fn fit(
        self,
        moments: &Moments,
        start: Option<&Array1<f64>>,
    ) -> Result<Array1<f64>> {
        let (gram, product) = moments.centred();
        let beta = match self {
            Surrogate::Ridge { alpha } => {
                let penalised = gram + DMatrix::identity(product.len(), product.len()) * alpha;
                penalised.cholesky().map(|factor| factor.solve(&product))
            }
            Surrogate::Lasso { alpha } => {
                lasso(&(gram / moments.weight), &(product / moments.weight), alpha, start)
            }
        };
        let beta = beta.ok_or_else(|| Error::Setting {
            name: "the penalty of the linear model",
            value: format!("{self:?}"),
            needs: "with this penalty no linear model could be fitted to the draws",
            hint: "raise the penalty or the number of masked inputs".into(),
        })?;
        Ok(beta.iter().copied().collect())
    }
}

/// Coordinate descent: each coefficient in turn takes its best value given the others.
fn lasso(
    gram: &DMatrix<f64>,
    product: &DVector<f64>,
    alpha: f64,
    start: Option<&Array1<f64>>,
) -> Option<DVector<f64>> {
    let groups = product.len();
    let mut beta = DVector::from_fn(groups, |i, _| start.map_or(0.0, |start| start[i]));
    // What is left to explain: product - gram beta.
    let mut left = product - gram * &beta;
    for _ in 0..SWEEPS {
        let mut moved = 0.0_f64;
        for i in 0..groups {
            let curvature = gram[(i, i)];
            if curvature <= 0.0 {
                // Always present or always absent: its coefficient says nothing.
                continue;
            }
            let pull = left[i] + curvature * beta[i];
            let best = pull.signum() * (pull.abs() - alpha).max(0.0) / curvature;
            let step = best - beta[i];
            if step != 0.0 {
                left.axpy(-step, &gram.column(i), 1.0);
                beta[i] = best;
                moved = moved.max(step.abs());
            }
        }
        if moved <= TOLERANCE * beta.amax() {
            return Some(beta);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 0/1 rows of four groups, weighted unevenly, with a linear value and a kink.
    fn draws() -> Vec<(Vec<bool>, f64, f64)> {
        (0..16_u32)
            .map(|k| {
                let z: Vec<bool> = (0..4).map(|i| k >> i & 1 == 1).collect();
                let x: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
                let y = 5.0 + 2.0 * x[0] - x[1] + 0.01 * x[2] + 0.3 * (x[0] + x[3] - 1.5).abs();
                (z, 0.2 + 0.1 * f64::from(k % 5), y)
            })
            .collect()
    }

    fn moments() -> Moments {
        let mut moments = Moments::zero(4);
        draws().iter().for_each(|(z, w, y)| moments.add(z, *w, *y));
        moments
    }

    /// Residuals with the best intercept, times the draws: half the negative gradient of the squared error.
    fn pull(beta: &Array1<f64>) -> (Vec<f64>, f64) {
        let draws = draws();
        let fit = |z: &[bool]| z.iter().zip(beta).filter(|(z, _)| **z).map(|(_, b)| b).sum::<f64>();
        let total: f64 = draws.iter().map(|(_, w, _)| w).sum();
        let intercept = draws.iter().map(|(z, w, y)| w * (y - fit(z))).sum::<f64>() / total;
        let at =
            |i: usize| draws.iter().filter(|d| d.0[i]).map(|(z, w, y)| w * (y - intercept - fit(z))).sum();
        ((0..4).map(at).collect(), total)
    }

    #[test]
    fn a_lasso_meets_the_conditions_of_its_optimum() {
        let alpha = 0.05;
        let beta = Surrogate::Lasso { alpha }.fit(&moments(), None).unwrap();
        assert_eq!(beta[2], 0.0);
        let (pull, total) = pull(&beta);
        for (pull, &beta) in pull.iter().zip(&beta) {
            if beta == 0.0 {
                assert!(pull.abs() / total <= alpha);
            } else {
                assert!((pull / total - alpha * beta.signum()).abs() < 1e-10);
            }
        }
    }

    #[test]
    fn a_ridge_meets_the_conditions_of_its_optimum() {
        let alpha = 0.7;
        let beta = Surrogate::Ridge { alpha }.fit(&moments(), None).unwrap();
        let (pull, _) = pull(&beta);
        assert!(pull.iter().zip(&beta).all(|(pull, beta)| (pull - alpha * beta).abs() < 1e-10));
    }

    #[test]
    fn moments_without_a_block_are_those_of_the_rest() {
        let mut block = Moments::zero(4);
        draws()[..6].iter().for_each(|(z, w, y)| block.add(z, *w, *y));
        let mut rest = Moments::zero(4);
        draws()[6..].iter().for_each(|(z, w, y)| rest.add(z, *w, *y));
        let ridge = Surrogate::Ridge { alpha: 0.1 };
        let gap = ridge.fit(&moments().minus(&block), None).unwrap() - ridge.fit(&rest, None).unwrap();
        assert!(gap.iter().all(|g| g.abs() < 1e-12));
    }
}
