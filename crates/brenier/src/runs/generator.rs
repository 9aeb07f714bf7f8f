//! Training a flow or a diffusion model from data.

use std::ops::ControlFlow;
use std::path::Path;

use ndarray::Array2;
use onnx_grad::Model;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::objective::{GeneratorSpec, HeldOut, Measured, generator};
use super::{Calibrated, Event, Outcome, Watch, files};
use crate::calibrate::{CalibrateConfig, calibrate, with_calibration};
use crate::calibration::{Calibration, FEWEST_ROWS};
use crate::data::{Dataset, Population, Scaling, ScalingConfig};
use crate::error::{Error, Remedy, Result, expect_shape};
use crate::flow::{
    ClassFlows, ClassPairs, CoupledPairs, Coupling, FlowMetadata, Objective, OnnxFlow, Pairs, ScaledRows,
    Source,
};
use crate::net::NetworkConfig;
use crate::path::Quality;
use crate::train::{TrainConfig, Trained, fit, mean_loss};

/// The distribution at time 0, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReferenceKind {
    /// Independent standard normal features.
    #[default]
    StandardNormal,
    /// Features uniform between -1 and 1.
    Uniform,
    /// The rows of a second data set.
    Data,
}

impl ReferenceKind {
    /// Which reference point goes with which example. Where nothing is asked for: the best assignment within groups of
    /// 1,024 between two data sets, any with any otherwise.
    ///
    /// # Errors
    /// If a group is given for independent pairs.
    pub fn coupling(self, optimal: Option<bool>, group: Option<usize>, batch: usize) -> Result<Coupling> {
        let between_data = self == ReferenceKind::Data;
        match (optimal.unwrap_or(between_data), group) {
            (true, Some(group)) => Ok(Coupling::OptimalTransport { group }),
            (true, None) if between_data => Ok(Coupling::BETWEEN_DATA),
            (true, None) => Ok(Coupling::OptimalTransport { group: batch }),
            (false, None) => Ok(Coupling::Independent),
            (false, Some(group)) => Err(Error::Setting {
                name: "the group",
                value: group.to_string(),
                needs: "independent pairs have no groups",
                hint: "ask for the coupling 'ot', or leave the group out".into(),
            }),
        }
    }
}

/// What to train, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlowRun {
    /// Velocities or noise.
    pub objective: Objective,
    /// The network; what suits the data where not given. Not used where a model is given.
    pub network: Option<NetworkConfig>,
    /// The distribution at time 0.
    pub reference: ReferenceKind,
    /// The class that the rows of [`ReferenceKind::Data`] have, where they are those of one; for the flow's history.
    pub from_class: Option<String>,
    /// The class that the data have, where they are those of one; for the flow's history.
    pub to_class: Option<String>,
    /// One flow between all classes of the data, which are told to the network; there is no other reference then.
    pub between_classes: bool,
    /// Which reference point goes with which example.
    pub coupling: Coupling,
    /// How the scaling is fitted.
    pub scaling: ScalingConfig,
    /// Store weights in 16 bits.
    pub half_weights: bool,
    /// Held-out rows to calibrate a flow by at the end, at the most; 0 leaves it out.
    pub calibration_rows: usize,
    /// How it is trained. Its seed is the seed of everything that is drawn.
    pub training: TrainConfig,
}

impl Default for FlowRun {
    fn default() -> Self {
        Self {
            objective: Objective::default(),
            network: None,
            reference: ReferenceKind::default(),
            from_class: None,
            to_class: None,
            between_classes: false,
            coupling: Coupling::default(),
            scaling: ScalingConfig::default(),
            half_weights: false,
            calibration_rows: CALIBRATION_ROWS,
            training: TrainConfig::default(),
        }
    }
}

/// A generator with its evidence.
#[derive(Debug)]
pub struct Generated {
    /// How the run ended.
    pub outcome: Outcome,
    /// The network; absent where the run was stopped.
    pub model: Option<Model>,
}

/// Held-out rows that a flow is calibrated by where nothing else is asked for: the time of a training is not the time to
/// trace a thousand.
pub(super) const CALIBRATION_ROWS: usize = 200;
/// Held-out rows that are traced, and samples that are compared, when a generator is measured.
const TRACED: usize = 16;
const SAMPLES: usize = 256;
/// Images of the sample grid.
const SHOWN: usize = 64;
/// Batches over which the held-out loss is averaged.
const LOSS_STEPS: u64 = 8;

/// Trains a flow or a diffusion model in a run folder; goes on where a run of the same settings was stopped.
///
/// `start` is a network to begin from; otherwise one is built. `reference` are the rows of
/// [`ReferenceKind::Data`].
pub fn train_generator(
    data: &Dataset,
    held_out: &Dataset,
    reference: Option<&Dataset>,
    start: Option<Model>,
    run: &FlowRun,
    folder: &Path,
    watch: Watch,
) -> Result<Generated> {
    data.require_rows(run.training.batch.max(1), "a batch")?;
    held_out.require_rows(4, "measuring the result on held-out data")?;
    let made_from = [
        ("fingerprint of the data", data.fingerprint()),
        ("fingerprint of the held-out data", held_out.fingerprint()),
        ("fingerprint of the reference", reference.map(Dataset::fingerprint).unwrap_or_default()),
        ("fingerprint of the network", start.as_ref().map(model_fingerprint).unwrap_or_default()),
    ];
    let scaling = Scaling::fit(data, &run.scaling)?;
    let (seed, spec) = (run.training.seed, generator(run.objective));
    let network = run.network.clone().unwrap_or_else(|| NetworkConfig::for_shape(data.shape()));
    let mut model = match &start {
        Some(model) => model.clone(),
        None if run.between_classes => {
            data.require_labels()?;
            (spec.network)(network.build_between(data.shape(), data.classes().len(), seed)?)?
        }
        None => (spec.network)(network.build(data.shape(), seed)?)?,
    };
    let name = match (run.reference, reference) {
        _ if run.between_classes => format!("the classes of {}", file_name(data.origin())),
        (ReferenceKind::StandardNormal, _) => "standard-normal".to_string(),
        (ReferenceKind::Uniform, _) => "uniform".to_string(),
        // Where it lies on this machine is nobody's business.
        (ReferenceKind::Data, Some(rows)) => file_name(rows.origin()),
        (ReferenceKind::Data, None) => return Err(no_reference()),
    };
    let old = FlowMetadata::of(&model)?;
    FlowMetadata {
        shape: Some(data.shape().to_vec()),
        scaling: Some(scaling.clone()),
        objective: Some(run.objective),
        level: spec.level,
        network: if start.is_none() { Some(network) } else { old.network },
        training: serde_json::to_value(run.training.lasting()).ok(),
        seed: Some(seed),
        data: Some(data.fingerprint()),
        reference: Some(name),
        reference_data: reference.map(Dataset::fingerprint),
        from_class: run.from_class.clone(),
        to_class: run.to_class.clone(),
        between: run.between_classes.then(|| data.classes().to_vec()),
        coupling: Some(describe(run.coupling)),
        calibration: None,
    }
    .write(&mut model)?;
    files::write_columns(&mut model, data);
    let _lock = files::claim(folder, run, &made_from)?;
    let rows = ScaledRows::new(data.clone(), scaling.clone())?;
    if run.between_classes {
        return between_classes(&model, (data, held_out), &rows, &scaling, run, folder, watch);
    }
    let others = reference.map(|r| ScaledRows::new(r.clone(), scaling.clone())).transpose()?;
    let source = source(run.reference, others.as_ref())?;
    let pairs = CoupledPairs::new(&rows, source, run.coupling, seed)?;
    let trained = train_on(&model, &pairs, run.objective, &run.training, folder, watch)?;
    if trained.step < run.training.steps {
        let outcome = Outcome::stopped(trained.step, trained.progress.map(|p| p.loss));
        return Ok(Generated { outcome, model: None });
    }
    let held = ScaledRows::new(held_out.clone(), scaling)?;
    let held_pairs = CoupledPairs::new(&held, source, run.coupling, seed)?;
    let (half_weights, calibration_rows) = (run.half_weights, run.calibration_rows);
    let objective = run.objective;
    let end =
        End { data, held_out, source, objective, half_weights, calibration_rows, folder, between: None };
    finish(trained, &held_pairs, &run.training, end, watch)
}

/// The rest of a run between classes. The loss is that of all of them; all else is measured between the first two.
fn between_classes(
    model: &Model,
    (data, held_out): (&Dataset, &Dataset),
    rows: &ScaledRows,
    scaling: &Scaling,
    run: &FlowRun,
    folder: &Path,
    watch: Watch,
) -> Result<Generated> {
    let (seed, classes) = (run.training.seed, data.classes());
    let pairs = ClassPairs::new(rows, data.require_labels()?.as_slice(), classes.len(), run.coupling, seed)?;
    let trained = train_on(model, &pairs, run.objective, &run.training, folder, watch)?;
    if trained.step < run.training.steps {
        let outcome = Outcome::stopped(trained.step, trained.progress.map(|p| p.loss));
        return Ok(Generated { outcome, model: None });
    }
    let held = ScaledRows::new(held_out.clone(), scaling.clone())?;
    let labels = held_out.require_labels()?;
    let held_pairs = ClassPairs::new(&held, labels.as_slice(), classes.len(), run.coupling, seed)?;
    let (from, to) = (&classes[0], &classes[1]);
    let start = Population::of_class(data, from)?;
    let start = ScaledRows::new(start.rows().clone(), scaling.clone())?;
    let end_rows = Population::of_class(held_out, to)?;
    let end = End {
        data,
        held_out: end_rows.rows(),
        source: Source::Rows(&start),
        objective: run.objective,
        half_weights: run.half_weights,
        // What is ordinary differs from class to class.
        calibration_rows: 0,
        folder,
        between: Some((from, to)),
    };
    finish(trained, &held_pairs, &run.training, end, watch)
}

/// Trains a network for an objective on pairs.
pub(super) fn train_on(
    model: &Model,
    pairs: &dyn Pairs,
    objective: Objective,
    config: &TrainConfig,
    folder: &Path,
    watch: Watch,
) -> Result<Trained> {
    let task = (generator(objective).task)(model, pairs, config.seed)?;
    let steps = config.steps;
    fit(model, task.as_ref(), config, Some(folder), &mut |p| watch(Event::Training(*p, steps)))
}

/// What the end of a run needs to know beside the training.
pub(super) struct End<'a> {
    pub(super) data: &'a Dataset,
    pub(super) held_out: &'a Dataset,
    pub(super) source: Source<'a>,
    pub(super) objective: Objective,
    pub(super) half_weights: bool,
    pub(super) calibration_rows: usize,
    pub(super) folder: &'a Path,
    /// The classes between which a flow of several is measured.
    pub(super) between: Option<(&'a str, &'a str)>,
}

/// Saves the network, measures it on held-out data, and draws what there is to see.
pub(super) fn finish(
    trained: Trained,
    held_pairs: &dyn Pairs,
    config: &TrainConfig,
    end: End,
    watch: Watch,
) -> Result<Generated> {
    let End { held_out, source, objective, half_weights, folder, .. } = end;
    let spec = generator(objective);
    let file = spec.spec.file;
    let model = files::save_network(trained.model, half_weights, &folder.join(file))?;
    files::draw_loss(folder, file)?;
    let loss = trained.progress.map(|p| p.loss);
    let stopped = |model| Generated { outcome: Outcome::stopped(trained.step, loss), model: Some(model) };
    if watch(Event::Measuring) == ControlFlow::Break(()) {
        return Ok(stopped(model));
    }
    let task = (spec.task)(&model, held_pairs, config.seed)?;
    let small = TrainConfig { batch: config.batch.min(held_out.len()), ..config.clone() };
    let held_out_loss = mean_loss(&model, task.as_ref(), LOSS_STEPS, &small)?;
    let measured = match (end.between, ClassFlows::of(model.clone())?) {
        (Some((from, to)), Ok(flows)) => flows.between(Some(from), to)?,
        _ => model.clone(),
    };
    let (quality, samples) = measure(&measured, held_out, source, spec, config)?;
    files::save_samples(folder, samples.slice(ndarray::s![..SHOWN.min(samples.nrows()), ..]), held_out)?;
    let ControlFlow::Continue(found) = calibration(&model, &end, config, watch)? else {
        return Ok(stopped(model));
    };
    let calibrated = found.as_ref().map(|c| Calibrated { rows: c.rows, quality: c.quality.clone() });
    let model = match found {
        Some(found) => {
            files::save_network(with_calibration(model, found)?, half_weights, &folder.join(file))?
        }
        None => model,
    };
    let outcome = Outcome {
        file: Some(file.to_string()),
        step: trained.step,
        loss,
        quality: Some(Quality { held_out_loss: Some(held_out_loss), ..quality }),
        calibrated,
        accuracy: None,
    };
    outcome.save(folder)?;
    Ok(Generated { outcome, model: Some(model) })
}

/// What is ordinary for a flow, where it is one and there are rows enough; breaks where the watch stopped it.
fn calibration(
    model: &Model,
    end: &End,
    config: &TrainConfig,
    watch: Watch,
) -> Result<ControlFlow<(), Option<Calibration>>> {
    let rows = end.calibration_rows.min(end.held_out.len());
    if end.objective != Objective::Flow || rows < FEWEST_ROWS {
        return Ok(ControlFlow::Continue(None));
    }
    let flow = OnnxFlow::new(model.clone(), &config.engine)?;
    let settings = CalibrateConfig { rows, seed: config.seed, ..CalibrateConfig::default() };
    let tell = &mut |done, total| watch(Event::Calibrating(done, total));
    let found = calibrate(&flow, end.held_out, end.data, &settings, tell)?;
    Ok(found.map_or(ControlFlow::Break(()), |found| ControlFlow::Continue(Some(found))))
}

/// Quality (distances between samples in the network's space, where features have one unit), and samples in the
/// user's space.
fn measure(
    model: &Model,
    held_out: &Dataset,
    source: Source,
    spec: &GeneratorSpec,
    config: &TrainConfig,
) -> Result<Measured> {
    let rows = held_out.len().min(2 * SAMPLES);
    let order = held_out.shuffled_order(config.seed);
    let data = held_out.rows_f64(&order[..rows])?;
    let references = references(source, SAMPLES, held_out.features(), config.seed)?;
    let held_out = HeldOut {
        data: data.view(),
        traced: data.slice(ndarray::s![..TRACED.min(rows), ..]),
        references: references.view(),
    };
    (spec.measure)(model, &held_out, &config.engine, config.seed)
}

/// Points of the reference distribution in the network's space, drawn by the seed.
pub(super) fn references(source: Source, rows: usize, features: usize, seed: u64) -> Result<Array2<f64>> {
    // Another stream than that of any training step.
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(u64::MAX);
    let mut points = Array2::zeros((rows, features));
    match source {
        Source::StandardNormal => points.mapv_inplace(|_| StandardNormal.sample(&mut rng)),
        Source::Uniform { low, high } => {
            points.mapv_inplace(|_| rng.random_range(f64::from(low)..f64::from(high)));
        }
        Source::Rows(reference) => {
            let mut example = vec![0.0; features];
            expect_shape("an example of the reference", &[features], &[reference.shape().iter().product()])?;
            for mut row in points.rows_mut() {
                reference.copy(rng.random_range(0..reference.len()), &mut example)?;
                row.iter_mut().zip(&example).for_each(|(to, from)| *to = f64::from(*from));
            }
        }
    }
    Ok(points)
}

pub(super) fn source<'a>(kind: ReferenceKind, rows: Option<&'a ScaledRows>) -> Result<Source<'a>> {
    match (kind, rows) {
        (ReferenceKind::StandardNormal, _) => Ok(Source::StandardNormal),
        (ReferenceKind::Uniform, _) => Ok(Source::Uniform { low: -1.0, high: 1.0 }),
        (ReferenceKind::Data, Some(rows)) => Ok(Source::Rows(rows)),
        (ReferenceKind::Data, None) => Err(no_reference()),
    }
}

/// The fingerprint of a network.
pub(super) fn model_fingerprint(model: &Model) -> String {
    crate::fingerprint(&model.to_bytes())
}

/// The last part of a path.
fn file_name(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_string(), |name| name.to_string_lossy().into_owned())
}

fn no_reference() -> Error {
    Error::Setting {
        name: "the reference",
        value: "a data set that was not given".to_string(),
        needs: "a flow between two data sets needs the rows of both",
        hint: Remedy::GiveReferenceData,
    }
}

pub(super) fn describe(coupling: Coupling) -> String {
    match coupling {
        Coupling::Independent => "independent".to_string(),
        Coupling::OptimalTransport { group } => format!("optimal transport within {group}"),
    }
}
