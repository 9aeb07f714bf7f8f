//! LRP and DeepLIFT at the level of the graph: what they sum to on random networks, and what they are in closed form.
//! What Zennit and Captum say is compared in `crates/brenier/tests/relevance.rs`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use ndarray::ArrayD;
use onnx_grad::backward::deeplift::{reference_name, rescale};
use onnx_grad::backward::lrp::{Composite, LayerRule};
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{
    Attribute, BackwardRules, Builder, DType, Error, GradOptions, Graph, Node, TensorData, Value, grad_with,
    gradient_name, seed_name,
};
use proptest::prelude::*;

const EPSILON: LayerRule = LayerRule::Epsilon { epsilon: 1e-6 };

fn array(values: &ArrayD<f64>) -> Array {
    Array::new(DType::F64, values.shape(), values.iter().copied().collect())
}

/// Runs the graph that the rules make of `graph`; outputs by name.
fn run(
    graph: &Graph,
    rules: BackwardRules,
    inputs: &[(&str, &ArrayD<f64>)],
    seed: ArrayD<f64>,
) -> Result<BTreeMap<String, ArrayD<f64>>, Error> {
    let output = graph.outputs[0].name.clone();
    let options = GradOptions { rules, ..GradOptions::default() };
    let graph = grad_with(graph, &[&output], &[&graph.inputs[0].name], options)?;
    let mut given: BTreeMap<String, Array> =
        inputs.iter().map(|(name, values)| (name.to_string(), array(values))).collect();
    given.insert(seed_name(&output), array(&seed));
    let found = evaluate(&graph, &given).unwrap();
    let names = graph.outputs.iter().map(|info| info.name.clone());
    Ok(names.zip(found.into_iter().map(|array| array.data)).collect())
}

fn one_hot(scores: &ArrayD<f64>, targets: &[usize]) -> ArrayD<f64> {
    let mut seed = ArrayD::zeros(scores.raw_dim());
    targets.iter().enumerate().for_each(|(row, &target)| seed[[row, target]] = 1.0);
    seed
}

fn gap(found: &ArrayD<f64>, truth: &ArrayD<f64>) -> f64 {
    let scale = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert!(scale > 0.0, "the reference is all zeros");
    (found - truth).iter().fold(0.0_f64, |m, v| m.max(v.abs())) / scale
}

/// Numbers that follow from a seed.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    }

    fn below(&mut self, n: usize) -> usize {
        ((self.next() + 1.0) / 2.0 * n as f64) as usize % n
    }

    fn tensor(&mut self, shape: &[usize]) -> TensorData {
        let values: Vec<f64> = (0..shape.iter().product()).map(|_| self.next()).collect();
        TensorData::f64(shape, &values)
    }

    fn array(&mut self, shape: &[usize]) -> ArrayD<f64> {
        ArrayD::from_shape_fn(shape, |_| self.next())
    }
}

fn conv(b: &mut Builder, draws: &mut Draws, x: &Value, from: usize, to: usize, bias: bool) -> Value {
    let weights = b.constant(draws.tensor(&[to, from, 3, 3]));
    let bias = bias.then(|| b.constant(draws.tensor(&[to])));
    let inputs: Vec<&str> = [Some(&**x), Some(&*weights), bias.as_deref()].into_iter().flatten().collect();
    b.op_with("Conv", &inputs, &[("pads", vec![1i64; 4].into()), ("kernel_shape", vec![3i64; 2].into())])
}

/// A network of random layers; where `smooth`, with all that DeepLIFT has rules for.
fn network(seed: u64, bias: bool, residual: bool, smooth: bool) -> Graph {
    let mut draws = Draws(seed);
    let mut b = Builder::new("random");
    let x = b.input("x", DType::F64, &[2usize, 2, 4, 4].map(Into::into));
    let mut h = conv(&mut b, &mut draws, &x, 2, 3, bias);
    h = b.op("Relu", &[&h]);
    for _ in 0..2 {
        let inner = conv(&mut b, &mut draws, &h, 3, 3, bias);
        let inner = match (smooth, draws.below(5)) {
            (true, 0) => b.op("Tanh", &[&inner]),
            (true, 1) => {
                let gate = b.op("Sigmoid", &[&inner]);
                b.mul(&inner, &gate)
            }
            (true, 2) => b.op("Softplus", &[&inner]),
            (true, 3) => b.op("Gelu", &[&inner]),
            _ => b.op("Relu", &[&inner]),
        };
        h = if residual { b.add(&h, &inner) } else { inner };
        if smooth && draws.below(2) == 0 {
            // Two values that both depend on the input.
            let other = conv(&mut b, &mut draws, &h, 3, 3, bias);
            let below = b.op("Tanh", &[&other]);
            let below = b.op("Exp", &[&below]);
            let below = b.shift(&below, 1.0);
            h = if draws.below(2) == 0 { b.mul(&h, &other) } else { b.div(&h, &below) };
        }
    }
    let window = [("kernel_shape", Attribute::from(vec![2i64; 2])), ("strides", vec![1i64; 2].into())];
    h = match draws.below(3) {
        0 => b.op_with("MaxPool", &[&h], &window),
        1 => b.op_with("AveragePool", &[&h], &window),
        _ => b.op("GlobalAveragePool", &[&h]),
    };
    let flat = b.op("Flatten", &[&h]);
    let width = b.shape(&flat).unwrap()[1].known().unwrap() as usize;
    let weights = b.constant(draws.tensor(&[width, 3]));
    let mut y = b.matmul(&flat, &weights);
    if bias {
        let bias = b.constant(draws.tensor(&[3]));
        y = b.add(&y, &bias);
    }
    b.output("y", &y);
    b.finish().unwrap()
}

fn sums(credit: &ArrayD<f64>) -> [f64; 2] {
    [0, 1].map(|row| credit.index_axis(ndarray::Axis(0), row).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Without biases and stabilisers, relevance sums to the score.
    #[test]
    fn lrp_conserves_the_score(seed in any::<u64>(), residual in any::<bool>(), target in 0usize..3) {
        let graph = network(seed, false, residual, false);
        let x = Draws(seed ^ 1).array(&[2, 2, 4, 4]);
        let seed = one_hot(&ArrayD::zeros(vec![2, 3]), &[target, target]);
        let zero = LayerRule::Epsilon { epsilon: 0.0 };
        let mut rules = vec![zero];
        if !residual {
            // These may give relevance to a sum of zeros, which has nothing to share it by.
            rules.extend([LayerRule::WSquare, LayerRule::Flat, LayerRule::ZPlus]);
        }
        for convolution in rules {
            let composite = Composite { convolution, stabiliser: 0.0, ..Composite::uniform(zero) };
            let found = run(&graph, composite.rules(), &[("x", &x)], seed.clone()).unwrap();
            let relevance = &found[&gradient_name("x")];
            let scale: f64 = relevance.iter().map(|r| r.abs()).sum::<f64>().max(1.0);
            for (row, sum) in sums(relevance).into_iter().enumerate() {
                let score = found["y"][[row, target]];
                prop_assert!((sum - score).abs() < 1e-9 * scale, "{convolution:?}: {sum} for {score}");
            }
        }
    }

    /// Multipliers times differences sum to the change of the score, whatever the network.
    #[test]
    fn deeplift_sums_to_the_change_of_the_score(
        seed in any::<u64>(), residual in any::<bool>(), smooth in any::<bool>(), target in 0usize..3,
    ) {
        let graph = network(seed, true, residual, smooth);
        let (x, reference) = (Draws(seed ^ 1).array(&[2, 2, 4, 4]), Draws(seed ^ 2).array(&[2, 2, 4, 4]));
        let seed = one_hot(&ArrayD::zeros(vec![2, 3]), &[target, target]);
        let found = run(&graph, rescale(), &[("x", &x), (&reference_name("x"), &reference)], seed).unwrap();
        let credit = &found[&gradient_name("x")] * &(&x - &reference);
        let scale: f64 = credit.iter().map(|r| r.abs()).sum::<f64>().max(1.0);
        for (row, sum) in sums(&credit).into_iter().enumerate() {
            let change = found["y"][[row, target]] - found[&reference_name("y")][[row, target]];
            prop_assert!((sum - change).abs() < 1e-9 * scale, "{sum} for {change}");
        }
    }
}

/// At the reference itself there is no slope between two points, and the derivative is taken.
#[test]
fn at_the_reference_multipliers_are_gradients() {
    for seed in 0..10 {
        let graph = network(seed, true, true, true);
        let x = Draws(seed ^ 1).array(&[2, 2, 4, 4]);
        let seed = one_hot(&ArrayD::zeros(vec![2, 3]), &[0, 2]);
        let found = run(&graph, rescale(), &[("x", &x), (&reference_name("x"), &x)], seed.clone()).unwrap();
        let gradient = run(&graph, BackwardRules::default(), &[("x", &x)], seed).unwrap();
        let gap = gap(&found[&gradient_name("x")], &gradient[&gradient_name("x")]);
        assert!(gap < 1e-12, "off by {gap:e}");
    }
}

/// A ReLU network without biases is linear between its kinks: LRP-0 is gradient times input.
#[test]
fn lrp_zero_is_gradient_times_input_without_biases() {
    for seed in 0..10 {
        let graph = network(seed, false, false, false);
        let x = Draws(seed ^ 1).array(&[2, 2, 4, 4]);
        let seed = one_hot(&ArrayD::zeros(vec![2, 3]), &[0, 2]);
        let zero = Composite { stabiliser: 0.0, ..Composite::uniform(LayerRule::Epsilon { epsilon: 0.0 }) };
        let found = run(&graph, zero.rules(), &[("x", &x)], seed.clone()).unwrap();
        let gradient = run(&graph, BackwardRules::default(), &[("x", &x)], seed).unwrap();
        let gap = gap(&found[&gradient_name("x")], &(&gradient[&gradient_name("x")] * &x));
        assert!(gap < 1e-9, "off by {gap:e}");
    }
}

#[test]
fn what_has_no_rule_is_refused_with_its_name() {
    let refusal = |rules: BackwardRules, op: &str| {
        let mut b = Builder::new("refused");
        let x = b.input("x", DType::F64, &[2usize.into(), 3usize.into()]);
        let y = match op {
            "Mul" => {
                let turned = b.op("Sin", &[&x]);
                let other = b.constant(TensorData::f64(&[3, 3], &[0.5; 9]));
                let other = b.matmul(&turned, &other);
                b.mul(&x, &other)
            }
            op => b.op(op, &[&x]),
        };
        b.output("y", &y);
        let options = GradOptions { rules, ..GradOptions::default() };
        grad_with(&b.finish().unwrap(), &["y"], &["x"], options).unwrap_err().to_string()
    };
    let lrp = || Composite::uniform(EPSILON).rules();
    let message = refusal(lrp(), "Softmax");
    assert!(message.contains("LRP has no rule for node") && message.contains("Softmax.1"), "{message}");
    let message = refusal(lrp(), "Mul");
    assert!(message.contains("both factors depend on the input"), "{message}");
    let message = refusal(rescale(), "Softmax");
    assert!(message.contains("DeepLIFT has no rule for node") && message.contains("Softmax.1"), "{message}");
}

/// `x W + b` twice, with an activation between: as the exporter writes it, or otherwise.
fn dense(
    write: impl Fn(&mut Builder, &Value, &Value, &Value) -> Value,
    activation: &str,
    prepared: bool,
) -> Graph {
    let mut draws = Draws(5);
    let mut b = Builder::new("dense");
    let mut h = b.input("x", DType::F64, &[2usize.into(), 3usize.into()]);
    if prepared {
        let eye: Vec<f64> = (0..9).map(|i| f64::from(u8::from(i % 4 == 0))).collect();
        let eye = b.constant(TensorData::f64(&[3, 3], &eye));
        b.push(Node { name: "prepare/resize".into(), ..Node::new("MatMul", &[&h, &eye], &["resized"]) });
        h = Value::named("resized");
    }
    for layer in 0..2 {
        let (w, bias) = (b.constant(draws.tensor(&[3, 3])), b.constant(draws.tensor(&[3])));
        h = write(&mut b, &h, &w, &bias);
        h = match (layer, activation) {
            (1, _) => h,
            (_, "Gelu by parts") => {
                let scaled = b.scale(&h, std::f64::consts::FRAC_1_SQRT_2);
                let erf = b.op("Erf", &[&scaled]);
                let cdf = b.shift(&erf, 1.0);
                let gated = b.mul(&h, &cdf);
                b.scale(&gated, 0.5)
            }
            (_, activation) => b.op(activation, &[&h]),
        };
    }
    b.output("y", &h);
    b.finish().unwrap()
}

fn gemm(b: &mut Builder, x: &Value, w: &Value, bias: &Value) -> Value {
    b.op("Gemm", &[x, w, bias])
}

/// The same network, however it is written, has the same relevance.
#[test]
fn relevance_does_not_depend_on_how_layers_and_activations_are_written() {
    let apart = |b: &mut Builder, x: &Value, w: &Value, bias: &Value| {
        let product = b.matmul(x, w);
        b.add(&product, bias)
    };
    let plain = dense(gemm, "Gelu", false);
    let others = [
        ("MatMul and Add", dense(apart, "Gelu", false)),
        ("Gelu by parts", dense(gemm, "Gelu by parts", false)),
        ("prepared", dense(gemm, "Gelu", true)),
    ];
    let x = Draws(9).array(&[2, 3]);
    let seed = one_hot(&ArrayD::zeros(vec![2, 3]), &[0, 2]);
    for rule in [EPSILON, LayerRule::Gamma { gamma: 0.5 }, LayerRule::ZPlus, LayerRule::WSquare] {
        let composite = Composite {
            first: Some(LayerRule::ZBox { low: -1.0, high: 1.0 }),
            stabiliser: 0.0,
            preparation: Some("prepare/".into()),
            ..Composite::uniform(rule)
        };
        let relevance = |graph: &Graph| {
            let found = run(graph, composite.rules(), &[("x", &x)], seed.clone()).unwrap();
            found[&gradient_name("x")].clone()
        };
        for (name, graph) in &others {
            let gap = gap(&relevance(graph), &relevance(&plain));
            assert!(gap < 1e-12, "{name} {rule:?}: off by {gap:e}");
        }
    }
}
