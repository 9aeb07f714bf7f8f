//! Writing graphs in a few lines.
//!
//! A [`Builder`] appends nodes and knows what follows for their outputs, so that networks, lowering
//! passes and gradient rules are all written in the same words:
//!
//! ```
//! use onnx_grad::{Builder, DType, Dim, TensorData};
//!
//! let mut b = Builder::new("mlp");
//! let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(2)]);
//! let w = b.parameter("w", TensorData::f32(&[2, 1], &[1.0, -1.0]));
//! let h = b.matmul(&x, &w);
//! let y = b.op("Relu", &[&h]);
//! b.output("y", &y);
//! let graph = b.finish()?;
//! assert_eq!(graph.outputs[0].shape, Some(vec![Dim::symbol("N"), Dim::Known(1)]));
//! # Ok::<(), onnx_grad::Error>(())
//! ```
//!
//! Building does not return errors line by line: the first mistake (shapes that do not fit) is kept and
//! returned by [`Builder::finish`].

mod words;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::graph::{Attribute, Dim, Graph, Node, ValueInfo};
use crate::shapes::{Fact, Facts};
use crate::tensor::{DType, TensorData};

/// The name of a value in a graph that is being built.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(Arc<str>);

impl Value {
    /// The value with this name.
    pub fn named(name: &str) -> Value {
        Value(name.into())
    }
}

impl std::ops::Deref for Value {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

/// A graph under construction.
#[derive(Debug, Clone)]
pub struct Builder {
    graph: Graph,
    facts: Facts,
    names: BTreeSet<String>,
    /// Constants made so far, so that equal ones are shared.
    constants: HashMap<(DType, Vec<usize>, bytes::Bytes), Value>,
    /// What constants are when transposed, so that a weight that many nodes use is transposed once.
    transposed: HashMap<(String, Vec<usize>), Value>,
    prefix: String,
    counter: usize,
    first_error: Option<Error>,
}

impl Builder {
    /// An empty graph.
    pub fn new(name: &str) -> Builder {
        Builder {
            graph: Graph::new(name),
            facts: Facts::default(),
            names: BTreeSet::new(),
            constants: HashMap::new(),
            transposed: HashMap::new(),
            prefix: String::new(),
            counter: 0,
            first_error: None,
        }
    }

    /// Goes on where `graph` ends; names of new values start with `prefix`.
    pub fn extend(graph: Graph, prefix: &str) -> Result<Builder> {
        let facts = Facts::of(&graph)?;
        let mut names: BTreeSet<String> = graph.inputs.iter().map(|v| v.name.clone()).collect();
        names.extend(graph.initializers.keys().cloned());
        names.extend(graph.nodes.iter().flat_map(|n| n.wanted_outputs().map(str::to_string)));
        let mut builder = Builder::new("");
        (builder.graph, builder.facts, builder.names) = (graph, facts, names);
        builder.prefix = prefix.to_string();
        Ok(builder)
    }

    /// A value that must be supplied when the graph runs.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[Dim]) -> Value {
        self.graph.inputs.push(ValueInfo { name: name.into(), dtype, shape: Some(shape.to_vec()) });
        self.claim(name);
        self.facts.set(name, Fact::new(dtype, shape.to_vec()));
        Value::named(name)
    }

    /// A named tensor, to be trained or replaced later.
    pub fn parameter(&mut self, name: &str, data: TensorData) -> Value {
        self.claim(name);
        self.facts.set(name, Fact::constant(&data));
        self.graph.initializers.insert(name.into(), data);
        Value::named(name)
    }

    /// A tensor without a name of its own. Equal constants are stored once.
    pub fn constant(&mut self, data: TensorData) -> Value {
        let key = (data.dtype(), data.shape().to_vec(), data.bytes().clone());
        if let Some(value) = self.constants.get(&key) {
            return value.clone();
        }
        let name = self.fresh("const");
        let value = self.parameter(&name, data);
        self.constants.insert(key, value.clone());
        value
    }

    /// A vector of integers, the form in which ONNX wants axes and shapes.
    pub fn ints(&mut self, values: &[i64]) -> Value {
        self.constant(TensorData::ints(values))
    }

    /// One number, of the element type that `like` has.
    pub fn scalar_like(&mut self, like: &str, value: f64) -> Value {
        let dtype = self.facts.get(like).dtype.unwrap_or(DType::F32);
        self.constant(TensorData::scalar(dtype, value))
    }

    /// Applies an operator with one output and no attributes.
    pub fn op(&mut self, op: &str, inputs: &[&str]) -> Value {
        self.op_with(op, inputs, &[])
    }

    /// Applies an operator with one output.
    pub fn op_with(&mut self, op: &str, inputs: &[&str], attributes: &[(&str, Attribute)]) -> Value {
        self.op_many(op, inputs, attributes, 1).swap_remove(0)
    }

    /// Applies an operator with several outputs.
    pub fn op_many(
        &mut self,
        op: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute)],
        outputs: usize,
    ) -> Vec<Value> {
        let names: Vec<String> = (0..outputs.max(1)).map(|_| self.fresh(op)).collect();
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut node = Node::new(op, inputs, &refs);
        node.name = names[0].clone();
        for (name, value) in attributes {
            node.attributes.insert(name.to_string(), value.clone());
        }
        self.push(node);
        names.iter().map(|n| Value::named(n)).collect()
    }

    /// Appends a node as it is.
    pub fn push(&mut self, node: Node) {
        if let Err(error) = self.facts.follow(&node, |_| None) {
            self.first_error.get_or_insert(error);
        }
        for output in node.wanted_outputs() {
            let output = output.to_string();
            self.claim(&output);
        }
        self.graph.nodes.push(node);
    }

    /// Appends a node as it is, with what the file says of its outputs.
    pub(crate) fn push_hinted(&mut self, node: Node, hints: &BTreeMap<String, ValueInfo>) -> Result<()> {
        self.facts.follow(&node, |name| hints.get(name))?;
        self.graph.nodes.push(node);
        Ok(())
    }

    /// What follows for the outputs of a node that is not in the graph yet.
    pub(crate) fn infer(&self, node: &Node) -> Result<Vec<Fact>> {
        self.facts.infer(node)
    }

    /// Treats an initializer as a variable: its data may change, so nothing may be concluded from it.
    pub(crate) fn forget_constant(&mut self, name: &str) {
        let fact = self.facts.get(name);
        self.facts.set(name, Fact { dtype: fact.dtype, shape: fact.shape.clone(), ..Fact::default() });
    }

    /// Keeps names free for nodes that will come.
    pub(crate) fn reserve<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.names.extend(names.map(str::to_string));
    }

    /// Declares a value to be an output under the given name.
    pub fn output(&mut self, name: &str, value: &str) {
        let mut source = value.to_string();
        if name != value {
            self.push(Node::new("Identity", &[value], &[name]));
            source = name.to_string();
        }
        let fact = self.facts.get(&source);
        let info =
            ValueInfo { name: source, dtype: fact.dtype.unwrap_or(DType::F32), shape: fact.shape.clone() };
        self.graph.outputs.push(info);
    }

    /// What is known of a value.
    pub fn fact(&self, value: &str) -> &Fact {
        self.facts.get(value)
    }

    /// The shape of a value, where its rank is known.
    pub fn shape(&self, value: &str) -> Option<&[Dim]> {
        self.facts.get(value).shape.as_deref()
    }

    /// The graph as far as it is built.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub(crate) fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The graph, or the first mistake made on the way.
    pub fn finish(self) -> Result<Graph> {
        match self.first_error {
            Some(error) => Err(error),
            None => self.graph.validate().map(|()| self.graph),
        }
    }

    /// Whether a value has this name.
    pub(crate) fn is_taken(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn claim(&mut self, name: &str) {
        self.names.insert(name.to_string());
    }

    /// A name that no value has yet.
    pub(crate) fn fresh(&mut self, stem: &str) -> String {
        loop {
            self.counter += 1;
            let name = format!("{}{stem}.{}", self.prefix, self.counter);
            if !self.names.contains(&name) {
                return name;
            }
        }
    }
}
