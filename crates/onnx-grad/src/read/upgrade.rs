//! Operators of opsets 11 to 17 in the form of opset 18.
//!
//! Between those versions some attributes became inputs (`axes` of the reductions, `Squeeze` and
//! `Unsqueeze`; `split` of `Split`), and `Softmax` stopped flattening its input. Graphs of opset 18 and
//! later are left as they are: what changed since then are only element types, and operators that
//! [`crate::lower`] spells out.

use crate::error::{Error, Result};
use crate::graph::{Attribute, Graph, Model, Node};
use crate::tensor::{DType, TensorData};

/// The dialect that everything after reading speaks; newer models keep their own version.
pub(crate) const DIALECT: i64 = 18;
/// The first file format version that may hold opset 18.
pub(crate) const DIALECT_IR: i64 = 8;

pub(super) fn upgrade(model: &mut Model) -> Result<()> {
    upgrade_graph(&mut model.graph, model.opset, "")?;
    model.opset = model.opset.max(DIALECT);
    model.ir_version = model.ir_version.max(DIALECT_IR);
    Ok(())
}

/// Brings nodes of version `opset` to the dialect; names of new values start with `prefix`.
pub(super) fn upgrade_graph(graph: &mut Graph, opset: i64, prefix: &str) -> Result<()> {
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for (i, mut node) in std::mem::take(&mut graph.nodes).into_iter().enumerate() {
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(body) = attribute {
                upgrade_graph(body, opset, &format!("{prefix}body.{i}."))?;
            }
        }
        if !node.is_standard() {
            nodes.push(node);
            continue;
        }
        match node.op.as_str() {
            "Upsample" => upsample(&mut node, graph, &format!("{prefix}upgrade.{i}"))?,
            "Scatter" => node.op = "ScatterElements".to_string(),
            op if opset < 18 && (op.starts_with("Reduce") || op == "Squeeze" || op == "Unsqueeze") => {
                attribute_to_input(&mut node, graph, "axes", &format!("{prefix}upgrade.{i}.axes"));
            }
            "Split" if opset < 18 => {
                attribute_to_input(&mut node, graph, "split", &format!("{prefix}upgrade.{i}.split"));
                if node.input(1).is_none() {
                    let parts = node.outputs.len() as i64;
                    node = node.with("num_outputs", parts);
                }
            }
            "Softmax" | "LogSoftmax" | "Hardmax" if opset < 13 => {
                nodes.extend(flattening_softmax(node, &format!("{prefix}upgrade.{i}")));
                continue;
            }
            "BatchNormalization" if opset < 14 => node.outputs.truncate(1),
            _ => {}
        }
        nodes.push(node);
    }
    graph.nodes = nodes;
    Ok(())
}

/// A new initializer, under this name or one that is not taken.
fn constant(graph: &mut Graph, name: &str, data: TensorData) -> String {
    let mut name = name.to_string();
    while graph.initializers.contains_key(&name) {
        name.push('+');
    }
    graph.initializers.insert(name.clone(), data);
    name
}

/// `axes=[1]` becomes a second input that holds `[1]`.
fn attribute_to_input(node: &mut Node, graph: &mut Graph, attribute: &str, name: &str) {
    if let Some(Attribute::Ints(values)) = node.attributes.remove(attribute) {
        let name = constant(graph, name, TensorData::ints(&values));
        node.inputs.truncate(1);
        node.inputs.push(name);
    }
}

/// Before opset 13, `Softmax` saw its input as a matrix: all axes before `axis` by all from there on.
fn flattening_softmax(node: Node, prefix: &str) -> Vec<Node> {
    let input = node.input(0).unwrap_or("").to_string();
    let output = node.output(0).unwrap_or("").to_string();
    let name = |part: &str| format!("{prefix}.{part}");
    let (shape, matrix, result) = (name("shape"), name("matrix"), name("softmax"));
    let mut softmax = Node::new(&node.op, &[&matrix], &[&result]).with("axis", -1i64);
    softmax.name = node.name.clone();
    vec![
        Node::new("Shape", &[&input], &[&shape]),
        Node::new("Flatten", &[&input], &[&matrix]).with("axis", node.int("axis", 1)),
        softmax,
        Node::new("Reshape", &[&result, &shape], &[&output]),
    ]
}

/// `Upsample` was renamed to `Resize` with the coordinates it always had.
fn upsample(node: &mut Node, graph: &mut Graph, prefix: &str) -> Result<()> {
    let scales = match node.attributes.remove("scales") {
        Some(Attribute::Floats(values)) => {
            constant(graph, &format!("{prefix}.scales"), TensorData::f32(&[values.len()], &values))
        }
        _ => node
            .input(1)
            .map(str::to_string)
            .ok_or_else(|| Error::Node { node: node.label(), reason: "it has no scales".to_string() })?,
    };
    let mode = node.string("mode", "nearest").to_string();
    let roi = constant(graph, &format!("{prefix}.roi"), TensorData::from_f64(DType::F32, &[0], &[]));
    let input = node.input(0).unwrap_or("").to_string();
    node.op = "Resize".to_string();
    node.inputs = vec![input, roi, scales];
    *node = std::mem::take(node)
        .with("mode", mode)
        .with("coordinate_transformation_mode", "asymmetric")
        .with("nearest_mode", "floor");
    Ok(())
}
