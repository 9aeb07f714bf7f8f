//! Rewriting into a small portable set of operators.
//!
//! Three things happen, in this order:
//!
//! 1. batch normalisations are folded into the convolution or matrix product before them
//!    ([`batch_norm`]);
//! 2. one walk over the nodes removes what does nothing at inference (`Dropout`, `Identity`, a `Reshape` to
//!    the same shape), turns what is constant into constants, opens an `If` whose condition is known and
//!    a `Loop` or `Scan` whose count is ([`unroll`]), works out automatic padding ([`windows`]), and
//!    spells out operators that have no rule of their own or that not every engine has ([`spell`]), and those of
//!    classical machine learning ([`classical`]);
//! 3. what no output needs any more is dropped.
//!
//! Lowering does not change what a graph computes. Names of inputs, outputs and kept nodes stay.

mod attention;
mod batch_norm;
pub(crate) mod classical;
mod patches;
pub(crate) mod recurrent;
pub(crate) mod sample;
mod signal;
pub(crate) mod spell;
mod unroll;
mod windows;

use std::collections::BTreeMap;

use crate::build::Builder;
use crate::error::Result;
use crate::eval::{self, Array, Limits};
use crate::graph::{Attribute, Dim, Graph, Node, ValueInfo};
use crate::shapes::constant_value;
use crate::tensor::{TensorData, element_count};

/// Constants larger than this are left for the engine to fold: files should not grow by folding.
const MAX_FOLDED: usize = 4096;
/// Folding a constant is to save time: what takes long, or much room on the way, is left to the engine too.
const FOLDING: Limits = Limits { elements: 1 << 16, steps: 1 << 20 };

/// The graph in the portable set of operators.
///
/// `keep` names initializers that must stay as they are, because they will be differentiated or trained.
pub fn lower(graph: &Graph, keep: &[&str]) -> Result<Graph> {
    let mut graph = graph.clone();
    classical::drop_labels(&mut graph);
    batch_norm::fold(&mut graph, keep);
    let mut pass = Pass::new(&graph, keep)?;
    for node in &graph.nodes {
        pass.node(node)?;
    }
    pass.finish()
}

struct Pass<'a> {
    builder: Builder,
    graph: &'a Graph,
    /// What a value of the old graph is called in the new one, where that differs.
    renamed: BTreeMap<String, String>,
    /// Nodes of bodies that were written out, again for every turn.
    written: usize,
}

impl<'a> Pass<'a> {
    fn new(graph: &'a Graph, keep: &[&str]) -> Result<Self> {
        let source = Graph { nodes: Vec::new(), outputs: Vec::new(), ..graph.clone() };
        let mut builder = Builder::extend(source, "lower/")?;
        for node in &graph.nodes {
            builder.reserve(node.wanted_outputs());
        }
        for name in keep.iter().filter(|name| graph.initializers.contains_key(**name)) {
            builder.forget_constant(name);
        }
        Ok(Pass { builder, graph, renamed: BTreeMap::new(), written: 0 })
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let mut node = node.clone();
        for input in &mut node.inputs {
            if let Some(name) = self.renamed.get(input) {
                input.clone_from(name);
            }
        }
        self.rename_in_bodies(&mut node);
        windows::spell_out(&mut node, &self.builder)?;
        if self.removed(&node) || self.opened(&node)? || self.folded(&node)? {
            return Ok(());
        }
        if let (Some(spell), Some(output)) = (spell::find(&node), node.output(0))
            && let Some(value) = spell(&mut self.builder, &node)?
        {
            self.rename(output, &value);
            return Ok(());
        }
        if let Some((output, value)) = classical::spell(&mut self.builder, &node)? {
            self.rename(&output, &value);
            return Ok(());
        }
        if let Some(spell) = spell::find_many(&node)
            && let Some(values) = spell(&mut self.builder, &node)?
        {
            for (output, value) in node.outputs.iter().zip(&values).filter(|(output, _)| !output.is_empty()) {
                self.rename(output, value);
            }
            return Ok(());
        }
        self.builder.push_hinted(node.clone(), &self.graph.value_info)?;
        // What can be told of an integer tensor is a constant from here on.
        for output in node.wanted_outputs() {
            let fact = self.builder.fact(output);
            if let (Some(content), Some(dtype), Some(shape)) =
                (fact.known_content(), fact.dtype, fact.known_shape())
            {
                let values: Vec<f64> = content.iter().map(|&v| v as f64).collect();
                if element_count(&shape) == Some(values.len()) {
                    let constant = self.builder.constant(TensorData::from_f64(dtype, &shape, &values));
                    self.rename(output, &constant);
                }
            }
        }
        Ok(())
    }

    /// Operators that do nothing: the output is the input.
    fn removed(&mut self, node: &Node) -> bool {
        let (Some(input), Some(output)) = (node.input(0), node.output(0)) else { return false };
        let nothing = match node.op.as_str() {
            _ if !node.is_standard() => false,
            "Identity" => true,
            "Dropout" => {
                let training = node.input(2).and_then(|t| self.builder.fact(t).constant.clone());
                node.output(1).is_none() && training.is_none_or(|t| t.to_f64() == [0.0])
            }
            "Cast" => {
                let from = self.builder.fact(input).dtype.map(|d| i64::from(d.code()));
                from == Some(node.int("to", 0))
            }
            "Reshape" | "Flatten" | "Expand" | "Squeeze" => {
                let from = self.builder.shape(input);
                let to = self.builder.infer(node).ok().and_then(|facts| facts.first()?.shape.clone());
                from.is_some_and(|shape| !shape.contains(&Dim::Unknown)) && from == to.as_deref()
            }
            _ => false,
        };
        if nothing {
            let (output, input) = (output.to_string(), input.to_string());
            self.rename(&output, &input);
        }
        nothing
    }

    /// A node of constants is a constant.
    fn folded(&mut self, node: &Node) -> Result<bool> {
        if node.is("Constant") {
            let (Some(data), Some(output)) = (constant_value(node), node.output(0)) else { return Ok(false) };
            self.define(output, data);
            return Ok(true);
        }
        if !node.is_standard() || node.op.starts_with("Random") || node.bodies().next().is_some() {
            return Ok(false);
        }
        let mut arrays = Vec::new();
        let mut size = 0;
        for input in &node.inputs {
            if input.is_empty() {
                arrays.push(None);
                continue;
            }
            let Some(data) = self.builder.fact(input).constant.as_ref() else { return Ok(false) };
            size += data.len();
            if size > MAX_FOLDED {
                return Ok(false);
            }
            arrays.push(Some(Array::from(data)));
        }
        if node.inputs.is_empty() {
            return Ok(false);
        }
        let inputs: Vec<Option<&Array>> = arrays.iter().map(Option::as_ref).collect();
        // What the evaluator does not know is left to the engine.
        let Ok(outputs) = eval::evaluate_within(node, &inputs, FOLDING) else { return Ok(false) };
        if outputs.iter().map(|a| a.data.len()).sum::<usize>() > MAX_FOLDED {
            return Ok(false);
        }
        for (name, array) in node.outputs.iter().zip(outputs) {
            if !name.is_empty() {
                self.define(name, array.to_tensor());
            }
        }
        Ok(true)
    }

    /// The value of the old graph is this constant, under its own name.
    fn define(&mut self, name: &str, data: TensorData) {
        self.builder.parameter(name, data);
    }

    fn rename(&mut self, old: &str, new: &str) {
        self.renamed.insert(old.to_string(), new.to_string());
    }

    fn rename_in_bodies(&self, node: &mut Node) {
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(body) = attribute {
                rename_free(body, &self.renamed);
            }
        }
    }

    fn finish(mut self) -> Result<Graph> {
        let mut outputs = Vec::new();
        for output in &self.graph.outputs {
            if let Some(source) = self.renamed.get(&output.name).cloned() {
                // The old node may still stand there, unused.
                let taken = self.builder.graph().nodes.iter().any(|n| n.outputs.contains(&output.name));
                if !taken {
                    self.builder.push(Node::new("Identity", &[&source], &[&output.name]));
                }
            }
            // What the file does not say may follow by now.
            let shape = output.shape.clone().or_else(|| self.builder.fact(&output.name).shape.clone());
            outputs.push(ValueInfo { shape, ..output.clone() });
        }
        self.builder.graph_mut().outputs = outputs;
        self.builder.graph_mut().prune();
        self.builder.finish()
    }
}

fn rename_free(body: &mut Graph, renamed: &BTreeMap<String, String>) {
    let free: Vec<String> = body.free_names().into_iter().map(str::to_string).collect();
    // What the body defines itself hides a name of the graph around it.
    let renamed: BTreeMap<String, String> =
        free.into_iter().filter_map(|name| renamed.get(&name).map(|new| (name, new.clone()))).collect();
    if renamed.is_empty() {
        return;
    }
    for node in &mut body.nodes {
        for input in &mut node.inputs {
            if let Some(name) = renamed.get(input) {
                input.clone_from(name);
            }
        }
        for attribute in node.attributes.values_mut() {
            if let Attribute::Graph(inner) = attribute {
                rename_free(inner, &renamed);
            }
        }
    }
    for output in &mut body.outputs {
        if let Some(name) = renamed.get(&output.name) {
            output.name.clone_from(name);
        }
    }
}
