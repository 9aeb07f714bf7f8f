//! Running means with their intervals (Welford's recurrences).

use super::Mean;
use crate::student;

/// The count, mean and summed squared deviations of numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moments {
    count: usize,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    /// The mean with its 95 % interval.
    pub(super) fn interval(&self) -> Mean {
        let Some(degrees) = self.count.checked_sub(1).filter(|&degrees| degrees > 0) else {
            return Mean { mean: self.mean, low: None, high: None };
        };
        let error = (self.squares / degrees as f64 / self.count as f64).sqrt();
        let reach = student::quantile(0.975, degrees) * error;
        Mean { mean: self.mean, low: Some(self.mean - reach), high: Some(self.mean + reach) }
    }
}
