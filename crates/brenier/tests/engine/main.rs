//! Both engines against results computed by hand, against each other, and against their own row order.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod refusals;

use std::sync::Arc;

use brenier::Error;
use brenier::engine::{
    Engine, EngineConfig, EngineKind, Plan, Program, Provider, Tensor, TensorView, Weights, Workers,
};
use common::engines;
use ndarray::{Array, ArrayD, Axis, Dimension, IxDyn, array};
use onnx_grad::{DType, Dim, Graph, Model, Node, TensorData, ValueInfo, WeightGradient, fused};

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

/// As in training, where an engine has no kernels.
#[test]
fn convolutions_with_weights_that_are_inputs() {
    for (kernel, dilation, stride, channels) in [(3, 1, 1, 32), (3, 2, 2, 16), (1, 1, 1, 48), (3, 1, 1, 12)] {
        let attributes = |node: Node| {
            node.with("pads", vec![(kernel - 1) / 2; 4])
                .with("dilations", vec![dilation; 2])
                .with("strides", vec![stride; 2])
        };
        let size = kernel as usize;
        let inputs: Vec<(&str, Vec<usize>)> = vec![
            ("x", vec![3, 16, 9, 8]),
            ("w", vec![channels, 16, size, size]),
            ("b", vec![channels]),
            ("v", vec![32, 16, size, size]),
        ];
        // Two see the same image, and the second of them has no bias.
        let nodes = vec![
            attributes(Node::new("Conv", &["x", "w", "b"], &["y"])),
            attributes(Node::new("Conv", &["x", "v"], &["z"])),
        ];
        let output = |name: &str| ValueInfo { name: name.to_string(), dtype: DType::F32, shape: None };
        let graph = Graph {
            inputs: inputs.iter().map(|(name, shape)| ValueInfo::new(*name, DType::F32, shape)).collect(),
            nodes,
            outputs: vec![output("y"), output("z")],
            ..Graph::new("convolutions")
        };
        let arrays: Vec<ArrayD<f32>> = inputs
            .iter()
            .zip(0..)
            .map(|((_, shape), seed)| {
                ArrayD::from_shape_vec(shape.as_slice(), noise(seed, shape.iter().product())).unwrap()
            })
            .collect();
        let exact = inputs.iter().zip(&arrays).map(|((name, shape), array)| {
            let values = array.iter().map(|&v| f64::from(v)).collect();
            (name.to_string(), onnx_grad::eval::Array::new(DType::F32, shape, values))
        });
        let truth = onnx_grad::eval::evaluate(&graph, &exact.collect()).unwrap();
        let views: Vec<(&str, TensorView)> =
            inputs.iter().zip(&arrays).map(|((name, _), array)| (*name, array.view().into())).collect();
        for engine in engines() {
            let results = engine.load(&model(graph.clone())).unwrap().run(&views).unwrap();
            for (result, truth) in results.into_iter().zip(&truth) {
                let result = result.into_f32().unwrap();
                assert_eq!(result.shape(), truth.data.shape());
                let apart = result.iter().zip(&truth.data).map(|(r, t)| (f64::from(*r) - t).abs());
                let worst = apart.fold(0.0, f64::max);
                assert!(worst < 1e-4, "{} with kernel {kernel}: {worst}", engine.name());
            }
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
fn a_rows_place_in_the_micro_batch_does_not_matter() {
    let node = Node::new;
    let one = |op: &str| vec![node("Abs", &["x"], &["a"]), node(op, &["a"], &["y"])];
    let mut cases = vec![("mlp", mlp(), vec![37]), ("conv net", conv_net(), vec![3, 9, 11])];
    for op in
        ["Sigmoid", "Tanh", "Exp", "Erf", "Softmax", "Softplus", "Sqrt", "Sin", "Log", "Elu", "HardSwish"]
    {
        cases.push((op, graph(&[37], &[], one(op)), vec![37]));
    }
    let depthwise = conv("w", "x", "y", 1).with("group", 12);
    cases.push((
        "depthwise",
        graph(&[12, 9, 9], &[("w", weight(1, &[12, 1, 3, 3]))], vec![depthwise]),
        vec![12, 9, 9],
    ));
    let mut transposed = conv("w", "x", "y", 2);
    transposed.op = "ConvTranspose".to_string();
    cases.push((
        "transposed",
        graph(&[8, 7, 7], &[("w", weight(1, &[8, 5, 3, 3]))], vec![transposed]),
        vec![8, 7, 7],
    ));
    let attention = vec![
        node("Transpose", &["x"], &["t"]).with("perm", vec![0, 2, 1]),
        node("MatMul", &["x", "t"], &["s"]),
        node("Softmax", &["s"], &["p"]).with("axis", -1),
        node("MatMul", &["p", "x"], &["y"]),
    ];
    cases.push(("attention", graph(&[7, 5], &[], attention), vec![7, 5]));
    let norm = vec![node("LayerNormalization", &["x", "g"], &["y"])];
    cases.push(("layer norm", graph(&[7, 5], &[("g", weight(1, &[5]))], norm), vec![7, 5]));
    let sum = || vec![node("ReduceSum", &["x", "axes"], &["y"])];
    let axes = [("axes", TensorData::ints(&[1, 2]))];
    cases.push(("sum of 36", graph(&[6, 6], &axes, sum()), vec![6, 6]));
    // ONNX Runtime sums a row from where it is aligned, so rows of 35 numbers differ in their last bits:
    // only in a micro-batch of one row do they all start alike.
    let odd_sum = graph(&[7, 5], &axes, sum());
    for engine in engines() {
        for micro_batch in [1, 4, 16] {
            for (name, model, shape) in &cases {
                let difference = row_order_difference(engine.as_ref(), model, shape, micro_batch);
                assert_eq!(difference, 0, "{}: {name}, micro-batch {micro_batch}", engine.name());
            }
        }
        assert_eq!(row_order_difference(engine.as_ref(), &odd_sum, &[7, 5], 1), 0, "{}", engine.name());
    }
}

#[test]
fn an_empty_batch_has_no_rows() {
    for engine in engines() {
        let workers = Workers::new(engine.as_ref(), &mlp(), 4).unwrap();
        assert_eq!(map(&workers, &rows(1, 0, &[37])).shape(), [0, 10]);
    }
}

#[test]
fn several_threads_share_workers() {
    for engine in engines() {
        let workers = Workers::with_count(engine.as_ref(), &mlp(), 4, 2).unwrap();
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let workers = &workers;
                scope.spawn(move || {
                    let x = rows(seed, 30, &[37]);
                    let first = map(workers, &x);
                    assert_eq!(bits(&map(workers, &x)), bits(&first));
                });
            }
        });
    }
}

/// `x [N, 2]`, shared `w [2]`, to the sum over rows of `x * w`: an output without rows.
fn summed() -> Model {
    model(Graph {
        inputs: vec![
            ValueInfo::new("x", DType::F32, &[Dim::from("N"), Dim::from(2usize)]),
            ValueInfo::new("w", DType::F32, &[2usize]),
        ],
        outputs: vec![ValueInfo::new("y", DType::F32, &[2usize])],
        initializers: [("axes".to_string(), TensorData::ints(&[0]))].into(),
        nodes: vec![
            Node::new("Mul", &["x", "w"], &["xw"]),
            Node::new("ReduceSum", &["xw", "axes"], &["y"]).with("keepdims", 0),
        ],
        ..Graph::default()
    })
}

#[test]
fn outputs_without_rows_come_in_order() {
    let x = Array::from_shape_fn((7, 2), |(i, j)| (10 * i + j) as f32);
    let w = array![1.0f32, 2.0];
    for engine in engines() {
        let workers = Workers::with_count(engine.as_ref(), &summed(), 3, 2).unwrap();
        let mut seen = Vec::new();
        workers
            .run_each(&[("x", (&x).into())], &[("w", (&w).into())], |rows, outputs| {
                seen.push((rows, outputs));
                Ok(())
            })
            .unwrap();
        // The last micro-batch is one row, not three copies of it.
        let sum = |a: f32, b: f32| vec![Tensor::from(array![a, b])];
        assert_eq!(seen, [(0..3, sum(30.0, 66.0)), (3..6, sum(120.0, 246.0)), (6..7, sum(60.0, 122.0))]);

        let stop = |_, _| Err(Error::Zero { what: "test" });
        let result = workers.run_each(&[("x", (&x).into())], &[("w", (&w).into())], stop);
        assert_eq!(result.unwrap_err().to_string(), "test must be at least 1");
    }
}

#[test]
fn integers_and_booleans_pass_both_ways() {
    let model = model(Graph {
        inputs: vec![
            ValueInfo::new("i", DType::I64, &["N"]),
            ValueInfo::new("j", DType::I32, &["N"]),
            ValueInfo::new("b", DType::Bool, &["N"]),
        ],
        outputs: vec![
            ValueInfo::new("sum", DType::I64, &["N"]),
            ValueInfo::new("narrow", DType::I32, &["N"]),
            ValueInfo::new("not", DType::Bool, &["N"]),
        ],
        nodes: vec![
            Node::new("Cast", &["j"], &["wide"]).with("to", i64::from(DType::I64.code())),
            Node::new("Add", &["i", "wide"], &["sum"]),
            Node::new("Cast", &["sum"], &["narrow"]).with("to", i64::from(DType::I32.code())),
            Node::new("Not", &["b"], &["not"]),
        ],
        ..Graph::default()
    });
    let (i, j, b) = (array![1i64, -2, 3], array![10i64, 20, 30], array![true, false, true]);
    let large = array![1i64 << 40, 0, 0];
    for engine in engines() {
        let workers = Workers::with_count(engine.as_ref(), &model, 2, 1).unwrap();
        let outputs = workers.map(&[("i", (&i).into()), ("j", (&j).into()), ("b", (&b).into())]).unwrap();
        let sum = array![11i64, 18, 33];
        assert_eq!(outputs, [sum.clone().into(), sum.into(), array![false, true, false].into()]);

        let refused = workers.map(&[("i", (&i).into()), ("j", (&large).into()), ("b", (&b).into())]);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "input 'j' holds 1099511627776, which does not fit the 32-bit integers it is computed in"
        );
    }
}
