//! One node held against the reference evaluator, on the engine's own inputs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ndarray::{Axis, Slice};
use onnx_grad::eval::{Array, evaluate, evaluate_node};
use onnx_grad::{Graph, Node, ValueInfo};

use super::inner::{Values, shape};
use super::kinds::Kind;

/// How far a float may be off, in units of the largest value of its tensor.
const TOLERANCE: f64 = 1e-4;
/// A node that takes more steps than this is cut down to a part, where it can be.
const MOST_STEPS: u64 = 1 << 21;
/// Columns of a product, or features of a convolution, that are computed of a large one.
const PART: usize = 2;
/// Relative size of the disturbances that tell how much rounding matters to a node.
const ROUNDING: f64 = 2e-7;
/// How many times what a disturbance changes is forgiven.
const FORGIVEN: f64 = 30.0;

/// What came of a comparison.
#[derive(Debug, PartialEq)]
pub(super) enum Held {
    Agrees,
    /// The reference does not know the node, for this reason.
    NotKnown(String),
    /// An element of this value is another.
    Differs {
        value: String,
        found: f64,
        expected: f64,
    },
}

/// Multiplications, or elements moved, of a node after it is cut down.
pub(super) fn cost(kind: &Kind, graph: &Graph, values: &Values) -> u64 {
    let full = full_cost(&kind.node, graph, values);
    match features(&kind.node, graph, values) {
        Some(features) if full > MOST_STEPS => full / (features as u64 / PART as u64).max(1),
        _ => full,
    }
}

fn full_cost(node: &Node, graph: &Graph, values: &Values) -> u64 {
    let sizes = |i: usize| node.input(i).and_then(|name| shape(graph, values, name)).unwrap_or_default();
    let count = |shape: &[usize]| shape.iter().map(|&n| n as u64).product::<u64>();
    let output = node.output(0).and_then(|name| shape(graph, values, name)).map_or(0, count);
    let (x, w) = (sizes(0), sizes(1));
    let moved: u64 = (0..node.inputs.len()).map(|i| count(sizes(i))).sum::<u64>() + output;
    let products = match node.op.as_str() {
        "Conv" | "ConvInteger" => output * count(w.get(1..).unwrap_or_default()),
        "ConvTranspose" => count(x) * count(w.get(1..).unwrap_or_default()),
        "MatMul" | "MatMulInteger" => output * x.last().copied().unwrap_or(1) as u64,
        "Gemm" => output * count(x) / (output / count(w).max(1) * w[0] as u64).max(1).min(count(x).max(1)),
        "Einsum" => ((output as f64) * (count(x) as f64 * count(w) as f64).sqrt()) as u64,
        _ => 0,
    };
    products + 4 * moved
}

/// How many columns or features a node computes independently of each other, where it can be cut.
fn features(node: &Node, graph: &Graph, values: &Values) -> Option<usize> {
    let w = shape(graph, values, node.input(1)?)?;
    let one_group = node.int("group", 1) == 1;
    match node.op.as_str() {
        "Conv" if one_group => w.first().copied(),
        "ConvTranspose" if one_group => w.get(1).copied(),
        "MatMul" if w.len() >= 2 => w.last().copied(),
        "Gemm" => w.get(if node.int("transB", 0) != 0 { 0 } else { 1 }).copied(),
        _ => None,
    }
}

/// The first columns of every input that has columns, and the axis of the output that is cut.
fn cut(node: &Node, inputs: &mut [Option<Cow<'_, Array>>]) -> Option<usize> {
    let first = |array: &Array, axis: usize| Array {
        dtype: array.dtype,
        data: array.data.slice_axis(Axis(axis), Slice::from(..PART.min(array.shape()[axis]))).to_owned(),
    };
    let rank = |i: usize, inputs: &[Option<Cow<'_, Array>>]| inputs.get(i)?.as_ref().map(|a| a.shape().len());
    let w_rank = rank(1, inputs)?;
    let (weight_axis, output_axis) = match node.op.as_str() {
        "Conv" => (0, 1),
        "ConvTranspose" => (1, 1),
        "MatMul" => (w_rank - 1, usize::MAX),
        "Gemm" => (if node.int("transB", 0) != 0 { 0 } else { 1 }, 1),
        _ => return None,
    };
    let weights = first(inputs[1].as_deref()?, weight_axis);
    inputs[1] = Some(Cow::Owned(weights));
    if let Some(Some(bias)) = inputs.get_mut(2)
        && let Some(axis) = bias.shape().len().checked_sub(1)
        && bias.shape()[axis] > 1
    {
        *bias = Cow::Owned(first(bias, axis));
    }
    Some(output_axis)
}

/// Compares the engine's outputs of a node with what the reference makes of the engine's inputs.
pub(super) fn hold(kind: &Kind, graph: &Graph, values: &Values) -> Held {
    let node = &kind.node;
    let mut inputs: Vec<Option<Cow<'_, Array>>> = Vec::with_capacity(node.inputs.len());
    for name in &node.inputs {
        let constant = || graph.initializers.get(name).map(|data| Cow::Owned(Array::from(data)));
        let value = values.get(name).map(Cow::Borrowed).or_else(constant);
        if value.is_none() && !name.is_empty() {
            return Held::NotKnown(format!("(the type of its input '{name}' is not known)"));
        }
        inputs.push(value);
    }
    let large = full_cost(node, graph, values) > MOST_STEPS && features(node, graph, values).is_some();
    let part = if large { cut(node, &mut inputs) } else { None };
    let expected = match reference(node, graph, values, &inputs) {
        Ok(expected) => expected,
        Err(why) => return Held::NotKnown(format!("({why})")),
    };
    for (i, expected) in expected.iter().enumerate() {
        let Some(name) = node.output(i) else { continue };
        let Some(found) = values.get(name) else { continue };
        let found = match part {
            None => Cow::Borrowed(found),
            Some(axis) => {
                let axis = axis.min(found.shape().len() - 1);
                let most = expected.shape().get(axis).copied().unwrap_or(PART);
                let data = found.data.slice_axis(Axis(axis), Slice::from(..most)).to_owned();
                Cow::Owned(Array { dtype: found.dtype, data })
            }
        };
        if difference(&found, expected, TOLERANCE, 0.0).is_none() {
            continue;
        }
        // Rounding may matter more here than the tolerance has room for: differences of near equals, steps.
        let moved: Vec<Array> = (1..=4)
            .filter_map(|seed| {
                let disturbed: Vec<Option<Cow<'_, Array>>> =
                    inputs.iter().map(|x| x.as_ref().map(|x| Cow::Owned(disturb(x, seed)))).collect();
                reference(node, graph, values, &disturbed).ok()?.into_iter().nth(i)
            })
            .collect();
        if let Some((found, expected)) = beyond(&found, expected, &moved, TOLERANCE) {
            return Held::Differs { value: name.to_string(), found, expected };
        }
    }
    Held::Agrees
}

fn reference(
    node: &Node,
    graph: &Graph,
    values: &Values,
    inputs: &[Option<Cow<'_, Array>>],
) -> Result<Vec<Array>, String> {
    let given: Vec<Option<&Array>> = inputs.iter().map(Option::as_deref).collect();
    if node.bodies().next().is_none() {
        return evaluate_node(node, &given).map_err(|e| e.to_string());
    }
    let mut known: BTreeMap<String, Array> = values.clone();
    let named = node.inputs.iter().zip(given).filter_map(|(name, x)| Some((name.clone(), x?.clone())));
    known.extend(named);
    let free = node.bodies().flat_map(Graph::free_names).filter_map(|n| graph.initializers.get_key_value(n));
    let outputs = node.wanted_outputs().map(|name| ValueInfo {
        name: name.to_string(),
        dtype: onnx_grad::DType::F32,
        shape: None,
    });
    let alone = Graph {
        nodes: vec![node.clone()],
        initializers: free.map(|(name, data)| (name.clone(), data.clone())).collect(),
        outputs: outputs.collect(),
        ..Graph::default()
    };
    evaluate(&alone, &known).map_err(|e| e.to_string())
}

/// Floats changed in their last bits.
pub(super) fn disturb(array: &Array, seed: u64) -> Array {
    if !array.dtype.is_float() {
        return array.clone();
    }
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut sign = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & (1 << 40) == 0 { 1.0 } else { -1.0 }
    };
    Array { dtype: array.dtype, data: array.data.mapv(|v| v * (1.0 + ROUNDING * sign())) }
}

/// The first element that differs by more than the tolerance, in units of the largest, and `allowed` besides.
pub(super) fn difference(
    found: &Array,
    expected: &Array,
    tolerance: f64,
    allowed: f64,
) -> Option<(f64, f64)> {
    if found.shape() != expected.shape() {
        return Some((found.data.len() as f64, expected.data.len() as f64));
    }
    let is_float = expected.dtype.is_float();
    let finite = |v: &f64| v.is_finite() && v.abs() < f64::from(f32::MAX);
    let scale = expected.data.iter().copied().filter(finite).fold(0.0f64, |m, v| m.max(v.abs()));
    let allowed = if is_float { tolerance * scale + f64::from(f32::MIN_POSITIVE) + allowed } else { 0.0 };
    found
        .data
        .iter()
        .zip(&expected.data)
        .map(|(&f, &e)| (f, if is_float { f64::from(e as f32) } else { e }))
        .find(|&(f, e)| {
            let same = f == e || f.is_nan() && e.is_nan() || (f - e).abs() <= allowed;
            !same
        })
}

/// The first element that differs by more than rounding explains: `moved` is what small disturbances make of `expected`.
pub(super) fn beyond(found: &Array, expected: &Array, moved: &[Array], tolerance: f64) -> Option<(f64, f64)> {
    if found.shape() != expected.shape() {
        return difference(found, expected, tolerance, 0.0);
    }
    if !expected.dtype.is_float() {
        let at_a_step =
            |i: usize, e: f64| moved.iter().any(|m| m.data.iter().nth(i).is_some_and(|&v| v != e));
        let pairs = found.data.iter().copied().zip(expected.data.iter().copied()).enumerate();
        return pairs
            .filter(|(_, (f, e))| f != e)
            .find(|(i, (_, e))| !at_a_step(*i, *e))
            .map(|(_, pair)| pair);
    }
    let change = |m: &Array| {
        let apart = m.data.iter().zip(&expected.data).map(|(a, b)| (a - b).abs());
        apart.filter(|d| d.is_finite()).fold(0.0, f64::max)
    };
    let forgiven = FORGIVEN * moved.iter().map(change).fold(0.0, f64::max);
    difference(found, expected, tolerance, forgiven)
}

#[cfg(test)]
mod tests {
    use onnx_grad::DType;

    use super::*;

    #[test]
    fn a_cancelling_sum_is_forgiven_and_a_wrong_one_is_not() {
        let node = Node::new("ReduceSum", &["x"], &["y"]).with("keepdims", 0);
        let kind = Kind {
            node,
            place: 0,
            outputs: vec![Some(DType::F32)],
            inputs: [("x".into(), DType::F32)].into(),
        };
        let x = Array::new(DType::F32, &[3], vec![1e6, -1e6, 0.001]);
        let held = |y: f64| {
            let values = Values::from([("x".into(), x.clone()), ("y".into(), Array::scalar(DType::F32, y))]);
            hold(&kind, &Graph::default(), &values)
        };
        assert_eq!(held(0.001), Held::Agrees);
        assert_eq!(held(0.0625), Held::Agrees);
        assert_eq!(held(40.0), Held::Differs { value: "y".into(), found: 40.0, expected: 0.001f32.into() });
    }

    #[test]
    fn a_large_product_is_compared_in_part() {
        let node = Node::new("MatMul", &["a", "b"], &["y"]);
        let inputs = [("a".to_string(), DType::F32), ("b".to_string(), DType::F32)].into();
        let kind = Kind { node, place: 0, outputs: vec![Some(DType::F32)], inputs };
        let n = 160;
        let ones = Array::new(DType::F32, &[n, n], vec![1.0; n * n]);
        let product = |v: f64| Array::new(DType::F32, &[n, n], vec![v; n * n]);
        let values = |v: f64| {
            Values::from([("a".into(), ones.clone()), ("b".into(), ones.clone()), ("y".into(), product(v))])
        };
        let graph = Graph::default();
        assert!(full_cost(&kind.node, &graph, &values(1.0)) > MOST_STEPS);
        assert!(cost(&kind, &graph, &values(1.0)) < MOST_STEPS);
        assert_eq!(hold(&kind, &graph, &values(n as f64)), Held::Agrees);
        assert!(matches!(hold(&kind, &graph, &values(1.0)), Held::Differs { .. }));
    }
}
