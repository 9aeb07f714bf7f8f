//! Methods without gradients beside shap and Captum, on the same ONNX files (fixtures/perturbation).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::fs::File;
use std::path::{Path, PathBuf};

use brenier::attribute::{
    Absence, Baseline, Coalitions, Context, Grouping, KernelShap, Occlusion, ShapleyValues,
};
use brenier::data::Dataset;
use brenier::engine::{EngineConfig, EngineKind};
use brenier::{PredictorConfig, Score, ValuePredictor};
use common::engine_configs;
use ndarray::{Array1, Array2, ArrayD, Axis, IxDyn};
use ndarray_npy::NpzReader;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/perturbation").join(name)
}

fn predictor(name: &str, engine: EngineConfig) -> brenier::Result<ValuePredictor> {
    ValuePredictor::load(fixture(name), &PredictorConfig { engine, ..PredictorConfig::default() })
}

fn ort() -> Option<EngineConfig> {
    engine_configs().into_iter().find(|config| config.kind == EngineKind::Ort)
}

const BACKGROUND: Absence = Absence::Background { rows: 100 };

/// Arrays of a fixture, the first axis the example and the others flat.
struct Truth(NpzReader<File>);

impl Truth {
    fn open(name: &str) -> Truth {
        Truth(NpzReader::new(File::open(fixture(name)).unwrap()).unwrap())
    }

    fn rows(&mut self, name: &str) -> Array2<f64> {
        let array: ArrayD<f64> = self.0.by_name(name).unwrap();
        let rows = array.shape()[0];
        let columns = array.len() / rows;
        array.into_shape_with_order((rows, columns)).unwrap()
    }

    fn integers(&mut self, name: &str) -> Vec<usize> {
        let array: ArrayD<i64> = self.0.by_name(name).unwrap();
        array.iter().map(|&v| v as usize).collect()
    }

    fn background(&mut self) -> Dataset {
        let rows = self.rows("background").mapv(|v| v as f32);
        Dataset::from_rows("background", &[rows.ncols()], rows.view()).unwrap()
    }
}

fn values(explanations: Vec<brenier::Explanation>) -> Array2<f64> {
    let views: Vec<_> = explanations.iter().map(|e| e.values.view()).collect();
    ndarray::stack(Axis(0), &views).unwrap()
}

fn gap(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().fold(0.0, |largest, gap| gap.abs().max(largest))
}

#[test]
fn shapley_values_of_a_network_are_those_of_shap() {
    let mut truth = Truth::open("mlp.npz");
    let (inputs, targets, data) = (truth.rows("inputs"), truth.integers("targets"), truth.background());
    let context = Context { data: Some(&data), ..Context::default() };
    for engine in engine_configs() {
        let model = predictor("mlp.onnx", engine).unwrap();
        let exact = ShapleyValues { absence: BACKGROUND, ..ShapleyValues::default() };
        let exact = values(exact.explain(&model, inputs.view(), &targets, &context).unwrap());
        let kernel = KernelShap { absence: BACKGROUND, ..KernelShap::default() };
        let kernel = KernelShap { coalitions: Coalitions::All, ..kernel };
        let kernel = values(kernel.explain(&model, inputs.view(), &targets, &context).unwrap());
        // The network runs in float32.
        assert!(gap(&exact, &truth.rows("exact")) < 2e-6);
        assert!(gap(&kernel, &truth.rows("kernel")) < 2e-6);
    }
}

#[test]
fn sampled_kernel_shap_is_no_noisier_than_shap() {
    let mut truth = Truth::open("mlp.npz");
    let (inputs, targets, data) = (truth.rows("inputs"), truth.integers("targets"), truth.background());
    let context = Context { data: Some(&data), ..Context::default() };
    let model = predictor("mlp.onnx", EngineConfig::default()).unwrap();
    let coalitions = Coalitions::Sampled { count: truth.integers("sampled_count")[0] };
    let runs: Vec<_> = (0..20)
        .map(|seed| {
            let method = KernelShap { absence: BACKGROUND, coalitions, seed, ..KernelShap::default() };
            values(method.explain(&model, inputs.view(), &targets, &context).unwrap())
        })
        .collect();
    let exact = truth.rows("exact");
    let root_mean_square = |a: &Array2<f64>| (a * a).mean().unwrap().sqrt();
    let ours = runs
        .iter()
        .map(|run| (run - &exact).mapv(|gap| gap * gap))
        .fold(Array2::zeros(exact.raw_dim()), |sum: Array2<f64>, squares| sum + squares / runs.len() as f64);
    let ours = ours.mean().unwrap().sqrt();
    let theirs = root_mean_square(&truth.rows("sampled_deviation"));
    println!("root mean squared error: ours {ours:.5}, shap {theirs:.5}");
    assert!(ours < 1.1 * theirs, "{ours} {theirs}");
    // And both are about the same thing.
    let bias = truth.rows("sampled_mean") - &exact;
    assert!(root_mean_square(&bias) < 2.0 * theirs / 40_f64.sqrt());
}

#[test]
fn grouped_kernel_shap_agrees_with_captum_in_distribution() {
    let mut truth = Truth::open("mlp.npz");
    let (inputs, targets, labels) =
        (truth.rows("inputs"), truth.integers("targets"), truth.integers("groups"));
    let model = predictor("mlp.onnx", EngineConfig::default()).unwrap();
    let groups = Grouping::Given { labels: labels.clone() };
    let method = KernelShap { groups, coalitions: Coalitions::All, ..KernelShap::default() };
    let found = values(method.explain(&model, inputs.view(), &targets, &Context::default()).unwrap());
    // Captum gives every feature its group's credit; ours are shares of it.
    let size = |label: usize| labels.iter().filter(|l| **l == label).count() as f64;
    let whole = Array2::from_shape_fn(found.raw_dim(), |(row, i)| found[(row, i)] * size(labels[i]));
    let exact = truth.rows("captum_exact");
    let exact = Array2::from_shape_fn(whole.raw_dim(), |(row, i)| exact[(row, labels[i])]);
    assert!(gap(&whole, &exact) < 2e-6);
    let scaled = (&whole - &truth.rows("captum_mean")) / truth.rows("captum_error");
    assert!(scaled.iter().all(|z| z.abs() < 4.5), "{scaled}");
    assert!(scaled.iter().any(|z| z.abs() > 0.2), "the comparison is too loose: {scaled}");
}

#[test]
fn occlusion_is_captums() {
    let mut truth = Truth::open("convnet.npz");
    let (inputs, targets, baseline) =
        (truth.rows("inputs"), truth.integers("targets"), truth.rows("baseline"));
    let baseline = baseline.into_shape_with_order((1, 144)).unwrap();
    let context = Context { baselines: Some(baseline.view()), ..Context::default() };
    for engine in engine_configs() {
        let model = predictor("convnet.onnx", engine).unwrap();
        for name in ["even", "overlapping", "cut"] {
            let sizes = truth.integers(&format!("{name}_window"));
            let (window, stride) = (Some(sizes[..3].to_vec()), Some(sizes[3..].to_vec()));
            let absence = Absence::Baseline(Baseline::Given);
            let method = Occlusion { window, stride, absence, ..Occlusion::default() };
            let found = values(method.explain(&model, inputs.view(), &targets, &context).unwrap());
            assert!(gap(&found, &truth.rows(name)) < 2e-6, "{name}");
        }
    }
}

#[test]
fn trees_from_scikit_learn_run_as_they_are_and_have_the_shapley_values_of_shap() {
    let Some(engine) = ort() else { return };
    for (name, scores, kinds) in [
        ("forest", "probabilities", &["exact", "kernel", "tree"][..]),
        ("boosted", "predictions", &["exact", "tree"]),
    ] {
        let mut truth = Truth::open(&format!("{name}.npz"));
        let (inputs, data) = (truth.rows("inputs"), truth.background());
        let context = Context { data: Some(&data), ..Context::default() };
        let targets = if name == "forest" { truth.integers("targets") } else { vec![0; inputs.nrows()] };
        let model = predictor(&format!("{name}.onnx"), engine.clone()).unwrap();
        assert_eq!((model.shape(), model.outputs()), (&[5][..], truth.rows(scores).ncols()));
        let found = model.scores(inputs.mapv(|v| v as f32).into_dyn().view()).unwrap();
        assert!(gap(&found, &truth.rows(scores)) < 1e-6, "{name}");
        let exact = ShapleyValues { absence: BACKGROUND, ..ShapleyValues::default() };
        let exact = values(exact.explain(&model, inputs.view(), &targets, &context).unwrap());
        let kernel = KernelShap { absence: BACKGROUND, ..KernelShap::default() };
        let kernel = values(kernel.explain(&model, inputs.view(), &targets, &context).unwrap());
        assert!(gap(&exact, &kernel) < 1e-9);
        for kind in kinds {
            assert!(gap(&exact, &truth.rows(kind)) < 1e-6, "{name} {kind}");
        }
        let error = model.gradients(inputs.view(), &targets).unwrap_err().to_string();
        assert!(error.starts_with("the model has no gradient: it was loaded for its values only"), "{error}");
    }
}

#[test]
fn trees_give_the_same_bits_whatever_the_load() {
    let Some(engine) = ort() else { return };
    let rows =
        Array2::from_shape_fn((150, 5), |(i, j)| ((i * 7 + j * 13) % 29) as f32 / 9.0 - 1.5).into_dyn();
    let load = |workers| {
        predictor("forest.onnx", EngineConfig { workers: Some(workers), ..engine.clone() }).unwrap()
    };
    let all = load(1).scores(rows.view()).unwrap();
    let other = load(3);
    assert_eq!(other.scores(rows.view()).unwrap(), all);
    for row in [0, 63, 64, 149] {
        let alone = rows.slice_axis(Axis(0), (row..row + 1).into());
        assert_eq!(other.scores(alone).unwrap().row(0), all.row(row));
    }
}

#[test]
fn labels_of_strings_are_passed_over_and_maps_are_opened() {
    // Without ONNX Runtime, trees are read here, labels and maps or not.
    for name in ["forest.onnx", "named.onnx", "zipmap.onnx"] {
        let own = predictor(name, EngineConfig::default()).unwrap();
        assert_eq!(own.engine().name(), "brenier-trees", "{name}");
        let scores = own.scores(ArrayD::zeros(IxDyn(&[3, 5])).view()).unwrap();
        assert!(scores.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-6), "{name}");
    }
    let Some(engine) = ort() else { return };
    let named = predictor("named.onnx", engine.clone()).unwrap();
    assert_eq!(named.outputs(), 2);
    assert!(named.notices()[0].what.contains("'probabilities'"));
    let scores = named.scores(ArrayD::zeros(IxDyn(&[3, 5])).view()).unwrap();
    assert!(scores.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-6));
    let zipmap = predictor("zipmap.onnx", engine.clone()).unwrap();
    let scores = zipmap.scores(ArrayD::zeros(IxDyn(&[3, 5])).view()).unwrap();
    assert!(scores.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-6));
    let config = |output: &str| PredictorConfig {
        engine: engine.clone(),
        output: Some(output.to_string()),
        ..PredictorConfig::default()
    };
    let label = ValuePredictor::load(fixture("forest.onnx"), &config("label")).unwrap_err().to_string();
    assert!(label.contains("no output 'label' is a tensor of floats"), "{label}");
    assert!(ValuePredictor::load(fixture("forest.onnx"), &config("probabilities")).is_ok());
    let wrong = named.values(Array2::zeros((1, 5)).view(), &[2]).unwrap_err().to_string();
    assert!(wrong.contains("target 2"), "{wrong}");
    assert!(named.scores(ArrayD::zeros(IxDyn(&[1, 4])).view()).is_err());
}

#[test]
fn networks_give_the_scores_that_gradients_are_of() {
    for engine in engine_configs() {
        let config = PredictorConfig { engine, ..PredictorConfig::default() };
        let values = ValuePredictor::load(fixture("mlp.onnx"), &config).unwrap();
        let both = brenier::OnnxPredictor::load(fixture("mlp.onnx"), &config).unwrap();
        let x = Array1::linspace(-1.0, 1.0, 24).into_shape_with_order((2, 12)).unwrap();
        assert_eq!(values.values(x.view(), &[0, 2]).unwrap(), both.values(x.view(), &[0, 2]).unwrap());
        assert_eq!(values.outputs(), both.outputs());
    }
}
