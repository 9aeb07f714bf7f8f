//! What holds for every graph: writing loses nothing, lowering changes nothing, gradients have gradients.

#![allow(clippy::unwrap_used)]

mod cases;

use std::collections::BTreeMap;

use cases::{Case, GENERATORS, Rng};
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{Builder, DType, Graph, Model, Node, TensorData, grad, gradient_name, lower, seed_name};
use proptest::prelude::*;

fn model(graph: Graph) -> Model {
    Model { graph, ir_version: 9, opset: 20, producer: "onnx-grad".to_string(), ..Model::default() }
}

/// `None` where what is read is what was written.
fn lost(graph: &Graph) -> Option<String> {
    let before = model(graph.clone());
    match Model::from_bytes(before.to_bytes()) {
        Ok(after) if after == before => None,
        Ok(after) => Some(format!("{before:?}\nbecame\n{after:?}")),
        Err(error) => Some(error.to_string()),
    }
}

/// What a file cannot say: multiples of a symbol, and symbols that inference made up.
fn without_unwritable_sizes(mut graph: Graph) -> Graph {
    let bytes = model(graph.clone()).to_bytes();
    if let Ok(read) = Model::from_bytes(bytes) {
        graph.outputs = read.graph.outputs;
        graph.inputs = read.graph.inputs;
    }
    graph
}

fn largest_difference(a: &Array, b: &Array) -> f64 {
    if a.shape() != b.shape() || a.dtype != b.dtype {
        return f64::INFINITY;
    }
    let scale = a.data.iter().fold(1.0f64, |m, v| m.max(v.abs()));
    let apart = |(x, y): (&f64, &f64)| if x == y { 0.0 } else { (x - y).abs() / scale };
    a.data.iter().zip(&b.data).map(apart).fold(0.0, |m, d| if d.is_nan() { f64::INFINITY } else { m.max(d) })
}

/// How lowering changes what a graph computes, if it does.
fn changed(case: &Case) -> Option<String> {
    let lowered = match lower(&case.graph, &[]) {
        Ok(lowered) => lowered,
        Err(error) => return Some(error.to_string()),
    };
    let (before, after) = (evaluate(&case.graph, &case.inputs), evaluate(&lowered, &case.inputs));
    let (Ok(before), Ok(after)) = (&before, &after) else { return Some(format!("{before:?} {after:?}")) };
    // Constants are folded in float32.
    let worst = before.iter().zip(after).map(|(a, b)| largest_difference(a, b)).fold(0.0, f64::max);
    (worst > 1e-5).then(|| format!("{worst:.1e} apart"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_survives_writing(seed in any::<u64>()) {
        for &(op, generator) in GENERATORS {
            let case = generator(seed);
            let graph = without_unwritable_sizes(case.graph);
            let lost_in = lost(&graph);
            prop_assert!(lost_in.is_none(), "{op}, seed {seed}: {}", lost_in.unwrap());
        }
    }

    #[test]
    fn a_gradient_graph_survives_writing(seed in any::<u64>()) {
        for &(op, generator) in GENERATORS {
            let case = generator(seed);
            let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
            let graph = without_unwritable_sizes(grad(&case.graph, &["y"], &wrt).unwrap());
            let lost_in = lost(&graph);
            prop_assert!(lost_in.is_none(), "{op}, seed {seed}: {}", lost_in.unwrap());
        }
    }

    #[test]
    fn lowering_changes_nothing(seed in any::<u64>()) {
        for &(op, generator) in GENERATORS {
            let how = changed(&generator(seed));
            prop_assert!(how.is_none(), "{op}, seed {seed}: {}", how.unwrap());
        }
    }

    /// `H v` from the gradient of the gradient, against differences of the gradient:
    /// `d/dx (v . dL/dx)` is `(g(x + h v) - g(x - h v)) / 2h`, with `L = sum(s y^2)`.
    #[test]
    fn gradients_have_gradients(seed in any::<u64>()) {
        for &(op, generator) in GENERATORS.iter().filter(|(op, _)| SMOOTH.contains(op)) {
            let error = second_order_error(squared(generator(seed)));
            prop_assert!(error.as_ref().is_ok_and(|e| *e < 1e-5), "{op}, seed {seed}: {error:?}");
        }
    }
}

/// Operators without kinks.
const SMOOTH: &[&str] = &[
    "Mul",
    "Div",
    "Exp",
    "Log",
    "Sin",
    "Tanh",
    "Sigmoid",
    "Softplus",
    "Erf",
    "Gelu",
    "Mish",
    "Swish",
    "Sqrt",
    "Reciprocal",
    "Softmax",
    "LogSoftmax",
    "MatMul",
    "Gemm",
    "Conv",
    "ConvTranspose",
    "LayerNormalization",
    "InstanceNormalization",
    "GroupNormalization",
    "RMSNormalization",
    "ReduceSumSquare",
    "ReduceLogSumExp",
    "ReduceL2",
    "ReduceProd",
    "Attention",
];

/// The square of the output, so that the second derivative is not zero for linear operators either.
fn squared(mut case: Case) -> Case {
    let graph = &mut case.graph;
    graph.nodes.push(Node::new("Mul", &["y", "y"], &["z"]));
    graph.outputs[0].name = "z".to_string();
    case
}

fn second_order_error(case: Case) -> Result<f64, String> {
    const STEP: f64 = 1e-4;
    let message = |e: onnx_grad::Error| e.to_string();
    let x = "x0";
    let first = grad(&case.graph, &["z"], &[x]).map_err(message)?;
    let gradient = gradient_name(x);
    let second = grad(&first, &[&gradient], &[x]).map_err(message)?;

    let z = evaluate(&case.graph, &case.inputs).map_err(message)?.swap_remove(0);
    let mut rng = Rng(23);
    let mut random = |like: &Array| {
        let values = rng.apart(like.data.len(), -1.0, 1.0);
        Array::new(like.dtype, like.shape(), values)
    };
    let mut inputs = case.inputs.clone();
    let direction = match case.inputs[x].shape() {
        [] => Array::scalar(z.dtype, 1.0),
        _ => random(&case.inputs[x]),
    };
    inputs
        .insert(seed_name("z"), if z.shape().is_empty() { Array::scalar(z.dtype, 1.0) } else { random(&z) });
    inputs.insert(seed_name(&gradient), direction.clone());
    let output = |graph: &Graph, name: &str, inputs: &BTreeMap<String, Array>| -> Result<Array, String> {
        let i = graph.outputs.iter().position(|o| o.name == name).ok_or(format!("no output {name}"))?;
        Ok(evaluate(graph, inputs).map_err(message)?.swap_remove(i))
    };
    let ours = output(&second, &gradient_name(&gradient), &inputs)?;
    let mut sides = Vec::new();
    for sign in [1.0, -1.0] {
        let mut moved = inputs.clone();
        let point = moved.get_mut(x).unwrap();
        point.data = &point.data + &(&direction.data * (sign * STEP));
        sides.push(output(&first, &gradient, &moved)?);
    }
    let differences = (&sides[0].data - &sides[1].data) / (2.0 * STEP);
    Ok(largest_difference(&Array { dtype: ours.dtype, data: differences }, &ours))
}

#[test]
fn differentiating_twice_by_different_names_shares_the_seed() {
    let mut b = Builder::new("product");
    let x = b.input("x", DType::F32, &[2usize.into()]);
    let w = b.parameter("w", TensorData::f32(&[2], &[1.0, 2.0]));
    let y = b.mul(&x, &w);
    b.output("y", &y);
    let first = grad(&b.finish().unwrap(), &["y"], &["x"]).unwrap();
    let both = grad(&first, &["y"], &["w"]).unwrap();
    assert_eq!(both.inputs.iter().filter(|v| v.name == "seed/y").count(), 1);
    assert!(both.output("grad/x").is_some() && both.output("grad/w").is_some());
}

/// With respect to a value in between: everything else stays as it is, the input it was made from included.
/// Training changes what it differentiates: a gain that begins with ones does not stay so.
#[test]
fn a_gain_that_is_differentiated_is_no_constant() {
    let mut b = Builder::new("norm");
    let x = b.input("x", DType::F32, &[2i64.into(), 2i64.into(), 3i64.into()]);
    let gain = b.parameter("gain", TensorData::f32(&[2], &[1.0, 1.0]));
    let bias = b.parameter("bias", TensorData::f32(&[2], &[0.0, 0.0]));
    let y = b.op("InstanceNormalization", &[&x, &gain, &bias]);
    b.output("y", &y);
    let mut gradient = grad(&b.finish().unwrap(), &["y"], &["x", "gain", "bias"]).unwrap();
    let evaluated = |graph: &Graph, scale: f64| {
        let mut rng = Rng(3);
        let mut inputs = BTreeMap::new();
        for (name, shape) in [("x", [2, 2, 3]), ("seed/y", [2, 2, 3])] {
            inputs.insert(name.to_string(), Array::new(DType::F32, &shape, rng.apart(12, -1.0, 1.0)));
        }
        for name in ["gain", "bias"] {
            inputs.insert(name.to_string(), Array::new(DType::F32, &[2], vec![scale; 2]));
        }
        evaluate(graph, &inputs).unwrap()
    };
    for name in ["gain", "bias"] {
        let tensor = gradient.initializers.remove(name).unwrap();
        gradient.inputs.push(onnx_grad::ValueInfo::new(name, tensor.dtype(), tensor.shape()));
    }
    let place = gradient.outputs.iter().position(|o| o.name == gradient_name("x")).unwrap();
    let gain_place = gradient.outputs.iter().position(|o| o.name == gradient_name("gain")).unwrap();
    let (one, three) = (evaluated(&gradient, 1.0), evaluated(&gradient, 3.0));
    let tripled = one[place].data.mapv(|v| 3.0 * v);
    assert!((tripled - &three[place].data).iter().all(|d| d.abs() < 1e-9));
    // What the gain is has no part in its own gradient.
    assert!((&one[gain_place].data - &three[gain_place].data).iter().all(|d| d.abs() < 1e-9));
}

#[test]
fn an_inner_value_that_is_an_output_has_a_gradient() {
    let mut b = Builder::new("inner");
    let x = b.input("x", DType::F64, &[2usize.into()]);
    let h = b.mul(&x, &x);
    b.output("h", &h);
    let e = b.op("Exp", &["h"]);
    let product = b.mul("h", &x);
    let y = b.add(&e, &product);
    b.output("y", &y);
    let graph = grad(&b.finish().unwrap(), &["y"], &["h"]).unwrap();
    let numbers = |values: &[f64]| Array::new(DType::F64, &[2], values.to_vec());
    let inputs =
        BTreeMap::from([("x".to_string(), numbers(&[0.5, -1.5])), (seed_name("y"), numbers(&[1.0, 2.0]))]);
    let at = graph.outputs.iter().position(|o| o.name == gradient_name("h")).unwrap();
    let found = evaluate(&graph, &inputs).unwrap().swap_remove(at);
    let exact = |x: f64| (x * x).exp() + x;
    assert!(largest_difference(&found, &numbers(&[exact(0.5), 2.0 * exact(-1.5)])) < 1e-12);
    // A value that is no output is not known by name.
    assert!(grad(&graph, &["y"], &["nothing"]).is_err());
}

/// The gradient of SiLU is computed at once, past its sigmoid: not where the sigmoid's own gradient is asked for, too.
#[test]
fn a_gate_keeps_its_gradient_where_it_is_asked_for() {
    let mut b = Builder::new("gate");
    let x = b.input("x", DType::F64, &[2usize.into()]);
    let gate = b.op("Sigmoid", &[&x]);
    b.output("gate", &gate);
    let y = b.mul(&x, "gate");
    b.output("y", &y);
    let graph = grad(&b.finish().unwrap(), &["y"], &["x", "gate"]).unwrap();
    let numbers = |values: &[f64]| Array::new(DType::F64, &[2], values.to_vec());
    let inputs =
        BTreeMap::from([("x".to_string(), numbers(&[0.5, -1.5])), (seed_name("y"), numbers(&[1.0, 2.0]))]);
    let outputs = evaluate(&graph, &inputs).unwrap();
    let of = |name: &str| &outputs[graph.outputs.iter().position(|o| o.name == gradient_name(name)).unwrap()];
    assert!(largest_difference(of("gate"), &numbers(&[0.5, -3.0])) < 1e-12);
    let slope = |x: f64| {
        let s = 1.0 / (1.0 + (-x).exp());
        s + x * s * (1.0 - s)
    };
    assert!(largest_difference(of("x"), &numbers(&[slope(0.5), 2.0 * slope(-1.5)])) < 1e-12);
}
