//! What every experiment gives: one long table, and figures.

use brenier::attribute::{Method, Settings, Transport};
use brenier::evaluate::Summary;
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
    /// Half the length of the 95 % interval of the mean, by Student's distribution; absent for a single run.
    #[serde(default)]
    pub half_width: Option<f64>,
    /// The paper's figure; absent where it has none.
    pub paper: Option<f64>,
}

impl Row {
    /// The mean and standard deviation of values.
    pub fn of(method: &str, metric: &str, values: &[f64], paper: Option<f64>) -> Self {
        let all: Vec<Option<f64>> = values.iter().copied().map(Some).collect();
        let summary = Summary::of(&all);
        Self {
            method: method.to_owned(),
            metric: metric.to_owned(),
            mean: summary.map_or(0.0, |s| s.mean),
            std: summary.and_then(|s| s.standard_deviation).unwrap_or(0.0),
            n: values.len(),
            half_width: summary.and_then(|s| s.half_width()),
            paper,
        }
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
