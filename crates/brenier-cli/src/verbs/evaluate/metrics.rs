//! Which metrics were asked for, with what settings.

use std::path::PathBuf;

use anyhow::{Result, bail};
use brenier::attribute::Setting;
use brenier::evaluate::{Channels, Metric, MetricNeed, MetricSettings, Units};
use clap::{Args, ValueEnum};

use crate::request::{Surroundings, grouping};

/// Settings of the metrics
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Metrics")]
pub(super) struct MetricArgs {
    /// The metrics, with commas between; default: the usual ones that apply
    #[arg(long, visible_alias = "metric", value_name = "NAMES", value_delimiter = ',')]
    metrics: Vec<String>,
    /// How colour channels become one map; default: each metric's own choice
    #[arg(long, value_enum)]
    channels: Option<ChannelArg>,
    /// Steps of a path's grid, and fractions of deletion and insertion
    #[arg(long, value_name = "K")]
    metric_steps: Option<usize>,
    /// Number of draws of metrics that draw
    #[arg(long, value_name = "N")]
    metric_samples: Option<usize>,
    /// What is removed together: pixels, each, patches:4x4, superpixels:50, columns:3-5, or an .npy file of numbers
    #[arg(long, value_name = "UNITS")]
    units: Option<String>,
    /// The features that truly decide: an .npy file of booleans, in the shape of all examples together
    #[arg(long, value_name = "FILE")]
    pub(super) truth: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ChannelArg {
    /// Credit for and against cancels
    Signed,
    /// The sum of absolute values
    Absolute,
    /// The largest absolute value
    Maximum,
}

impl MetricArgs {
    /// What metrics may use of the things that are given for methods.
    pub(super) fn uses(&self) -> Vec<Setting> {
        // A name that there is not is refused later, with the nearest one.
        let follows = |name: &String| {
            name.trim().parse::<Metric>().is_ok_and(|metric| metric.spec().needs(MetricNeed::Flow))
        };
        if self.metrics.is_empty() || self.metrics.iter().any(follows) {
            vec![Setting::Flow]
        } else {
            Vec::new()
        }
    }

    /// Whether metrics that apply to no method are left out: those that nobody asked for by name.
    pub(super) fn leave_out(&self) -> bool {
        self.metrics.is_empty()
    }

    /// The metrics of these names, or those that this kind of input allows.
    pub(super) fn metrics(
        &self,
        shape: &[usize],
        surroundings: &Surroundings,
        seed: u64,
    ) -> Result<Vec<Metric>> {
        let settings = MetricSettings {
            channels: self.channels.map(|channels| match channels {
                ChannelArg::Signed => Channels::SignedSum,
                ChannelArg::Absolute => Channels::AbsoluteSum,
                ChannelArg::Maximum => Channels::Maximum,
            }),
            steps: self.metric_steps,
            samples: self.metric_samples,
            units: self.units.as_deref().map(units).transpose()?,
            sigma: None,
            seed,
        };
        let names: Vec<&str> = match (self.metrics.as_slice(), &self.truth) {
            ([], Some(_)) => Metric::specs().filter(|s| s.needs(MetricNeed::Truth)).map(|s| s.name).collect(),
            ([], None) => Metric::usual(shape, !surroundings.flows.is_empty()),
            (named, _) => named.iter().map(|name| name.trim()).collect(),
        };
        let metrics = names
            .into_iter()
            .map(|name| Metric::new(name, &settings))
            .collect::<brenier::Result<Vec<_>>>()?;
        for (i, metric) in metrics.iter().enumerate() {
            if metrics[..i].iter().any(|other| other.name() == metric.name()) {
                bail!("the metric '{}' is given twice", metric.name());
            }
        }
        Ok(metrics)
    }
}

/// Text for `--help` with the list of metrics below it.
pub(super) fn with_metrics(text: &str) -> String {
    let width = Metric::specs().map(|spec| spec.name.len()).max().unwrap_or(0);
    let lines: Vec<String> =
        Metric::specs().map(|spec| format!("  {:width$}  {}", spec.name, spec.help)).collect();
    format!("{text}\n\nMetrics, which docs/metrics.md explains:\n{}", lines.join("\n"))
}

fn units(text: &str) -> Result<Units> {
    Ok(match text {
        "pixels" => Units::Pixels,
        "each" => Units::Features,
        _ => Units::Groups { grouping: grouping(text)? },
    })
}
