//! An engine's inner values: the model with more outputs.

use std::collections::{BTreeMap, BTreeSet};

use onnx_grad::eval::Array;
use onnx_grad::{DType, Graph, Model, Node, TensorData, ValueInfo};

use super::kinds::Kind;
use super::node;
use crate::engine::{Engine, Program, Tensor, TensorView};
use crate::error::Result;

/// Values by name.
pub(super) type Values = BTreeMap<String, Array>;

/// A model whose inner values are outputs, loaded.
pub(super) struct Inner<'a> {
    graph: &'a Graph,
    program: Box<dyn Program>,
    /// The name and type of each output.
    shown: Vec<(String, DType)>,
}

impl<'a> Inner<'a> {
    /// Loads the model with all that these nodes take and give.
    pub(super) fn of(engine: &dyn Engine, model: &'a Model, kinds: &[Kind]) -> Result<Inner<'a>> {
        let graph = &model.graph;
        let mut wanted: BTreeMap<&str, DType> = BTreeMap::new();
        for kind in kinds {
            wanted.extend(kind.inputs.iter().map(|(name, dtype)| (name.as_str(), *dtype)));
            let given = kind.node.outputs.iter().zip(&kind.outputs);
            wanted.extend(given.filter_map(|(name, dtype)| Some((name.as_str(), (*dtype)?))));
        }
        // What is made by nodes and no output yet.
        let made: BTreeSet<&str> = graph.nodes.iter().flat_map(Node::wanted_outputs).collect();
        wanted.retain(|name, _| made.contains(name) && graph.output(name).is_none());
        Inner::with(engine, model, wanted.into_iter())
    }

    /// Loads the model with these values as outputs too.
    fn with<'b>(
        engine: &dyn Engine,
        model: &'a Model,
        values: impl Iterator<Item = (&'b str, DType)>,
    ) -> Result<Inner<'a>> {
        let mut graph = model.graph.clone();
        let mut shown: Vec<(String, DType)> =
            graph.outputs.iter().map(|output| (output.name.clone(), output.dtype)).collect();
        for (name, dtype) in values {
            let (output, carried) = match carrier(dtype) {
                None => (name.to_string(), dtype),
                Some(wide) => {
                    let output = format!("check/{name}");
                    let to = i64::from(wide.code());
                    graph.nodes.push(Node::new("Cast", &[name], &[&output]).with("to", to));
                    (output, wide)
                }
            };
            graph.outputs.push(ValueInfo { name: output, dtype: carried, shape: None });
            shown.push((name.to_string(), dtype));
        }
        let program = engine.load(&Model { graph, ..model.clone() })?;
        Ok(Inner { graph: &model.graph, program, shown })
    }

    /// The graph as it is.
    pub(super) fn graph(&self) -> &'a Graph {
        self.graph
    }

    /// All that is shown, and the inputs.
    pub(super) fn run(&mut self, inputs: &[(String, Tensor)]) -> Result<Values> {
        let views: Vec<(&str, TensorView)> = inputs.iter().map(|(n, t)| (n.as_str(), t.view())).collect();
        let outputs = self.program.run(&views)?;
        let mut values: Values = self
            .shown
            .iter()
            .zip(outputs)
            .map(|((name, dtype), tensor)| (name.clone(), array(*dtype, &tensor)))
            .collect();
        for (name, tensor) in inputs {
            let dtype = self.graph.input(name).map_or(tensor.dtype(), |input| input.dtype);
            values.insert(name.clone(), array(dtype, tensor));
        }
        Ok(values)
    }

    /// The first inner value that is another where it alone is shown: what the engine makes of the graph as a whole
    /// changes it.
    pub(super) fn changed(
        &self,
        engine: &dyn Engine,
        model: &Model,
        inputs: &[(String, Tensor)],
        values: &Values,
    ) -> Option<String> {
        let shown: BTreeMap<&str, DType> = self.shown.iter().map(|(n, d)| (n.as_str(), *d)).collect();
        let made: Vec<(&str, DType)> = (self.graph.nodes.iter().flat_map(Node::wanted_outputs))
            .filter_map(|name| Some((name, *shown.get(name)?)))
            .filter(|(name, _)| self.graph.output(name).is_none())
            .collect();
        let differs = |&(name, dtype): &(&str, DType)| -> Option<bool> {
            let alone = Inner::with(engine, model, std::iter::once((name, dtype))).ok()?.run(inputs).ok()?;
            Some(node::difference(&alone[name], &values[name], 1e-3, 0.0).is_some())
        };
        let (mut low, mut high) = (0, made.len());
        while low < high {
            let middle = (low + high) / 2;
            match differs(&made[middle])? {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        made.get(low).map(|(name, _)| name.to_string())
    }
}

/// What an engine's interface carries in place of this type.
fn carrier(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F32 | DType::F64 | DType::I64 | DType::I32 | DType::Bool => None,
        DType::F16 => Some(DType::F32),
        _ => Some(DType::I64),
    }
}

/// A tensor as the reference evaluator takes it.
pub(super) fn array(dtype: DType, tensor: &Tensor) -> Array {
    let data = match tensor {
        Tensor::F32(data) => data.mapv(f64::from),
        Tensor::F64(data) => data.clone(),
        Tensor::I64(data) => data.mapv(|v| v as f64),
        Tensor::Bool(data) => data.mapv(f64::from),
    };
    Array { dtype, data }
}

/// The shape of a value or constant.
pub(super) fn shape<'a>(graph: &'a Graph, values: &'a Values, name: &str) -> Option<&'a [usize]> {
    let constant = || graph.initializers.get(name).map(TensorData::shape);
    values.get(name).map(Array::shape).or_else(constant)
}
