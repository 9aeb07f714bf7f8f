//! One operator with one choice of attributes, element types and shapes, and what must come out of it.

use std::collections::BTreeMap;

use brenier::engine::{Engine, Tensor};
use ndarray::ArrayD;
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{Attribute, DType, Graph, Model, Node, TensorData, ValueInfo, lower};

/// Engines compute in float32.
pub(crate) const TOLERANCE: f64 = 2e-5;

/// A graph, usually of one node, with values for its inputs.
#[derive(Clone)]
pub(crate) struct Sample {
    /// What is told where engines disagree.
    pub(crate) label: String,
    pub(crate) graph: Graph,
    pub(crate) inputs: BTreeMap<String, Array>,
    pub(crate) opset: i64,
}

/// What an engine made of a sample.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Agrees,
    Refused(String),
    Wrong(String),
}

/// The attributes of a node, as they are listed in sweeps.
pub(crate) type Attributes<'a> = &'a [(&'a str, Attribute)];

/// A node on these inputs (`None` where one is left out), with outputs of these types.
pub(crate) fn sample(
    op: &str,
    attributes: Attributes,
    inputs: &[Option<Array>],
    outputs: &[DType],
) -> Sample {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let given: Vec<&str> =
        inputs.iter().zip(&names).map(|(x, name)| if x.is_some() { name.as_str() } else { "" }).collect();
    let results: Vec<String> = (0..outputs.len()).map(|i| format!("y{i}")).collect();
    let mut node = Node::new(op, &given, &results.iter().map(String::as_str).collect::<Vec<_>>());
    for (name, value) in attributes {
        node = node.with(name, value.clone());
    }
    let described: Vec<String> = inputs
        .iter()
        .map(|x| x.as_ref().map_or("-".to_string(), |x| format!("{}{:?}", x.dtype, x.shape())))
        .collect();
    Sample {
        label: format!("{op}({}) {:?}", described.join(", "), node.attributes),
        graph: Graph {
            inputs: inputs
                .iter()
                .zip(&names)
                .filter_map(|(x, name)| Some(ValueInfo::new(name, x.as_ref()?.dtype, x.as_ref()?.shape())))
                .collect(),
            outputs: outputs
                .iter()
                .zip(&results)
                .map(|(&dtype, name)| ValueInfo { name: name.clone(), dtype, shape: None })
                .collect(),
            nodes: vec![node],
            ..Graph::default()
        },
        inputs: names.into_iter().zip(inputs).filter_map(|(name, x)| Some((name, x.clone()?))).collect(),
        opset: 20,
    }
}

impl Sample {
    /// The same with all inputs but the first as constants: engines fold and prepack these.
    pub(crate) fn with_constants(&self) -> Option<Sample> {
        let mut sample = self.clone();
        let (first, rest) = sample.graph.inputs.split_first()?;
        if rest.is_empty() {
            return None;
        }
        for input in rest {
            let array = sample.inputs.remove(&input.name)?;
            sample.graph.initializers.insert(input.name.clone(), array.to_tensor());
        }
        sample.graph.inputs = vec![first.clone()];
        sample.label.push_str(", constants");
        Some(sample)
    }

    /// The same as a predictor prepares it.
    pub(crate) fn lowered(&self) -> Option<Sample> {
        let graph = lower(&self.graph, &[]).ok()?;
        Some(Sample { graph, label: format!("{}, lowered", self.label), ..self.clone() })
    }

    /// The reference evaluator's outputs, where it knows the operator.
    pub(crate) fn truth(&self) -> Option<Vec<Array>> {
        evaluate(&self.graph, &self.inputs).ok()
    }

    /// What an engine gives. Element types that engines' interfaces do not carry are cast inside the graph.
    pub(crate) fn run(&self, engine: &dyn Engine) -> brenier::Result<Vec<Array>> {
        let mut graph = self.graph.clone();
        let mut casts = Vec::new();
        for input in &mut graph.inputs {
            if let Some(wide) = carrier(input.dtype) {
                let outer = format!("{}.wide", input.name);
                let to = i64::from(input.dtype.code());
                casts.push(Node::new("Cast", &[&outer], &[&input.name]).with("to", to));
                (input.name, input.dtype) = (outer, wide);
            }
        }
        graph.nodes.splice(0..0, casts);
        for output in &mut graph.outputs {
            if let Some(wide) = carrier(output.dtype) {
                let outer = format!("{}.wide", output.name);
                let to = i64::from(wide.code());
                graph.nodes.push(Node::new("Cast", &[&output.name], &[&outer]).with("to", to));
                (output.name, output.dtype) = (outer, wide);
            }
        }
        let fed: Vec<(String, Tensor)> = graph
            .inputs
            .iter()
            .map(|input| {
                let array = &self.inputs[input.name.trim_end_matches(".wide")];
                (input.name.clone(), tensor(input.dtype, &array.data))
            })
            .collect();
        let views: Vec<_> = fed.iter().map(|(name, tensor)| (name.as_str(), tensor.view())).collect();
        let model = Model { graph, ir_version: 10, opset: self.opset, ..Model::default() };
        let results = engine.load(&model)?.run(&views)?;
        Ok(self.graph.outputs.iter().zip(results).map(|(output, t)| array(output.dtype, t)).collect())
    }

    /// Holds an engine against what must come out, to this tolerance.
    pub(crate) fn compare(&self, engine: &dyn Engine, truth: &[Array], tolerance: f64) -> Outcome {
        match self.run(engine) {
            Err(error) => Outcome::Refused(error.to_string()),
            Ok(found) => {
                let differs =
                    found.iter().zip(truth).enumerate().find_map(|(i, (f, t))| {
                        Some(format!("output {i}: {}", difference(f, t, tolerance)?))
                    });
                differs.map_or(Outcome::Agrees, Outcome::Wrong)
            }
        }
    }
}

/// What an engine's interface carries in place of this type.
fn carrier(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F32 | DType::I64 | DType::I32 | DType::Bool | DType::F64 => None,
        DType::F16 => Some(DType::F32),
        _ => Some(DType::I64),
    }
}

fn tensor(dtype: DType, data: &ArrayD<f64>) -> Tensor {
    match dtype {
        DType::F32 => data.mapv(|v| v as f32).into(),
        DType::F64 => data.clone().into(),
        DType::Bool => data.mapv(|v| v != 0.0).into(),
        _ => data.mapv(|v| v as i64).into(),
    }
}

fn array(dtype: DType, tensor: Tensor) -> Array {
    let data = match tensor {
        Tensor::F32(data) => data.mapv(f64::from),
        Tensor::F64(data) => data,
        Tensor::I64(data) => data.mapv(|v| v as f64),
        Tensor::Bool(data) => data.mapv(f64::from),
    };
    Array { dtype, data }
}

/// Where the arrays differ, if they do by more than rounding.
pub(crate) fn difference(found: &Array, truth: &Array, tolerance: f64) -> Option<String> {
    if found.shape() != truth.shape() {
        return Some(format!("shape {:?}, not {:?}", found.shape(), truth.shape()));
    }
    let rounded = |v: f64| if truth.dtype.is_float() { f64::from(v as f32) } else { v };
    let finite = |v: &f64| v.is_finite() && v.abs() < 1e30;
    let scale = truth.data.iter().copied().filter(finite).fold(1.0f64, |m, v| m.max(v.abs()));
    let allowed = match truth.dtype {
        // Engines compute halves as floats.
        DType::F16 => 2e-3 * scale,
        dtype if dtype.is_float() => tolerance * scale,
        _ => 0.0,
    };
    for (i, (&f, &t)) in found.data.iter().zip(&truth.data).enumerate() {
        let t = rounded(t);
        let same = f == t || f.is_nan() && t.is_nan() || (f - t).abs() <= allowed;
        if !same {
            return Some(format!("{f} at {i}, not {t}"));
        }
    }
    None
}

/// The array as a constant of a graph.
pub(crate) fn constant(array: &Array) -> TensorData {
    array.to_tensor()
}

/// Numbers that look random, the same everywhere: whole ones for integers, fractions for floats.
pub(crate) fn numbers(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let count = shape.iter().product();
    let values = (0..count)
        .map(|_| match dtype {
            DType::F16 | DType::F32 | DType::F64 => f64::from((4.0 * next() - 2.0) as f32),
            DType::Bool => f64::from(next() < 0.5),
            DType::U8 => (256.0 * next()).floor(),
            DType::I8 => (256.0 * next()).floor() - 128.0,
            _ => (19.0 * next()).floor() - 9.0,
        })
        .collect();
    Array::new(dtype, shape, values)
}

/// A vector or scalar of int64.
pub(crate) fn ints(values: &[i64]) -> Array {
    Array::ints(values.iter().copied())
}
