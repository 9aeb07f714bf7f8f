//! What a table shows of many numbers.
//!
//! ```text
//! mean m = 1/n sum v,   deviation s = (sum (v - m)^2 / (n - 1))^(1/2),   error of the mean s / n^(1/2)
//! interval m +- 1.96 s / n^(1/2)
//! ```
//!
//! The interval is that of the normal distribution at 95 %; for few examples it is too narrow, and that of Student's
//! distribution is the one to show. Examples for which a metric is not defined are counted apart, never as zero.

use serde::{Deserialize, Serialize};

use crate::student::quantile;

/// Mean and spread of a metric over examples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Examples for which the metric is defined.
    pub n: usize,
    /// Examples for which it is not.
    pub undefined: usize,
    /// The mean.
    pub mean: f64,
    /// The standard deviation with `n - 1`; absent for a single example.
    pub standard_deviation: Option<f64>,
    /// The standard error of the mean (SEM); absent for a single example.
    pub standard_error: Option<f64>,
}

impl Summary {
    /// The summary of what is defined; none where nothing is.
    pub fn of(values: &[Option<f64>]) -> Option<Summary> {
        let defined: Vec<f64> = values.iter().flatten().copied().collect();
        let n = defined.len();
        if n == 0 {
            return None;
        }
        let mean = defined.iter().sum::<f64>() / n as f64;
        let squares: f64 = defined.iter().map(|v| (v - mean).powi(2)).sum();
        let standard_deviation = (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt());
        let standard_error = standard_deviation.map(|deviation| deviation / (n as f64).sqrt());
        Some(Summary { n, undefined: values.len() - n, mean, standard_deviation, standard_error })
    }

    /// The interval that holds the mean with 95 % confidence, if the normal distribution is near enough.
    pub fn confidence_interval(&self) -> Option<(f64, f64)> {
        self.standard_error.map(|error| (self.mean - 1.96 * error, self.mean + 1.96 * error))
    }

    /// Half the length of the 95 % interval of the mean by Student's distribution, which also holds for few examples.
    pub fn half_width(&self) -> Option<f64> {
        self.standard_error.map(|error| quantile(0.975, self.n - 1) * error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_spread_of_what_is_defined() {
        let summary = Summary::of(&[Some(1.0), None, Some(2.0), Some(6.0)]).unwrap();
        assert_eq!((summary.n, summary.undefined, summary.mean), (3, 1, 3.0));
        // Squares 4 + 1 + 9 over 2.
        assert!((summary.standard_deviation.unwrap() - 7.0_f64.sqrt()).abs() < 1e-15);
        let (low, high) = summary.confidence_interval().unwrap();
        assert!((high - low - 2.0 * 1.96 * (7.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        // scipy.stats.t.ppf(0.975, 2)
        assert!((summary.half_width().unwrap() - 4.302652729749462 * (7.0_f64 / 3.0).sqrt()).abs() < 1e-9);
        assert_eq!(Summary::of(&[Some(4.0)]).unwrap().confidence_interval(), None);
        assert_eq!(Summary::of(&[None]), None);
    }
}
