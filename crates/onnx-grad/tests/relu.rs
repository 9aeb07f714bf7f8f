//! Backward rules are values: guided backpropagation and deconvnets at the level of the graph.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use onnx_grad::backward::relu;
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{BackwardRules, Builder, DType, GradOptions, Graph, TensorData, grad_with, seed_name};

const W1: [[f64; 3]; 2] = [[1.0, -2.0, 0.5], [0.3, 1.0, -1.0]];
const W2: [[f64; 2]; 3] = [[1.0, -1.0], [-0.5, 2.0], [0.7, 0.2]];

/// `relu(relu(relu(x) W1) W2)`: the same function three times, as a functional ReLU is used.
fn network() -> Graph {
    let mut b = Builder::new("relu");
    let mut h = b.input("x", DType::F64, &[1usize.into(), 2usize.into()]);
    h = b.op("Relu", &[&h]);
    for (name, w) in [("w1", W1.concat()), ("w2", W2.concat())] {
        let shape = if name == "w1" { [2, 3] } else { [3, 2] };
        let w = b.parameter(name, TensorData::f64(&shape, &w));
        h = b.matmul(&h, &w);
        h = b.op("Relu", &[&h]);
    }
    b.output("y", &h);
    b.finish().unwrap()
}

fn gradient(rules: BackwardRules, x: [f64; 2], seed: [f64; 2]) -> Vec<f64> {
    let graph =
        grad_with(&network(), &["y"], &["x"], GradOptions { rules, ..GradOptions::default() }).unwrap();
    let inputs = BTreeMap::from([
        ("x".to_string(), Array::new(DType::F64, &[1, 2], x.to_vec())),
        (seed_name("y"), Array::new(DType::F64, &[1, 2], seed.to_vec())),
    ]);
    evaluate(&graph, &inputs).unwrap()[1].data.iter().copied().collect()
}

/// The same by hand, layer by layer.
fn by_hand(rule: impl Fn(f64, f64) -> f64, x: [f64; 2], seed: [f64; 2]) -> Vec<f64> {
    let positive = |v: &[f64]| v.iter().map(|a| a.max(0.0)).collect::<Vec<f64>>();
    let h0 = positive(&x);
    let a1: Vec<f64> = (0..3).map(|j| (0..2).map(|i| h0[i] * W1[i][j]).sum()).collect();
    let h1 = positive(&a1);
    let a2: Vec<f64> = (0..2).map(|j| (0..3).map(|i| h1[i] * W2[i][j]).sum()).collect();
    let d2: Vec<f64> = (0..2).map(|j| rule(a2[j], seed[j])).collect();
    let d1: Vec<f64> = (0..3).map(|i| (0..2).map(|j| d2[j] * W2[i][j]).sum()).collect();
    let d1: Vec<f64> = (0..3).map(|i| rule(a1[i], d1[i])).collect();
    let d0: Vec<f64> = (0..2).map(|i| (0..3).map(|j| d1[j] * W1[i][j]).sum()).collect();
    (0..2).map(|i| rule(x[i], d0[i])).collect()
}

#[test]
fn all_three_rules_at_every_relu() {
    let step = |a: f64| f64::from(u8::from(a > 0.0));
    let mut differ = [false; 2];
    for x in [[0.7, 1.3], [1.5, 0.2], [-0.5, 0.9], [2.0, 2.5]] {
        for seed in [[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]] {
            let standard = by_hand(|a, d| step(a) * d, x, seed);
            let guided = by_hand(|a, d| step(a) * d.max(0.0), x, seed);
            let deconvnet = by_hand(|_, d| d.max(0.0), x, seed);
            assert_eq!(gradient(BackwardRules::default(), x, seed), standard);
            assert_eq!(gradient(relu::guided(), x, seed), guided);
            assert_eq!(gradient(relu::deconvnet(), x, seed), deconvnet);
            differ[0] |= guided != standard;
            differ[1] |= deconvnet != guided;
        }
    }
    assert_eq!(differ, [true; 2], "the cases must tell the rules apart");
}

/// Zero has slope zero, and so has everything below.
#[test]
fn the_slope_at_zero_is_zero() {
    assert_eq!(gradient(BackwardRules::default(), [0.0, -1.0], [1.0, 1.0]), [0.0, 0.0]);
}
