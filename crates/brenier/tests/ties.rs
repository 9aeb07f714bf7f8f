//! Equal values: gradients are PyTorch's, the same on both engines and by the reference evaluator, to the bit.
#![allow(clippy::unwrap_used)]

#[path = "../../onnx-grad/tests/cases/mod.rs"]
mod cases;
mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use brenier::attribute::{Allocation, Baseline, Context, IntegratedGradients};
use brenier::engine::{Engine, TensorView};
use brenier::{OnnxPredictor, PredictorConfig, Rule};
use cases::{Case, GENERATORS, Rng};
use common::{engine_configs, engines};
use ndarray::{Array2, ArrayD};
use ndarray_npy::NpzReader;
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{DType, Graph, Model, TensorData, grad, gradient_name, seed_name};

/// RTen has no dilated pools and none of three axes; it must say so.
const RTEN_LACKS: [&str; 4] = ["pool1d_dilated", "pool2d_dilated", "pool3d_tiles", "pool3d_padded"];
/// The functions whose derivative is rounded: the difference allowed, relative to the largest entry.
const ROUNDED: [(&str, f32); 2] = [("hardsigmoid", 1e-6), ("hardswish", 1e-6)];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/ties")
}

fn truth() -> BTreeMap<String, ArrayD<f32>> {
    let mut npz = NpzReader::new(File::open(folder().join("ties.npz")).unwrap()).unwrap();
    let names = npz.names().unwrap();
    names.iter().map(|name| (name.trim_end_matches(".npy").to_string(), npz.by_name(name).unwrap())).collect()
}

/// All outputs of a graph of float32 on an engine, or what it says.
fn run(
    engine: &dyn Engine,
    graph: &Graph,
    inputs: &BTreeMap<String, ArrayD<f32>>,
) -> Result<BTreeMap<String, ArrayD<f32>>, String> {
    let model = Model { graph: graph.clone(), ir_version: 10, opset: 21, ..Model::default() };
    let views: Vec<(&str, TensorView)> =
        inputs.iter().map(|(name, array)| (name.as_str(), array.view().into())).collect();
    let results = engine.load(&model).and_then(|mut program| program.run(&views));
    let results = results.map_err(|e| e.to_string())?;
    let names = graph.outputs.iter().map(|output| output.name.clone());
    Ok(names.zip(results.into_iter().map(|t| t.into_f32().unwrap())).collect())
}

/// The same by the reference evaluator, rounded once.
fn reference(graph: &Graph, inputs: &BTreeMap<String, ArrayD<f32>>) -> BTreeMap<String, ArrayD<f32>> {
    let wide = |array: &ArrayD<f32>| {
        Array::new(DType::F32, array.shape(), array.iter().map(|&v| f64::from(v)).collect())
    };
    let inputs = inputs.iter().map(|(name, array)| (name.clone(), wide(array))).collect();
    let results = evaluate(graph, &inputs).unwrap();
    let names = graph.outputs.iter().map(|output| output.name.clone());
    names.zip(results.iter().map(|r| r.data.mapv(|v| v as f32))).collect()
}

/// What differs between two arrays; 0 and -0 are the same.
fn difference(ours: &ArrayD<f32>, theirs: &ArrayD<f32>, allowed: f32) -> Option<String> {
    assert_eq!(ours.shape(), theirs.shape());
    let scale = theirs.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let wrong = |a: f32, b: f32| {
        a != b && (a - b).abs().partial_cmp(&(allowed * scale)) != Some(std::cmp::Ordering::Less)
    };
    let count = ours.iter().zip(theirs).filter(|(a, b)| wrong(**a, **b)).count();
    (count > 0).then(|| format!("{count} of {} elements differ", ours.len()))
}

#[test]
fn gradients_at_equal_values_are_pytorchs_to_the_bit() {
    let truth = truth();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "onnx"));
    files.sort();
    assert!(files.len() >= 87, "only {} models were found", files.len());
    let mut complaints = Vec::new();
    for file in &files {
        let stem = file.file_name().unwrap().to_str().unwrap();
        let name = stem.split('.').next().unwrap();
        let at = |what: &str| truth.get(&format!("{name}.{what}"));
        let model = Model::load(file).unwrap_or_else(|e| panic!("{stem}: {e}"));
        let graph = grad(&model.graph, &["y"], &["x"]).unwrap_or_else(|e| panic!("{stem}: {e}"));
        let inputs = BTreeMap::from([
            ("x".to_string(), at("x").unwrap().clone()),
            (seed_name("y"), at("seed").unwrap().clone()),
        ]);
        // A reduction shares among equals, whatever function it was exported from.
        let reduces = model.graph.nodes.iter().any(|node| node.op.starts_with("Reduce"));
        let expected = at("shared").filter(|_| reduces).or(at("dx")).unwrap();
        let allowed = ROUNDED.iter().find(|(n, _)| *n == name).map_or(0.0, |(_, allowed)| *allowed);
        let mut results = vec![("the reference", Ok(reference(&graph, &inputs)))];
        for engine in engines() {
            results.push((engine.name(), run(engine.as_ref(), &graph, &inputs)));
        }
        for (who, result) in results {
            match result {
                Ok(_) if who == "RTen" && RTEN_LACKS.contains(&name) => {
                    complaints.push(format!("{stem}: RTen has it now; strike it off the list"));
                }
                Err(message) if who == "RTen" && RTEN_LACKS.contains(&name) => {
                    assert!(message.contains("ONNX Runtime") || message.contains("spatial"), "{message}");
                }
                Err(message) => complaints.push(format!("{stem} on {who}: {message}")),
                Ok(found) => {
                    for (what, theirs) in [("y", at("y").unwrap()), (&gradient_name("x"), expected)] {
                        if let Some(difference) = difference(&found[what], theirs, allowed) {
                            complaints.push(format!("{stem} on {who}: {what}: {difference}"));
                        }
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// What exporters write as a reduction is not told apart: ours shares where PyTorch's `max(dim)` picks one.
#[test]
fn the_shared_gradients_are_not_those_of_a_choice() {
    let truth = truth();
    for name in ["max_dim", "min_dim", "pool2d_global"] {
        assert_ne!(truth[&format!("{name}.shared")], truth[&format!("{name}.dx")], "{name}");
    }
}

/// Integrated Gradients of a network with max-pools on images with black backgrounds, against Captum.
#[test]
fn integrated_gradients_on_black_backgrounds_are_captums() {
    let truth = truth();
    let flat = |name: &str| {
        let array = truth[name].mapv(f64::from);
        let rows = array.shape()[0];
        Array2::from_shape_vec((rows, array.len() / rows), array.into_iter().collect()).unwrap()
    };
    let (inputs, expected) = (flat("cnn.x"), flat("cnn.integrated"));
    let baselines = Array2::zeros(inputs.dim());
    let targets: Vec<usize> = (0..inputs.nrows()).collect();
    let scale = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    let context = Context { baselines: Some(baselines.view()), ..Context::default() };
    let allocation = Allocation::PathIntegral { rule: Rule::Midpoint { steps: 16 } };
    let method = IntegratedGradients { baseline: Baseline::Given, allocation, seed: 0 };
    for engine in engine_configs() {
        for exporter in ["script", "dynamo"] {
            let config = PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() };
            let predictor =
                OnnxPredictor::load(folder().join(format!("cnn.{exporter}.onnx")), &config).unwrap();
            let explained = method.explain(&predictor, inputs.view(), &targets, &context).unwrap();
            for (explanation, expected) in explained.iter().zip(expected.rows()) {
                let gap = (&explanation.values - &expected).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                let engine = predictor.engine().name();
                assert!(gap <= 1e-6 * scale, "{exporter} on {engine}: off by {:e}", gap / scale);
            }
        }
    }
}

/// Operators whose gradient chooses, scales or shares, without a sum that rounds.
const SELECTING: [&str; 15] = [
    "MaxPool",
    "GlobalMaxPool",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "Max",
    "Min",
    "Clip",
    "Relu",
    "LeakyRelu",
    "PRelu",
    "ThresholdedRelu",
    "Abs",
    "TopK",
    "Where",
];
/// Those that compare with a constant: it is made whole, too.
const WHOLE_CONSTANTS: [&str; 3] = ["Max", "Min", "Clip"];
const SEEDS: u64 = 40;

/// The case with whole numbers for all inputs, so that many are equal and many lie on a kink.
fn with_ties(op: &str, mut case: Case) -> Case {
    for array in case.inputs.values_mut() {
        array.data.mapv_inplace(f64::round);
    }
    if WHOLE_CONSTANTS.contains(&op) {
        for data in case.graph.initializers.values_mut().filter(|data| data.dtype() == DType::F32) {
            let whole: Vec<f64> = data.to_f64().iter().map(|v| v.round()).collect();
            *data = TensorData::from_f64(DType::F32, data.shape(), &whole);
        }
    }
    case
}

#[test]
fn engines_and_the_reference_agree_to_the_bit_at_equal_values() {
    let mut complaints = Vec::new();
    let engines = engines();
    for op in SELECTING {
        let (_, generator) = GENERATORS.iter().find(|(name, _)| *name == op).unwrap();
        for seed in 0..SEEDS {
            let case = generator(seed);
            if case.reference_only {
                continue;
            }
            let case = with_ties(op, case);
            let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
            let graph = grad(&case.graph, &["y"], &wrt).unwrap();
            let mut inputs: BTreeMap<String, ArrayD<f32>> = case
                .inputs
                .iter()
                .map(|(name, array)| (name.clone(), array.data.mapv(|v| v as f32)))
                .collect();
            let y = reference(&case.graph, &inputs).remove("y").unwrap();
            if graph.input(&seed_name("y")).is_some() {
                let mut rng = Rng(seed);
                inputs.insert(seed_name("y"), y.mapv(|_| rng.int(1, 8) as f32 / 4.0));
            }
            let truth = reference(&graph, &inputs);
            for engine in &engines {
                let found = match run(engine.as_ref(), &graph, &inputs) {
                    Ok(found) => found,
                    Err(message) => {
                        complaints.push(format!("{op}, seed {seed}, on {}: {message}", engine.name()));
                        continue;
                    }
                };
                for (name, theirs) in &truth {
                    if let Some(difference) = difference(&found[name], theirs, 0.0) {
                        complaints
                            .push(format!("{op}, seed {seed}, on {}: {name}: {difference}", engine.name()));
                    }
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
