//! A graph in stages: parts that RTen runs, and nodes between them that a kernel computes.

use std::collections::{BTreeMap, BTreeSet};

use onnx_grad::shapes::Facts;
use onnx_grad::{DType, Graph, Node, ValueInfo, fused};

use crate::error::Result;

/// One step of a graph.
#[derive(Debug)]
pub(super) enum Stage {
    /// For the engine. Its inputs are values of the whole graph; its outputs are what later stages or the caller need.
    Part(Graph),
    /// For a kernel.
    Kernel(Node),
}

/// The stages of a graph in the order in which they run. A graph without fused operators is one part, as it is.
pub(super) fn cut(graph: &Graph) -> Result<Vec<Stage>> {
    if !fused::has_any(graph) {
        return Ok(vec![Stage::Part(graph.clone())]);
    }
    let facts = Facts::of(graph)?;
    let mut there: BTreeSet<&str> = graph.inputs.iter().map(|input| input.name.as_str()).collect();
    there.extend(graph.initializers.keys().map(String::as_str));
    let mut waiting: Vec<&Node> = graph.nodes.iter().collect();
    let mut groups: Vec<Vec<&Node>> = Vec::new();
    while !waiting.is_empty() {
        let (part, rest) = ready(waiting, &mut there, |node| !node.is_fused());
        let (kernels, rest) = ready(rest, &mut there, Node::is_fused);
        if part.is_empty() && kernels.is_empty() {
            // Nothing but a cycle can be left, which validation has ruled out.
            break;
        }
        groups.push(part);
        groups.extend(kernels.into_iter().map(|kernel| vec![kernel]));
        waiting = rest;
    }
    // From the last stage to the first, what is needed after each.
    let mut needed: BTreeSet<&str> = graph.outputs.iter().map(|output| output.name.as_str()).collect();
    let mut stages = Vec::new();
    for group in groups.into_iter().rev().filter(|group| !group.is_empty()) {
        let used: BTreeSet<&str> = group.iter().flat_map(|node| uses(node)).collect();
        stages.push(match group.as_slice() {
            [kernel] if kernel.is_fused() => Stage::Kernel((*kernel).clone()),
            nodes => Stage::Part(part(graph, &facts, nodes, &used, &needed)),
        });
        needed.extend(used);
    }
    stages.reverse();
    Ok(stages)
}

/// Those nodes of a kind that can run, also one after the other, and all that are left, in their order.
fn ready<'a>(
    nodes: Vec<&'a Node>,
    there: &mut BTreeSet<&'a str>,
    kind: impl Fn(&Node) -> bool,
) -> (Vec<&'a Node>, Vec<&'a Node>) {
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for node in nodes {
        if kind(node) && uses(node).all(|value| there.contains(value)) {
            there.extend(node.wanted_outputs());
            now.push(node);
        } else {
            later.push(node);
        }
    }
    (now, later)
}

/// The values that a node needs, its bodies included.
fn uses(node: &Node) -> impl Iterator<Item = &str> {
    node.given_inputs().chain(node.bodies().flat_map(Graph::free_names))
}

/// Some nodes as a graph of their own.
fn part(
    graph: &Graph,
    facts: &Facts,
    nodes: &[&Node],
    used: &BTreeSet<&str>,
    needed: &BTreeSet<&str>,
) -> Graph {
    let info = |name: &str| {
        let fact = facts.get(name);
        let dtype = fact.dtype.unwrap_or(DType::F32);
        ValueInfo { name: name.to_string(), dtype, shape: fact.shape.clone() }
    };
    let made: BTreeSet<&str> = nodes.iter().flat_map(|node| node.wanted_outputs()).collect();
    let constant = |name: &str| graph.initializers.contains_key(name);
    let inputs = used.iter().filter(|name| !made.contains(*name) && !constant(name));
    let outputs = made.iter().filter(|name| needed.contains(*name));
    let initializers: BTreeMap<_, _> = used
        .iter()
        .filter_map(|name| Some((name.to_string(), graph.initializers.get(*name)?.clone())))
        .collect();
    Graph {
        name: graph.name.clone(),
        inputs: inputs.map(|name| info(name)).collect(),
        outputs: outputs.map(|name| info(name)).collect(),
        nodes: nodes.iter().map(|node| (*node).clone()).collect(),
        initializers,
        ..Graph::default()
    }
}
