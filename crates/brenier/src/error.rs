//! Everything that can go wrong in the library, with the values that went wrong.
//!
//! A message says what happened and with which value; where there is something to try, it follows on a
//! line of its own that begins with `hint:`.

use std::path::PathBuf;

mod data;
mod engine;
mod expect;
mod remedy;
mod worded;

pub use data::DataError;
pub use engine::{Disagreement, EngineError};
pub(crate) use expect::{expect_finite, expect_shape};
pub use remedy::{Notice, Remedy};
use worded::{graph_remedy, try_this};

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
    #[error("{0}{more}", more = try_this(graph_remedy(.0)))]
    Graph(#[from] onnx_grad::Error),
    /// Data cannot be used as they are.
    #[error(transparent)]
    Data(#[from] DataError),
    /// An engine cannot run a model, or not on what it is given.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A model cannot be explained as it is.
    #[error("the model cannot be explained: {reason}\nhint: {remedy}")]
    Predictor {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: Remedy,
    },
    /// The arrays for the inputs of a model do not fit it.
    #[error("{reason}\nhint: {remedy}")]
    Inputs {
        /// What does not fit.
        reason: String,
        /// What to try.
        remedy: Remedy,
    },
    /// An input cannot be compared with a population.
    #[error("the comparison cannot be made: {reason}\nhint: {remedy}")]
    Comparison {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: Remedy,
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
        remedy: Remedy,
    },
    /// A network cannot be trained as it is.
    #[error("the network cannot be trained: {reason}\nhint: {remedy}")]
    Training {
        /// What stands in the way.
        reason: String,
        /// What to try.
        remedy: Remedy,
    },
    /// Somebody who watches a score has broken off.
    #[error("stopped before the input was explained")]
    Stopped,
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
    #[error(
        "{name} is {value}, but at most {most} is allowed\nhint: take fewer; results stop changing long before that"
    )]
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
        "{} does not say what its results were made from: it has no {file}\nhint: {}", folder.display(),
        Remedy::FolderOfExplanations
    )]
    NoRecord {
        /// The folder.
        folder: PathBuf,
        /// The file that would say so.
        file: &'static str,
    },
    /// A run that goes on without inputs that fail has explained none.
    #[error("none of {inputs} inputs could be explained; the first is input {example}: {reason}")]
    NothingExplained {
        /// How many were tried.
        inputs: usize,
        /// The first of them.
        example: usize,
        /// What happened with it.
        reason: String,
    },
    /// Shards of a run that are not there.
    #[error(
        "inputs {} are in none of the shards\nhint: run the shards that are missing, or merge what is there and keep going",
        .missing.iter().map(|r| format!("{} to {}", r.start, r.end - 1)).collect::<Vec<_>>().join(", ")
    )]
    MissingShards {
        /// The inputs.
        missing: Vec<std::ops::Range<usize>>,
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
        remedy: Remedy,
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
        remedy: Remedy,
    },
    /// A folder holds nothing to report.
    #[error("there are no explanations in {}\nhint: {}", folder.display(), Remedy::FolderOfExplanations)]
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
        hint: Remedy,
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
