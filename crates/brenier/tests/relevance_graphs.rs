//! The graphs of LRP and DeepLIFT in float64 against Zennit and Captum, on the models of `fixtures/relevance`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, Axis, IxDyn, OwnedRepr};
use ndarray_npy::NpzReader;
use onnx_grad::backward::deeplift::{reference_name, rescale};
use onnx_grad::backward::lrp::{Composite, LayerRule};
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{BackwardRules, DType, GradOptions, Graph, Model, grad_with, gradient_name, seed_name};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/relevance").join(name)
}

/// What the references say of a model.
fn truth(name: &str) -> BTreeMap<String, ArrayD<f64>> {
    let mut npz = NpzReader::new(File::open(file(&format!("{name}.npz"))).unwrap()).unwrap();
    let mut truth = BTreeMap::new();
    for entry in npz.names().unwrap() {
        let array = match npz.by_name::<OwnedRepr<f64>, IxDyn>(&entry) {
            Ok(array) => array,
            Err(_) => npz.by_name::<OwnedRepr<i64>, IxDyn>(&entry).unwrap().mapv(|v| v as f64),
        };
        truth.insert(entry.trim_end_matches(".npy").to_string(), array);
    }
    truth
}

fn model(name: &str) -> Graph {
    Model::load(file(&format!("{name}.onnx"))).unwrap().graph.with_floats(DType::F32, DType::F64)
}

/// Runs the graph that the rules make of `graph` with the target of each row as seed; outputs by name.
fn run(
    graph: &Graph,
    rules: BackwardRules,
    inputs: &[(&str, &ArrayD<f64>)],
    targets: &[usize],
) -> BTreeMap<String, ArrayD<f64>> {
    let array = |v: &ArrayD<f64>| Array::new(DType::F64, v.shape(), v.iter().copied().collect());
    let options = GradOptions { rules, ..GradOptions::default() };
    let graph = grad_with(graph, &["scores"], &["x"], options).unwrap();
    let mut seed = ArrayD::zeros(vec![targets.len(), 5]);
    targets.iter().enumerate().for_each(|(row, &target)| seed[[row, target]] = 1.0);
    let mut given: BTreeMap<String, Array> =
        inputs.iter().map(|(name, values)| (name.to_string(), array(values))).collect();
    given.insert(seed_name("scores"), array(&seed));
    let names = graph.outputs.iter().map(|info| info.name.clone());
    names.zip(evaluate(&graph, &given).unwrap().into_iter().map(|array| array.data)).collect()
}

/// The largest difference, relative to the largest value.
fn gap(found: &ArrayD<f64>, truth: &ArrayD<f64>) -> f64 {
    let scale = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    assert!(scale > 0.0, "the reference is all zeros");
    (found - truth).iter().fold(0.0_f64, |m, v| m.max(v.abs())) / scale
}

fn composites() -> Vec<(&'static str, Composite)> {
    let epsilon = LayerRule::Epsilon { epsilon: 1e-6 };
    let composite = |first, convolution| Composite { first, convolution, ..Composite::uniform(epsilon) };
    let alpha_beta = LayerRule::AlphaBeta { alpha: 2.0, beta: 1.0 };
    let gamma = LayerRule::Gamma { gamma: 0.25 };
    vec![
        ("lrp_epsilon", Composite::uniform(epsilon)),
        ("captum_lrp_epsilon", Composite::uniform(epsilon)),
        ("lrp_epsilon_quarter", Composite::uniform(LayerRule::Epsilon { epsilon: 0.25 })),
        ("lrp_gamma", Composite::uniform(gamma)),
        ("lrp_z_plus", Composite::uniform(LayerRule::ZPlus)),
        ("lrp_alpha_beta", Composite::uniform(alpha_beta)),
        ("lrp_w_square", Composite::uniform(LayerRule::WSquare)),
        ("lrp_flat", Composite::uniform(LayerRule::Flat)),
        ("lrp_epsilon_plus", composite(None, LayerRule::ZPlus)),
        ("lrp_epsilon_plus_flat", composite(Some(LayerRule::Flat), LayerRule::ZPlus)),
        ("lrp_epsilon_alpha2_beta1", composite(None, alpha_beta)),
        ("lrp_epsilon_alpha2_beta1_flat", composite(Some(LayerRule::Flat), alpha_beta)),
        ("lrp_epsilon_gamma_box", composite(Some(LayerRule::ZBox { low: -1.0, high: 2.0 }), gamma)),
    ]
}

#[test]
fn lrp_agrees_with_zennit_and_captum() {
    let mut compared = 0;
    for name in ["convnet", "overlap", "resnet", "mlp"] {
        let (graph, truth) = (model(name), truth(name));
        let targets: Vec<usize> = truth["targets"].iter().map(|&t| t as usize).collect();
        for (key, composite) in composites() {
            let Some(expected) = truth.get(key) else { continue };
            // Captum's max-pool has a stabiliser of its own.
            let tolerance = if key == "captum_lrp_epsilon" { 2e-8 } else { 1e-10 };
            let found = run(&graph, composite.rules(), &[("x", &truth["inputs"])], &targets);
            let gap = gap(&found[&gradient_name("x")], expected);
            assert!(gap < tolerance, "{key} of {name}: off by {gap:e}");
            compared += 1;
        }
    }
    assert_eq!(compared, 12 + 1 + 12 + 12 + 11);
}

#[test]
fn deeplift_sums_up_and_agrees_with_captum_where_captum_does() {
    for name in ["convnet", "resnet", "mlp", "overlap"] {
        let (graph, truth) = (model(name), truth(name));
        let targets: Vec<usize> = truth["targets"].iter().map(|&t| t as usize).collect();
        let (x, reference) = (&truth["inputs"], &truth["baselines"]);
        let found = run(&graph, rescale(), &[("x", x), (&reference_name("x"), reference)], &targets);
        let credit = &found[&gradient_name("x")] * &(x - reference);
        for (row, &target) in targets.iter().enumerate() {
            let sum = credit.index_axis(Axis(0), row).sum();
            let change = found["scores"][[row, target]] - found[&reference_name("scores")][[row, target]];
            assert!((sum - change).abs() < 1e-12, "{name}: {sum} for {change}");
        }
        // Where windows of a max-pool overlap, Captum keeps the share of one of them only.
        let delta = truth["deeplift_delta"].iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        let gap = gap(&credit, &truth["deeplift"]);
        match name {
            "overlap" => assert!(delta > 0.1 && gap > 0.01, "{delta} {gap}"),
            _ => assert!(delta < 1e-12 && gap < 1e-10, "{name}: off by {gap:e}"),
        }
    }
}
