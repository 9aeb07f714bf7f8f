//! The flags of a run: where it is kept, how it trains and what it prints. Shared by every verb that trains.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use brenier::calibration::FlowQuality;
use brenier::data::Dataset;
use brenier::runs::{Event, Outcome, Watch};
use brenier::train::TrainConfig;
use clap::Args;

use crate::data_args::{DataArgs, count};
use crate::engine_args::EngineArgs;
use crate::output::{Format, expect_writable, print_data, print_progress};
use crate::progress::{RunProgress, StopKey, Stopped};

/// A run
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// The run's folder
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Go on with the run in the folder
    #[arg(long)]
    resume: bool,
    /// The fraction of DATA to train on, if it has no split of its own
    #[arg(long, value_name = "FRACTION", default_value_t = 0.9)]
    pub(crate) train_fraction: f64,
    /// Flows: the most held-out rows to calibrate with at the end; 0: no calibration
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) calibration_rows: usize,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

impl RunArgs {
    /// Refuses a folder that holds a run already, or holds none to go on with.
    pub(crate) fn check_folder(&self) -> Result<()> {
        let begun = self.output.join("run.json").exists();
        if begun && !self.resume {
            bail!(
                "{} holds a run already\nhint: go on with it by --resume, or choose another folder",
                self.output.display()
            );
        }
        if self.resume && !begun {
            bail!("{} holds no run to go on with\nhint: leave out --resume", self.output.display());
        }
        expect_writable(&self.output)
    }

    /// What the flags say about training on these data.
    pub(crate) fn training(&self, data: &Dataset) -> TrainConfig {
        self.training.config(data, &self.engine)
    }

    /// Shows how far the run is; Ctrl-C ends it at the next step.
    pub(crate) fn progress(&self) -> Result<RunProgress> {
        Ok(RunProgress::new(StopKey::listen()?))
    }

    /// Prints how the run ended.
    pub(crate) fn report(&self, outcome: &Outcome) -> Result<()> {
        if self.format == Format::Json {
            print_data(&format!("{}\n", serde_json::to_string(outcome)?))?;
            return if outcome.file.is_some() { Ok(()) } else { Err(stopped(outcome)) };
        }
        let Some(file) = &outcome.file else {
            return Err(stopped(outcome));
        };
        let mut text = format!("{}\n", self.output.join(file).display());
        let mut line = |name: &str, value: String| text.push_str(&format!("  {name:32} {value}\n"));
        if let Some(loss) = outcome.loss {
            line("training loss", format!("{loss:.5}"));
        }
        if let Some(accuracy) = outcome.accuracy {
            line("held-out accuracy", format!("{:.2} %", 100.0 * accuracy));
        }
        if let Some(q) = &outcome.quality {
            if let Some(loss) = q.held_out_loss {
                line("held-out loss", format!("{loss:.5}"));
            }
            line("straightness (1 is straight)", format!("{:.4}", q.straightness));
            line(
                "round-trip error, median (worst)",
                format!("{:.2e} ({:.2e})", q.relative_round_trip_error, q.worst_relative_round_trip_error),
            );
            line(
                "sliced Wasserstein (of the data)",
                format!("{:.4} ({:.4})", q.sliced_wasserstein, q.sliced_wasserstein_of_data),
            );
            line("velocity evaluations per path", format!("{:.0}", q.velocity_evaluations));
        }
        if let Some(calibrated) = &outcome.calibrated {
            for (name, value) in calibration_lines(calibrated.rows, &calibrated.quality) {
                line(name, value);
            }
        } else if outcome.quality.is_some() && file == "flow.onnx" {
            line("calibrated", "no: it takes 60 held-out rows or more (brenier calibrate)".to_string());
        }
        print_data(&text)
    }
}

/// What is said to somebody who stopped a run.
fn stopped(outcome: &Outcome) -> anyhow::Error {
    let step = outcome.step;
    anyhow!(Stopped(format!("stopped after step {step}\nhint: go on with the same command and --resume")))
}

/// What a calibration says of a flow, for people.
pub(crate) fn calibration_lines(rows: usize, quality: &FlowQuality) -> Vec<(&'static str, String)> {
    let mut lines = vec![("calibrated", format!("by {rows} held-out rows"))];
    if let Some(gain) = quality.gain {
        lines.push(("log-likelihood over a Gaussian", format!("{gain:+.3} a feature")));
    }
    if let Some(ratio) = quality.loss_ratio {
        lines.push(("loss over the best linear flow's", format!("{ratio:.3}")));
    }
    if !quality.energies.is_empty() {
        let energies: Vec<String> = quality.energies.iter().map(|e| format!("{e:.2}")).collect();
        lines.push(("energy of references (1 is right)", energies.join(", ")));
    }
    let words = match (quality.objection(), quality.gain) {
        (Some(objection), _) => format!("no: {objection}"),
        (None, Some(_)) => "yes".to_string(),
        (None, None) => "judged input by input: it starts from data".to_string(),
    };
    lines.push(("good enough to explain with", words));
    lines
}

/// The training
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Optimiser steps; default: 4000
    #[arg(long, value_name = "N", value_parser = steps, allow_negative_numbers = true)]
    steps: Option<u64>,
    /// Train for about this many minutes on this machine instead of a number of steps; the speed is measured first
    #[arg(long, value_name = "MINUTES", conflicts_with_all = ["steps", "resume"], value_parser = minutes, allow_negative_numbers = true)]
    minutes: Option<f64>,
    /// Rows per step
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    batch: Option<usize>,
    /// The highest learning rate
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
    /// Decay of weights per step and unit of learning rate
    #[arg(long, value_name = "RATE")]
    weight_decay: Option<f64>,
    /// Rows that the engine computes at once; another number changes the result's last bits
    #[arg(long, value_name = "N")]
    micro_batch: Option<usize>,
    /// Seed of all random draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Keep a copy of the network every N steps, for studies; 0: none
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    keep_every: u64,
    /// Store weights in 16 bits: half the size, rounded to three digits
    #[arg(long)]
    pub(crate) half_weights: bool,
    /// Write a checkpoint every N steps
    #[arg(long, value_name = "STEPS", default_value_t = 200)]
    checkpoint_every: u64,
}

/// A number of steps.
fn steps(text: &str) -> Result<u64, String> {
    count(text).map(|steps| steps as u64)
}

/// A time to train for.
fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if minutes > 0.0 && minutes <= 1e6 => Ok(minutes),
        _ => Err("it is a number of minutes above 0".to_string()),
    }
}

/// Steps that are taken to see how long one takes: at least so many, and for so many seconds.
const MEASURED: (u64, f64) = (10, 5.0);

impl RunArgs {
    /// Whether a time to train for was given.
    pub(crate) fn is_timed(&self) -> bool {
        self.training.minutes.is_some()
    }

    /// The training with as many steps as fit into the minutes that were asked for, where they were. `train` trains into a
    /// folder and is stopped when its speed is known; nothing of it is kept.
    pub(crate) fn timed(
        &self,
        training: TrainConfig,
        train: impl FnOnce(TrainConfig, &Path, Watch) -> Result<Outcome>,
    ) -> Result<TrainConfig> {
        let Some(minutes) = self.training.minutes else { return Ok(training) };
        let folder = self.output.join("measuring");
        let stop = StopKey::listen()?;
        let (mut first, mut speed) = (None, None);
        let asked =
            TrainConfig { log_every: 1, checkpoint_every: u64::MAX, steps: 1_000_000, ..training.clone() };
        train(asked, &folder, &mut |event| {
            let Event::Training(progress, _) = event else { return ControlFlow::Continue(()) };
            // The first step also warms up.
            let (step, since) = *first.get_or_insert_with(|| (progress.step, Instant::now()));
            let (made, seconds) = (progress.step - step, since.elapsed().as_secs_f64());
            if made >= MEASURED.0 && seconds >= MEASURED.1 {
                speed = Some(seconds / made as f64);
            }
            if speed.is_some() || stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        std::fs::remove_dir_all(&folder).ok();
        let Some(speed) = speed else {
            return Err(anyhow!(Stopped("stopped before the first step\nhint: nothing is kept".to_string())));
        };
        let steps = ((60.0 * minutes / speed) as u64).max(1);
        print_progress(&format!(
            "{steps} steps fit into {minutes} minutes: {speed:.3} s a step on this machine"
        ));
        Ok(TrainConfig { steps, warmup_steps: (steps / 10).min(200), ..training })
    }
}

impl TrainingArgs {
    /// What the flags mean, over the defaults for these data.
    fn config(&self, data: &Dataset, engine: &EngineArgs) -> TrainConfig {
        let suited = TrainConfig::suited_to(data);
        TrainConfig {
            batch: self.batch.unwrap_or(suited.batch),
            learning_rate: self.learning_rate.unwrap_or(suited.learning_rate),
            weight_decay: self.weight_decay.unwrap_or(suited.weight_decay),
            micro_batch: self.micro_batch,
            seed: self.seed,
            keep_every: self.keep_every,
            checkpoint_every: self.checkpoint_every,
            engine: engine.config(),
            ..suited.clone().with_steps(self.steps.unwrap_or(suited.steps))
        }
    }
}
