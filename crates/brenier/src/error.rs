//! Everything that can go wrong in the library, with the values that went wrong.
//!
//! A message says what happened and with which value; where there is something to try, it follows on a
//! line of its own that begins with `hint:`.

use std::path::PathBuf;

use onnx_grad::DType;

mod data;

pub use data::DataError;

/// What can go wrong. Each message says what happened, with which value, and what to try.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An array does not have the shape that the operation needs.
    #[error("{what} has shape {found:?}, but {expected:?} is needed")]
    Shape {
        /// Which array.
        what: String,
        /// The shape that would fit.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },
    /// A graph is invalid or cannot be differentiated.
    #[error(transparent)]
    Graph(#[from] onnx_grad::Error),
    /// Data cannot be used as they are.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A model cannot be explained as it is.
    #[error("the model cannot be explained: {reason}\nhint: {remedy}")]
    Predictor {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// An input cannot be compared with a population.
    #[error("the comparison cannot be made: {reason}\nhint: {remedy}")]
    Comparison {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// The file beside a model cannot be used.
    #[error(
        "{} cannot be used, line {line}: {reason}\nhint: it may hold classes = [...], columns = [...], and under [preprocessing] \
         scale, mean, std, channels, layout and size",
        path.display()
    )]
    Sidecar {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A model is not a flow that can be evaluated or trained.
    #[error("the flow cannot be used: {reason}\nhint: {remedy}")]
    Flow {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// A network cannot be trained as it is.
    #[error("the network cannot be trained: {reason}\nhint: {remedy}")]
    Training {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// The loss left the range of sense.
    #[error(
        "the training diverged: loss {loss:e} and gradient norm {norm:e} at step {step}, from a first loss of \
         {first:e}\nhint: lower the learning rate, lengthen the warm-up, or clip gradients; and check that the \
         data is scaled to about unit size"
    )]
    Diverged {
        /// The step, counted from 0.
        step: u64,
        /// The loss of that step, per feature.
        loss: f64,
        /// The loss of the first step.
        first: f64,
        /// The length of the gradient.
        norm: f64,
    },
    /// A run folder holds the checkpoint of another training.
    #[error(
        "{} holds a checkpoint of a training that differs in its {what}\nhint: choose another folder, or remove \
         checkpoint.npz to begin anew", folder.display()
    )]
    OtherRun {
        /// The folder.
        folder: PathBuf,
        /// What differs: settings or network.
        what: &'static str,
    },
    /// A folder holds the parts of another run.
    #[error(
        "{} holds another run: {what} was {kept}, and now it is {asked}\nhint: choose another folder, or replace \
         what is there", folder.display()
    )]
    OtherParts {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        what: String,
        /// What it was.
        kept: String,
        /// What it is now.
        asked: String,
    },
    /// A folder holds results already.
    #[error("{} exists already\nhint: choose another folder, or replace it", path.display())]
    Exists {
        /// The file that is there.
        path: PathBuf,
    },
    /// A graph computes a value that no memory holds.
    #[error(
        "the model has a value of {bytes} bytes, and {most} are the most\nhint: export it with an open batch axis and \
         smaller sizes"
    )]
    TooLarge {
        /// Bytes of the value.
        bytes: u64,
        /// The most that are tried.
        most: u64,
    },
    /// A setting is larger than it can usefully be.
    #[error("{name} is {value}, and {most} is the most\nhint: results no longer change long before that")]
    TooMany {
        /// What.
        name: &'static str,
        /// The number that was asked for.
        value: usize,
        /// The largest that is accepted.
        most: usize,
    },
    /// A folder does not say what its results were made from.
    #[error(
        "{} does not say what its results were made from: it has no {file}\nhint: give a folder that 'explain -o' has \
         finished", folder.display()
    )]
    NoRecord {
        /// The folder.
        folder: PathBuf,
        /// The file that would say so.
        file: &'static str,
    },
    /// A path that was given ends elsewhere than at its input.
    #[error(
        "the path of input {example} does not end at it: feature {feature} is {found} at the end of the path, and \
         {expected} in the input\nhint: give the inputs that the paths were made for, in the same order"
    )]
    OtherPath {
        /// Which input.
        example: usize,
        /// The first feature that differs.
        feature: usize,
        /// Its value at the end of the path.
        found: f64,
        /// Its value in the input.
        expected: f64,
    },
    /// Another process writes into the same folder.
    #[error("another run is at work in {}\nhint: wait for it, or choose another folder", folder.display())]
    AtWork {
        /// The folder.
        folder: PathBuf,
    },
    /// A target is not an output of the model.
    #[error("target {target} of row {row} is out of range: the model has {outputs} outputs, numbered from 0")]
    Target {
        /// The target asked for.
        target: usize,
        /// The number of outputs.
        outputs: usize,
        /// The row it was asked for.
        row: usize,
    },
    /// A name stands for none of the choices.
    #[error("there is no {what} '{found}'; choose one of {}", known.join(", "))]
    UnknownChoice {
        /// What is being chosen, such as `engine`.
        what: &'static str,
        /// The name given.
        found: String,
        /// The names that would do.
        known: Vec<&'static str>,
    },
    /// A name stands for no method.
    #[error("there is no method '{found}'\nhint: did you mean '{nearest}'? The methods are {}", known.join(", "))]
    UnknownMethod {
        /// The name given.
        found: String,
        /// The method whose name is nearest to it.
        nearest: &'static str,
        /// All methods.
        known: Vec<&'static str>,
    },
    /// A method cannot do what is asked of it.
    #[error("{method} cannot explain this: {reason}\nhint: {remedy}")]
    Method {
        /// The method's name.
        method: String,
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// A name stands for no metric.
    #[error("there is no metric '{found}'\nhint: did you mean '{nearest}'? The metrics are {}", known.join(", "))]
    UnknownMetric {
        /// The name given.
        found: String,
        /// The metric whose name is nearest to it.
        nearest: &'static str,
        /// All metrics.
        known: Vec<&'static str>,
    },
    /// A metric cannot be computed from what is there.
    #[error("{metric} cannot be computed: {reason}\nhint: {remedy}")]
    Metric {
        /// The metric's name.
        metric: String,
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// A folder holds nothing to report.
    #[error(
        "there are no explanations in {}\nhint: name the folder that was given to `brenier explain -o`",
        folder.display()
    )]
    NoExplanations {
        /// The folder.
        folder: PathBuf,
    },
    /// A number that counts something is zero.
    #[error("{what} must be at least 1")]
    Zero {
        /// What is counted.
        what: &'static str,
    },

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
        remedy: &'static str,
    },
    /// The engine does not accept the model.
    #[error("{engine} cannot load the model: {}{reason}; {remedy}", at(node))]
    EngineLoad {
        /// The engine.
        engine: &'static str,
        /// The node, by name and op, where the engine tells.
        node: Option<String>,
        /// What the engine said.
        reason: String,
        /// What to try.
        remedy: &'static str,
    },
    /// The engine computes something else than ONNX says.
    #[error(
        "{engine} {version} computes node {node} wrongly: its value '{value}' has {found} where ONNX's definition gives \
         {expected}; {remedy}"
    )]
    EngineDisagrees {
        /// The engine.
        engine: &'static str,
        /// Its version.
        version: String,
        /// The first node whose value differs, by name and op.
        node: String,
        /// The value.
        value: String,
        /// What the engine has, or the number of its elements where the shape differs.
        found: f64,
        /// What the reference evaluator has.
        expected: f64,
        /// What to try.
        remedy: &'static str,
    },
    /// The engine failed while running the model.
    #[error("{engine} failed on inputs {inputs}: {}{reason}", at(node))]
    EngineRun {
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
    #[error("{engine} cannot run on {provider}: {reason}; available here: {}", available.join(", "))]
    Provider {
        /// The engine.
        engine: &'static str,
        /// The execution provider asked for.
        provider: &'static str,
        /// Why not.
        reason: String,
        /// The execution providers that are available.
        available: Vec<&'static str>,
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

    /// A setting has a value with which nothing can be computed.
    #[error("{name} is {value}, but {needs}\nhint: {hint}")]
    Setting {
        /// Which setting.
        name: &'static str,
        /// The value it was given.
        value: String,
        /// What holds for values that work.
        needs: &'static str,
        /// A value to try.
        hint: &'static str,
    },

    /// A score, a gradient or a velocity is not a finite number.
    #[error(
        "{what} is {value} at {place} (example {example}, time {time})\nhint: look at the input there: {what} \
         is not defined for it, or a number grew beyond the model's range"
    )]
    NonFinite {
        /// What was computed: score, gradient, velocity, state.
        what: &'static str,
        /// Which example of the batch, counted from 0.
        example: usize,
        /// The time on the path, 0 at the reference and 1 at the data.
        time: f64,
        /// Which entry: a feature's index, or the output.
        place: String,
        /// The value: NaN or an infinity.
        value: f64,
    },

    /// The score of an input with parts left out is not a finite number.
    #[error(
        "output {target} is {value} for example {example} with parts of it left out (row {row} of those asked \
         for)\nhint: the model is not defined there; choose something else to stand in for what is left out"
    )]
    PerturbedScore {
        /// Which example of the batch, counted from 0.
        example: usize,
        /// Which of the rows made from it, counted from 0.
        row: usize,
        /// Which output.
        target: usize,
        /// The value: NaN or an infinity.
        value: f64,
    },

    /// There are too many groups to ask for every subset of them.
    #[error(
        "exact Shapley values of {groups} groups would take 2^{groups} subsets, and at most {most} groups are \
         enumerated\nhint: put features into fewer groups, or sample coalitions instead"
    )]
    TooManyGroups {
        /// Groups that differ from what stands in for them.
        groups: usize,
        /// The most that are enumerated.
        most: usize,
    },

    /// The coalitions leave the credit of some groups open.
    #[error(
        "{coalitions} coalitions do not determine the credit of {groups} groups\nhint: ask for at least twice \
         as many coalitions as there are groups, or put features into fewer groups"
    )]
    TooFewCoalitions {
        /// Groups that differ from what stands in for them.
        groups: usize,
        /// Coalitions that were asked for.
        coalitions: usize,
    },

    /// A feature was masked in every draw.
    #[error(
        "feature {feature} was left present by none of {samples} masks\nhint: draw more masks, or raise the \
         probability with which cells are present"
    )]
    NeverPresent {
        /// The feature.
        feature: usize,
        /// The number of masks.
        samples: usize,
    },

    /// Something that only images have was asked of inputs that are none.
    #[error(
        "{what} needs an image, [channels, height, width] or [height, width], but an input has shape {shape:?}\n\
         hint: choose something else for rows of features"
    )]
    NotAnImage {
        /// What was asked for.
        what: &'static str,
        /// The shape of an input.
        shape: Vec<usize>,
    },

    /// A gradient was asked of a model that only gives values.
    #[error(
        "the model has no gradient: {reason}\nhint: use a method that needs none: kernel-shap, shapley-values, \
         occlusion, rise or lime"
    )]
    NoGradient {
        /// Why not.
        reason: String,
    },

    /// The adaptive solver cannot make its step small enough.
    #[error(
        "step size underflow: example {example} needs steps below {step:e} at time {time} (largest |velocity| \
         {speed:e})\nhint: the field blows up or is very stiff there; loosen the tolerance, or use fixed steps"
    )]
    StepUnderflow {
        /// Which example of the batch, counted from 0.
        example: usize,
        /// Where on the path.
        time: f64,
        /// The step that was still too large.
        step: f64,
        /// The largest velocity component at that place.
        speed: f64,
    },

    /// The adaptive solver used up its steps.
    #[error(
        "example {example} reached only time {time} after {steps} solver steps\nhint: allow more steps or \
         loosen the tolerance"
    )]
    TooManySteps {
        /// Which example of the batch, counted from 0.
        example: usize,
        /// How far it came.
        time: f64,
        /// The limit.
        steps: usize,
    },

    /// Adaptive stepping was asked of a method without an error estimate.
    #[error(
        "{method} has no embedded error estimate, so its step size cannot adapt\nhint: use dormand-prince or \
         heun, or a fixed number of steps"
    )]
    NoErrorEstimate {
        /// The method's name.
        method: &'static str,
    },

    /// A covariance has an eigenvalue that is not positive.
    #[error(
        "{what} is not positive definite: its smallest eigenvalue is {eigenvalue:e}\nhint: add a small \
         multiple of the identity"
    )]
    NotPositiveDefinite {
        /// Which matrix.
        what: &'static str,
        /// The offending eigenvalue.
        eigenvalue: f64,
    },

    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },

    /// A file could not be written.
    #[error(
        "cannot write {}: {source}\nhint: choose a folder that can be written to, on a disk with room",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// The error of a part of the examples, with the example numbered in the whole.
    pub fn counted_from(self, first: usize) -> Self {
        self.numbered(|example| example + first)
    }

    /// The same error with another number for its example.
    pub(crate) fn numbered(mut self, number: impl Fn(usize) -> usize) -> Self {
        if let Error::NonFinite { example, .. }
        | Error::PerturbedScore { example, .. }
        | Error::StepUnderflow { example, .. }
        | Error::TooManySteps { example, .. } = &mut self
        {
            *example = number(*example);
        }
        self
    }
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

/// Refuses an array whose shape is not the expected one.
pub(crate) fn expect_shape(what: &str, expected: &[usize], found: &[usize]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(Error::Shape { what: what.to_owned(), expected: expected.to_vec(), found: found.to_vec() })
}

/// Refuses the first value of a row that is NaN or infinite, naming its feature.
pub(crate) fn expect_finite<'a>(
    what: &'static str,
    example: usize,
    time: f64,
    row: impl IntoIterator<Item = &'a f64>,
) -> Result<()> {
    match row.into_iter().enumerate().find(|(_, value)| !value.is_finite()) {
        None => Ok(()),
        Some((feature, &value)) => {
            Err(Error::NonFinite { what, example, time, place: format!("feature {feature}"), value })
        }
    }
}

fn at(node: &Option<String>) -> String {
    node.as_ref().map(|node| format!("at node {node}, ")).unwrap_or_default()
}
