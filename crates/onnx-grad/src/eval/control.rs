//! Running graphs: names to values, bodies inside the graph around them.

use std::collections::BTreeMap;

use super::call::{Call, Limits, element_count};
use super::{Array, evaluate_node};
use crate::error::{Error, Result};
use crate::graph::{Attribute, Graph, Node};
use crate::tensor::DType;

/// The values known while a graph runs.
pub(super) struct Scope<'a> {
    given: &'a BTreeMap<String, Array>,
    computed: BTreeMap<&'a str, Array>,
    outer: Option<&'a Scope<'a>>,
}

impl Scope<'_> {
    fn get(&self, name: &str) -> Option<&Array> {
        let here = self.computed.get(name).or_else(|| self.given.get(name));
        here.or_else(|| self.outer.and_then(|outer| outer.get(name)))
    }
}

/// Evaluates a graph; a body also sees the values around it.
pub(super) fn run(
    graph: &Graph,
    given: &BTreeMap<String, Array>,
    outer: Option<&Scope<'_>>,
) -> Result<Vec<Array>> {
    let mut scope = Scope { given, computed: BTreeMap::new(), outer };
    for (name, tensor) in &graph.initializers {
        if element_count(tensor.shape(), Limits::EVALUATION).is_none() {
            return Err(Error::Invalid {
                reason: format!(
                    "initializer '{name}' of shape {:?} is too large to evaluate; run the graph in an engine",
                    tensor.shape()
                ),
            });
        }
        scope.computed.insert(name, Array::from(tensor));
    }
    for node in &graph.nodes {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            inputs.push(match name.as_str() {
                "" => None,
                name => Some(scope.get(name).ok_or_else(|| Error::Invalid {
                    reason: format!("node {} needs '{name}'; give it as an input", node.label()),
                })?),
            });
        }
        let outputs =
            if node.is("If") { branch(node, &inputs, &scope)? } else { evaluate_node(node, &inputs)? };
        if let Some(i) = (outputs.len()..node.outputs.len()).find(|&i| node.output(i).is_some()) {
            return Err(Error::NotEvaluable {
                node: node.label(),
                reason: format!("it has no output {i} here"),
            });
        }
        let named = node.outputs.iter().map(String::as_str).zip(outputs);
        scope.computed.extend(named.filter(|(name, _)| !name.is_empty()));
    }
    let output = |name: &str| {
        scope.get(name).cloned().ok_or_else(|| Error::Invalid {
            reason: format!("output '{name}' is not computed; give it as an input"),
        })
    };
    graph.outputs.iter().map(|info| output(&info.name)).collect()
}

/// `If`: one of two bodies.
fn branch(node: &Node, inputs: &[Option<&Array>], scope: &Scope<'_>) -> Result<Vec<Array>> {
    let call = Call::new(node, inputs, Limits::EVALUATION);
    let body = if call.scalar(0)? != 0.0 { "then_branch" } else { "else_branch" };
    match node.attributes.get(body) {
        Some(Attribute::Graph(graph)) => run(graph, &BTreeMap::new(), Some(scope)),
        _ => Err(call.malformed(format!("it has no {body}"))),
    }
}

/// `Dropout` does nothing outside training; its mask keeps everything.
pub(super) fn dropout(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let training = call.optional(2).is_some_and(|flag| flag.data.iter().any(|&v| v != 0.0));
    let ratio = call.optional(1).and_then(|r| r.data.first().copied()).unwrap_or(0.5);
    if training && ratio != 0.0 {
        return Err(call.unsupported("dropout in training mode is random"));
    }
    let mask = Array { dtype: DType::Bool, data: x.data.mapv(|_| 1.0) };
    Ok(vec![x.clone(), mask])
}
