//! What a model is, before anything is explained: inputs, outputs, size, cost, and where it cannot be
//! differentiated.

use std::collections::BTreeMap;

use onnx_grad::{Cost, Graph, Model, Obstacle, ValueInfo, lower, obstacles};
use serde::Serialize;

use super::logits::cut_final_activation;
use crate::error::Result;

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
    /// Whether the first output has a gradient with respect to the first float input.
    pub differentiable: bool,
    /// Nodes that gradients do not get through.
    pub blocked: Vec<BlockedNode>,
    /// Why there is no gradient, where the reason is not a single node.
    pub problem: Option<String>,
    /// What else the user should know.
    pub notices: Vec<String>,
    /// The file's own key-value pairs.
    pub metadata: BTreeMap<String, String>,
}

impl Inspection {
    /// Looks at a model. Only a graph that contradicts itself is an error.
    pub fn of(model: &Model) -> Result<Inspection> {
        let graph = &model.graph;
        let mut operators = BTreeMap::new();
        for node in &graph.nodes {
            let domain = if node.is_standard() { String::new() } else { format!("{}::", node.domain) };
            *operators.entry(format!("{domain}{}", node.op)).or_default() += 1;
        }
        let cost = Cost::of(graph)?;
        let mut notices = Vec::new();
        if cost.unknown_nodes > 0 {
            notices.push(format!("the cost of {} nodes is not known and not counted", cost.unknown_nodes));
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
            differentiable: false,
            blocked: Vec::new(),
            problem: None,
            notices,
            metadata: model.metadata.clone(),
        };
        inspection.differentiate(graph);
        Ok(inspection)
    }

    fn differentiate(&mut self, graph: &Graph) {
        let input = graph.inputs.iter().find(|i| i.dtype.is_float());
        let (Some(input), Some(output)) = (input, graph.outputs.first()) else {
            self.problem = Some("the model has no float input, or no output".to_string());
            return;
        };
        let (input, output) = (input.name.as_str(), output.name.as_str());
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
