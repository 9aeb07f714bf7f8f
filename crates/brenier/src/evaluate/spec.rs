//! What is known of a metric before it runs: one value, in the metric's own file.
//!
//! Names, help, the tables of `docs/metrics.md` and the lists of the tests are read off these values. The registry
//! itself is in `metric.rs`.

use serde::{Deserialize, Serialize};

use super::{Cases, Channels, Comparable, Metric, Units};
use crate::registry::{Named, markdown_table};
use crate::{Error, Result};

/// Which values of a metric are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Higher is better.
    Higher,
    /// Lower is better.
    Lower,
    /// It describes; neither is better.
    Neither,
}

impl Direction {
    /// In one word.
    pub fn in_words(self) -> &'static str {
        match self {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neither => "neither",
        }
    }
}

/// What a metric cannot do without, besides explanations and their score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricNeed {
    /// A method that promises that credit sums to the score's change.
    Account,
    /// A path for each explanation.
    Path,
    /// A flow to compare paths with.
    Flow,
    /// Two velocity fields to compare with each other.
    TwoFlows,
    /// Explanations to compare with.
    References,
    /// Explanations by other seeds.
    Seeds,
    /// The method itself, to be asked again.
    Method,
    /// The model as a graph, whose weights can be redrawn.
    Model,
    /// The features that truly decide.
    Truth,
    /// Inputs that are images.
    Image,
}

impl MetricNeed {
    /// What is needed, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            MetricNeed::Account => "a method that promises completeness",
            MetricNeed::Path => "a path",
            MetricNeed::Flow => "a flow",
            MetricNeed::TwoFlows => "two flows",
            MetricNeed::References => "reference explanations",
            MetricNeed::Seeds => "explanations by other seeds",
            MetricNeed::Method => "the method",
            MetricNeed::Model => "an ONNX model",
            MetricNeed::Truth => "a mask of the truth",
            MetricNeed::Image => "images",
        }
    }

    /// Why the cases do not have it, in words; none where they do. Whether inputs are images the metric says itself,
    /// with their shape.
    pub(super) fn missing(self, cases: &Cases) -> Option<&'static str> {
        let flow = cases.context.flows.first();
        let (absent, reason) = match self {
            MetricNeed::Account => (
                cases.completeness.iter().all(Option::is_none),
                "the method does not promise that credit sums to the score's change",
            ),
            MetricNeed::Path => (cases.paths.is_empty() && !cases.is_empty(), "the method has no path"),
            MetricNeed::Flow => (flow.is_none(), "there is no flow to compare the path with"),
            MetricNeed::TwoFlows => {
                (flow.is_none() || cases.reference_field.is_none(), "there are no two fields to compare")
            }
            MetricNeed::References => {
                (cases.reference_values.is_none(), "there are no explanations to compare with")
            }
            MetricNeed::Seeds => (cases.repeats.is_empty(), "there are no explanations with other seeds"),
            MetricNeed::Method => (cases.explain.is_none(), "the method cannot be asked again"),
            MetricNeed::Model => {
                (cases.context.model.is_none(), "there is no model whose weights could be redrawn")
            }
            MetricNeed::Truth => (cases.truth.is_none(), "there is no planted truth"),
            MetricNeed::Image => (false, ""),
        };
        absent.then_some(reason)
    }
}

/// What is common to the settings of many metrics. What is not given is each metric's own default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MetricSettings {
    /// How channels become one map.
    pub channels: Option<Channels>,
    /// Steps of a path's grid, and fractions of deletion and insertion.
    pub steps: Option<usize>,
    /// Number of draws.
    pub samples: Option<usize>,
    /// What is removed together.
    pub units: Option<Units>,
    /// Standard deviation of a blur in pixels.
    pub sigma: Option<f64>,
    /// Seed of all draws.
    pub seed: u64,
}

/// One of the [`MetricSettings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricSetting {
    /// [`MetricSettings::channels`].
    Channels,
    /// [`MetricSettings::steps`].
    Steps,
    /// [`MetricSettings::samples`].
    Samples,
    /// [`MetricSettings::units`].
    Units,
    /// [`MetricSettings::sigma`].
    Sigma,
    /// [`MetricSettings::seed`].
    Seed,
}

/// What is known of a metric before it runs.
#[derive(Debug, Clone, Copy)]
pub struct MetricSpec {
    /// The name on the command line and in tables.
    pub name: &'static str,
    /// Other names that people know it by.
    pub aliases: &'static [&'static str],
    /// One line for `--help`.
    pub help: &'static str,
    /// What it cannot do without.
    pub needs: &'static [MetricNeed],
    /// What makes a difference to it.
    pub uses: &'static [MetricSetting],
    /// Which values are the better ones.
    pub direction: Direction,
    /// Whether better numbers mean better methods.
    pub comparable: Comparable,
    /// Whether a table has it, as far as it applies, where nobody chooses.
    pub usual: bool,
    /// The metric with these settings; its own default for what is not given.
    pub build: fn(&MetricSettings) -> Metric,
    /// What `docs/metrics.md` says of it.
    pub page: MetricPage,
}

/// What `docs/metrics.md` says of a metric, in Markdown.
#[derive(Debug, Clone, Copy)]
pub struct MetricPage {
    /// The formula.
    pub formula: &'static str,
    /// Which values it has, in which units.
    pub range: &'static str,
    /// What it says of an explanation.
    pub says: &'static str,
    /// What it does not say.
    pub does_not_say: &'static str,
}

impl MetricSpec {
    /// Whether the metric cannot do without this.
    pub fn needs(&self, need: MetricNeed) -> bool {
        self.needs.contains(&need)
    }

    /// Whether this makes a difference to the metric.
    pub fn uses(&self, setting: MetricSetting) -> bool {
        self.uses.contains(&setting)
    }
}

impl Named for MetricSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// What every metric does, behind [`Metric`].
pub(super) trait Measure {
    /// The spec of the metric with these settings.
    fn spec(&self) -> &'static MetricSpec;

    /// The name in tables.
    fn name(&self) -> &'static str {
        self.spec().name
    }

    /// Whether better numbers mean better methods, with these settings.
    fn comparable(&self) -> Comparable {
        self.spec().comparable
    }

    /// A number for each example; none where it is not defined for that one. What the spec needs is there.
    fn run(&self, cases: &Cases) -> Result<Vec<Option<f64>>>;
}

/// What a spec says that the metric needs. The registry has looked whether it is there before the metric runs.
pub(super) fn needed<T>(spec: &MetricSpec, found: Option<T>) -> Result<T> {
    found.ok_or_else(|| Error::Metric {
        metric: spec.name.to_string(),
        reason: "something that it needs is not there".to_string(),
        remedy: "supply it with the cases, or leave the metric out for this method".into(),
    })
}

/// The tables of `docs/metrics.md` in Markdown: what metrics compute, and what they say.
pub fn metric_tables() -> [String; 2] {
    let rows = |cells: fn(&MetricSpec) -> Vec<String>| Metric::specs().map(|s| (s.name, cells(s))).collect();
    let computes = rows(|MetricSpec { page, direction, .. }| {
        [page.formula, direction.in_words(), page.range].map(str::to_string).to_vec()
    });
    let says = rows(|MetricSpec { page, needs, .. }| {
        let needs: Vec<&str> = needs.iter().map(|need| need.in_words()).collect();
        let needs = if needs.is_empty() { "nothing more".to_string() } else { needs.join(", ") };
        vec![page.says.to_string(), page.does_not_say.to_string(), needs]
    });
    [
        markdown_table(&["name", "formula", "better", "range"], computes),
        markdown_table(&["name", "it says", "it does not say", "it needs"], says),
    ]
}
