//! Inlining of model-local functions.
//!
//! A file may define operators of its own as functions (PyTorch's dynamo exporter does). A call is
//! replaced by the function's body, with its names made unique and its attribute references filled in; so
//! are calls inside functions and inside the bodies of `If` and `Loop`. A function says which version of
//! ONNX's operators it is written in, which need not be the model's, so each body is brought to the common
//! dialect on its own.

use std::collections::BTreeMap;

use super::{MAX_DEPTH, Reader, opset_of, upgrade};
use crate::error::{Error, Result};
use crate::graph::{Attribute, Graph, Node};
use crate::proto::FunctionProto;

/// More nodes than this from functions is an attack: a few functions that call each other ten times each.
const MAX_NODES: usize = 100_000;
/// The same for the lists and names that come with the nodes.
const MAX_WEIGHT: usize = 1 << 24;
/// Functions call functions no deeper than this.
const MAX_CALLS: usize = 64;

pub(super) struct Function {
    name: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    defaults: BTreeMap<String, Attribute>,
    nodes: Vec<Node>,
    opset: i64,
}

impl Function {
    /// Reads a function; `opset` is the model's, for a function that does not say its own.
    pub(super) fn read(reader: &Reader, proto: &FunctionProto, opset: i64) -> Result<Function> {
        let nodes = proto.node.iter().map(|n| reader.node(n, 0)).collect::<Result<Vec<_>>>()?;
        let owner = Node::new("function", &[], &[proto.name.as_deref().unwrap_or("")]);
        let mut defaults = BTreeMap::new();
        for attribute in &proto.attribute_proto {
            if let Some(value) = reader.attribute(attribute, &owner, 0)? {
                defaults.insert(attribute.name.clone().unwrap_or_default(), value);
            }
        }
        Ok(Function {
            name: super::overloaded(proto.name.as_deref(), proto.overload.as_deref()),
            domain: super::domain(proto.domain.as_deref()),
            inputs: proto.input.clone(),
            outputs: proto.output.clone(),
            defaults,
            nodes,
            opset: opset_of(&proto.opset_import)?.unwrap_or(opset),
        })
    }

    /// The body for one call: every name in it prefixed or replaced by the caller's, in the common dialect.
    fn instantiate(&self, call: &Node, prefix: &str) -> Result<Graph> {
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (i, formal) in self.inputs.iter().enumerate() {
            names.insert(formal.clone(), call.input(i).unwrap_or("").to_string());
        }
        // A function may hand an input straight through, or name one output twice.
        let mut copies = Vec::new();
        for (i, formal) in self.outputs.iter().enumerate() {
            let Some(actual) = call.output(i) else { continue };
            match names.get(formal) {
                Some(source) => copies.push(Node::new("Identity", &[source], &[actual])),
                None => drop(names.insert(formal.clone(), actual.to_string())),
            }
        }
        let attribute = |name: &str| call.attributes.get(name).or_else(|| self.defaults.get(name)).cloned();
        let instance = Instance { prefix, attribute: &attribute };
        let mut nodes: Vec<Node> = self.nodes.iter().map(|node| instance.node(node, &names)).collect();
        nodes.extend(copies);
        let mut body = Graph { nodes, ..Graph::default() };
        upgrade::upgrade_graph(&mut body, self.opset, &format!("{prefix}/"))?;
        Ok(body)
    }
}

/// One call of a function: what becomes of the names and references in its body.
struct Instance<'a> {
    prefix: &'a str,
    attribute: &'a dyn Fn(&str) -> Option<Attribute>,
}

impl Instance<'_> {
    fn rename(&self, name: &str, names: &BTreeMap<String, String>) -> String {
        match names.get(name) {
            _ if name.is_empty() => String::new(),
            Some(actual) => actual.clone(),
            None => format!("{}/{name}", self.prefix),
        }
    }

    fn node(&self, node: &Node, names: &BTreeMap<String, String>) -> Node {
        let attribute = |(name, value): (&String, &Attribute)| match value {
            Attribute::Reference(source) => (self.attribute)(source).map(|value| (name.clone(), value)),
            Attribute::Graph(body) => {
                Some((name.clone(), Attribute::Graph(Box::new(self.body(body, names)))))
            }
            value => Some((name.clone(), value.clone())),
        };
        Node {
            name: format!("{}/{}", self.prefix, node.name),
            op: node.op.clone(),
            domain: node.domain.clone(),
            inputs: node.inputs.iter().map(|name| self.rename(name, names)).collect(),
            outputs: node.outputs.iter().map(|name| self.rename(name, names)).collect(),
            attributes: node.attributes.iter().filter_map(attribute).collect(),
        }
    }

    /// A body inside the function: what it defines itself hides names around it.
    fn body(&self, body: &Graph, names: &BTreeMap<String, String>) -> Graph {
        let mut names = names.clone();
        let defined =
            body.inputs.iter().map(|v| v.name.as_str()).chain(body.initializers.keys().map(|n| &**n));
        for name in defined.chain(body.nodes.iter().flat_map(Node::wanted_outputs)) {
            names.remove(name);
        }
        let mut renamed = body.clone();
        renamed.nodes = body.nodes.iter().map(|node| self.node(node, &names)).collect();
        for info in renamed.inputs.iter_mut().chain(&mut renamed.outputs) {
            info.name = self.rename(&info.name, &names);
        }
        renamed.initializers =
            body.initializers.iter().map(|(name, data)| (self.rename(name, &names), data.clone())).collect();
        // Hints are not needed, and not worth renaming.
        renamed.value_info.clear();
        renamed
    }
}

/// Replaces every call of a function, also inside functions and bodies, by the function's body.
pub(super) fn inline(graph: &mut Graph, functions: &[Function]) -> Result<()> {
    if functions.is_empty() {
        return Ok(());
    }
    let by_name = functions.iter().map(|f| ((f.domain.as_str(), f.name.as_str()), f)).collect();
    Inliner { by_name, instances: 0, nodes: 0, weight: 0 }.graph(graph, 0, &mut Vec::new())
}

struct Inliner<'a> {
    by_name: BTreeMap<(&'a str, &'a str), &'a Function>,
    instances: usize,
    nodes: usize,
    weight: usize,
}

impl<'a> Inliner<'a> {
    /// `depth` bodies around the graph, inside `calls`.
    fn graph(&mut self, graph: &mut Graph, depth: usize, calls: &mut Vec<&'a str>) -> Result<()> {
        if depth > MAX_DEPTH {
            return Err(super::too_deep());
        }
        for mut node in std::mem::take(&mut graph.nodes) {
            for attribute in node.attributes.values_mut() {
                if let Attribute::Graph(body) = attribute {
                    self.graph(body, depth + 1, calls)?;
                }
            }
            let Some(&function) = self.by_name.get(&(node.domain.as_str(), node.op.as_str())) else {
                graph.nodes.push(node);
                continue;
            };
            let refuse = |what: &str| Error::Invalid {
                reason: format!("function '{}', called by node {}, {what}", function.name, node.label()),
            };
            if calls.contains(&function.name.as_str()) || calls.len() >= MAX_CALLS {
                return Err(refuse("calls itself; export the model again without functions"));
            }
            self.instances += 1;
            let mut body = function.instantiate(&node, &format!("{}.{}", function.name, self.instances))?;
            self.nodes += body.nodes.len();
            self.weight += body.nodes.iter().map(weight).sum::<usize>();
            if self.nodes > MAX_NODES || self.weight > MAX_WEIGHT {
                return Err(refuse("expands to too many nodes; export the model again without functions"));
            }
            calls.push(&function.name);
            self.graph(&mut body, depth, calls)?;
            calls.pop();
            graph.initializers.append(&mut body.initializers);
            graph.nodes.append(&mut body.nodes);
        }
        Ok(())
    }
}

/// How much a node holds, in names and numbers. Tensors share their bytes, and count as one.
fn weight(node: &Node) -> usize {
    let attribute = |value: &Attribute| match value {
        Attribute::Ints(values) => values.len(),
        Attribute::Floats(values) => values.len(),
        Attribute::Strings(values) => values.iter().map(|s| 1 + s.len()).sum(),
        Attribute::String(text) => text.len(),
        Attribute::Graph(body) => {
            let infos = body.inputs.len() + body.outputs.len() + body.initializers.len();
            infos + body.nodes.iter().map(weight).sum::<usize>()
        }
        _ => 1,
    };
    let names = node.inputs.iter().chain(&node.outputs).map(|name| 1 + name.len()).sum::<usize>();
    1 + node.name.len() + names + node.attributes.values().map(attribute).sum::<usize>()
}
