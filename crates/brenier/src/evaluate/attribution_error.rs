//! Relative attribution error (RAE) of one explanation against another.
//!
//! ```text
//! RAE = |Phi - Phi_ref|_2 / (|Phi_ref|_2 + 1e-12)
//! ```
//!
//! Unlike the completeness residual it sees every feature, not only their sum, but it needs a reference.

use ndarray::ArrayView1;

use crate::{Result, error};

/// The relative attribution error of `credit` against `reference`. Lower is better; 0 means equal.
pub fn relative_attribution_error(credit: ArrayView1<f64>, reference: ArrayView1<f64>) -> Result<f64> {
    error::expect_shape("the credit", reference.shape(), credit.shape())?;
    let gap = &credit - &reference;
    Ok(gap.dot(&gap).sqrt() / (reference.dot(&reference).sqrt() + 1e-12))
}
