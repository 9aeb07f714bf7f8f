//! The paper's tables and figures, a file or a folder each.
//!
//! Every experiment gives one long table, whatever it measures, with the paper's figure beside ours where the
//! paper has one; and its figures as SVG.

mod action;
mod additive;
mod benchmark;
mod completeness;
mod convergence;
mod gaussian;
mod planted;
mod qualitative;
mod stability;
mod subject;
mod trained;

use serde::{Deserialize, Serialize};

use crate::attribute::{Method, Settings, Transport};
use crate::{Result, Rule};

pub use planted::{PlantedConfig, planted};
pub use qualitative::{QualitativeConfig, qualitative};
pub use stability::{StabilityConfig, stability};
pub use subject::{NamedFlow, Subject};

pub use crate::store::Store;
pub use action::{ActionConfig, action};
pub use additive::{AdditiveConfig, additive};
pub use benchmark::{BenchmarkConfig, TrainedSubject, TrainedSubjectConfig, benchmark, train_subject};
pub use completeness::{CompletenessConfig, completeness};
pub use convergence::{ConvergenceConfig, Kept, convergence, kept_checkpoints, train_checkpoints};
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

/// Who is told, a line at a time, what a long experiment has done.
pub type Tell<'a> = &'a mut dyn FnMut(&str);

/// The rule of experiments that compare paths, not rules: the paper's number of gradients, in better places. The adaptive
/// rule would spend most on the paths that are worst.
const RULE: Rule = Rule::GaussLegendre { nodes: 50 };

/// Transport with that rule.
fn transport() -> Result<Method> {
    Method::new(Transport::NAME, &Settings { rule: Some(RULE), ..Settings::default() })
}

/// The slope of log error over log size by least squares.
pub fn log_slope(sizes: &[usize], errors: &[f64]) -> f64 {
    let x: Vec<f64> = sizes.iter().map(|&n| (n as f64).ln()).collect();
    let y: Vec<f64> = errors.iter().map(|e| e.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let rise: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
    rise / x.iter().map(|a| (a - mx).powi(2)).sum::<f64>()
}

/// A figure of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name of its file, with `.svg`.
    pub file: String,
    /// The SVG text.
    pub svg: String,
}
