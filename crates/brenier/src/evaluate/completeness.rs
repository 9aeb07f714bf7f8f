//! Completeness over many examples, as the paper's table has it. Lower is better.
//!
//! ```text
//! r_j = | sum_i Phi_i - (f(x) - f(x_0)) |          for example j
//! MAE = R_eff = 1/N sum_j r_j,   standard deviation and SEM of r_j,   relative = MAE / (1/N sum_j |f(x) - f(x_0)|)
//! ```
//!
//! The paper gives R_eff as a formula and the relative error as a number. In its table the ratio of the two is
//! nearly the same in every row (7.5 to 7.7), so it is a ratio of means, not a mean of ratios; a mean of ratios is
//! given beside it, since a few examples whose score hardly changes can make it large. A small residual says that
//! the accounting balances, not that credit went to the right features.

use super::Summary;
use crate::attribute::Completeness;

/// The residuals of many examples, as the paper's table has them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResidualSummary {
    /// Mean (MAE), standard deviation and standard error (SEM) of the residual.
    pub residual: Summary,
    /// MAE over the mean size of the score's change; absent when the score changes in no example.
    pub relative: Option<f64>,
    /// The residual relative to each example's own change of the score, where it has one.
    pub relative_by_example: Option<Summary>,
}

impl ResidualSummary {
    /// The summary over the examples that have an account; none where no method promised one.
    pub fn of(accounts: &[Option<Completeness>]) -> Option<ResidualSummary> {
        let residuals: Vec<_> = accounts.iter().map(|a| a.map(|a| a.residual)).collect();
        let residual = Summary::of(&residuals)?;
        let changes: f64 = accounts.iter().flatten().map(change).sum();
        let relative: Vec<_> = accounts.iter().map(|a| a.and_then(|a| a.relative_residual)).collect();
        Some(ResidualSummary {
            relative: (changes > 0.0).then(|| residual.mean * residual.n as f64 / changes),
            relative_by_example: Summary::of(&relative),
            residual,
        })
    }
}

/// The size of the score's change, of which an account holds the residual and the ratio to it.
fn change(account: &Completeness) -> f64 {
    match account.relative_residual {
        None => 0.0,
        Some(ratio) if ratio > 0.0 => account.residual / ratio,
        Some(_) => account.credit_sum.abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_s_columns() {
        // Changes 4, -2, 2 and 0; residuals 1, 0, 0.5 and 0.5.
        let accounts = [
            Some(Completeness::new(5.0, 0.0, 4.0)),
            Some(Completeness::new(-2.0, 3.0, 1.0)),
            None,
            Some(Completeness::new(1.5, 1.0, 3.0)),
            Some(Completeness::new(0.5, 1.0, 1.0)),
        ];
        let summary = ResidualSummary::of(&accounts).unwrap();
        assert_eq!((summary.residual.n, summary.residual.undefined, summary.residual.mean), (4, 1, 0.5));
        // Squares 0.25 + 0.25 over 3.
        assert!((summary.residual.standard_deviation.unwrap() - (0.5_f64 / 3.0).sqrt()).abs() < 1e-15);
        assert!((summary.relative.unwrap() - 2.0 / 8.0).abs() < 1e-15);
        let by_example = summary.relative_by_example.unwrap();
        assert_eq!((by_example.n, by_example.undefined), (3, 2));
        assert!((by_example.mean - (0.25 + 0.0 + 0.25) / 3.0).abs() < 1e-15);
        assert_eq!(ResidualSummary::of(&[None]), None);
    }
}
