//! Pipelines of scikit-learn as skl2onnx exports them: their scores, and gradients beside finite differences of scikit-learn.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;

use brenier::engine::{EngineConfig, EngineKind};
use brenier::{Inspection, OnnxPredictor, PredictorConfig, Score, ValuePredictor};
use ndarray::{Array2, ArrayD, ArrayView2, Axis, s};
use ndarray_npy::NpzReader;
use onnx_grad::{DType, Model, eval, grad, lower};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/pipelines")).join(name)
}

fn truth(npz: &str, name: &str) -> ArrayD<f64> {
    let mut file = NpzReader::new(File::open(fixture(&format!("{npz}.npz"))).unwrap()).unwrap();
    let array: ArrayD<f64> = file.by_name(name).unwrap();
    array.as_standard_layout().into_owned()
}

fn matrix(npz: &str, name: &str) -> Array2<f64> {
    truth(npz, name).into_dimensionality().unwrap()
}

/// The largest difference, in units of the truth where that is larger than 1.
fn gap(found: ArrayView2<f64>, truth: ArrayView2<f64>) -> f64 {
    assert_eq!(found.shape(), truth.shape());
    found.iter().zip(truth).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs() / b.abs().max(1.0)))
}

fn engines() -> Vec<PredictorConfig> {
    [EngineKind::Rten, EngineKind::Ort]
        .map(|kind| PredictorConfig {
            engine: EngineConfig { kind, ..EngineConfig::default() },
            ..PredictorConfig::default()
        })
        .to_vec()
}

/// All pipelines with one table of floats.
const PIPELINES: [&str; 14] = [
    "binarized_network",
    "imputed_normal_linear",
    "minmax_network",
    "network_two",
    "onehot_network",
    "pca_logistic",
    "polynomial_ridge",
    "standard_logistic",
    "standard_sgd",
    "svc_linear_rest",
    "svc_poly",
    "svc_rbf",
    "svc_sigmoid_pairs",
    "svr_rbf",
];

#[test]
fn scores_and_gradients_are_those_of_scikit_learn() {
    for name in PIPELINES {
        let (rows, scores) = (matrix(name, "rows"), matrix(name, "scores"));
        let gradients = truth(name, "gradients");
        for config in engines() {
            let model = OnnxPredictor::load(fixture(&format!("{name}.onnx")), &config).unwrap();
            let engine = model.engine().name();
            assert_eq!(model.outputs(), scores.ncols(), "{name}");
            for k in 0..scores.ncols() {
                let targets = vec![k; rows.nrows()];
                let (values, slopes) = model.gradients(rows.view(), &targets).unwrap();
                let values = values.insert_axis(Axis(1));
                let off = gap(values.view(), scores.slice(s![.., k..=k]));
                assert!(off < 1e-5, "{name} on {engine}: score {k} is {off:e} off");
                let expected = gradients.index_axis(Axis(1), k).into_dimensionality().unwrap();
                let off = gap(slopes.view(), expected);
                assert!(off < 1e-4, "{name} on {engine}: gradient {k} is {off:e} off\n{slopes}\n{expected}");
            }
            let spread = scores.column(0).iter().fold(f64::MIN, |m, v| m.max(*v))
                - scores.column(0).iter().fold(f64::MAX, |m, v| m.min(*v));
            assert!(spread > 0.05, "{name} is too tame: {spread}");
        }
    }
}

#[test]
fn values_alone_are_the_same_scores() {
    for config in engines() {
        for name in ["standard_logistic", "svc_rbf", "network_two"] {
            let model = ValuePredictor::load(fixture(&format!("{name}.onnx")), &config).unwrap();
            let (rows, scores) = (matrix(name, "rows"), matrix(name, "scores"));
            let found = model.values(rows.view(), &vec![1; rows.nrows()]).unwrap().insert_axis(Axis(1));
            assert!(gap(found.view(), scores.slice(s![.., 1..])) < 1e-5, "{name}");
        }
    }
}

#[test]
fn single_operators_have_the_scores_of_onnx_runtime() {
    let folder = fixture("operators");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().into_string().ok()?.strip_suffix(".onnx").map(str::to_string)
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 23);
    let kernels = ["svc_linear", "svc_poly", "svc_rbf", "svc_sigmoid"];
    for name in names {
        let npz = format!("operators/{name}");
        let rows = matrix(&npz, "rows");
        let mut scores = matrix(&npz, "scores");
        // At the end of a model they are turned around, so that the higher belongs to the label.
        if kernels.contains(&name.as_str()) {
            scores.mapv_inplace(|v| -v);
        }
        for config in engines() {
            let config = PredictorConfig { keep_final_activation: true, ..config };
            let model = ValuePredictor::load(fixture(&format!("{npz}.onnx")), &config).unwrap();
            for k in 0..scores.ncols() {
                let found = model.values(rows.view(), &vec![k; rows.nrows()]).unwrap().insert_axis(Axis(1));
                let off = gap(found.view(), scores.slice(s![.., k..=k]));
                // ONNX Runtime iterates for Platt's probabilities and stops within 0.0025 a class; two classes need no iteration.
                let least = if name == "svc_platt" { 5e-3 } else { 1e-5 };
                assert!(off < least, "{name}, score {k}, is {off:e} off\n{found}\n{scores}");
            }
        }
    }
}

#[test]
fn the_probabilities_are_explained_when_asked_for_and_labels_never() {
    let config = PredictorConfig { keep_final_activation: true, ..PredictorConfig::default() };
    let path = fixture("standard_logistic.onnx");
    let model = OnnxPredictor::load(&path, &config).unwrap();
    let (rows, scores) = (matrix("standard_logistic", "rows"), matrix("standard_logistic", "scores"));
    let found = model.values(rows.view(), &[1; 8]).unwrap().insert_axis(Axis(1));
    let expected = scores.slice(s![.., 1..]).mapv(|z| 1.0 / (1.0 + (-z).exp()));
    assert!(gap(found.view(), expected.view()) < 1e-6);
    // Classes by their names, in the order of the scores.
    let classes = model.values_only().metadata().get("brenier.classes").unwrap();
    assert_eq!(classes, r#"["approved","declined"]"#);
    let config = PredictorConfig { output: Some("output_label".to_string()), ..PredictorConfig::default() };
    let error = OnnxPredictor::load(&path, &config).unwrap_err().to_string();
    assert!(error.contains("no output 'output_label'"), "{error}");
}

#[test]
fn what_has_no_gradient_is_named_with_the_methods_that_work() {
    let path = fixture("pca_forest.onnx");
    let error = OnnxPredictor::load(&path, &PredictorConfig::default()).unwrap_err().to_string();
    assert!(error.contains("(ai.onnx.ml::TreeEnsembleClassifier) has no gradient"), "{error}");
    for word in ["kernel-shap", "occlusion", "with ONNX Runtime", "columns 0 and 1 together"] {
        assert!(error.contains(word), "{error}");
    }
    // Values are still there.
    let [_, ort] = engines().try_into().unwrap();
    assert_eq!(ValuePredictor::load(&path, &ort).unwrap().outputs(), 2);
}

#[test]
fn an_inspection_sees_through_the_label() {
    let model = Model::load(fixture("standard_logistic.onnx")).unwrap();
    let inspection = Inspection::of(&model).unwrap();
    assert!(inspection.differentiable, "{:?}", inspection.problem);
    assert!(inspection.operators.contains_key("ai.onnx.ml::LinearClassifier"));
    assert!(inspection.notices.iter().any(|notice| notice.what.contains("output_label")), "{inspection:?}");
}

/// Columns of a frame as the graph takes them: numbers, and one-hot rows of levels.
fn frame(model: &Model, rows: usize) -> BTreeMap<String, eval::Array> {
    let text = std::fs::read_to_string(fixture("frame.csv")).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    let cells: Vec<Vec<&str>> = lines.take(rows).map(|line| line.split(',').collect()).collect();
    let column = |name: &str| {
        let place = header.iter().position(|column| *column == name).unwrap();
        cells.iter().map(move |row| row[place])
    };
    let mut found = BTreeMap::new();
    for input in &model.graph.inputs {
        let name = input.name.as_str();
        let (width, values): (usize, Vec<f64>) = match model.words.levels.get(name) {
            Some(levels) => {
                let code =
                    |cell: &str| levels.iter().map(|l| f64::from(u8::from(l == cell))).collect::<Vec<_>>();
                (levels.len(), column(name).flat_map(code).collect())
            }
            None => (1, column(name).map(|cell| cell.parse().unwrap()).collect()),
        };
        found.insert(name.to_string(), eval::Array::new(DType::F32, &[rows, width], values));
    }
    found
}

#[test]
fn columns_of_a_frame_are_inputs_and_categories_are_one_hot() {
    for name in ["frame_onehot", "frame_ordinal"] {
        let mut model = Model::load(fixture(&format!("{name}.onnx"))).unwrap();
        assert_eq!(model.words.levels["job"], ["clerk", "nurse", "smith"]);
        assert_eq!(model.words.levels["sex"], ["female", "male"]);
        assert_eq!(model.words.classes, ["approved", "declined"]);
        let output = "output_probability";
        model.graph.outputs.retain(|other| other.name == output);
        model.graph.prune();
        let graph = lower(&model.graph, &[]).unwrap();
        assert!(graph.nodes.iter().all(|node| node.is_standard()), "{name}");
        let scores = matrix(name, "scores");
        let mut inputs = frame(&model, scores.nrows());
        let found = eval::evaluate(&graph, &inputs).unwrap().remove(0);
        let expected = scores.mapv(|z| 1.0 / (1.0 + (-z).exp()));
        let found = Array2::from_shape_vec(expected.raw_dim(), found.values().into_owned()).unwrap();
        assert!(gap(found.view(), expected.view()) < 1e-5, "{name}\n{found}\n{expected}");
        // The gradient of p is p (1 - p) times that of the logit.
        let graph = grad(&model.graph, &[output], &["age", "hours", "job"]).unwrap();
        let rows = scores.nrows();
        let seed: Vec<f64> = (0..rows).flat_map(|_| [0.0, 1.0]).collect();
        inputs.insert(format!("seed/{output}"), eval::Array::new(DType::F32, &[rows, 2], seed));
        let outputs = eval::evaluate(&graph, &inputs).unwrap();
        let gradients = truth(name, "gradients");
        for (j, slopes) in outputs[1..3].iter().enumerate() {
            for (i, slope) in slopes.values().iter().enumerate() {
                let p = expected[[i, 1]];
                let truth = gradients[[i, 1, j]] * p * (1.0 - p);
                assert!((slope - truth).abs() < 1e-4, "{name}: {slope} and {truth}");
            }
        }
        assert!(outputs[3].values().iter().any(|slope| slope.abs() > 1e-3), "categories have a gradient");
    }
}
