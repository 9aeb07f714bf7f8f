//! What can go wrong between a model and the engine that runs it.

use std::path::PathBuf;

use onnx_grad::DType;

use super::{Remedy, try_this};

/// What can go wrong between a model and the engine that runs it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The model has no input of this name.
    #[error("the model has no input '{name}'; its inputs are {}", known.join(", "))]
    NoSuchInput {
        /// The name given.
        name: String,
        /// The names of the model's inputs.
        known: Vec<String>,
    },
    /// An input of the model was given twice, or not at all.
    #[error("input '{name}' was given {times} times; give every input of the model exactly once")]
    InputCount {
        /// The input's name.
        name: String,
        /// How often it was given.
        times: usize,
    },
    /// An input does not have the shape that the model declares.
    #[error("input '{name}' has shape {found:?}, but the model takes {expected}")]
    InputShape {
        /// The input's name.
        name: String,
        /// The declared shape, such as `[N, 3, 32, 32]`.
        expected: String,
        /// The shape given.
        found: Vec<usize>,
    },
    /// An input does not have the element type that the model declares.
    #[error("input '{name}' is {found}, but the model takes {expected}")]
    InputType {
        /// The input's name.
        name: String,
        /// The declared element type.
        expected: DType,
        /// The element type given.
        found: DType,
    },
    /// An integer is too large for the element type that the engine computes with.
    #[error("input '{name}' holds {value}, which does not fit the 32-bit integers it is computed in")]
    IntegerRange {
        /// The input's name.
        name: String,
        /// The first value that does not fit.
        value: i64,
    },
    /// An output has another element type than the caller asked for.
    #[error("the output is {found}, but {expected} is needed")]
    OutputType {
        /// The type asked for.
        expected: DType,
        /// The type it has.
        found: DType,
    },
    /// Inputs of one batch have different numbers of rows, or no rows axis at all.
    #[error(
        "input '{name}' has shape {shape:?}, but the inputs of a batch share a first axis, here of {rows}"
    )]
    Rows {
        /// The input's name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of rows of the first input.
        rows: usize,
    },
    /// An output was expected to have a row for every row of the inputs.
    #[error(
        "output '{name}' has shape {shape:?} for {rows} rows of input; it must have one row for each, so \
         export the model with a batch axis that comes first and is not fixed"
    )]
    NoBatchAxis {
        /// The output's name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of rows that went in.
        rows: usize,
    },

    /// A value of the model has an element type that the engine does not compute with.
    #[error("{engine} does not run {dtype}, the type of '{value}'; {remedy}")]
    ElementType {
        /// The engine.
        engine: &'static str,
        /// The value's name.
        value: String,
        /// Its element type.
        dtype: DType,
        /// What to try.
        remedy: Remedy,
    },
    /// The engine does not accept the model.
    #[error("{engine} cannot load the model: {}{reason}; {remedy}", at(node))]
    Load {
        /// The engine.
        engine: &'static str,
        /// The node, by name and op, where the engine tells.
        node: Option<String>,
        /// What the engine said.
        reason: String,
        /// What to try.
        remedy: Remedy,
    },
    /// The engine computes something else than ONNX says.
    #[error(transparent)]
    Disagrees(Box<Disagreement>),
    /// The engine failed while running the model.
    #[error("{engine} failed on inputs {inputs}: {}{reason}", at(node))]
    Run {
        /// The engine.
        engine: &'static str,
        /// The inputs' names, element types and shapes.
        inputs: String,
        /// The node, by name and op, where the engine tells.
        node: Option<String>,
        /// What the engine said.
        reason: String,
    },
    /// A worker thread could not be started, or is gone.
    #[error("a worker thread is not available: {reason}")]
    Worker {
        /// What the operating system said.
        reason: String,
    },
    /// The engine cannot run on the device asked for.
    #[error(
        "{engine} cannot run on {provider}: {reason}; available here: {}{}", available.join(", "), try_this(*remedy)
    )]
    Provider {
        /// The engine.
        engine: &'static str,
        /// The execution provider asked for.
        provider: &'static str,
        /// Why not.
        reason: String,
        /// The execution providers that are available.
        available: Vec<&'static str>,
        /// What to try, where there is something.
        remedy: Option<Remedy>,
    },
    /// The ONNX Runtime library is not installed where it is looked for.
    #[error(
        "ONNX Runtime was not found; searched {}. Install it with `pip install onnxruntime`, or set \
         ORT_DYLIB_PATH to its shared library",
        searched.join(", ")
    )]
    NoOnnxRuntime {
        /// The places that were searched.
        searched: Vec<String>,
    },
    /// The ONNX Runtime library cannot be used.
    #[error(
        "ONNX Runtime cannot be loaded from {}: {reason}; version 1.{oldest} or newer is needed, which \
         `pip install --upgrade onnxruntime` installs",
        path.display()
    )]
    OnnxRuntimeLibrary {
        /// The library.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
        /// The oldest minor version that would do.
        oldest: u32,
    },
    /// Another ONNX Runtime library is in use already.
    #[error(
        "ONNX Runtime is already loaded from {}, and a process holds only one; {} cannot be loaded too",
        loaded.display(), asked.display()
    )]
    OnnxRuntimeTwice {
        /// The library in use.
        loaded: PathBuf,
        /// The library asked for.
        asked: PathBuf,
    },
}

/// A value that an engine computes otherwise than ONNX says. Boxed in [`EngineError`]: every `Result` is as large as its largest error.
#[derive(Debug, thiserror::Error)]
#[error(
    "{engine} {version} computes node {node} wrongly: its value '{value}' has {found} where ONNX's definition gives \
     {expected}; {remedy}"
)]
pub struct Disagreement {
    /// The engine.
    pub engine: &'static str,
    /// Its version.
    pub version: String,
    /// The first node whose value differs, by name and op.
    pub node: String,
    /// The value.
    pub value: String,
    /// What the engine has, or the number of its elements where the shape differs.
    pub found: f64,
    /// What the reference evaluator has.
    pub expected: f64,
    /// What to try.
    pub remedy: Remedy,
}

impl EngineError {
    /// What to try, where the error leaves the words to others.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        match self {
            EngineError::ElementType { remedy, .. } | EngineError::Load { remedy, .. } => Some(*remedy),
            EngineError::Disagrees(disagreement) => Some(disagreement.remedy),
            EngineError::Provider { remedy, .. } => *remedy,
            _ => None,
        }
    }
}

fn at(node: &Option<String>) -> String {
    node.as_ref().map(|node| format!("at node {node}, ")).unwrap_or_default()
}
