//! Inlining of model-local functions.
//!
//! A file may define operators of its own as functions (PyTorch's dynamo exporter does). A call is
//! replaced by the function's body, with its names made unique and its attribute references filled in.

use std::collections::BTreeMap;

use super::Reader;
use crate::error::{Error, Result};
use crate::graph::{Attribute, Graph, Node};
use crate::proto::FunctionProto;

/// More nodes than this means functions that call each other without end.
const MAX_NODES: usize = 1_000_000;

pub(super) struct Function {
    name: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    defaults: BTreeMap<String, Attribute>,
    nodes: Vec<Node>,
}

impl Function {
    pub(super) fn read(reader: &Reader, proto: &FunctionProto) -> Result<Function> {
        let nodes = proto.node.iter().map(|n| reader.node(n, 0)).collect::<Result<Vec<_>>>()?;
        let owner = Node::new("function", &[], &[proto.name.as_deref().unwrap_or("")]);
        let mut defaults = BTreeMap::new();
        for attribute in &proto.attribute_proto {
            if let Some(value) = reader.attribute(attribute, &owner, 0)? {
                defaults.insert(attribute.name.clone().unwrap_or_default(), value);
            }
        }
        Ok(Function {
            name: proto.name.clone().unwrap_or_default(),
            domain: proto.domain.clone().unwrap_or_default(),
            inputs: proto.input.clone(),
            outputs: proto.output.clone(),
            defaults,
            nodes,
        })
    }

    /// The body for one call, every name in it prefixed or replaced by the caller's.
    fn instantiate(&self, call: &Node, prefix: &str) -> Vec<Node> {
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        for (i, formal) in self.inputs.iter().enumerate() {
            names.insert(formal, call.input(i).unwrap_or("").to_string());
        }
        for (i, formal) in self.outputs.iter().enumerate() {
            if let Some(actual) = call.output(i) {
                names.insert(formal, actual.to_string());
            }
        }
        let rename = |name: &String| match names.get(name.as_str()) {
            _ if name.is_empty() => String::new(),
            Some(actual) => actual.clone(),
            None => format!("{prefix}/{name}"),
        };
        let mut body = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut node = node.clone();
            node.name = format!("{prefix}/{}", node.name);
            node.inputs = node.inputs.iter().map(&rename).collect();
            node.outputs = node.outputs.iter().map(&rename).collect();
            node.attributes = std::mem::take(&mut node.attributes)
                .into_iter()
                .filter_map(|(name, value)| match value {
                    Attribute::Reference(source) => call
                        .attributes
                        .get(&source)
                        .or_else(|| self.defaults.get(&source))
                        .map(|value| (name, value.clone())),
                    value => Some((name, value)),
                })
                .collect();
            body.push(node);
        }
        // A function may hand an input straight through, or name one output twice.
        for (i, formal) in self.outputs.iter().enumerate() {
            if let (Some(actual), true) = (call.output(i), self.inputs.contains(formal)) {
                let source = self.inputs.iter().position(|f| f == formal).and_then(|k| call.input(k));
                body.push(Node::new("Identity", &[source.unwrap_or("")], &[actual]));
            }
        }
        body
    }
}

/// Replaces every call of a function, also inside functions, by the function's body.
pub(super) fn inline(graph: &mut Graph, functions: &[Function]) -> Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let mut counter = 0usize;
    let mut pending: Vec<Node> = graph.nodes.drain(..).rev().collect();
    let mut done = Vec::new();
    while let Some(node) = pending.pop() {
        let function = functions.iter().find(|f| f.name == node.op && f.domain == node.domain);
        let Some(function) = function else {
            done.push(node);
            continue;
        };
        counter += 1;
        let body = function.instantiate(&node, &format!("{}.{counter}", function.name));
        if done.len() + pending.len() + body.len() > MAX_NODES {
            return Err(Error::Invalid {
                reason: format!("function '{}' expands without end", function.name),
            });
        }
        pending.extend(body.into_iter().rev());
    }
    graph.nodes = done;
    Ok(())
}
