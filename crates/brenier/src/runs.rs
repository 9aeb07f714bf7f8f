//! Runs: a training with everything around it, in a folder of its own.
//!
//! ```text
//! run/  run.json         what was asked for
//!       checkpoint.npz   to go on from, whole or not there
//!       metrics.jsonl    loss, gradient norm and learning rate, a line every so many steps
//!       kept/            networks of earlier steps, where asked for
//!       flow.onnx        the result, with its history in the metadata (or ddpm.onnx, classifier.onnx)
//!       loss.svg         the loss over the steps
//!       samples.png      what the flow generates (samples.csv for tables)
//!       quality.json     how good it is on held-out data
//! ```
//!
//! A run that was stopped, by a key or by a power cut, goes on from its checkpoint and ends with the same bits.

mod classifier;
mod ddpm;
pub mod explain;
mod files;
mod generator;
mod objective;
mod rectified_flow;
mod reflow;

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use classifier::{ClassifierRun, train_classifier};
pub use generator::{FlowRun, Generated, ReferenceKind, train_generator};
pub use objective::{Goal, ObjectiveSpec, objectives};
pub use reflow::{ReflowRun, reflow};

use crate::calibration::FlowQuality;
use crate::error::Result;
use crate::path::Quality;
use crate::train::Progress;

/// What a run is doing.
#[derive(Debug, Clone, Copy)]
pub enum Event {
    /// A line of metrics, and the number of steps in all.
    Training(Progress, u64),
    /// Pairs made for Reflow, of so many.
    Pairs(usize, usize),
    /// The result is being measured on held-out data.
    Measuring,
    /// Held-out rows that the flow was calibrated by, of so many.
    Calibrating(usize, usize),
}

/// Who watches a run; where it breaks, the run stops in a state to go on from.
pub type Watch<'a> = &'a mut dyn FnMut(Event) -> ControlFlow<()>;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The file with the result; absent where the run was stopped before its end.
    pub file: Option<String>,
    /// Steps done.
    pub step: u64,
    /// The mean loss of the last steps.
    pub loss: Option<f64>,
    /// Generators: how good it is.
    pub quality: Option<Quality>,
    /// Flows: how they were calibrated, where there were rows enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated: Option<Calibrated>,
    /// Classifiers: the part of held-out rows that it gets right.
    pub accuracy: Option<f64>,
}

/// What a calibration says of the flow itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// Held-out rows that it was calibrated by.
    pub rows: usize,
    /// What they say of it.
    pub quality: FlowQuality,
}

impl Outcome {
    /// A run that was stopped.
    fn stopped(step: u64, loss: Option<f64>) -> Outcome {
        Outcome { file: None, step, loss, quality: None, calibrated: None, accuracy: None }
    }

    fn save(&self, folder: &Path) -> Result<()> {
        files::write_json(&folder.join("quality.json"), self)
    }
}
