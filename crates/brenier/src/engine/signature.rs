//! What a model takes and returns, checked before an engine sees it: so that a wrong name, shape or type
//! gives the same sentence whatever the engine.

use std::collections::BTreeMap;

use onnx_grad::{DType, Dim, Model, ValueInfo};

use super::TensorView;
use crate::error::{EngineError, Error, Result};

/// A model's inputs and outputs, and how to name its nodes.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) inputs: Vec<ValueInfo>,
    pub(super) outputs: Vec<ValueInfo>,
    labels: Vec<String>,
}

/// What engines are told as a node's name, before its number.
const NODE: &str = "brenier_node_";

impl Signature {
    /// The signature, and the model with a number for every node, so that an engine's message can say where.
    ///
    /// Inputs and outputs of a type that no [`TensorView`] carries are refused.
    pub(super) fn of(model: &Model, engine: &'static str) -> Result<(Signature, Model)> {
        model.graph.validate()?;
        for value in model.graph.inputs.iter().chain(&model.graph.outputs) {
            if !matches!(value.dtype, DType::F32 | DType::F64 | DType::I64 | DType::I32 | DType::Bool) {
                return Err(Error::Engine(EngineError::ElementType {
                    engine,
                    value: value.name.clone(),
                    dtype: value.dtype,
                    remedy: "inputs and outputs must be float32, float64, int64, int32 or bool, so export \
                             the model again with casts inside it"
                        .into(),
                }));
            }
        }
        // Weights are shared, not copied. Names in files can be missing, doubled, or those of values, which
        // RTen keeps in the same table: a number of our own is always clear.
        let mut model = model.clone();
        let mut labels = Vec::with_capacity(model.graph.nodes.len());
        for (i, node) in model.graph.nodes.iter_mut().enumerate() {
            labels.push(node.label());
            node.name = format!("{NODE}{i}");
        }
        let signature =
            Signature { inputs: model.graph.inputs.clone(), outputs: model.graph.outputs.clone(), labels };
        Ok((signature, model))
    }

    /// The signature of a file that the engine has read, as it tells it. Its nodes have no numbers of ours.
    pub(super) fn of_engine(inputs: Vec<ValueInfo>, outputs: Vec<ValueInfo>) -> Signature {
        Signature { inputs, outputs, labels: Vec::new() }
    }

    /// The node that an engine's message is about, as our messages name it.
    pub(super) fn node_in(&self, message: &str) -> Option<String> {
        let rest = &message[message.find(NODE)? + NODE.len()..];
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        self.labels.get(digits.parse::<usize>().ok()?).cloned()
    }

    /// Checks names, element types and shapes; sizes with the same symbol must be equal.
    pub(super) fn check(&self, given: &[(&str, TensorView)]) -> Result<()> {
        if let Some((name, _)) = given.iter().find(|(name, _)| self.inputs.iter().all(|i| i.name != *name)) {
            return Err(Error::Engine(EngineError::NoSuchInput {
                name: name.to_string(),
                known: self.inputs.iter().map(|i| format!("'{}'", i.name)).collect(),
            }));
        }
        let mut symbols = BTreeMap::new();
        for input in &self.inputs {
            let mut tensors = given.iter().filter(|(name, _)| *name == input.name).map(|(_, t)| t);
            let (Some(tensor), 0) = (tensors.next(), tensors.count()) else {
                let times = given.iter().filter(|(name, _)| *name == input.name).count();
                return Err(Error::Engine(EngineError::InputCount { name: input.name.clone(), times }));
            };
            let expected = match input.dtype {
                DType::I32 => DType::I64,
                dtype => dtype,
            };
            if tensor.dtype() != expected {
                return Err(Error::Engine(EngineError::InputType {
                    name: input.name.clone(),
                    expected,
                    found: tensor.dtype(),
                }));
            }
            if !fits(input, tensor.shape(), &mut symbols) {
                return Err(Error::Engine(EngineError::InputShape {
                    name: input.name.clone(),
                    expected: declared(input, &symbols),
                    found: tensor.shape().to_vec(),
                }));
            }
        }
        Ok(())
    }

    /// The inputs as messages describe them: names, types and shapes.
    pub(super) fn describe(given: &[(&str, TensorView)]) -> String {
        let inputs: Vec<_> =
            given.iter().map(|(name, t)| format!("{name}: {}{:?}", t.dtype(), t.shape())).collect();
        inputs.join(", ")
    }
}

/// Whether the shape is one that the input declares. Learns the sizes of symbols on the way.
fn fits<'a>(input: &'a ValueInfo, shape: &[usize], symbols: &mut BTreeMap<&'a str, usize>) -> bool {
    let Some(dims) = &input.shape else { return true };
    dims.len() == shape.len()
        && dims.iter().zip(shape).all(|(dim, &size)| match dim {
            Dim::Known(n) => *n == size as i64,
            Dim::Symbol { symbol, factor: 1 } => *symbols.entry(symbol).or_insert(size) == size,
            Dim::Symbol { .. } | Dim::Unknown => true,
        })
}

/// The declared shape, with the sizes that other inputs have fixed: `[N, 3]`, or `[N=4, 3]`.
fn declared(input: &ValueInfo, symbols: &BTreeMap<&str, usize>) -> String {
    let dims: Vec<_> = input.shape.iter().flatten().collect();
    let names: Vec<_> = dims
        .iter()
        .map(|dim| match dim {
            Dim::Symbol { symbol, factor: 1 } if symbols.contains_key(symbol.as_ref()) => {
                format!("{dim}={}", symbols[symbol.as_ref()])
            }
            _ => dim.to_string(),
        })
        .collect();
    format!("[{}]", names.join(", "))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};
    use onnx_grad::{Graph, Node};

    use super::*;

    fn signature() -> Signature {
        let graph = Graph {
            inputs: vec![
                ValueInfo::new("x", DType::F32, &[Dim::from("N"), Dim::from(3usize)]),
                ValueInfo::new("t", DType::F32, &["N"]),
            ],
            outputs: vec![ValueInfo::new("y", DType::F32, &["N"])],
            nodes: vec![Node::new("Identity", &["t"], &["y"])],
            ..Graph::default()
        };
        Signature::of(&Model { graph, ir_version: 8, opset: 17, ..Model::default() }, "test").unwrap().0
    }

    #[test]
    fn says_what_is_wrong_with_an_input() {
        let signature = signature();
        let (x, t) = (Array2::<f32>::zeros((2, 3)), Array1::<f32>::zeros(2));
        let (long, wide, double) =
            (Array1::<f32>::zeros(3), Array2::<f32>::zeros((2, 4)), Array1::<f64>::zeros(2));
        let message =
            |given: &[(&str, TensorView)]| signature.check(given).err().map(|e| e.to_string()).unwrap();

        signature.check(&[("t", (&t).into()), ("x", (&x).into())]).unwrap();
        assert_eq!(
            message(&[("z", (&t).into()), ("x", (&x).into())]),
            "the model has no input 'z'; its inputs are 'x', 't'"
        );
        assert_eq!(
            message(&[("x", (&x).into())]),
            "input 't' was given 0 times; give every input of the model exactly once"
        );
        assert_eq!(
            message(&[("x", (&wide).into()), ("t", (&t).into())]),
            "input 'x' has shape [2, 4], but the model takes [N=2, 3]"
        );
        assert_eq!(
            message(&[("x", (&x).into()), ("t", (&long).into())]),
            "input 't' has shape [3], but the model takes [N=2]"
        );
        assert_eq!(
            message(&[("x", (&x).into()), ("t", (&double).into())]),
            "input 't' is float64, but the model takes float32"
        );
    }

    #[test]
    fn names_nodes_by_name_and_op() {
        let signature = signature();
        assert_eq!(signature.node_in("Name:'brenier_node_0' failed").unwrap(), "'y' (Identity)");
        assert_eq!(signature.node_in("brenier_node_1 failed"), None);
        assert_eq!(signature.node_in("something failed"), None);
    }
}
