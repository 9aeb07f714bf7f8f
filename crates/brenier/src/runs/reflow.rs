//! The next rectification level of a flow, from pairs that the flow makes itself.
//!
//! Pairs are kept in the run folder, `pairs/00000.npz` and so on (arrays `z0`, `z1` in the network's space), each
//! file whole or not there: making them may take longer than training on them, and nothing finished is lost.

use std::ops::ControlFlow;
use std::path::Path;

use ndarray::{Array2, Axis, concatenate, s};
use ndarray_npy::NpzReader;
use onnx_grad::Model;
use serde::{Deserialize, Serialize};

use super::generator::{CALIBRATION_ROWS, End, finish, model_fingerprint, references, source, train_on};
use super::{Event, Generated, Outcome, ReferenceKind, Watch, files};
use crate::VelocityField;
use crate::data::Dataset;
use crate::error::{Error, Result, expect_shape};
use crate::flow::{FlowMetadata, Objective, OnnxFlow, ScaledRows, StoredPairs};
use crate::path::{Solver, flow_ends};
use crate::train::TrainConfig;
use crate::whole_file::{Failure, Packing, make_folder, write_arrays};

/// How to go on from a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReflowRun {
    /// Pairs run forward from the reference.
    pub generated: usize,
    /// Pairs run backward from the data, which keep real inputs invertible.
    pub inverted: usize,
    /// The solver that makes the pairs. Its errors are learned: near the data a flow changes fast, and a few large
    /// steps back from there end at references with too little noise.
    pub solver: Solver,
    /// The distribution at time 0 of the flow.
    pub reference: ReferenceKind,
    /// Store weights in 16 bits.
    pub half_weights: bool,
    /// Held-out rows to calibrate by at the end, at the most; 0 leaves it out.
    pub calibration_rows: usize,
    /// How it is trained, from the weights of the flow on. Its seed is the seed of everything that is drawn.
    pub training: TrainConfig,
}

impl Default for ReflowRun {
    fn default() -> Self {
        Self {
            generated: 5000,
            inverted: 5000,
            solver: Solver::adaptive(1e-3),
            reference: ReferenceKind::default(),
            half_weights: false,
            calibration_rows: CALIBRATION_ROWS,
            training: TrainConfig::default(),
        }
    }
}

/// Pairs of one file.
const CHUNK: usize = 256;

/// References and data, a row for each pair.
type Part = (Array2<f32>, Array2<f32>);

/// Trains the next level of a flow in a run folder; goes on where a run of the same settings was stopped.
pub fn reflow(
    flow: &OnnxFlow,
    data: &Dataset,
    held_out: &Dataset,
    reference: Option<&Dataset>,
    run: &ReflowRun,
    folder: &Path,
    watch: Watch,
) -> Result<Generated> {
    expect_shape("a row of data", flow.shape(), data.shape())?;
    held_out.require_rows(4, "measuring the result on held-out data")?;
    if run.generated + run.inverted < run.training.batch {
        return Err(Error::Setting {
            name: "the number of pairs",
            value: (run.generated + run.inverted).to_string(),
            needs: "it must be at least the batch",
            hint: "5000 generated and 5000 inverted pairs are a good beginning".into(),
        });
    }
    let made_from = [
        ("fingerprint of the flow", model_fingerprint(flow.model())),
        ("fingerprint of the data", data.fingerprint()),
        ("fingerprint of the held-out data", held_out.fingerprint()),
        ("fingerprint of the reference", reference.map(Dataset::fingerprint).unwrap_or_default()),
    ];
    let _lock = files::claim(folder, run, &made_from)?;
    make_folder(&folder.join("pairs"))?;
    let scaling =
        flow.metadata().scaling.clone().map_or_else(|| crate::data::Scaling::identity(flow.shape()), Ok)?;
    let others = reference.map(|r| ScaledRows::new(r.clone(), scaling.clone())).transpose()?;
    let source = source(run.reference, others.as_ref())?;
    let seed = run.training.seed;
    let starts = references(source, run.generated, flow.features(), seed)?;
    let order = data.shuffled_order(seed);
    let inverted: Vec<usize> = (0..run.inverted).map(|i| order[i % order.len()]).collect();
    let Some(pairs) = make_pairs(flow, starts, data, &inverted, run, folder, watch)? else {
        return Ok(Generated { outcome: Outcome::stopped(0, None), model: None });
    };
    let model = next_level(flow, run)?;
    let trained = train_on(&model, &pairs, Objective::Flow, &run.training, folder, watch)?;
    if trained.step < run.training.steps {
        let outcome = Outcome::stopped(trained.step, trained.progress.map(|p| p.loss));
        return Ok(Generated { outcome, model: None });
    }
    let held_pairs = held_out_pairs(flow, held_out, run)?;
    let objective = Objective::Flow;
    let (half_weights, calibration_rows) = (run.half_weights, run.calibration_rows);
    let end =
        End { data, held_out, source, objective, half_weights, calibration_rows, folder, between: None };
    finish(trained, &held_pairs, &run.training, end, watch)
}

/// Held-out rows with their references in the last level: if the loss on them is well above the training loss, the network
/// overfits the pairs.
fn held_out_pairs(flow: &OnnxFlow, held_out: &Dataset, run: &ReflowRun) -> Result<StoredPairs> {
    let seed = run.training.seed;
    let rows = held_out.rows_f64(&held_out.shuffled_order(seed)[..held_out.len().min(CHUNK)])?;
    let (z0, z1) = inverted_pairs(flow, rows, &run.solver)?;
    StoredPairs::new(flow.shape(), z0, z1, seed)
}

/// Real rows behind their references, both in the network's space.
fn inverted_pairs(flow: &OnnxFlow, rows: Array2<f64>, solver: &Solver) -> Result<Part> {
    let ends = flow_ends(flow, rows.view(), 1.0, 0.0, solver)?;
    Ok((narrow(flow.to_network(ends.view())), narrow(flow.to_network(rows.view()))))
}

fn narrow(rows: Array2<f64>) -> Array2<f32> {
    rows.mapv(|v| v as f32)
}

fn next_level(flow: &OnnxFlow, run: &ReflowRun) -> Result<Model> {
    let mut model = flow.model().clone();
    let old = flow.metadata().clone();
    FlowMetadata {
        shape: Some(flow.shape().to_vec()),
        objective: Some(Objective::Flow),
        level: Some(old.level.unwrap_or(1) + 1),
        training: serde_json::to_value(ReflowRun { training: run.training.lasting(), ..run.clone() }).ok(),
        seed: Some(run.training.seed),
        coupling: Some("the ends of the previous level's trajectories".to_string()),
        calibration: None,
        ..old
    }
    .write(&mut model)?;
    Ok(model)
}

/// Makes the pairs that are not there yet; nothing where the watch stopped it.
fn make_pairs(
    flow: &OnnxFlow,
    starts: Array2<f64>,
    data: &Dataset,
    inverted: &[usize],
    run: &ReflowRun,
    folder: &Path,
    watch: Watch,
) -> Result<Option<StoredPairs>> {
    let total = starts.nrows() + inverted.len();
    let (mut references, mut ends) = (Vec::new(), Vec::new());
    let mut done = 0;
    let generated_chunks = starts.nrows().div_ceil(CHUNK);
    let chunks = generated_chunks + inverted.len().div_ceil(CHUNK);
    for chunk in 0..chunks {
        let path = folder.join("pairs").join(format!("{chunk:05}.npz"));
        let part = if path.exists() {
            read_pairs(&path)?
        } else {
            let part = if chunk < generated_chunks {
                let first = chunk * CHUNK;
                let z0 = starts.slice(s![first..(first + CHUNK).min(starts.nrows()), ..]);
                let ends = flow_ends(flow, flow.to_user(z0).view(), 0.0, 1.0, &run.solver)?;
                (narrow(z0.to_owned()), narrow(flow.to_network(ends.view())))
            } else {
                let first = (chunk - generated_chunks) * CHUNK;
                let rows = data.rows_f64(&inverted[first..(first + CHUNK).min(inverted.len())])?;
                inverted_pairs(flow, rows, &run.solver)?
            };
            write_pairs(&path, &part)?;
            part
        };
        done += part.0.nrows();
        references.push(part.0);
        ends.push(part.1);
        if watch(Event::Pairs(done, total)) == ControlFlow::Break(()) {
            return Ok(None);
        }
    }
    let join = |parts: &[Array2<f32>]| -> Result<Array2<f32>> {
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        concatenate(Axis(0), &views).map_err(|_| Error::Shape {
            what: "the pairs in the run folder".to_string(),
            expected: vec![total, flow.features()],
            found: views.iter().map(|v| v.nrows()).collect(),
        })
    };
    let (z0, z1) = (join(&references)?, join(&ends)?);
    StoredPairs::new(flow.shape(), z0, z1, run.training.seed).map(Some)
}

fn read_pairs(path: &Path) -> Result<Part> {
    let read = || -> std::result::Result<_, Failure> {
        let mut npz = NpzReader::new(crate::readable::open(path)?)?;
        Ok((npz.by_name("z0")?, npz.by_name("z1")?))
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}

fn write_pairs(path: &Path, (z0, z1): &Part) -> Result<()> {
    write_arrays(path, Packing::Plain, |npz| {
        npz.add_array("z0", z0)?;
        npz.add_array("z1", z1)?;
        Ok(())
    })
}
