//! What a model is, before anything is explained: inputs, outputs, size, cost, and where it cannot be
//! differentiated.

use std::collections::BTreeMap;

use onnx_grad::shapes::Facts;
use onnx_grad::{Cost, Dim, Graph, Model, Obstacle, ValueInfo, lower, obstacles};
use serde::Serialize;

use super::logits::cut_final_activation;
use super::signature::choose_output;
use super::split::{Embedding, embeddings};
use crate::error::{Notice, Result};

/// A value of a model's interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceValue {
    /// Its name.
    pub name: String,
    /// Its element type, as NumPy names it.
    pub dtype: String,
    /// Its axes: numbers, symbols such as `batch`, or `?`; `None` where not even the rank is known.
    pub shape: Option<Vec<String>>,
}

/// A node that gradients do not get through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedNode {
    /// The node, by name and op.
    pub node: String,
    /// Why not.
    pub reason: String,
    /// Whether the model has no gradient because of it; otherwise the gradient around the node is right.
    pub fatal: bool,
}

/// What a model is and whether it can be differentiated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Inspection {
    /// The operator set, after reading: older ones are upgraded to 18.
    pub opset: i64,
    /// Who wrote the file.
    pub producer: String,
    /// What must be supplied.
    pub inputs: Vec<InterfaceValue>,
    /// What is computed.
    pub outputs: Vec<InterfaceValue>,
    /// The number of numbers in the float initializers.
    pub parameters: usize,
    /// Floating-point operations of convolutions and matrix products for one input.
    pub flops_per_input: u64,
    /// Bytes of all values between input and output for one input.
    pub activation_bytes_per_input: u64,
    /// How often each operator occurs.
    pub operators: BTreeMap<String, usize>,
    /// The output that `differentiable` is about: the one that explanations take.
    pub explained: Option<String>,
    /// Whether that output has a gradient with respect to the first float input, or to the embedding of ids where no
    /// input is of floats.
    pub differentiable: bool,
    /// Nodes that gradients do not get through.
    pub blocked: Vec<BlockedNode>,
    /// Why there is no gradient, where the reason is not a single node.
    pub problem: Option<String>,
    /// What else the user should know.
    pub notices: Vec<Notice>,
    /// The file's own key-value pairs.
    pub metadata: BTreeMap<String, String>,
}

impl Inspection {
    /// Looks at a model as explanations of its first output of floats take it. Only a graph that contradicts itself is an
    /// error.
    pub fn of(model: &Model) -> Result<Inspection> {
        Inspection::of_output(model, None)
    }

    /// Looks at a model as explanations of this output take it; where none is named, of its first output of floats.
    ///
    /// # Errors
    /// A graph that contradicts itself, and an output that it does not have.
    pub fn of_output(model: &Model, output: Option<&str>) -> Result<Inspection> {
        let graph = &model.graph;
        let mut operators = BTreeMap::new();
        for node in &graph.nodes {
            let domain = if node.is_standard() { String::new() } else { format!("{}::", node.domain) };
            *operators.entry(format!("{domain}{}", node.op)).or_default() += 1;
        }
        let cost = Cost::of(graph)?;
        let mut notices = Vec::new();
        if cost.unknown_nodes > 0 {
            notices.push(
                format!("the cost of {} nodes is not known and not counted", cost.unknown_nodes).into(),
            );
        }
        let mut inspection = Inspection {
            opset: model.opset,
            producer: model.producer.clone(),
            inputs: graph.inputs.iter().map(interface).collect(),
            outputs: graph.outputs.iter().map(interface).collect(),
            parameters: graph.parameter_count(),
            flops_per_input: cost.flops,
            activation_bytes_per_input: cost.activation_bytes,
            operators,
            explained: None,
            differentiable: false,
            blocked: Vec::new(),
            problem: None,
            notices,
            metadata: model.metadata.clone(),
        };
        if !model.words.left_out.is_empty() {
            let names = model.words.left_out.join(", ");
            inspection.notices.push(format!("outputs that are no numbers are left out: {names}").into());
        }
        let chosen = match output {
            Some(_) => Some(choose_output(&graph.outputs, &[], output)?),
            // Where no output is of floats, the first says why there is no gradient.
            None => choose_output(&graph.outputs, &[], None).ok().or(Some(0)),
        };
        inspection.differentiate(graph, chosen.and_then(|place| graph.outputs.get(place)));
        Ok(inspection)
    }

    /// The inner values that can be explained by their names: of floats, with an axis for examples.
    ///
    /// # Errors
    /// As [`Inspection::of`].
    pub fn values(model: &Model) -> Result<Vec<InterfaceValue>> {
        let facts = Facts::of(&model.graph)?;
        let batch = |dim: &Dim| dim.known().is_none();
        let names = model.graph.nodes.iter().flat_map(|node| node.wanted_outputs());
        let found = names.filter(|name| model.graph.output(name).is_none()).filter_map(|name| {
            let fact = facts.get(name);
            let shape = fact.shape.clone().filter(|shape| shape.len() > 1 && batch(&shape[0]));
            let (shape, dtype) = (shape?, fact.dtype.filter(|dtype| dtype.is_float())?);
            Some(interface(&ValueInfo { name: name.to_string(), dtype, shape: Some(shape) }))
        });
        Ok(found.collect())
    }

    fn differentiate(&mut self, graph: &Graph, output: Option<&ValueInfo>) {
        self.explained = output.map(|output| output.name.clone());
        let tables = embeddings(graph);
        for Embedding { ids, value, entries, width } in &tables {
            let what = format!(
                "'{ids}' chooses from {entries} vectors of {width} numbers, and is explained at '{value}'"
            );
            self.notices.push(what.into());
        }
        let input = graph.inputs.iter().find(|i| i.dtype.is_float()).map(|input| input.name.as_str());
        let longest = tables.iter().max_by_key(|table| table.entries).map(|table| table.value.as_str());
        let (Some(input), Some(output)) = (input.or(longest), output) else {
            self.problem =
                Some("the model has no float input and no embedding of ids, or no output".to_string());
            return;
        };
        let output = output.name.as_str();
        // A label beside the scores is nobody's obstacle.
        let mut graph = graph.clone();
        graph.outputs.retain(|other| other.name == output);
        graph.prune();
        let graph = &graph;
        match obstacles(graph, &[output], &[input]) {
            Err(error) => self.problem = Some(error.to_string()),
            Ok(found) => {
                self.blocked = found.iter().rev().map(blocked).collect();
                match onnx_grad::grad(graph, &[output], &[input]) {
                    Ok(_) => self.differentiable = true,
                    Err(error) => self.problem = Some(error.to_string()),
                }
            }
        }
        if let Ok(mut lowered) = lower(graph, &[]) {
            self.notices.extend(cut_final_activation(&mut lowered, output));
        }
    }
}

fn blocked(obstacle: &Obstacle) -> BlockedNode {
    BlockedNode {
        node: obstacle.node.clone(),
        reason: obstacle.reason.clone(),
        fatal: obstacle.error.is_some(),
    }
}

fn interface(value: &ValueInfo) -> InterfaceValue {
    InterfaceValue {
        name: value.name.clone(),
        dtype: value.dtype.name().to_string(),
        shape: value.shape.as_ref().map(|shape| shape.iter().map(ToString::to_string).collect()),
    }
}
