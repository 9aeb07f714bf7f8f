//! How far a sample covariance is drawn toward a multiple of the identity.
//!
//! ```text
//! S = (1 - r) C + r mu I,    C = (1/n) sum (x - m)(x - m)^T,    mu = tr C / d
//! ```
//!
//! With few rows the small eigenvalues of `C` are too small and the large ones too large; with fewer rows than
//! features some are zero and no optimal map exists. Two estimates of the best amount `r`, both as scikit-learn
//! computes them:
//!
//! ```text
//! Ledoit-Wolf   r = min(b, a) / a,   a = |C|^2 - d mu^2,   b = (1/n) ((1/n) sum |x_i - m|^4 - |C|^2)
//! OAS           r = min(1, (c + mu^2) / ((n + 1) (c - mu^2 / d))),   c = |C|^2 / d^2
//! ```
//!
//! with `|C|` the Frobenius norm, and a third for maps, which divide by small variances and so need more:
//!
//! ```text
//! held out      the r for which one half of the rows is most likely under the Gaussian of the other
//! ```
//!
//! Of the first two: Ledoit and Wolf (A well-conditioned estimator for large-dimensional covariance
//! matrices, 2004) is right for any distribution as `n` and `d` grow; the oracle approximating shrinkage of Chen,
//! Wiesel, Eldar and Hero (Shrinkage algorithms for MMSE covariance estimation, 2010, Eq. 23, without its terms
//! `2 / d`) assumes Gaussian rows and is the better one there if `n` is small.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The amount of shrinkage, or how it is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Shrinkage {
    /// Estimated as Ledoit and Wolf did.
    #[default]
    LedoitWolf,
    /// Oracle approximating shrinkage.
    Oas,
    /// The amount under which rows that were not looked at are most likely; see `held_out.rs`.
    HeldOut,
    /// This amount.
    Fixed {
        /// From 0 (the sample covariance) to 1 (a multiple of the identity).
        amount: f64,
    },
}

/// What the estimates need to know of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Rows.
    pub rows: usize,
    /// Features.
    pub features: usize,
    /// The trace of the sample covariance `C`.
    pub trace: f64,
    /// The squared Frobenius norm of `C`.
    pub squared_norm: f64,
    /// `sum |x_i - m|^4` over the rows.
    pub fourth: f64,
}

impl Shrinkage {
    /// The amount for a sample.
    ///
    /// # Errors
    /// An amount that is not between 0 and 1.
    pub fn amount(self, sample: &Moments) -> Result<f64> {
        let (n, d) = (sample.rows as f64, sample.features as f64);
        let mu = sample.trace / d;
        match self {
            Shrinkage::LedoitWolf => {
                let spread = sample.squared_norm - d * mu * mu;
                let noise = (sample.fourth / n - sample.squared_norm) / n;
                Ok(if spread <= 0.0 { 0.0 } else { (noise.min(spread) / spread).max(0.0) })
            }
            Shrinkage::Oas => {
                let mean_square = sample.squared_norm / (d * d);
                let down = (n + 1.0) * (mean_square - mu * mu / d);
                Ok(if down <= 0.0 { 1.0 } else { ((mean_square + mu * mu) / down).min(1.0) })
            }
            // Of a sample without its rows, the estimate that asks least of it.
            Shrinkage::HeldOut => Shrinkage::LedoitWolf.amount(sample),
            Shrinkage::Fixed { amount } if (0.0..=1.0).contains(&amount) => Ok(amount),
            Shrinkage::Fixed { amount } => Err(Error::Setting {
                name: "the amount of shrinkage",
                value: amount.to_string(),
                needs: "it must lie between 0 and 1",
                hint: "leave it out: it is then estimated from the rows".into(),
            }),
        }
    }
}
