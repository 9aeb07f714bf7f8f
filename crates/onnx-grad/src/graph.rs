//! Graphs as plain values.
//!
//! A [`Graph`] is what an ONNX file says, in types that are pleasant to build and match on: values are
//! names, nodes connect names, initializers are tensors. There are no ids, arenas or back references, so
//! a graph can be cloned, cut, extended and compared like any other value. Order of nodes is execution
//! order ([`Graph::validate`](crate::Graph::validate) checks it).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::tensor::{DType, TensorData};

/// The newest ONNX operator set whose models are read.
pub const NEWEST_OPSET: i64 = 24;
/// The domain of [fused operators](crate::fused), which no file has.
pub const FUSED_DOMAIN: &str = "onnx-grad";
/// The domain of classical machine learning, whose operators pipelines of scikit-learn are exported with.
pub const CLASSICAL_DOMAIN: &str = "ai.onnx.ml";
/// The oldest ONNX operator set whose models are read.
pub const OLDEST_OPSET: i64 = 11;

/// The size of one axis: a number, a multiple of a named size, or unknown.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dim {
    /// A number. Negative only where a tensor's content is meant (`-1` in a `Reshape`).
    Known(i64),
    /// `factor` times the size named `symbol`, such as `N` or `4 N`.
    Symbol {
        /// The name, as in the file's `dim_param`.
        symbol: Arc<str>,
        /// How many times.
        factor: i64,
    },
    /// Anything.
    Unknown,
}

impl Dim {
    /// The axis size named `symbol`.
    pub fn symbol(symbol: impl Into<Arc<str>>) -> Dim {
        Dim::Symbol { symbol: symbol.into(), factor: 1 }
    }

    /// The number, where it is one.
    pub fn known(&self) -> Option<i64> {
        match self {
            Dim::Known(n) => Some(*n),
            _ => None,
        }
    }

    /// Whether both are certainly the same size.
    pub fn same(&self, other: &Dim) -> bool {
        *self != Dim::Unknown && self == other
    }
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Known(n as i64)
    }
}

impl From<i64> for Dim {
    fn from(n: i64) -> Dim {
        Dim::Known(n)
    }
}

impl From<&str> for Dim {
    fn from(symbol: &str) -> Dim {
        Dim::symbol(symbol)
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Known(n) => write!(f, "{n}"),
            Dim::Symbol { symbol, factor: 1 } => write!(f, "{symbol}"),
            Dim::Symbol { symbol, factor } => write!(f, "{factor}{symbol}"),
            Dim::Unknown => write!(f, "?"),
        }
    }
}

/// A named value with what the file says of its type and shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueInfo {
    /// The value's name.
    pub name: String,
    /// Its element type.
    pub dtype: DType,
    /// Its shape, where even the rank is known.
    pub shape: Option<Vec<Dim>>,
}

impl ValueInfo {
    /// A value with a known rank.
    pub fn new<D: Into<Dim> + Clone>(name: impl Into<String>, dtype: DType, shape: &[D]) -> Self {
        ValueInfo { name: name.into(), dtype, shape: Some(shape.iter().cloned().map(Into::into).collect()) }
    }
}

/// The value of a node's attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A string.
    String(String),
    /// A tensor.
    Tensor(TensorData),
    /// Integers.
    Ints(Vec<i64>),
    /// Floats.
    Floats(Vec<f32>),
    /// Strings.
    Strings(Vec<String>),
    /// A body, as `If` and `Loop` have it.
    Graph(Box<Graph>),
    /// Inside a function body: the value of the calling node's attribute of this name.
    Reference(String),
}

macro_rules! attribute_from {
    ($($from:ty => $variant:ident),*) => {$(
        impl From<$from> for Attribute {
            fn from(value: $from) -> Attribute { Attribute::$variant(value.into()) }
        }
    )*};
}
attribute_from!(i64 => Int, f32 => Float, &str => String, String => String, TensorData => Tensor,
    Vec<i64> => Ints, &[i64] => Ints, Vec<f32> => Floats);

/// One operation: named inputs to named outputs.
///
/// An optional input or output that is left out is an empty name, as in the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Node {
    /// The node's name; may be empty.
    pub name: String,
    /// The operator, such as `Conv`.
    pub op: String,
    /// The operator's domain; empty for ONNX's own.
    pub domain: String,
    /// Names of the inputs; empty where left out.
    pub inputs: Vec<String>,
    /// Names of the outputs; empty where left out.
    pub outputs: Vec<String>,
    /// Attributes by name.
    pub attributes: BTreeMap<String, Attribute>,
}

impl Node {
    /// A node of ONNX's own domain.
    pub fn new(op: &str, inputs: &[&str], outputs: &[&str]) -> Node {
        Node {
            op: op.to_string(),
            inputs: inputs.iter().map(|s| s.to_string()).collect(),
            outputs: outputs.iter().map(|s| s.to_string()).collect(),
            ..Node::default()
        }
    }

    /// The node with one more attribute.
    pub fn with(mut self, name: &str, value: impl Into<Attribute>) -> Node {
        self.attributes.insert(name.to_string(), value.into());
        self
    }

    /// The `i`-th input, where it is given.
    pub fn input(&self, i: usize) -> Option<&str> {
        self.inputs.get(i).map(String::as_str).filter(|s| !s.is_empty())
    }

    /// The `i`-th output, where it is wanted.
    pub fn output(&self, i: usize) -> Option<&str> {
        self.outputs.get(i).map(String::as_str).filter(|s| !s.is_empty())
    }

    /// Names of all inputs that are given.
    pub fn given_inputs(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(String::as_str).filter(|s| !s.is_empty())
    }

    /// Names of all outputs that are wanted.
    pub fn wanted_outputs(&self) -> impl Iterator<Item = &str> {
        self.outputs.iter().map(String::as_str).filter(|s| !s.is_empty())
    }

    /// Whether the op is one of ONNX's own, by name.
    pub fn is(&self, op: &str) -> bool {
        self.op == op && self.is_standard()
    }

    /// Whether the op belongs to ONNX's own domain.
    pub fn is_standard(&self) -> bool {
        self.domain.is_empty() || self.domain == "ai.onnx"
    }

    /// Whether the op is one of [classical machine learning](CLASSICAL_DOMAIN), by name.
    pub fn is_classical(&self, op: &str) -> bool {
        self.op == op && self.domain == CLASSICAL_DOMAIN
    }

    /// Whether the operator is one of the [fused](crate::fused) ones.
    pub fn is_fused(&self) -> bool {
        self.domain == FUSED_DOMAIN
    }

    /// An integer attribute, or what the specification says where it is left out.
    pub fn int(&self, name: &str, default: i64) -> i64 {
        match self.attributes.get(name) {
            Some(Attribute::Int(i)) => *i,
            _ => default,
        }
    }

    /// A float attribute, or what the specification says where it is left out.
    pub fn float(&self, name: &str, default: f32) -> f32 {
        match self.attributes.get(name) {
            Some(Attribute::Float(f)) => *f,
            _ => default,
        }
    }

    /// A list of integers, where given.
    pub fn ints(&self, name: &str) -> Option<&[i64]> {
        match self.attributes.get(name) {
            Some(Attribute::Ints(i)) => Some(i),
            _ => None,
        }
    }

    /// A list of floats; empty where left out.
    pub fn floats(&self, name: &str) -> &[f32] {
        match self.attributes.get(name) {
            Some(Attribute::Floats(values)) => values,
            _ => &[],
        }
    }

    /// A list of strings; empty where left out.
    pub fn strings(&self, name: &str) -> &[String] {
        match self.attributes.get(name) {
            Some(Attribute::Strings(values)) => values,
            _ => &[],
        }
    }

    /// A string attribute, or what the specification says where it is left out.
    pub fn string<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        match self.attributes.get(name) {
            Some(Attribute::String(s)) => s,
            _ => default,
        }
    }

    /// How messages name the node: by name and op, or by its output where it has no name.
    pub fn label(&self) -> String {
        let name = match self.name.as_str() {
            "" => self.wanted_outputs().next().unwrap_or("?"),
            name => name,
        };
        // Fused operators are called as what they stand for: no file has their domain.
        if self.is_standard() || self.is_fused() {
            format!("'{name}' ({})", self.op)
        } else {
            format!("'{name}' ({}::{})", self.domain, self.op)
        }
    }
}

/// A computation: inputs, constants, nodes in execution order, outputs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Graph {
    /// The graph's name.
    pub name: String,
    /// What must be supplied. Parameters are not listed here.
    pub inputs: Vec<ValueInfo>,
    /// What is computed.
    pub outputs: Vec<ValueInfo>,
    /// Constants and parameters by name.
    pub initializers: BTreeMap<String, TensorData>,
    /// The nodes, in execution order.
    pub nodes: Vec<Node>,
    /// What the file says of values in between; a hint, not needed.
    pub value_info: BTreeMap<String, ValueInfo>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Graph {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// The input with this name.
    pub fn input(&self, name: &str) -> Option<&ValueInfo> {
        self.inputs.iter().find(|v| v.name == name)
    }

    /// The output with this name.
    pub fn output(&self, name: &str) -> Option<&ValueInfo> {
        self.outputs.iter().find(|v| v.name == name)
    }

    /// The number of numbers in the float initializers.
    pub fn parameter_count(&self) -> usize {
        self.initializers.values().filter(|t| t.dtype().is_float()).map(TensorData::len).sum()
    }

    /// For every value, the index of the node that computes it.
    pub fn producers(&self) -> BTreeMap<&str, usize> {
        let mut producers = BTreeMap::new();
        for (i, node) in self.nodes.iter().enumerate() {
            producers.extend(node.wanted_outputs().map(|output| (output, i)));
        }
        producers
    }

    /// For every value, how many inputs of nodes and graph outputs use it, bodies included.
    pub fn use_counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for node in &self.nodes {
            for input in node.given_inputs() {
                *counts.entry(input).or_default() += 1;
            }
            for body in node.bodies() {
                for name in body.free_names() {
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
        for output in &self.outputs {
            *counts.entry(output.name.as_str()).or_default() += 1;
        }
        counts
    }

    /// Names that a body takes from the graph around it.
    pub fn free_names(&self) -> BTreeSet<&str> {
        let mut bound: BTreeSet<&str> = self.inputs.iter().map(|v| v.name.as_str()).collect();
        bound.extend(self.initializers.keys().map(String::as_str));
        let mut free = BTreeSet::new();
        for node in &self.nodes {
            free.extend(node.given_inputs().filter(|n| !bound.contains(n)));
            for body in node.bodies() {
                free.extend(body.free_names().into_iter().filter(|n| !bound.contains(n)));
            }
            bound.extend(node.wanted_outputs());
        }
        for output in &self.outputs {
            if !bound.contains(output.name.as_str()) {
                free.insert(&output.name);
            }
        }
        free
    }

    /// Whether a value is computed from an input of the graph.
    pub(crate) fn depends_on_inputs(&self, value: &str) -> bool {
        let producers = self.producers();
        let (mut seen, mut next) = (BTreeSet::new(), vec![value]);
        while let Some(name) = next.pop() {
            if self.input(name).is_some() {
                return true;
            }
            if let Some(&place) = producers.get(name).filter(|_| seen.insert(name)) {
                let node = &self.nodes[place];
                next.extend(node.given_inputs());
                next.extend(node.bodies().flat_map(Graph::free_names));
            }
        }
        false
    }

    /// Removes nodes and constants that no output needs.
    pub fn prune(&mut self) {
        let mut needed: BTreeSet<String> = self.outputs.iter().map(|v| v.name.clone()).collect();
        let mut kept = Vec::new();
        for node in self.nodes.drain(..).rev() {
            if node.wanted_outputs().any(|output| needed.contains(output)) {
                needed.extend(node.given_inputs().map(str::to_string));
                for body in node.bodies() {
                    needed.extend(body.free_names().into_iter().map(str::to_string));
                }
                kept.push(node);
            }
        }
        kept.reverse();
        self.nodes = kept;
        self.initializers.retain(|name, _| needed.contains(name));
        self.value_info.retain(|name, _| needed.contains(name));
    }
}

impl Node {
    /// The bodies of a control-flow node.
    pub fn bodies(&self) -> impl Iterator<Item = &Graph> {
        self.attributes.values().filter_map(|a| match a {
            Attribute::Graph(g) => Some(g.as_ref()),
            _ => None,
        })
    }
}

/// A graph with what a file says around it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Model {
    /// The computation.
    pub graph: Graph,
    /// Version of the file format.
    pub ir_version: i64,
    /// Version of ONNX's own operators.
    pub opset: i64,
    /// Versions of other operator domains.
    pub other_opsets: BTreeMap<String, i64>,
    /// Who wrote the file.
    pub producer: String,
    /// Free key-value pairs (`metadata_props`).
    pub metadata: BTreeMap<String, String>,
    /// What a pipeline's numbers are called.
    pub words: Words,
}

/// What numbers of a pipeline of classical machine learning are called in its file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Words {
    /// The names of the classes, in the order of the scores; empty where the file has none.
    pub classes: Vec<String>,
    /// The levels of inputs that are categories in the file and one-hot rows, `[N, levels]`, in the graph.
    pub levels: BTreeMap<String, Vec<String>>,
    /// Outputs of the file that are no numbers, which the graph leaves out.
    pub left_out: Vec<String>,
}
