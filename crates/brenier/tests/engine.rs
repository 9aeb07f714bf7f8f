//! Both engines against results computed by hand, against each other, and against their own row order.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use brenier::Error;
use brenier::engine::{
    Engine, EngineConfig, EngineKind, Provider, Tensor, TensorView, WeightGradient, Workers,
};
use ndarray::{Array, ArrayD, Axis, Dimension, IxDyn, array};
use onnx_grad::{DType, Dim, Graph, Model, Node, TensorData, ValueInfo};

/// Both engines. Where ONNX Runtime is missing, tests fail with the remedy, unless told to do without.
fn engines() -> Vec<Arc<dyn Engine>> {
    let rten = EngineConfig::default().build().unwrap();
    match (EngineConfig { kind: EngineKind::Ort, ..EngineConfig::default() }).build() {
        Ok(ort) => vec![rten, ort],
        Err(_) if std::env::var_os("BRENIER_TEST_WITHOUT_ORT").is_some() => vec![rten],
        Err(error) => panic!("{error} (or set BRENIER_TEST_WITHOUT_ORT to test without it)"),
    }
}

fn ort() -> Option<Arc<dyn Engine>> {
    engines().into_iter().nth(1)
}

fn model(graph: Graph) -> Model {
    graph.validate().unwrap();
    Model { graph, ir_version: 8, opset: 17, ..Model::default() }
}

/// `x [N, shape...]` to `y [N, ...]` through these nodes.
fn graph(shape: &[usize], weights: &[(&str, TensorData)], nodes: Vec<Node>) -> Model {
    let dims = [Dim::from("N")].into_iter().chain(shape.iter().map(|&d| Dim::from(d))).collect();
    model(Graph {
        inputs: vec![ValueInfo { name: "x".into(), dtype: DType::F32, shape: Some(dims) }],
        outputs: vec![ValueInfo { name: "y".into(), dtype: DType::F32, shape: None }],
        initializers: weights.iter().map(|(name, t)| (name.to_string(), t.clone())).collect(),
        nodes,
        ..Graph::default()
    })
}

/// Numbers in (-1, 1) that look random and are the same everywhere.
fn noise(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn weight(seed: u64, shape: &[usize]) -> TensorData {
    TensorData::f32(shape, &noise(seed, shape.iter().product()))
}

fn rows(seed: u64, count: usize, shape: &[usize]) -> ArrayD<f32> {
    let shape: Vec<_> = [count].into_iter().chain(shape.iter().copied()).collect();
    Array::from_shape_vec(IxDyn(&shape), noise(seed, shape.iter().product())).unwrap()
}

fn mlp() -> Model {
    graph(
        &[37],
        &[
            ("w1", weight(1, &[211, 37])),
            ("b1", weight(2, &[211])),
            ("w2", weight(3, &[211, 10])),
            ("b2", weight(4, &[10])),
        ],
        vec![
            Node::new("Gemm", &["x", "w1", "b1"], &["h"]).with("transB", 1),
            Node::new("Relu", &["h"], &["a"]),
            Node::new("Gemm", &["a", "w2", "b2"], &["y"]),
        ],
    )
}

fn conv(name: &str, input: &str, output: &str, strides: i64) -> Node {
    Node::new("Conv", &[input, name], &[output])
        .with("strides", vec![strides, strides])
        .with("pads", vec![1, 1, 1, 1])
        .with("kernel_shape", vec![3, 3])
}

fn conv_net() -> Model {
    graph(
        &[3, 9, 11],
        &[("w1", weight(1, &[16, 3, 3, 3])), ("w2", weight(2, &[24, 16, 3, 3])), ("w3", weight(3, &[24, 5]))],
        vec![
            conv("w1", "x", "c1", 1),
            Node::new("Relu", &["c1"], &["a1"]),
            conv("w2", "a1", "c2", 2),
            Node::new("Relu", &["c2"], &["a2"]),
            Node::new("GlobalAveragePool", &["a2"], &["p"]),
            Node::new("Flatten", &["p"], &["f"]).with("axis", 1),
            Node::new("MatMul", &["f", "w3"], &["y"]),
        ],
    )
}

fn run(engine: &dyn Engine, model: &Model, x: TensorView) -> Result<ArrayD<f32>, Error> {
    engine.load(model)?.run(&[("x", x)])?.swap_remove(0).into_f32()
}

fn map(workers: &Workers, x: &ArrayD<f32>) -> ArrayD<f32> {
    workers.map(&[("x", x.into())]).unwrap().swap_remove(0).into_f32().unwrap()
}

fn bits<D: Dimension>(array: &Array<f32, D>) -> Vec<u32> {
    array.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn an_mlp_computed_by_hand() {
    let model = graph(
        &[2],
        &[
            ("w", TensorData::f32(&[2, 3], &[1.0, -1.0, 0.5, 2.0, 1.0, -0.5])),
            ("b", TensorData::f32(&[3], &[0.0, 1.0, -1.0])),
            ("v", TensorData::f32(&[3, 1], &[1.0, 10.0, 100.0])),
        ],
        vec![
            Node::new("Gemm", &["x", "w", "b"], &["h"]),
            Node::new("Relu", &["h"], &["a"]),
            Node::new("MatMul", &["a", "v"], &["y"]),
        ],
    );
    // h = [1+4, -1+2+1, 0.5-1-1] = [5, 2, -1.5] and [-3-2, 3-1+1, -1.5+0.5-1] = [-5, 3, -2].
    let x = array![[1.0f32, 2.0], [-3.0, -1.0]];
    for engine in engines() {
        let y = run(engine.as_ref(), &model, (&x).into()).unwrap();
        assert_eq!(y, array![[25.0f32], [30.0]].into_dyn(), "{}", engine.name());
    }
}

#[test]
fn a_convolution_computed_by_hand() {
    let model =
        graph(&[1, 3, 3], &[("w", TensorData::f32(&[1, 1, 3, 3], &[1.0; 9]))], vec![conv("w", "x", "y", 1)]);
    let x = Array::from_shape_vec((1, 1, 3, 3), (1..10).map(|v| v as f32).collect()).unwrap();
    let sums = vec![12.0f32, 21.0, 16.0, 27.0, 45.0, 33.0, 24.0, 39.0, 28.0];
    let expected = Array::from_shape_vec((1, 1, 3, 3), sums).unwrap().into_dyn();
    // Not in standard layout: rows and columns swapped, of an array that has them swapped.
    let swapped = x.clone().permuted_axes([0, 1, 3, 2]).as_standard_layout().to_owned();
    for engine in engines() {
        assert_eq!(run(engine.as_ref(), &model, (&x).into()).unwrap(), expected, "{}", engine.name());
        let strided = swapped.view().permuted_axes([0, 1, 3, 2]);
        assert!(!strided.is_standard_layout());
        assert_eq!(run(engine.as_ref(), &model, strided.into()).unwrap(), expected, "{}", engine.name());
    }
}

#[test]
fn both_engines_agree() {
    let engines = engines();
    for (model, shape) in [(mlp(), &[37][..]), (conv_net(), &[3, 9, 11])] {
        let x = rows(7, 6, shape);
        let results: Vec<_> = engines.iter().map(|e| run(e.as_ref(), &model, (&x).into()).unwrap()).collect();
        for other in &results[1..] {
            let difference = (other - &results[0]).mapv(f32::abs).into_iter().fold(0.0, f32::max);
            let scale = results[0].iter().fold(0.0f32, |m, v| m.max(v.abs()));
            assert!(difference < 1e-5 * scale, "{difference} of {scale}");
        }
    }
}

#[test]
fn results_do_not_depend_on_workers_or_batches() {
    for engine in engines() {
        for (model, shape) in [(mlp(), &[37][..]), (conv_net(), &[3, 9, 11])] {
            let x = rows(5, 50, shape);
            let reference = map(&Workers::with_count(engine.as_ref(), &model, 4, 1).unwrap(), &x);
            for count in 1..=3 {
                let workers = Workers::with_count(engine.as_ref(), &model, 4, count).unwrap();
                for batch in [1, 3, 7, 50] {
                    let parts: Vec<_> = x
                        .axis_chunks_iter(Axis(0), batch)
                        .map(|part| map(&workers, &part.to_owned()))
                        .collect();
                    let views: Vec<_> = parts.iter().map(|p| p.view()).collect();
                    let all = ndarray::concatenate(Axis(0), &views).unwrap();
                    assert_eq!(bits(&all), bits(&reference), "{} {count} {batch}", engine.name());
                }
            }
        }
    }
}

/// The largest difference, in units in the last place, between a row's results at different positions.
fn row_order_difference(engine: &dyn Engine, model: &Model, shape: &[usize], micro_batch: usize) -> u32 {
    let x = rows(11, 33, shape);
    let workers = Workers::with_count(engine, model, micro_batch, 1).unwrap();
    let straight = map(&workers, &x);
    // A permutation without fixed pattern, and the reversal.
    let shuffled: Vec<usize> = (0..33).map(|i| (i * 7 + 5) % 33).collect();
    let reversed: Vec<usize> = (0..33).rev().collect();
    let mut worst = 0;
    for order in [shuffled, reversed] {
        let permuted = map(&workers, &x.select(Axis(0), &order));
        let expected = straight.select(Axis(0), &order);
        let differences = permuted.iter().zip(&expected).map(|(a, b)| a.to_bits().abs_diff(b.to_bits()));
        worst = worst.max(differences.max().unwrap_or(0));
    }
    worst
}

#[test]
fn explore_row_order() {
    let op = |op: &str| graph(&[37], &[], vec![Node::new(op, &["x"], &["y"])]);
    let mut cases =
        vec![("mlp".to_string(), mlp(), vec![37]), ("conv".to_string(), conv_net(), vec![3, 9, 11])];
    for name in [
        "Sigmoid",
        "Tanh",
        "Exp",
        "Erf",
        "Softmax",
        "LogSoftmax",
        "Softplus",
        "Sqrt",
        "Sin",
        "Cos",
        "Log",
        "Elu",
        "HardSwish",
        "Reciprocal",
    ] {
        cases.push((name.to_string(), op(name), vec![37]));
    }
    for engine in engines() {
        for (name, model, shape) in &cases {
            for m in [1, 2, 3, 4, 5, 8, 16] {
                let d = row_order_difference(engine.as_ref(), model, shape, m);
                if d != 0 {
                    eprintln!("{} {name} micro-batch {m}: {d} ulp", engine.name());
                }
            }
        }
    }
}
