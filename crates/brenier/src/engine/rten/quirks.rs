//! What RTen does otherwise than ONNX says, put right before a model is loaded.
//!
//! - `Sign` returns 1 at 0 where ONNX has 0: it is spelled out as `sign(x) = [x > 0] - [x < 0]`.
//! - `ArgMax` and `ArgMin` return the last of equals where ONNX has the first: see `arg`.
//! - Operators that it computes otherwise in some of their forms, such as `Resize` with cubic interpolation, are spelled out
//!   in others: see `spelling`.
//! - Operators that it lacks, such as `Selu`, are spelled out in simpler ones, as they are before differentiation.
//! - Two outputs that are the same value, such as the gradients of `a + b`, are refused: the value is
//!   returned once and handed out twice.

use std::collections::{BTreeMap, BTreeSet};

use onnx_grad::{
    Attribute, Graph, Model, Node, TensorData, Treatment, ValueInfo, coverage, lower, shapes::Facts,
};

use super::{arg, spelling};
use crate::error::Result;

/// The model without operators that RTen lacks or computes otherwise than ONNX says.
pub(super) fn spell_out(model: &Model) -> Result<Model> {
    let mut model = model.clone();
    let spelled: Vec<&str> = coverage()
        .into_iter()
        .filter_map(|known| (known.treatment == Treatment::SpelledOut).then_some(known.op))
        .collect();
    // Padding that follows from sizes is written in numbers there: RTen takes SAME_LOWER for SAME_UPPER.
    let padded = |node: &Node| node.string("auto_pad", "NOTSET").starts_with("SAME");
    let lowered = |node: &Node| padded(node) || spelled.iter().any(|op| node.is(op));
    if model.graph.nodes.iter().any(lowered) {
        model.graph = lower(&model.graph, &[])?;
    }
    spelling::refuse(&model.graph)?;
    if model.graph.nodes.iter().any(spelling::concerns) {
        model.graph = onnx_grad::rewrite(&model.graph, spelling::spell)?;
    }
    if differs(&model.graph) {
        let facts = Facts::of(&model.graph)?;
        rewrite(&mut model.graph, &facts);
    }
    Ok(model)
}

fn differs(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| node.is("Sign") || arg::concerns(node) || node.bodies().any(differs))
}

fn rewrite(graph: &mut Graph, facts: &Facts) {
    let mut nodes = Vec::with_capacity(graph.nodes.len());
    for mut node in std::mem::take(&mut graph.nodes) {
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(body) = attribute {
                rewrite(body, facts);
            }
        }
        if arg::concerns(&node) {
            nodes.extend(arg::spell_out(node, graph, facts));
            continue;
        }
        let (Some(x), Some(y), true) = (node.input(0), node.output(0), node.is("Sign")) else {
            nodes.push(node);
            continue;
        };
        let dtype = facts.get(x).dtype.unwrap_or(onnx_grad::DType::F32);
        let name = |part: &str| format!("{y}/sign.{part}");
        let zero = name("zero");
        graph.initializers.insert(zero.clone(), TensorData::scalar(dtype, 0.0));
        let mut sides = Vec::new();
        for op in ["Greater", "Less"] {
            let (mask, number) = (name(op), name(&format!("{op}.number")));
            nodes.push(Node::new(op, &[x, &zero], &[&mask]));
            let to = Attribute::Int(i64::from(dtype.code()));
            nodes.push(Node::new("Cast", &[&mask], &[&number]).with("to", to));
            sides.push(number);
        }
        let mut difference = Node::new("Sub", &[&sides[0], &sides[1]], &[y]);
        difference.name = node.name.clone();
        nodes.push(difference);
    }
    graph.nodes = nodes;
}

/// What each value is, behind nodes that do nothing. An input or a constant is copied once for its caller, and all copies
/// of it are that one. Nodes whose result a body uses stay.
fn roots(graph: &Graph) -> BTreeMap<String, String> {
    let free: BTreeSet<&str> =
        graph.nodes.iter().flat_map(|node| node.bodies().flat_map(Graph::free_names)).collect();
    let mut made = BTreeSet::new();
    let mut roots: BTreeMap<String, String> = BTreeMap::new();
    let mut copies: BTreeMap<&str, &str> = BTreeMap::new();
    for node in &graph.nodes {
        if let (true, Some(x), Some(y)) = (node.is("Identity"), node.input(0), node.output(0))
            && !free.contains(y)
        {
            let root = roots.get(x).map_or(x, String::as_str);
            let root = if made.contains(root) { root } else { copies.entry(x).or_insert(y) };
            if root != y {
                roots.insert(y.to_string(), root.to_string());
                continue;
            }
        }
        made.extend(node.wanted_outputs());
    }
    roots
}

/// Makes outputs unique; the place of each old output among the new ones.
pub(super) fn merge_outputs(graph: &mut Graph) -> Vec<usize> {
    let roots = roots(graph);
    for node in &mut graph.nodes {
        for input in &mut node.inputs {
            if let Some(root) = roots.get(input) {
                input.clone_from(root);
            }
        }
    }
    let mut kept: Vec<ValueInfo> = Vec::new();
    let mut places = Vec::new();
    for output in &graph.outputs {
        let name = roots.get(&output.name).unwrap_or(&output.name);
        places.push(kept.iter().position(|other| other.name == *name).unwrap_or_else(|| {
            kept.push(ValueInfo { name: name.clone(), ..output.clone() });
            kept.len() - 1
        }));
    }
    graph.outputs = kept;
    graph.prune();
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_grad::{Builder, DType};

    #[test]
    fn the_same_value_is_returned_once() {
        let mut b = Builder::new("twice");
        let x = b.input("x", DType::F32, &[2usize.into()]);
        let (y, z) = (b.op("Exp", &[&x]), b.op("Neg", &[&x]));
        for (name, value) in [("a", &y), ("b", &z), ("c", &y)] {
            b.output(name, value);
        }
        let mut graph = b.finish().unwrap();
        assert_eq!(merge_outputs(&mut graph), [0, 1, 0]);
        assert_eq!(graph.outputs.len(), 2);
        graph.validate().unwrap();
    }
}
