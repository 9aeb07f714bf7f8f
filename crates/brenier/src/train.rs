//! Training: any loss that is a graph, its parameter gradients from `onnx-grad`, AdamW.
//!
//! ```text
//! theta <- theta - rate * AdamW( d/d theta of mean over rows of loss(row; theta) )
//! ```
//!
//! A [`Task`] says what is minimised: its loss is part of the graph, so a step is: draw a batch, run the gradient
//! graph over micro-batches on all workers, add up in the order of the rows, clip, AdamW, average. Parameters are
//! inputs of the loaded program, because they change with every step.
//!
//! **The same seed gives the same weights, to the bit**, for any number of workers and however often the run is
//! interrupted: what step `s` draws follows from the seed and `s`, micro-batches have a fixed size, sums a fixed
//! order, and a checkpoint holds everything else. (Engines differ from each other in last bits.)

mod adamw;
mod checkpoint;
mod draws;
mod parameters;
mod program;

use std::ops::ControlFlow;
use std::path::Path;

use onnx_grad::{Graph, Model};
use serde::{Deserialize, Serialize};

use self::adamw::AdamW;
pub use self::checkpoint::steps_done;
use self::checkpoint::{Checkpoint, Run};
pub(crate) use self::draws::{Epochs, Stream, step_rng, strata};
use self::program::LossProgram;
use crate::data::Dataset;
use crate::engine::{EngineConfig, Tensor};
use crate::error::{Error, Result};

/// The name of a loss graph's output: the sum over rows, so that micro-batches, whatever their size, add up.
pub const LOSS: &str = "loss";

/// What is minimised.
pub trait Task {
    /// The loss of a network as a graph: inputs with a batch axis, the network's initializers, and one output
    /// [`LOSS`], a scalar.
    fn loss(&self, model: &Model) -> Result<Graph>;

    /// What the graph takes in a step.
    fn batch(&self, step: u64, rows: usize) -> Result<Batch>;
}

/// The inputs of a step.
#[derive(Debug)]
pub struct Batch {
    /// The graph's inputs, by name; the first axis is the row.
    pub inputs: Vec<(String, Tensor)>,
    /// The mean loss of a network that knows nothing: a loss far above it has diverged.
    pub rest_loss: f64,
}

/// How to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimiser steps.
    pub steps: u64,
    /// Rows per step.
    pub batch: usize,
    /// Rows that a program sees at once; chosen from the network's size where not given. Part of the result:
    /// another size rounds differently.
    pub micro_batch: Option<usize>,
    /// The highest learning rate.
    pub learning_rate: f64,
    /// Steps over which the learning rate rises from 0.
    pub warmup_steps: u64,
    /// Where the cosine ends, as a part of the highest learning rate.
    pub final_rate: f64,
    /// Decay of weights per step and unit of learning rate; not of biases and gains.
    pub weight_decay: f64,
    /// How slowly the mean of gradients forgets.
    pub beta1: f64,
    /// How slowly the mean of squared gradients forgets.
    pub beta2: f64,
    /// Gradients longer than this are shortened to it; 0: never.
    pub clip_norm: f64,
    /// How slowly the average of the weights, which is the result, forgets. In the beginning it forgets faster: it is
    /// over the last ninth of the steps so far.
    pub ema_decay: f64,
    /// Parameters whose names begin with one of these keep their values.
    pub frozen: Vec<String>,
    /// The seed of what a task draws itself, such as times. Pairs have their own.
    pub seed: u64,
    /// Steps between lines of metrics.
    pub log_every: u64,
    /// Steps between checkpoints.
    pub checkpoint_every: u64,
    /// Steps between networks that are kept in the run folder, for studies of convergence; 0: none.
    pub keep_every: u64,
    /// The engine.
    pub engine: EngineConfig,
}

impl TrainConfig {
    /// Steps, batch and learning rate that suit these data: images take fewer rows a step than tables.
    pub fn suited_to(data: &Dataset) -> TrainConfig {
        let (steps, batch, learning_rate) =
            if data.is_images() { (4000, 32, 1e-3) } else { (4000, 256, 2e-3) };
        let batch = batch.min(data.len());
        TrainConfig { log_every: 10, checkpoint_every: 200, batch, learning_rate, ..TrainConfig::default() }
            .with_steps(steps)
    }

    /// The same for another number of steps; the learning rate rises over the first tenth of them.
    pub fn with_steps(self, steps: u64) -> TrainConfig {
        TrainConfig { steps, warmup_steps: (steps / 10).min(200), ..self }
    }

    /// The same without what makes no difference to the result: how often it is written down, on how many workers and
    /// from which place on the disk an engine runs. So a network says the same of its training on every machine.
    pub(crate) fn lasting(&self) -> TrainConfig {
        let mut config = self.clone();
        config.checkpoint_every = 1;
        config.keep_every = 0;
        config.engine.workers = None;
        config.engine.library = None;
        config
    }
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            steps: 10_000,
            batch: 128,
            micro_batch: None,
            learning_rate: 1e-3,
            warmup_steps: 200,
            final_rate: 0.0,
            weight_decay: 0.0,
            beta1: 0.9,
            beta2: 0.99,
            clip_norm: 1.0,
            ema_decay: 0.999,
            frozen: Vec::new(),
            seed: 0,
            log_every: 50,
            checkpoint_every: 1000,
            keep_every: 0,
            engine: EngineConfig::default(),
        }
    }
}

impl TrainConfig {
    /// The learning rate of a step: up in a line, down in half a cosine.
    pub fn rate(&self, step: u64) -> f64 {
        if step < self.warmup_steps {
            return self.learning_rate * (step + 1) as f64 / self.warmup_steps as f64;
        }
        let left = self.steps.saturating_sub(self.warmup_steps).max(1) as f64;
        let progress = ((step - self.warmup_steps) as f64 / left).min(1.0);
        let cosine = 0.5 * (1.0 + (std::f64::consts::PI * progress).cos());
        self.learning_rate * (self.final_rate + (1.0 - self.final_rate) * cosine)
    }

    pub(crate) fn check(&self) -> Result<()> {
        let fraction = |v: f64| (0.0..1.0).contains(&v);
        let fine = self.batch > 0
            && self.micro_batch != Some(0)
            && self.learning_rate.is_finite()
            && self.learning_rate > 0.0
            && self.weight_decay >= 0.0
            && self.clip_norm >= 0.0
            && (0.0..=1.0).contains(&self.final_rate)
            && [self.beta1, self.beta2, self.ema_decay].into_iter().all(fraction)
            && self.log_every > 0
            && self.checkpoint_every > 0;
        if fine {
            return Ok(());
        }
        Err(Error::Setting {
            name: "a training setting",
            value: format!("out of its range in {self:?}"),
            needs: "counts and rates are positive, betas and decay in [0, 1), decay and clipping not negative",
            hint: "begin with TrainConfig::default()".into(),
        })
    }
}

/// How far a training is. Also a line of `metrics.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Mean loss over the steps since the last line.
    pub loss: f64,
    /// The length of the last gradient, before clipping.
    pub gradient_norm: f64,
    /// The last learning rate.
    pub learning_rate: f64,
}

/// A trained network.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The network with the averaged weights.
    pub model: Model,
    /// The network with the weights of the last step.
    pub last: Model,
    /// Steps done; fewer than asked for where `progress` stopped the training.
    pub step: u64,
    /// The loss of the first step.
    pub first_loss: f64,
    /// The last line of metrics, where there is one.
    pub progress: Option<Progress>,
}

/// Trains a network.
///
/// All 32-bit float initializers of two or more numbers are trained that the loss depends on, except those that
/// `frozen` names and those whose names call them constants (`const`, `Constant`).
///
/// With a `run` folder, checkpoints, `metrics.jsonl` and the networks to be kept are written there, and a training
/// that finds a checkpoint of the same settings goes on from it. `progress` is called after every step; where it breaks,
/// the training stops after writing a checkpoint.
///
/// # Errors
/// Settings or shapes that do not fit, a checkpoint of another training, and a loss or gradient that is not
/// finite or has grown far above its start.
pub fn fit(
    model: &Model,
    task: &dyn Task,
    config: &TrainConfig,
    run: Option<&Path>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Trained> {
    config.check()?;
    let program = LossProgram::new(model, task, config)?;
    let mut run =
        run.map(|folder| Run::open(folder, config, program.parameters.fingerprint())).transpose()?;
    let mut state = match run.as_mut().map(Run::resume).transpose()?.flatten() {
        Some(state) => state,
        None => Checkpoint::new(program.parameters.values(model)?),
    };
    let decayed = program.parameters.decayed();
    let mut last = None;
    let mut total = vec![0.0f32; state.parameters.len()];
    while state.step < config.steps {
        let step = state.step;
        let batch = task.batch(step, config.batch)?;
        let loss = program.gradient(&state.parameters, &batch.inputs, config.batch, &mut total)?;
        if step == 0 {
            state.first_loss = loss;
            state.rest_loss = batch.rest_loss;
        }
        let norm = total.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        state.smooth_loss = if step == 0 { loss } else { 0.98 * state.smooth_loss + 0.02 * loss };
        // A good start, as in Reflow, must not forbid the first steps: a field at rest is the measure then.
        let far = state.smooth_loss > 4.0 * state.first_loss.max(state.rest_loss);
        if !loss.is_finite() || !norm.is_finite() || far {
            return Err(Error::Diverged { step, loss, first: state.first_loss, norm });
        }
        let rate = config.rate(step);
        update(config, rate, norm, &total, &decayed, &mut state);
        state.window_sum += loss;
        state.window_count += 1;
        let line = Progress {
            step: state.step,
            loss: state.window_sum / state.window_count as f64,
            gradient_norm: norm,
            learning_rate: rate,
        };
        if state.step.is_multiple_of(config.log_every) || state.step == config.steps {
            (state.window_sum, state.window_count) = (0.0, 0);
            if let Some(run) = &mut run {
                run.log(&line)?;
            }
            last = Some(line);
        }
        let stop = progress(&line).is_break();
        if let Some(run) = &mut run {
            if config.keep_every > 0 && state.step.is_multiple_of(config.keep_every) {
                run.keep(state.step, &program.parameters.model_with(model, &state.average))?;
            }
            if stop || state.step.is_multiple_of(config.checkpoint_every) || state.step == config.steps {
                run.save(&state)?;
            }
        }
        if stop {
            break;
        }
    }
    Ok(Trained {
        model: program.parameters.model_with(model, &state.average),
        last: program.parameters.model_with(model, &state.parameters),
        step: state.step,
        first_loss: state.first_loss,
        progress: last,
    })
}

/// One step of the optimiser, and of the average of the weights.
fn update(
    config: &TrainConfig,
    rate: f64,
    norm: f64,
    gradient: &[f32],
    decayed: &[bool],
    state: &mut Checkpoint,
) {
    let shorten = if config.clip_norm > 0.0 { (config.clip_norm / norm.max(1e-12)).min(1.0) } else { 1.0 };
    let optimiser =
        AdamW { beta1: config.beta1, beta2: config.beta2, epsilon: 1e-8, weight_decay: config.weight_decay };
    let step = state.step;
    optimiser.step(step, rate, shorten, gradient, decayed, state);
    let keep = config.ema_decay.min((1.0 + step as f64) / (10.0 + step as f64)) as f32;
    for (mean, value) in state.average.iter_mut().zip(&state.parameters) {
        *mean = keep * *mean + (1.0 - keep) * value;
    }
    state.step += 1;
}

/// The mean loss of a network over some steps of a task, without training: for held-out data.
pub fn mean_loss(model: &Model, task: &dyn Task, steps: u64, config: &TrainConfig) -> Result<f64> {
    config.check()?;
    let program = LossProgram::without_gradient(model, task, config)?;
    let mut sum = 0.0;
    for step in 0..steps {
        let batch = task.batch(step, config.batch)?;
        sum += program.loss(&batch.inputs, config.batch)?;
    }
    Ok(sum / steps.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rises_in_a_line_and_falls_in_half_a_cosine() {
        let config = TrainConfig {
            steps: 110,
            warmup_steps: 10,
            learning_rate: 2.0,
            final_rate: 0.1,
            ..TrainConfig::default()
        };
        assert!((config.rate(0) - 0.2).abs() < 1e-12);
        assert!((config.rate(9) - 2.0).abs() < 1e-12);
        assert!((config.rate(10) - 2.0).abs() < 1e-12);
        assert!((config.rate(60) - 1.1).abs() < 1e-12);
        assert!((config.rate(110) - 0.2).abs() < 1e-12);
    }
}
