//! Everything that can go wrong, with the values that went wrong and what to try.

use std::path::PathBuf;

/// What can go wrong while reading, checking, lowering or differentiating a graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {action} {}: {reason}; check the path and its permissions", path.display())]
    File {
        /// `read` or `write`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        reason: String,
    },
    /// The bytes are not an ONNX model.
    #[error(
        "not an ONNX model: {reason}; check that the file is complete and was written as .onnx \
         (not as TorchScript, Keras or SavedModel)"
    )]
    NotOnnx {
        /// What the decoder stumbled over.
        reason: String,
    },
    /// The model's operator set is outside what is read.
    #[error(
        "the model uses ONNX opset {found}, but opsets {oldest} to {newest} are read; convert it with \
         onnx.version_converter or export it again with opset_version=17"
    )]
    Opset {
        /// The version in the file.
        found: i64,
        /// The oldest version that is read.
        oldest: i64,
        /// The newest version that is read.
        newest: i64,
    },
    /// A tensor is malformed.
    #[error("tensor '{name}' is malformed: {reason}; export the model again, with float32 weights")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A tensor's data lies in a file beside the model which cannot be used.
    #[error(
        "the data of tensor '{name}' should be in {}: {reason}; keep the data file beside the .onnx file",
        path.display()
    )]
    ExternalData {
        /// The tensor's name.
        name: String,
        /// Where its data should be.
        path: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// The graph is not a valid graph.
    #[error("invalid graph: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The nodes depend on each other in a circle.
    #[error("the graph has a cycle through node {node}; a model must be acyclic, so export it again")]
    Cycle {
        /// A node on the cycle.
        node: String,
    },
    /// A value is asked for that the graph does not have.
    #[error("the graph has no value named '{name}'; it has {known}")]
    NoSuchValue {
        /// The name asked for.
        name: String,
        /// The names that would do.
        known: String,
    },
    /// A node is malformed: an attribute or input is missing or has the wrong type.
    #[error(
        "node {node} is malformed: {reason}; export the model again, or find the mistake with \
         onnx.checker.check_model(model, full_check=True)"
    )]
    Node {
        /// The node, by name and op.
        node: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A node is on the path to be differentiated and there is no rule for its op.
    #[error("node {node} cannot be differentiated: {reason}; write it in operators that have a derivative")]
    NotDifferentiable {
        /// The node, by name and op.
        node: String,
        /// Why not.
        reason: String,
    },
    /// A set of backward rules has none for a node, and would be wrong to take its derivative.
    #[error(
        "{rules} has no rule for node {node}: {reason}; use a method that needs gradients only, such as \
         Integrated Gradients"
    )]
    NoBackwardRule {
        /// The rules.
        rules: String,
        /// The node, by name and op.
        node: String,
        /// What there is no rule for.
        reason: String,
    },
    /// No differentiable path leads from the input to the output.
    #[error(
        "no gradient flows from output '{output}' back to '{input}': {reason}; explain an output before that \
         node, or use a method without gradients (KernelSHAP, occlusion)"
    )]
    NoGradient {
        /// The output to be differentiated.
        output: String,
        /// The input or parameter to differentiate with respect to.
        input: String,
        /// What stands in the way.
        reason: String,
    },
    /// A rule needs to know more of a shape than the graph tells.
    #[error(
        "node {node} needs {what}, which the graph does not tell; export the model with fixed \
         sizes for all axes but the batch"
    )]
    UnknownShape {
        /// The node, by name and op.
        node: String,
        /// What must be known.
        what: String,
    },
    /// The reference evaluator does not know the op.
    #[error("node {node} cannot be evaluated: {reason}; run the graph in an engine instead")]
    NotEvaluable {
        /// The node, by name and op.
        node: String,
        /// Why not.
        reason: String,
    },
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;
