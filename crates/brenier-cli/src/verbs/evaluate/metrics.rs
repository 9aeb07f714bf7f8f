//! Which metrics were asked for, with what settings.

use std::path::PathBuf;

use anyhow::{Result, bail};
use brenier::evaluate::{Channels, Metric, MetricSettings, Units};
use clap::{Args, ValueEnum};

use crate::request::{Surroundings, grouping};

/// Settings of the metrics
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Metrics")]
pub(super) struct MetricArgs {
    /// The metrics, with commas between; what the inputs and methods allow where not given
    #[arg(long, visible_alias = "metric", value_name = "NAMES", value_delimiter = ',')]
    metrics: Vec<String>,
    /// How colour channels become one map; each metric's own choice where not given
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
    /// What metrics may take of the things that are given for methods.
    pub(super) fn takes(&self) -> Vec<&'static str> {
        let asked = |name: &str| self.metrics.iter().any(|metric| metric.trim() == name);
        let flows = self.metrics.is_empty() || asked("fce") || asked("flow-defect");
        if flows { vec!["flows"] } else { Vec::new() }
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
            ([], Some(_)) => vec!["mass-accuracy", "rank-accuracy", "pointing-game"],
            ([], None) => usual(shape.len() == 3, !surroundings.flows.is_empty()),
            (named, _) => named.iter().map(|name| name.trim()).collect(),
        };
        for (i, name) in names.iter().enumerate() {
            if names[..i].contains(name) {
                bail!("the metric '{name}' is given twice");
            }
        }
        Ok(names.into_iter().map(|name| Metric::new(name, &settings)).collect::<brenier::Result<_>>()?)
    }
}

/// The paper's columns and their counterparts, as far as they apply.
fn usual(images: bool, flow: bool) -> Vec<&'static str> {
    let mut names = vec!["relative-residual", "gps"];
    if flow {
        names.push("fce");
    }
    if images {
        names.extend(["satv", "eas"]);
    }
    names.push("deletion-zero");
    if images {
        names.push("deletion-blur");
    }
    names.extend(["insertion-zero", "faithfulness-correlation"]);
    names
}

fn units(text: &str) -> Result<Units> {
    Ok(match text {
        "pixels" => Units::Pixels,
        "each" => Units::Features,
        _ => Units::Groups { grouping: grouping(text)? },
    })
}
