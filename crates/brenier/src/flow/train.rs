//! Training a flow: the rectified-flow loss as a graph, its parameter gradients from `onnx-grad`, AdamW.
//!
//! ```text
//! min over theta  E | v_theta((1 - t) z0 + t z1, t) - (z1 - z0) |^2 / d         (Eq. rectified_flow_loss)
//! ```
//!
//! The loss is part of the graph ([`loss`]), so a step is: draw pairs and times, run the gradient graph over
//! micro-batches on all workers, add up in the order of the rows, clip, AdamW, average. Parameters are inputs of
//! the loaded program, because they change with every step.
//!
//! **The same seed gives the same weights, to the bit**, for any number of workers and however often the run is
//! interrupted: what step `s` draws follows from the seed and `s`, micro-batches have a fixed size, sums a fixed
//! order, and a [checkpoint](checkpoint) holds everything else. (Engines differ from each other in last bits.)
//!
//! Times are drawn in strata, one from each of `batch` equal parts of `[0, 1]` in random order: as uniform as
//! independent draws, with less noise in the gradient.

mod adamw;
mod checkpoint;
mod loss;
mod parameters;

use std::ops::ControlFlow;
use std::path::Path;

use ndarray::{Array1, Array2};
use onnx_grad::Model;
use rand::RngExt;
use serde::{Deserialize, Serialize};

use self::adamw::AdamW;
use self::checkpoint::{Checkpoint, Run};
use self::loss::LossProgram;
use super::onnx::signature;
use super::pairs::{Pairs, Stream, step_rng};
use crate::engine::EngineConfig;
use crate::error::{Error, Result, expect_shape};

/// How to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainConfig {
    /// Optimiser steps.
    pub steps: u64,
    /// Pairs per step.
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
    /// How slowly the average of the weights, which is the result, forgets. It follows faster in the beginning.
    pub ema_decay: f64,
    /// Parameters whose names begin with one of these keep their values.
    pub frozen: Vec<String>,
    /// The seed of the times. Pairs have their own.
    pub seed: u64,
    /// Steps between lines of metrics and calls of progress.
    pub log_every: u64,
    /// Steps between checkpoints.
    pub checkpoint_every: u64,
    /// The engine.
    pub engine: EngineConfig,
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

    fn check(&self) -> Result<()> {
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
            hint: "begin with TrainConfig::default()",
        })
    }
}

/// How far a training is. Also a line of `metrics.jsonl`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps done.
    pub step: u64,
    /// Mean loss per feature over the steps since the last line.
    pub loss: f64,
    /// The length of the last gradient, before clipping.
    pub gradient_norm: f64,
    /// The last learning rate.
    pub learning_rate: f64,
}

/// A trained flow.
#[derive(Debug, Clone)]
pub struct Trained {
    /// The network with the averaged weights.
    pub model: Model,
    /// The network with the weights of the last step.
    pub last: Model,
    /// Steps done; fewer than asked for where `progress` stopped the training.
    pub step: u64,
    /// The loss per feature of the first step.
    pub first_loss: f64,
    /// The last line of metrics, where there is one.
    pub progress: Option<Progress>,
}

/// Trains the network of `model` (inputs `x`, `t`, output `v`) on pairs.
///
/// All 32-bit float initializers of two or more numbers are trained that the loss depends on, except those that
/// `frozen` names and those whose names call them constants (`const`, `Constant`).
///
/// With a `run` folder, checkpoints and `metrics.jsonl` are written there, and a training that finds a
/// checkpoint of the same settings goes on from it. `progress` is called every `log_every` steps; where it
/// breaks, the training stops after writing a checkpoint.
///
/// # Errors
/// Settings or shapes that do not fit, a checkpoint of another training, and a loss or gradient that is not
/// finite or has grown far above its start.
pub fn train(
    model: &Model,
    pairs: &dyn Pairs,
    config: &TrainConfig,
    run: Option<&Path>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Trained> {
    config.check()?;
    let (shape, _) = signature(model, None)?;
    expect_shape("an example of the training pairs", &shape, pairs.shape())?;
    let program = LossProgram::new(model, &shape, config)?;
    let mut run =
        run.map(|folder| Run::open(folder, config, program.parameters.fingerprint())).transpose()?;
    let mut state = match run.as_mut().map(Run::resume).transpose()?.flatten() {
        Some(state) => state,
        None => Checkpoint::new(program.parameters.values(model)?),
    };
    let decayed = program.parameters.decayed();
    let mut window = Window { sum: state.window_sum, count: state.window_count };
    let mut last = None;
    let mut total = vec![0.0f32; state.parameters.len()];
    while state.step < config.steps {
        let step = state.step;
        let (z0, z1) = pairs.draw(step, config.batch)?;
        expect_shape("the references of a step", &[config.batch, shape.iter().product()], z0.shape())?;
        expect_shape("the data of a step", z0.shape(), z1.shape())?;
        let times = strata(config.seed, step, config.batch);
        let loss = program.gradient(&state.parameters, &z0, &z1, &times, &mut total)?;
        if step == 0 {
            state.first_loss = loss;
            state.rest_loss = rest_loss(&z0, &z1);
        }
        let norm = total.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
        state.smooth_loss = if step == 0 { loss } else { 0.98 * state.smooth_loss + 0.02 * loss };
        // A good start, as in Reflow, must not forbid the first steps: a field at rest is the measure then.
        let far = state.smooth_loss > 4.0 * state.first_loss.max(state.rest_loss);
        if !loss.is_finite() || !norm.is_finite() || far {
            return Err(Error::Diverged { step, loss, first: state.first_loss, norm });
        }
        let shorten =
            if config.clip_norm > 0.0 { (config.clip_norm / norm.max(1e-12)).min(1.0) } else { 1.0 };
        let rate = config.rate(step);
        let optimiser = AdamW {
            beta1: config.beta1,
            beta2: config.beta2,
            epsilon: 1e-8,
            weight_decay: config.weight_decay,
        };
        optimiser.step(step, rate, shorten, &total, &decayed, &mut state);
        let keep = config.ema_decay.min((1.0 + step as f64) / (10.0 + step as f64)) as f32;
        for (mean, value) in state.average.iter_mut().zip(&state.parameters) {
            *mean = keep * *mean + (1.0 - keep) * value;
        }
        state.step += 1;
        window.sum += loss;
        window.count += 1;
        let mut stop = false;
        if state.step.is_multiple_of(config.log_every) || state.step == config.steps {
            let line = Progress {
                step: state.step,
                loss: window.sum / window.count as f64,
                gradient_norm: norm,
                learning_rate: rate,
            };
            window = Window { sum: 0.0, count: 0 };
            if let Some(run) = &mut run {
                run.log(&line)?;
            }
            last = Some(line);
            stop = progress(&line).is_break();
        }
        (state.window_sum, state.window_count) = (window.sum, window.count);
        if let Some(run) = &mut run
            && (stop || state.step.is_multiple_of(config.checkpoint_every) || state.step == config.steps)
        {
            run.save(&state)?;
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

/// The mean loss per feature of a model on the pairs of one step, without training: for held-out data.
pub fn flow_loss(model: &Model, pairs: &dyn Pairs, step: u64, config: &TrainConfig) -> Result<f64> {
    config.check()?;
    let (shape, _) = signature(model, None)?;
    let program = LossProgram::new(model, &shape, config)?;
    let (z0, z1) = pairs.draw(step, config.batch)?;
    let parameters = program.parameters.values(model)?;
    let times = strata(config.seed, step, config.batch);
    program.gradient(&parameters, &z0, &z1, &times, &mut vec![0.0; parameters.len()])
}

/// The loss of a field at rest, per feature.
fn rest_loss(z0: &Array2<f32>, z1: &Array2<f32>) -> f64 {
    let sum: f64 = z0.iter().zip(z1).map(|(a, b)| f64::from(b - a).powi(2)).sum();
    sum / z0.len().max(1) as f64
}

/// Losses since the last line of metrics.
struct Window {
    sum: f64,
    count: u64,
}

/// One time from each of `rows` equal parts of `[0, 1)`, in random order.
fn strata(seed: u64, step: u64, rows: usize) -> Array1<f32> {
    let mut rng = step_rng(seed, Stream::Times, step);
    let mut times: Vec<f32> =
        (0..rows).map(|i| ((i as f64 + rng.random::<f64>()) / rows as f64) as f32).collect();
    for i in (1..rows).rev() {
        times.swap(i, rng.random_range(0..=i));
    }
    times.into()
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

    #[test]
    fn times_are_one_from_each_part() {
        let times = strata(3, 5, 16);
        let mut parts: Vec<usize> = times.iter().map(|t| (t * 16.0) as usize).collect();
        assert_ne!(parts, (0..16).collect::<Vec<_>>());
        parts.sort_unstable();
        assert_eq!(parts, (0..16).collect::<Vec<_>>());
    }
}
