//! A pipeline of classical machine learning as a graph of numbers.
//!
//! Exporters of scikit-learn put words around the numbers: a label as text, scores as a list of maps (`ZipMap`), columns of
//! text. Here a `ZipMap` becomes what it wraps, outputs that are no numbers are left out with whatever computes only them, and
//! columns of categories become one-hot inputs ([`columns`](super::columns)). Files without operators of `ai.onnx.ml` stay as
//! they are.

use std::collections::BTreeSet;

use prost::Message;

use super::columns;
use crate::error::Result;
use crate::graph::{CLASSICAL_DOMAIN, Words};
use crate::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, TensorProto, TensorShapeProto,
    TensorTypeProto, TypeProto, ValueInfoProto,
};
use crate::tensor::DType;

/// A file whose maps of scores (`ZipMap`) are rows of numbers, for an engine that is to run it as it is.
///
/// # Errors
/// If it is no ONNX.
pub fn without_maps(file: impl Into<bytes::Bytes>) -> Result<Vec<u8>> {
    let mut model = ModelProto::parse(file)?;
    if let Some(graph) = &mut model.graph {
        open_maps(graph);
    }
    Ok(model.encode_to_vec())
}

/// Opens a pipeline, and says what its numbers are called.
pub(super) fn open(graph: &mut GraphProto) -> Words {
    leave_out_unread_text(graph);
    if !graph.node.iter().any(is_classical) {
        return Words::default();
    }
    let mut words = Words { classes: classes(graph), ..Words::default() };
    open_maps(graph);
    leave_out_words(graph, &mut words);
    words.levels = columns::open(graph);
    words
}

pub(super) fn is_classical(node: &NodeProto) -> bool {
    node.domain.as_deref() == Some(CLASSICAL_DOMAIN)
}

pub(super) fn is(node: &NodeProto, op: &str) -> bool {
    is_classical(node) && node.op_type.as_deref() == Some(op)
}

pub(super) fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
}

/// Words or whole numbers, as words.
pub(super) fn listed(node: &NodeProto, words: &str, numbers: &str) -> Vec<String> {
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let found: Vec<String> =
        attribute(node, words).map(|a| a.strings.iter().map(text).collect()).unwrap_or_default();
    if !found.is_empty() {
        return found;
    }
    attribute(node, numbers).map(|a| a.ints.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

/// A tensor with a batch axis and, where it is known, one size more.
pub(super) fn tensor(name: &str, dtype: DType, size: Option<usize>) -> ValueInfoProto {
    let batch = DimensionProto { dim_value: None, dim_param: Some("N".to_string()) };
    let size = DimensionProto { dim_value: size.map(|n| n as i64), dim_param: None };
    let shape = Some(TensorShapeProto { dim: vec![batch, size] });
    let tensor_type = Some(TensorTypeProto { elem_type: Some(dtype.code()), shape });
    ValueInfoProto { name: Some(name.to_string()), r#type: Some(TypeProto { tensor_type }) }
}

/// The names of the classes, from whichever node has them; none where they are only places.
fn classes(graph: &GraphProto) -> Vec<String> {
    let of = |node: &NodeProto| match node.op_type.as_deref().unwrap_or("") {
        "ZipMap" | "TreeEnsembleClassifier" => listed(node, "classlabels_strings", "classlabels_int64s"),
        "LinearClassifier" | "SVMClassifier" => listed(node, "classlabels_strings", "classlabels_ints"),
        // A network picks its label from a list.
        "ArrayFeatureExtractor" => {
            let list = node.input.first().and_then(|name| {
                graph.initializer.iter().find(|tensor| tensor.name.as_deref() == Some(name.as_str()))
            });
            list.map(names).unwrap_or_default()
        }
        _ => Vec::new(),
    };
    let found =
        graph.node.iter().rev().filter(|node| is_classical(node)).map(of).find(|names| names.len() > 1);
    let found = found.unwrap_or_default();
    let places = found.iter().enumerate().all(|(place, name)| *name == place.to_string());
    if places { Vec::new() } else { found }
}

/// The elements of a list of words or whole numbers.
fn names(tensor: &TensorProto) -> Vec<String> {
    if tensor.dims.len() != 1 {
        return Vec::new();
    }
    let text = |bytes: &bytes::Bytes| String::from_utf8_lossy(bytes).into_owned();
    let words = tensor.string_data.iter().map(text);
    let numbers = tensor.int64_data.iter().map(ToString::to_string);
    let short = tensor.int32_data.iter().map(ToString::to_string);
    words.chain(numbers).chain(short).collect()
}

/// A map for each row becomes the row of its numbers.
fn open_maps(graph: &mut GraphProto) {
    for node in graph.node.iter_mut().filter(|node| is(node, "ZipMap")) {
        let classes = listed(node, "classlabels_strings", "classlabels_int64s").len();
        if let Some(name) = node.output.first()
            && let Some(output) = graph.output.iter_mut().find(|o| o.name.as_deref() == Some(name.as_str()))
        {
            *output = tensor(name, DType::F32, (classes > 0).then_some(classes));
        }
        node.op_type = Some("Identity".to_string());
        node.domain = None;
        node.attribute.clear();
    }
}

/// Outputs that are no tensors of numbers go, where others are left, and with them what only they need.
fn leave_out_words(graph: &mut GraphProto, words: &mut Words) {
    let (numbers, others): (Vec<_>, Vec<_>) = graph.output.iter().cloned().partition(is_of_numbers);
    if numbers.is_empty() || others.is_empty() {
        return;
    }
    words.left_out = others.into_iter().filter_map(|output| output.name).collect();
    graph.output = numbers;
    prune(graph);
}

/// Columns of text that a data frame had and the pipeline drops.
fn leave_out_unread_text(graph: &mut GraphProto) {
    let read: BTreeSet<String> = graph.node.iter().flat_map(uses).collect();
    graph
        .input
        .retain(|input| is_of_numbers(input) || input.name.as_ref().is_none_or(|name| read.contains(name)));
}

fn is_of_numbers(value: &ValueInfoProto) -> bool {
    let tensor = value.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    tensor.and_then(|tensor| DType::from_code(tensor.elem_type?)).is_some()
}

/// Removes nodes, and constants, that no output needs.
pub(super) fn prune(graph: &mut GraphProto) {
    let mut needed: BTreeSet<String> = graph.output.iter().filter_map(|output| output.name.clone()).collect();
    // Nodes need not be in order yet: a pass that finds nothing new is the last.
    loop {
        let before = needed.len();
        for node in graph.node.iter().rev() {
            if node.output.iter().any(|output| needed.contains(output)) {
                needed.extend(uses(node));
            }
        }
        if needed.len() == before {
            break;
        }
    }
    graph.node.retain(|node| node.output.iter().any(|output| needed.contains(output)));
    graph.initializer.retain(|tensor| needed.contains(tensor.name.as_deref().unwrap_or("")));
}

/// All names that a node reads, in its bodies too.
fn uses(node: &NodeProto) -> Vec<String> {
    let mut names = node.input.clone();
    for body in node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs)) {
        names.extend(body.node.iter().flat_map(uses));
        names.extend(body.output.iter().filter_map(|output| output.name.clone()));
    }
    names.retain(|name| !name.is_empty());
    names
}
