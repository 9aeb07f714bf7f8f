//! Sampling errors from batches: the spread of a number over disjoint parts of both populations.

use serde::{Deserialize, Serialize};

use crate::student::quantile;

/// A number with its sampling error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its standard error and its interval; absent where there are too few rows for batches.
    pub interval: Option<Interval>,
}

/// The sampling error of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The standard error.
    pub standard_error: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    fn new(value: f64, standard_error: f64, t: f64) -> Self {
        Self { standard_error, low: value - t * standard_error, high: value + t * standard_error }
    }

    /// Whether it covers a number.
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// What each batch found, and how sure intervals are to be.
pub(super) struct Intervals<'a, T> {
    batches: &'a [T],
    confidence: f64,
}

impl<'a, T> Intervals<'a, T> {
    pub(super) fn new(batches: &'a [T], confidence: f64) -> Self {
        Self { batches, confidence }
    }

    /// The standard error of a number that every batch must have.
    fn standard_error(&self, of: impl Fn(&T) -> Option<f64>) -> Option<f64> {
        let found = self.batches.iter().map(of).collect::<Option<Vec<f64>>>()?;
        let count = found.len() as f64;
        if found.is_empty() {
            return None;
        }
        let mean = found.iter().sum::<f64>() / count;
        let squares = found.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Some((squares / (count - 1.0) / count).sqrt())
    }

    fn quantile(&self, tail: f64) -> f64 {
        quantile(1.0 - tail / 2.0, self.batches.len().saturating_sub(1))
    }

    /// A number with its interval.
    pub(super) fn estimate(&self, value: f64, of: impl Fn(&T) -> Option<f64>) -> Estimate {
        let t = self.quantile(1.0 - self.confidence);
        Estimate { value, interval: self.standard_error(of).map(|error| Interval::new(value, error, t)) }
    }

    /// Whether a number differs from 0, at a level shared among so many.
    pub(super) fn differs(&self, value: f64, of: impl Fn(&T) -> Option<f64>, among: usize) -> bool {
        let t = self.quantile((1.0 - self.confidence) / among.max(1) as f64);
        let error = self.standard_error(of);
        error.is_some_and(|error| value != 0.0 && !Interval::new(value, error, t).covers(0.0))
    }
}
