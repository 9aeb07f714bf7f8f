//! Operators of classical machine learning (`ai.onnx.ml`), as pipelines of scikit-learn are exported, in ONNX's own.
//!
//! What is smooth has a gradient for it, and any engine runs it. Thresholds and encoders ([`binarizer`], [`one_hot`],
//! [`label_encoder`]) compute as always, and no gradient goes through them: what they give is held. A file for each operator;
//! each follows ONNX Runtime where the specification is silent. A node that cannot be spelled out stays as it is, and
//! whoever differentiates it is told which one it is. Outputs are float32, as the specification has it.

mod binarizer;
mod feature_extractor;
mod feature_vectorizer;
mod imputer;
mod kernel;
mod label_encoder;
mod linear_classifier;
mod linear_regressor;
mod normalizer;
mod one_hot;
mod post_transform;
mod scaler;
mod svm_classifier;
mod svm_regressor;

use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{CLASSICAL_DOMAIN, Graph, Node};
use crate::tensor::{DType, TensorData};

/// Gives the value of the operator's scores or features; `None` leaves the node as it is.
type Spell = fn(&mut Builder, &Node) -> Result<Option<Value>>;

/// Every operator that is spelled out, and whether gradients go through it.
pub(crate) const REGISTRY: &[(&str, bool, Spell)] = &[
    ("ArrayFeatureExtractor", true, feature_extractor::spell),
    ("Binarizer", false, binarizer::spell),
    ("FeatureVectorizer", true, feature_vectorizer::spell),
    ("Imputer", true, imputer::spell),
    ("LabelEncoder", false, label_encoder::spell),
    ("LinearClassifier", true, linear_classifier::spell),
    ("LinearRegressor", true, linear_regressor::spell),
    ("Normalizer", true, normalizer::spell),
    ("OneHotEncoder", false, one_hot::spell),
    ("SVMClassifier", true, svm_classifier::spell),
    ("SVMRegressor", true, svm_regressor::spell),
    ("Scaler", true, scaler::spell),
];

/// Spells a node out; gives the output that is replaced, and by what.
pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<(String, Value)>> {
    if node.domain != CLASSICAL_DOMAIN {
        return Ok(None);
    }
    let Some((_, _, spell)) = REGISTRY.iter().find(|(op, _, _)| node.op == *op) else { return Ok(None) };
    let place = scores_place(node);
    // A label that somebody uses is not spelled out: it has no gradient anyway.
    let labelled = (0..place).any(|i| node.output(i).is_some());
    let Some(output) = node.output(place).filter(|_| !labelled) else { return Ok(None) };
    Ok(spell(b, node)?.map(|value| (output.to_string(), value)))
}

/// Which output has the numbers: that of a classifier behind its label.
fn scores_place(node: &Node) -> usize {
    usize::from(node.op.ends_with("Classifier"))
}

/// Forgets labels that nobody uses.
pub(super) fn drop_labels(graph: &mut Graph) {
    let counts: std::collections::BTreeSet<String> =
        graph.use_counts().into_keys().map(str::to_string).collect();
    for node in graph.nodes.iter_mut().filter(|node| node.domain == CLASSICAL_DOMAIN) {
        let place = scores_place(node);
        for label in node.outputs.iter_mut().take(place).filter(|label| !counts.contains(*label)) {
            label.clear();
        }
    }
}

/// The first input as float32, `[N, features]`, and its number of features; none where that is not known.
fn table(b: &mut Builder, node: &Node) -> Result<Option<(Value, usize)>> {
    let x = node.input(0).ok_or_else(|| malformed(node, "it has no input"))?;
    let features = match b.shape(x) {
        Some([_, features]) => features.known().and_then(|n| usize::try_from(n).ok()),
        _ => None,
    };
    let Some(features) = features.filter(|&n| n > 0) else { return Ok(None) };
    Ok(Some((b.cast(x, DType::F32), features)))
}

/// A matrix or vector of float32.
fn floats(b: &mut Builder, shape: &[usize], values: &[f32]) -> Value {
    b.constant(TensorData::f32(shape, values))
}

/// A row that is added or multiplied: one number for each feature, or one for all.
fn row(b: &mut Builder, node: &Node, name: &str, features: usize) -> Result<Option<Value>> {
    match node.floats(name) {
        [] => Ok(None),
        values if values.len() == features || values.len() == 1 => {
            Ok(Some(floats(b, &[values.len()], values)))
        }
        values => {
            let (found, reason) = (values.len(), "numbers, but the input has");
            Err(malformed(node, &format!("its {name} has {found} {reason} {features} features")))
        }
    }
}

fn malformed(node: &Node, reason: &str) -> Error {
    Error::Node { node: node.label(), reason: reason.to_string() }
}
