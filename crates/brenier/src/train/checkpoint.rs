//! The run folder: checkpoints that are whole or not there, and a line of metrics now and then.
//!
//! A checkpoint replaces the last one whole, so whenever the process is killed, one remains. It holds weights, their average, the optimiser's moments
//! and the step; no generator state, because every step has a generator of its own. Metrics of steps that come
//! after the checkpoint are cut off when a run is resumed: they will be made again.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use ndarray::{Array1, ArrayView1};
use ndarray_npy::NpzReader;
use onnx_grad::Model;
use serde::{Deserialize, Serialize};

use super::{Progress, TrainConfig};
use crate::error::{Error, Result};
use crate::whole_file::{Failure, Packing, make_folder, write_arrays, write_whole};

const CHECKPOINT: &str = "checkpoint.npz";
const METRICS: &str = "metrics.jsonl";

/// Everything that a training needs to go on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Checkpoint {
    pub(super) step: u64,
    pub(super) parameters: Vec<f32>,
    pub(super) average: Vec<f32>,
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    pub(super) first_loss: f64,
    pub(super) rest_loss: f64,
    pub(super) smooth_loss: f64,
    pub(super) window_sum: f64,
    pub(super) window_count: u64,
}

impl Checkpoint {
    /// The beginning.
    pub(super) fn new(parameters: Vec<f32>) -> Checkpoint {
        let zeros = vec![0.0; parameters.len()];
        Checkpoint {
            step: 0,
            average: parameters.clone(),
            first: zeros.clone(),
            second: zeros,
            parameters,
            first_loss: f64::NAN,
            rest_loss: f64::NAN,
            smooth_loss: f64::NAN,
            window_sum: 0.0,
            window_count: 0,
        }
    }
}

/// What a checkpoint says beside its arrays. Numbers are kept as bits where they may be NaN.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    step: u64,
    first_loss: u64,
    rest_loss: u64,
    smooth_loss: u64,
    window_sum: u64,
    window_count: u64,
    settings: String,
    network: String,
}

/// How many steps the training in a folder has done, by its checkpoint, which is read whole; nothing where there is none.
///
/// # Errors
/// A checkpoint that cannot be read, or whose arrays do not fit each other.
pub fn steps_done(folder: &Path) -> Result<Option<u64>> {
    let path = folder.join(CHECKPOINT);
    if !path.exists() {
        return Ok(None);
    }
    let (checkpoint, _, _) = read(&path)?;
    Ok(Some(checkpoint.step))
}

/// A checkpoint, with the settings and the network that it belongs to.
fn read(path: &Path) -> Result<(Checkpoint, String, String)> {
    let unreadable = |source: Failure| Error::Read { path: path.to_owned(), source };
    crate::npz::expect_honest(path).map_err(unreadable)?;
    let file = crate::readable::open(path).map_err(|e| unreadable(e.into()))?;
    let mut npz = NpzReader::new(file).map_err(|e| unreadable(e.into()))?;
    let header: Array1<u8> = npz.by_name("header").map_err(|e| unreadable(e.into()))?;
    let header: Header = serde_json::from_slice(&header.to_vec()).map_err(|e| unreadable(e.into()))?;
    let mut array = |name: &str| -> Result<Vec<f32>> {
        let array: Array1<f32> = npz.by_name(name).map_err(|e| unreadable(e.into()))?;
        Ok(array.to_vec())
    };
    let checkpoint = Checkpoint {
        step: header.step,
        parameters: array("parameters")?,
        average: array("average")?,
        first: array("first_moment")?,
        second: array("second_moment")?,
        first_loss: f64::from_bits(header.first_loss),
        rest_loss: f64::from_bits(header.rest_loss),
        smooth_loss: f64::from_bits(header.smooth_loss),
        window_sum: f64::from_bits(header.window_sum),
        window_count: header.window_count,
    };
    let expected = [checkpoint.parameters.len()];
    for other in [&checkpoint.average, &checkpoint.first, &checkpoint.second] {
        crate::error::expect_shape("an array of the checkpoint", &expected, &[other.len()])?;
    }
    Ok((checkpoint, header.settings, header.network))
}

/// A run folder in use.
#[derive(Debug)]
pub(super) struct Run {
    folder: PathBuf,
    settings: String,
    network: String,
    metrics: Option<File>,
}

impl Run {
    /// The folder of a training with these settings; made where it is missing.
    pub(super) fn open(folder: &Path, config: &TrainConfig, network: String) -> Result<Run> {
        make_folder(folder)?;
        let settings = serde_json::to_string(&config.lasting())
            .map_err(|e| Error::Write { path: folder.to_owned(), source: e.into() })?;
        Ok(Run { folder: folder.to_owned(), settings, network, metrics: None })
    }

    /// The checkpoint, where there is one; refused where it belongs to another training.
    pub(super) fn resume(&mut self) -> Result<Option<Checkpoint>> {
        let path = self.folder.join(CHECKPOINT);
        let found = if path.exists() { Some(self.read(&path)?) } else { None };
        self.trim_metrics(found.as_ref().map_or(0, |c| c.step))?;
        Ok(found)
    }

    fn read(&self, path: &Path) -> Result<Checkpoint> {
        let (checkpoint, settings, network) = read(path)?;
        let same = settings == self.settings || self.is_further(&settings);
        if !same || network != self.network {
            let what = if network == self.network { "settings" } else { "network" };
            return Err(Error::OtherRun { folder: self.folder.clone(), what });
        }
        Ok(checkpoint)
    }

    /// Whether these are the settings of the same training with fewer steps.
    fn is_further(&self, settings: &str) -> bool {
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
        let (Some(mut kept), Some(mut asked)) = (read(settings), read(&self.settings)) else { return false };
        let fewer = kept["steps"].as_u64() < asked["steps"].as_u64();
        for run in [&mut kept, &mut asked] {
            for name in ["steps", "warmup_steps"] {
                run[name] = serde_json::Value::Null;
            }
        }
        fewer && kept == asked
    }

    /// Replaces the checkpoint, atomically.
    pub(super) fn save(&mut self, state: &Checkpoint) -> Result<()> {
        let path = self.folder.join(CHECKPOINT);
        let unwritable = |source: Failure| Error::Write { path: path.clone(), source };
        if let Some(metrics) = &self.metrics {
            metrics.sync_all().map_err(|e| unwritable(e.into()))?;
        }
        let header = Header {
            step: state.step,
            first_loss: state.first_loss.to_bits(),
            rest_loss: state.rest_loss.to_bits(),
            smooth_loss: state.smooth_loss.to_bits(),
            window_sum: state.window_sum.to_bits(),
            window_count: state.window_count,
            settings: self.settings.clone(),
            network: self.network.clone(),
        };
        let header = serde_json::to_vec(&header).map_err(|e| unwritable(e.into()))?;
        write_arrays(&path, Packing::Plain, |npz| {
            npz.add_array("header", &Array1::from(header))?;
            for (name, values) in [
                ("parameters", &state.parameters),
                ("average", &state.average),
                ("first_moment", &state.first),
                ("second_moment", &state.second),
            ] {
                npz.add_array(name, &ArrayView1::from(values))?;
            }
            Ok(())
        })
    }

    /// Keeps a network, for later study: `kept/step-001000.onnx`.
    pub(super) fn keep(&self, step: u64, model: &Model) -> Result<()> {
        let folder = self.folder.join("kept");
        make_folder(&folder)?;
        write_whole(&folder.join(format!("step-{step:06}.onnx")), &model.to_bytes())
    }

    /// Appends a line of metrics.
    pub(super) fn log(&mut self, line: &Progress) -> Result<()> {
        let path = self.folder.join(METRICS);
        let unwritable = |source: Failure| Error::Write { path: path.clone(), source };
        let mut text = serde_json::to_string(line).map_err(|e| unwritable(e.into()))?;
        text.push('\n');
        let file = match &mut self.metrics {
            Some(file) => file,
            none => {
                let file = OpenOptions::new().create(true).append(true).open(&path);
                none.insert(file.map_err(|e| unwritable(e.into()))?)
            }
        };
        file.write_all(text.as_bytes()).map_err(|e| unwritable(e.into()))
    }

    /// Keeps the lines of steps up to `step`; a half-written one goes too.
    fn trim_metrics(&mut self, step: u64) -> Result<()> {
        let path = self.folder.join(METRICS);
        if !path.exists() {
            return Ok(());
        }
        let file =
            crate::readable::open(&path).map_err(|e| Error::Read { path: path.clone(), source: e.into() })?;
        let mut kept = String::new();
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|e| Error::Read { path: path.clone(), source: e.into() })?;
            match serde_json::from_str::<Progress>(&line) {
                Ok(progress) if progress.step <= step => {
                    kept.push_str(&line);
                    kept.push('\n');
                }
                _ => break,
            }
        }
        write_whole(&path, kept.as_bytes())
    }
}
