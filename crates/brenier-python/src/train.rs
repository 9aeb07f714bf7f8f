//! Training flows on rows that Python has: what `brenier train` and `brenier reflow` do with files.

use std::ops::ControlFlow;
use std::path::PathBuf;

use brenier::data::{Constants, Dataset, ScalingConfig};
use brenier::engine::EngineConfig;
use brenier::flow::NetworkConfig;
use brenier::runs::{self, Event, FlowRun, Generated, ReferenceKind, ReflowRun, train_generator};
use brenier::train::TrainConfig;
use brenier::{EngineError, Error, Solver};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::arrays::{Rows, dataset, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::flow::Flow;
use crate::model::expect_own_process;
use crate::watch::Watch;

/// How to train; what is not given is what suits the data.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Training {
    steps: Option<u64>,
    batch: Option<usize>,
    learning_rate: Option<f64>,
    weight_decay: f64,
    seed: u64,
    /// The part of the rows to train on, where none are held out.
    train_fraction: f64,
    calibration_rows: usize,
    half_weights: bool,
    engine: EngineConfig,
}

impl Training {
    fn config(&self, data: &Dataset) -> TrainConfig {
        let suited = TrainConfig::suited_to(data);
        TrainConfig {
            batch: self.batch.unwrap_or(suited.batch),
            learning_rate: self.learning_rate.unwrap_or(suited.learning_rate),
            weight_decay: self.weight_decay,
            seed: self.seed,
            engine: self.engine.clone(),
            ..suited.clone().with_steps(self.steps.unwrap_or(suited.steps))
        }
    }
}

/// What a flow is trained for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedFlow {
    training: Training,
    reference: ReferenceKind,
    optimal: Option<bool>,
    group: Option<usize>,
    network: Option<NetworkConfig>,
    keep_constants: bool,
}

/// How the next level is made.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedReflow {
    training: Training,
    reference: ReferenceKind,
    generated: usize,
    inverted: usize,
    solver_tolerance: f64,
}

/// The rows of a training: to train on, held out, and where the flow starts if that is data.
struct Parts {
    data: Dataset,
    held_out: Dataset,
    reference: Option<Dataset>,
}

/// The same as Python has them: a dict of flat rows with what belongs to them.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenRows<'py> {
    shape: Vec<usize>,
    columns: Option<Vec<String>>,
    data: Rows<'py>,
    held_out: Option<Rows<'py>>,
    reference: Option<Rows<'py>>,
}

impl GivenRows<'_> {
    fn parts(&self, training: &Training) -> brenier::Result<Parts> {
        let named =
            |name: &str, rows: &Rows| dataset(name, &self.shape, owned(rows).view(), self.columns.clone());
        let data = named("the data", &self.data)?;
        let reference = self.reference.as_ref().map(|rows| named("the reference rows", rows)).transpose()?;
        let (data, held_out) = match &self.held_out {
            Some(rows) => (data, named("the held-out rows", rows)?),
            None => data.split(training.train_fraction, training.seed)?,
        };
        Ok(Parts { data, held_out, reference })
    }
}

/// Trains a flow in a folder. How it ended, as JSON.
#[pyfunction]
pub(crate) fn train_flow(
    py: Python,
    rows: GivenRows,
    settings: &str,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
) -> Answer<String> {
    expect_own_process(py)?;
    let asked: AskedFlow = parsed(py, settings)?;
    let parts = rows.parts(&asked.training).or_raise(py)?;
    drop(rows);
    let watch = Watch::new();
    let found = py.detach(|| {
        let training = asked.training.config(&parts.data);
        let constants = if asked.keep_constants { Constants::Keep } else { Constants::Refuse };
        let run = FlowRun {
            network: asked.network,
            reference: asked.reference,
            coupling: asked.reference.coupling(asked.optimal, asked.group, training.batch)?,
            scaling: ScalingConfig { constants, ..ScalingConfig::default() },
            half_weights: asked.training.half_weights,
            calibration_rows: asked.training.calibration_rows,
            training,
            ..FlowRun::default()
        };
        let Parts { data, held_out, reference } = &parts;
        let mut tell = |event| told(&watch, progress.as_ref(), event);
        ended(train_generator(data, held_out, reference.as_ref(), None, &run, &folder, &mut tell)?)
    });
    watch.answer(py, found)
}

/// Trains the next level of a flow in a folder. How it ended, as JSON.
#[pyfunction]
pub(crate) fn reflow(
    py: Python,
    flow: &Flow,
    rows: GivenRows,
    settings: &str,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
) -> Answer<String> {
    expect_own_process(py)?;
    let asked: AskedReflow = parsed(py, settings)?;
    let Some(field) = flow.field() else {
        return Err(raise(py, "FlowError", "a diffusion model cannot be straightened\nhint: use a flow"));
    };
    let parts = rows.parts(&asked.training).or_raise(py)?;
    drop(rows);
    let watch = Watch::new();
    let found = py.detach(|| {
        let Parts { data, held_out, reference } = &parts;
        let run = ReflowRun {
            generated: asked.generated,
            inverted: asked.inverted,
            solver: Solver::adaptive(asked.solver_tolerance),
            reference: asked.reference,
            half_weights: asked.training.half_weights,
            calibration_rows: asked.training.calibration_rows,
            training: asked.training.config(data),
        };
        let mut tell = |event| told(&watch, progress.as_ref(), event);
        ended(runs::reflow(field, data, held_out, reference.as_ref(), &run, &folder, &mut tell)?)
    });
    watch.answer(py, found)
}

fn parsed<T: for<'a> Deserialize<'a>>(py: Python, settings: &str) -> Answer<T> {
    serde_json::from_str(settings).map_err(|error| raise(py, "SettingError", &error.to_string()))
}

/// Tells Python how far it is: stage, done, of how many, and a note.
fn told(watch: &Watch, progress: Option<&Py<PyAny>>, event: Event) -> ControlFlow<()> {
    let (stage, done, total, note) = match event {
        Event::Training(p, total) => ("training", p.step, total, format!("loss {:.4}", p.loss)),
        Event::Pairs(done, total) => ("making pairs", done as u64, total as u64, String::new()),
        Event::Calibrating(done, total) => ("calibrating", done as u64, total as u64, String::new()),
        Event::Measuring => ("measuring", 0, 1, String::new()),
    };
    let told = watch.look().and_then(|()| match progress {
        Some(progress) => Python::attach(|py| progress.call1(py, (stage, done, total, note)))
            .map(drop)
            .map_err(|error| watch.keep(error)),
        None => Ok(()),
    });
    if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

/// How a run ended, as JSON; only Python stops one before its end.
fn ended(generated: Generated) -> brenier::Result<String> {
    if generated.model.is_none() {
        return Err(Error::Engine(EngineError::Worker { reason: "Python stopped it".to_string() }));
    }
    serde_json::to_string(&generated.outcome)
        .map_err(|error| Error::Engine(EngineError::Worker { reason: error.to_string() }))
}
