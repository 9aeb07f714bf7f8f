//! A graph cut at one of its inner values: behind the cut the value is an input.
//!
//! ```text
//! ids -> Gather -> e [N, T, E] -> ... -> scores        becomes    ids -> e      and    e -> ... -> scores
//! ```
//!
//! What an inner value is given credit for is then what any input is given credit for. Ids have no gradient, but the vectors
//! that they choose have one: [`embeddings`] finds where they are.

use std::collections::BTreeMap;

use ndarray::Array2;
use onnx_grad::{Dim, Graph, ValueInfo, shapes::Facts};

use crate::error::{Error, Remedy, Result};

/// Operators that hand ids on as they are, or moved by a constant.
const CARRIERS: [&str; 9] =
    ["Add", "Cast", "Clip", "Expand", "Identity", "Reshape", "Squeeze", "Sub", "Unsqueeze"];

/// A value of vectors that ids choose from a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Embedding {
    /// The value's name in the graph.
    pub value: String,
    /// The input of ids.
    pub ids: String,
    /// The number of vectors in the table.
    pub entries: usize,
    /// The length of a vector.
    pub width: usize,
}

/// The embeddings of a graph's integer inputs, in the order of the graph.
pub fn embeddings(graph: &Graph) -> Vec<Embedding> {
    let ids = graph.inputs.iter().filter(|input| !input.dtype.is_float());
    let mut source: BTreeMap<&str, &str> =
        ids.map(|input| (input.name.as_str(), input.name.as_str())).collect();
    let mut found = Vec::new();
    for node in &graph.nodes {
        if CARRIERS.iter().any(|op| node.is(op)) {
            let from = node.given_inputs().find_map(|input| source.get(input).copied());
            if let (Some(from), Some(output)) = (from, node.output(0)) {
                source.insert(output, from);
            }
        } else if node.is("Gather") && node.int("axis", 0) == 0 {
            let table = node.input(0).and_then(|name| graph.initializers.get(name));
            let ids = node.input(1).and_then(|name| source.get(name));
            if let (Some(table), Some(ids), Some(value)) = (table, ids, node.output(0))
                && let (true, &[entries, width]) = (table.dtype().is_float(), table.shape())
            {
                found.push(Embedding { value: value.to_string(), ids: ids.to_string(), entries, width });
            }
        }
    }
    found
}

/// The table that the vectors of a value are chosen from.
pub(super) fn table_of(graph: &Graph, value: &str) -> Option<Array2<f64>> {
    let node = graph.nodes.iter().find(|node| node.is("Gather") && node.output(0) == Some(value))?;
    let table = graph.initializers.get(node.input(0)?)?;
    let &[entries, width] = table.shape() else { return None };
    let numbers = table.to_f32().iter().map(|v| f64::from(*v)).collect();
    Array2::from_shape_vec((entries, width), numbers).ok()
}

/// The name of the value that a user means: a value, or the first output of a node.
pub(super) fn value_of(graph: &Graph, name: &str) -> Result<String> {
    let found = graph.nodes.iter().find_map(|node| {
        let own = node.wanted_outputs().find(|output| *output == name);
        own.or(if node.name == name { node.output(0) } else { None })
    });
    found.map(str::to_string).ok_or_else(|| {
        let outputs: Vec<&str> = graph.nodes.iter().flat_map(|node| node.wanted_outputs()).collect();
        let near = crate::nearest_name(name, &outputs);
        Error::Inputs {
            reason: match near {
                Some(near) => format!("the model has no inner value '{name}'; the nearest name is '{near}'"),
                None => format!("the model has no inner value '{name}'"),
            },
            remedy: Remedy::ListInnerValues,
        }
    })
}

/// The part of a graph that computes a value.
pub(super) fn before(graph: &Graph, value: &str, info: &ValueInfo) -> Graph {
    let mut part = graph.clone();
    part.outputs = vec![ValueInfo { name: value.to_string(), ..info.clone() }];
    part.prune();
    drop_unused_inputs(&mut part);
    part
}

/// Makes an input of a value; sizes of the graph's own inputs must be known.
pub(super) fn cut(graph: &mut Graph, value: &str) -> Result<ValueInfo> {
    let refused = |reason: String, remedy: &'static str| Error::Inputs { reason, remedy: remedy.into() };
    if graph.output(value).is_some() {
        let reason = format!("'{value}' is the output that is explained");
        return Err(refused(reason, "name a value between input and output"));
    }
    let facts = Facts::of(graph)?;
    let fact = facts.get(value);
    let Some(dtype) = fact.dtype.filter(|dtype| dtype.is_float()) else {
        let reason = format!("'{value}' holds no floats");
        return Err(refused(reason, "name a value of floats: credit is for numbers that can move a little"));
    };
    let shape = fact.shape.clone().filter(|s| s.len() > 1 && s[1..].iter().all(|d| d.known().is_some()));
    let Some(shape) = shape else {
        let reason = format!("the shape of '{value}' is not known, or it has no axis for examples");
        return Err(refused(reason, "name a value [batch, ...] whose other sizes are fixed"));
    };
    let info = ValueInfo { name: value.to_string(), dtype, shape: Some(shape) };
    for node in &mut graph.nodes {
        for output in node.outputs.iter_mut().filter(|output| *output == value) {
            *output = format!("{value}/computed");
        }
    }
    graph.value_info.remove(value);
    graph.inputs.push(info.clone());
    graph.prune();
    if !graph.free_names().contains(value) && graph.use_counts().get(value).copied().unwrap_or(0) == 0 {
        let reason = format!("the explained output does not depend on '{value}'");
        return Err(refused(reason, "name a value between input and output"));
    }
    drop_unused_inputs(graph);
    Ok(info)
}

/// Leaves out inputs that nothing uses.
pub(super) fn drop_unused_inputs(graph: &mut Graph) {
    let used: Vec<String> = graph.use_counts().keys().map(|name| name.to_string()).collect();
    graph.inputs.retain(|input| used.contains(&input.name));
}

/// The sizes of an example, where the file says them.
pub(super) fn declared(input: &ValueInfo) -> Option<Vec<Option<usize>>> {
    let size = |dim: &Dim| dim.known().and_then(|n| usize::try_from(n).ok());
    input.shape.as_ref().map(|shape| shape.iter().skip(1).map(size).collect())
}
