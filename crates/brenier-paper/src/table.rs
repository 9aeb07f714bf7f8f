//! What every experiment gives: one long table, and figures.

use brenier::attribute::{Method, Settings, Transport};
use brenier::{Result, Rule};
use serde::{Deserialize, Serialize};

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
pub(crate) const RULE: Rule = Rule::GaussLegendre { nodes: 50 };

/// Transport with that rule.
pub(crate) fn transport() -> Result<Method> {
    Method::new(Transport::NAME, &Settings { rule: Some(RULE), ..Settings::default() })
}

/// A figure of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The name of its file, with `.svg`.
    pub file: String,
    /// The SVG text.
    pub svg: String,
}
