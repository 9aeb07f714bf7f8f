//! The paper's tables and figures, a file or a folder each.
//!
//! Every experiment gives one long table, whatever it measures, with the paper's figure beside ours where the
//! paper has one; and its figures as SVG.

mod additive;
mod gaussian;

use serde::{Deserialize, Serialize};

pub use crate::store::Store;
pub use additive::{AdditiveConfig, additive};
pub use gaussian::{
    GaussianConfig, LevelsConfig, MismatchConfig, RotatedConfig, Scale, field_mismatch, gaussian,
    rotated_gaussian,
};

/// What an experiment found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The experiment's name, as on the command line.
    pub name: String,
    /// How large it was run, in words.
    pub scale: String,
    /// The numbers.
    pub rows: Vec<Row>,
}

/// One number of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured on.
    pub method: String,
    /// What was measured.
    pub metric: String,
    /// The mean over the runs.
    pub mean: f64,
    /// The standard deviation over the runs (with n - 1; 0 for a single one).
    pub std: f64,
    /// The number of runs.
    pub n: usize,
    /// The paper's figure; absent where it has none.
    pub paper: Option<f64>,
}

impl Row {
    /// The mean and standard deviation of values.
    pub fn of(method: &str, metric: &str, values: &[f64], paper: Option<f64>) -> Self {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n.max(1) as f64;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let std = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
        Self { method: method.to_owned(), metric: metric.to_owned(), mean, std, n, paper }
    }
}

/// A figure of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name of its file, with `.svg`.
    pub file: String,
    /// The SVG text.
    pub svg: String,
}
