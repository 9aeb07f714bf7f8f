//! Networks that experiments train themselves, each in a folder of its own below that of the results.
//!
//! A training that was interrupted goes on from its checkpoint; one that is finished is loaded. Whoever calls claims
//! the folder for its settings first, so that nothing of another run is taken.

use std::ops::ControlFlow;
use std::path::Path;

use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::flow::{NetworkConfig, OnnxFlow, TrainConfig, UnetConfig};
use brenier::runs::{
    ClassifierRun, Event, FlowRun, Generated, Outcome, ReflowRun, reflow, train_classifier, train_generator,
};
use brenier::{Error, OnnxPredictor, PredictorConfig, Result, Store};
use onnx_grad::Model;

use super::Tell;

/// Why a folder is needed.
const NEEDS: &str = "this experiment trains networks, which are kept there";

/// A classifier and how good it is.
pub(super) struct Classifier {
    pub(super) model: OnnxPredictor,
    pub(super) network: Model,
    pub(super) accuracy: f64,
}

/// Trains a flow, or finds it.
pub(super) fn flow(
    data: &Dataset,
    held_out: &Dataset,
    run: &FlowRun,
    store: &Store,
    name: &str,
    tell: Tell,
) -> Result<OnnxFlow> {
    kept(store, name, &run.training.engine, |folder| {
        let run = FlowRun { calibration_rows: 0, ..run.clone() };
        train_generator(data, held_out, None, None, &run, folder, &mut watch(name, tell))
    })
}

/// Trains a flow from one data set (or from noise, where none is given) to another, or finds it. What is held out is the
/// last tenth of the second.
pub(super) fn flow_between(
    from: Option<&Dataset>,
    to: &Dataset,
    run: &FlowRun,
    store: &Store,
    name: &str,
    tell: Tell,
) -> Result<OnnxFlow> {
    let (learn, held_out) = with_held_out(to)?;
    kept(store, name, &run.training.engine, |folder| {
        let run = FlowRun { calibration_rows: 0, ..run.clone() };
        train_generator(&learn, &held_out, from, None, &run, folder, &mut watch(name, tell))
    })
}

/// Trains the next level of a flow between two data sets, or finds it.
pub(super) fn next_level_between(
    first: &OnnxFlow,
    from: &Dataset,
    to: &Dataset,
    run: &ReflowRun,
    store: &Store,
    name: &str,
    tell: Tell,
) -> Result<OnnxFlow> {
    let (learn, held_out) = with_held_out(to)?;
    kept(store, name, &run.training.engine, |folder| {
        let run = ReflowRun { calibration_rows: 0, ..run.clone() };
        reflow(first, &learn, &held_out, Some(from), &run, folder, &mut watch(name, tell))
    })
}

fn with_held_out(data: &Dataset) -> Result<(Dataset, Dataset)> {
    let learn = data.len() - data.len().div_ceil(10);
    Ok((data.rows(0..learn)?, data.rows(learn..data.len())?))
}

/// Trains the next level of a flow, or finds it.
pub(super) fn next_level(
    first: &OnnxFlow,
    data: &Dataset,
    held_out: &Dataset,
    run: &ReflowRun,
    store: &Store,
    name: &str,
    tell: Tell,
) -> Result<OnnxFlow> {
    kept(store, name, &run.training.engine, |folder| {
        let run = ReflowRun { calibration_rows: 0, ..run.clone() };
        reflow(first, data, held_out, None, &run, folder, &mut watch(name, tell))
    })
}

/// The flow in a folder of the store, or the one that is made there.
fn kept(
    store: &Store,
    name: &str,
    engine: &EngineConfig,
    make: impl FnOnce(&Path) -> Result<Generated>,
) -> Result<OnnxFlow> {
    let folder = store.require_folder(NEEDS)?.join(name);
    let model = match finished(&folder, "flow.onnx") {
        Some((model, _)) => model,
        None => make(&folder)?.model.ok_or_else(stopped)?,
    };
    OnnxFlow::new(model, engine)
}

/// Trains a classifier, or finds it.
pub(super) fn classifier(
    data: &Dataset,
    held_out: &Dataset,
    run: &ClassifierRun,
    store: &Store,
    name: &str,
    tell: Tell,
) -> Result<Classifier> {
    let folder = store.require_folder(NEEDS)?.join(name);
    let (network, outcome) = match finished(&folder, "classifier.onnx") {
        Some(found) => found,
        None => {
            let (outcome, model) =
                train_classifier(data, held_out, None, run, &folder, &mut watch(name, tell))?;
            (model.ok_or_else(stopped)?, outcome)
        }
    };
    let config = PredictorConfig { engine: run.training.engine.clone(), ..PredictorConfig::default() };
    let accuracy = outcome.accuracy.unwrap_or(0.0);
    Ok(Classifier { model: OnnxPredictor::new(&network, &config)?, network, accuracy })
}

/// A training of so many steps whose averages and warm-up go with them.
pub(super) fn training(steps: u64, batch: usize, seed: u64, engine: &EngineConfig) -> TrainConfig {
    TrainConfig {
        steps,
        batch,
        learning_rate: 2e-3,
        warmup_steps: (steps / 10).min(200),
        ema_decay: 1.0 - 10.0 / steps.max(20) as f64,
        checkpoint_every: 200,
        log_every: (steps / 5).max(1),
        seed,
        engine: engine.clone(),
        ..TrainConfig::default()
    }
}

/// A small network for rows of this shape: for images a U-Net of one level on a grid of about 8 by 8, since on fewer
/// points its normalisations make a field that no solver follows easily.
pub(super) fn small_network(shape: &[usize], width: usize) -> NetworkConfig {
    match (shape, NetworkConfig::for_shape(shape)) {
        ([_, height, across], NetworkConfig::Unet(_)) => NetworkConfig::Unet(UnetConfig {
            patch: [4, 2]
                .into_iter()
                .find(|p| [height, across].iter().all(|s| *s % p == 0 && *s / p >= 8))
                .unwrap_or(1),
            width,
            multipliers: vec![1],
            attention_at: 0,
            ..UnetConfig::default()
        }),
        (_, other) => other,
    }
}

/// The network and the outcome of a run that came to its end.
fn finished(folder: &Path, file: &str) -> Option<(Model, Outcome)> {
    let outcome = std::fs::read(folder.join("quality.json")).ok()?;
    Some((Model::load(folder.join(file)).ok()?, serde_json::from_slice(&outcome).ok()?))
}

fn watch<'a>(name: &'a str, tell: Tell<'a>) -> impl FnMut(Event) -> ControlFlow<()> + 'a {
    move |event| {
        match event {
            Event::Training(p, total) if p.step.is_multiple_of(10) || p.step == total => {
                tell(&format!("{name}: step {} of {total}, loss {:.4}", p.step, p.loss))
            }
            Event::Pairs(done, total) if done == total => tell(&format!("{name}: {total} pairs")),
            Event::Training(..) | Event::Pairs(..) | Event::Calibrating(..) | Event::Measuring => {}
        }
        ControlFlow::Continue(())
    }
}

/// No watch here stops a run, so none ends without its network.
fn stopped() -> Error {
    Error::Training { reason: "it ended without a network".to_string(), remedy: "start it again".into() }
}
