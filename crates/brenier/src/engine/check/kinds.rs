//! Which nodes of a graph are of the same kind, so that one of them speaks for all.

use std::collections::BTreeMap;

use onnx_grad::shapes::{Fact, Facts};
use onnx_grad::{DType, Dim, Graph, Node};

/// Constants of up to this many elements say what a node does, as attributes would: sizes, axes, bounds.
const TELLING: usize = 64;
/// As above, for floats: scales of a `Resize`, bounds of a `Clip`.
const TELLING_FLOATS: usize = 8;

/// A node that speaks for all of its kind.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) node: Node,
    /// Its place among the nodes.
    pub(super) place: usize,
    /// The element types of its outputs, where they are wanted.
    pub(super) outputs: Vec<Option<DType>>,
    /// The element types of what it takes from other nodes and from the graph around its bodies.
    pub(super) inputs: BTreeMap<String, DType>,
}

impl Kind {
    pub(super) fn label(&self) -> String {
        self.node.label()
    }

    /// One node of each kind, the one with the smallest values. Fails where nothing can be asked for, with the reason.
    pub(super) fn all(graph: &Graph, most_bytes: u64) -> Result<Vec<Kind>, String> {
        let facts = Facts::of(graph).map_err(|e| format!("all of it ({e})"))?;
        let mut kinds: BTreeMap<String, (u64, Kind)> = BTreeMap::new();
        for (place, node) in graph.nodes.iter().enumerate() {
            let size: u64 =
                node.given_inputs().chain(node.wanted_outputs()).map(|v| elements(facts.get(v))).sum();
            let key = key(graph, node, &facts);
            if kinds.get(&key).is_some_and(|(other, _)| *other <= size) {
                continue;
            }
            let outputs = node
                .outputs
                .iter()
                .map(|name| Some(name).filter(|n| !n.is_empty()).and_then(|n| facts.get(n).dtype))
                .collect();
            let free = node.bodies().flat_map(Graph::free_names);
            let taken = node.given_inputs().chain(free).filter(|n| !graph.initializers.contains_key(*n));
            let inputs = taken.filter_map(|n| Some((n.to_string(), facts.get(n).dtype?))).collect();
            kinds.insert(key, (size, Kind { node: node.clone(), place, outputs, inputs }));
        }
        let bytes: u64 = kinds.values().map(|(size, _)| 8 * size).sum();
        if bytes > most_bytes {
            return Err(format!("all of it (its inner values take {} GB)", bytes >> 30));
        }
        Ok(kinds.into_values().map(|(_, kind)| kind).collect())
    }
}

fn elements(fact: &Fact) -> u64 {
    let size = |dim: &Dim| match dim {
        Dim::Known(n) => u64::try_from(*n).unwrap_or(1),
        _ => super::ROWS as u64,
    };
    fact.shape.iter().flatten().map(size).fold(1, u64::saturating_mul)
}

/// Equal for nodes of the same kind.
fn key(graph: &Graph, node: &Node, facts: &Facts) -> String {
    let mut key = format!("{}::{} {:?}", node.domain, node.op, node.attributes);
    for name in &node.inputs {
        let fact = facts.get(name);
        let rank = fact.rank();
        key.push_str(&match (graph.initializers.get(name), &fact.constant) {
            _ if name.is_empty() => " -".to_string(),
            (_, Some(c)) if c.len() <= if c.dtype().is_float() { TELLING_FLOATS } else { TELLING } => {
                format!(" {:?}{:?}", c, c.to_f64())
            }
            (Some(weights), _) => format!(" {}{:?}", weights.dtype(), weights.shape()),
            // What is broadcast is of another kind than what is not.
            _ => {
                let ones: Vec<bool> = fact.shape.iter().flatten().map(|d| d.known() == Some(1)).collect();
                format!(" {:?}{rank:?}{ones:?}", fact.dtype)
            }
        });
    }
    key
}
