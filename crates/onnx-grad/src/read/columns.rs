//! Columns of a table that are inputs of their own, as exporters write a pipeline that was fitted on a data frame.
//!
//! A column of categories goes into an encoder. Here it becomes a one-hot row, `[N, levels]`, and the encoder a product with its
//! table of codes: the same numbers for every level, and a gradient for each, so that the credit of the column is the sum over its
//! levels. A column of whole numbers that nothing encodes becomes one of floats. What is not understood stays as it is.

use std::collections::BTreeMap;

use super::pipeline::{attribute, is, listed, tensor};
use crate::proto::{GraphProto, NodeProto, TensorProto, ValueInfoProto};
use crate::tensor::DType;

/// The element type of text.
const TEXT: i32 = 8;

/// Opens columns of categories and of whole numbers; gives the levels of the former.
pub(super) fn open(graph: &mut GraphProto) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for i in 0..graph.input.len() {
        let Some(name) = graph.input[i].name.clone() else { continue };
        let Some(kind) = column_type(&graph.input[i]) else { continue };
        pick_directly(graph, &name);
        let whole = kind != TEXT && DType::from_code(kind).is_some_and(|dtype| !dtype.is_float());
        if kind != TEXT && !whole {
            continue;
        }
        let readers: Vec<usize> =
            (0..graph.node.len()).filter(|&n| graph.node[n].input.contains(&name)).collect();
        let encoders: Option<Vec<(Vec<String>, Codes)>> =
            readers.iter().map(|&n| encoder(&graph.node[n])).collect();
        match encoders.and_then(agreed) {
            Some((levels, codes)) => {
                for (reader, codes) in readers.into_iter().zip(codes) {
                    encode(graph, reader, &name, levels.len(), codes);
                }
                graph.input[i] = tensor(&name, DType::F32, Some(levels.len()));
                found.insert(name, levels);
            }
            None if whole && only_numbers(graph, &readers) => {
                graph.input[i] = tensor(&name, DType::F32, Some(1));
            }
            None => {}
        }
    }
    found
}

/// Whoever reads the first column of an input that has no other reads the input itself.
fn pick_directly(graph: &mut GraphProto, name: &str) {
    let first = |index: &String| {
        graph.initializer.iter().any(|tensor| {
            tensor.name.as_ref() == Some(index)
                && tensor.dims == [1]
                && (tensor.int64_data == [0] || tensor.raw_data.as_ref().is_some_and(|raw| **raw == [0; 8]))
        })
    };
    let picks = |node: &NodeProto| {
        let by_axis =
            node.op_type.as_deref() == Some("Gather") && attribute(node, "axis").and_then(|a| a.i) == Some(1);
        node.input.first().is_some_and(|input| input == name)
            && (by_axis || is(node, "ArrayFeatureExtractor"))
            && node.input.get(1).is_some_and(first)
    };
    let picked: Vec<String> = graph
        .node
        .iter()
        .filter(|node| picks(node))
        .filter_map(|node| node.output.first().cloned())
        .collect();
    graph.node.retain(|node| !node.output.first().is_some_and(|output| picked.contains(output)));
    for input in graph.node.iter_mut().flat_map(|node| &mut node.input) {
        if picked.contains(input) {
            *input = name.to_string();
        }
    }
}

/// What an encoder gives for its levels, in their order.
enum Codes {
    /// 1 in the place of the level, on an axis of its own.
    OneHot,
    /// A number for each level.
    Numbers(Vec<f32>),
}

/// The element type of an input that is one column, `[N, 1]`.
fn column_type(input: &ValueInfoProto) -> Option<i32> {
    let tensor = input.r#type.as_ref()?.tensor_type.as_ref()?;
    let [_, size] = tensor.shape.as_ref()?.dim.as_slice() else { return None };
    (size.dim_value == Some(1)).then_some(tensor.elem_type?)
}

/// The levels and codes of a node that encodes categories.
fn encoder(node: &NodeProto) -> Option<(Vec<String>, Codes)> {
    if is(node, "OneHotEncoder") {
        let levels = listed(node, "cats_strings", "cats_int64s");
        return (!levels.is_empty()).then_some((levels, Codes::OneHot));
    }
    if !is(node, "LabelEncoder") {
        return None;
    }
    let levels = listed(node, "keys_strings", "keys_int64s");
    let whole = attribute(node, "values_int64s").map(|a| a.ints.as_slice()).unwrap_or_default();
    let decimal = attribute(node, "values_floats").map(|a| a.floats.as_slice()).unwrap_or_default();
    let codes: Vec<f32> = whole.iter().map(|&v| v as f32).chain(decimal.iter().copied()).collect();
    (!levels.is_empty() && codes.len() == levels.len()).then_some((levels, Codes::Numbers(codes)))
}

/// The levels, where all encoders of a column have the same.
fn agreed(encoders: Vec<(Vec<String>, Codes)>) -> Option<(Vec<String>, Vec<Codes>)> {
    let levels = encoders.first()?.0.clone();
    let same = encoders.iter().all(|(other, _)| *other == levels);
    same.then(|| (levels, encoders.into_iter().map(|(_, codes)| codes).collect()))
}

/// Puts an operation on the one-hot row in the place of an encoder.
fn encode(graph: &mut GraphProto, reader: usize, input: &str, levels: usize, codes: Codes) {
    let output = graph.node[reader].output.first().cloned().unwrap_or_default();
    let constant = format!("{output}/codes");
    let (op, tensor) = match codes {
        Codes::OneHot => ("Reshape", whole_numbers(&constant, &[-1, 1, levels as i64])),
        Codes::Numbers(codes) => {
            let (dims, data_type) = (vec![codes.len() as i64, 1], Some(DType::F32.code()));
            let name = Some(constant.clone());
            ("MatMul", TensorProto { dims, data_type, name, float_data: codes, ..TensorProto::default() })
        }
    };
    let node = &mut graph.node[reader];
    node.op_type = Some(op.to_string());
    node.domain = None;
    node.attribute.clear();
    node.input = vec![input.to_string()];
    node.input.push(constant);
    graph.initializer.push(tensor);
}

fn whole_numbers(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        dims: vec![values.len() as i64],
        data_type: Some(DType::I64.code()),
        name: Some(name.to_string()),
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// Whether all readers take whole numbers and floats alike.
fn only_numbers(graph: &GraphProto, readers: &[usize]) -> bool {
    let takes_any = |&n: &usize| {
        let node = &graph.node[n];
        is(node, "Scaler") || is(node, "FeatureVectorizer") || node.op_type.as_deref() == Some("Cast")
    };
    readers.iter().all(takes_any)
}
