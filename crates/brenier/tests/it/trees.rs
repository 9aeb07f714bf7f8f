//! Tree ensembles behind every path: scores of the libraries, credit of treeig and shap, exact certificates.

use std::fs::File;
use std::path::PathBuf;

use brenier::attribute::{
    Baseline, Context, IntegratedGradients, Method, PathIntegral, Settings, ShapleyValues, ShiftConfig,
    TreeShap, shift,
};
use brenier::data::{Dataset, Population};
use brenier::{
    Error, FieldFn, Polyline, PredictorConfig, Remedy, Rule, Score, Trees, ValueFn, ValuePredictor, Verdict,
};
use ndarray::{Array1, Array2, ArrayD, Axis, array, concatenate};
use ndarray_npy::NpzReader;

use crate::shared::normal;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/trees")).join(name)
}

fn load(name: &str, keep_final_activation: bool) -> ValuePredictor {
    let config = PredictorConfig { keep_final_activation, ..PredictorConfig::default() };
    ValuePredictor::load_trees(fixture(name), &config).unwrap().unwrap_or_else(|| panic!("{name} is no tree"))
}

fn truth(npz: &str, name: &str) -> Option<Array2<f64>> {
    let mut file = NpzReader::new(File::open(fixture(&format!("{npz}.npz"))).unwrap()).unwrap();
    let array: ArrayD<f64> = file.by_name(name).ok()?;
    let rows = array.shape()[0];
    let columns = array.len() / rows;
    // In the order of the axes, whatever the order in the file.
    Some(Array2::from_shape_vec((rows, columns), array.iter().copied().collect()).unwrap())
}

fn data(npz: &str, name: &str) -> Dataset {
    let rows = truth(npz, name).unwrap().mapv(|v| v as f32);
    Dataset::from_rows(name, &[rows.ncols()], rows.view()).unwrap()
}

fn gap(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    (a - b).iter().fold(0.0, |most: f64, v| most.max(v.abs()))
}

/// Models with their truths.
const ONNX: [(&str, &str); 15] = [
    ("sk_forest.onnx", "sk_forest"),
    ("sk_boosted.onnx", "sk_boosted"),
    ("sk_histogram.onnx", "sk_histogram"),
    ("sk_missing.onnx", "sk_missing"),
    ("sk_forest_classes.onnx", "sk_forest_classes"),
    ("sk_boosted_classes.onnx", "sk_boosted_classes"),
    ("sk_boosted_binary.onnx", "sk_boosted_binary"),
    ("sk_histogram_binary.onnx", "sk_histogram_binary"),
    ("xgb_binary.onnx", "xgb_binary_onnx"),
    ("lgb_categories.onnx", "lgb_categories_onnx"),
    ("cat.onnx", "cat"),
    ("cat_binary.onnx", "cat_binary"),
    ("ensemble_sum.onnx", "ensemble_sum"),
    ("ensemble_average.onnx", "ensemble_average"),
    ("ensemble_max.onnx", "ensemble_max"),
];

#[test]
fn onnx_files_of_every_exporter_have_the_scores_of_their_libraries() {
    for (name, npz) in ONNX.into_iter().chain([("ensemble_min.onnx", "ensemble_min")]) {
        let rows = truth(npz, "rows").unwrap();
        let expected = truth(npz, "scores").unwrap();
        let model = load(name, true);
        let outputs = model.outputs();
        let every: Vec<Array1<f64>> =
            (0..outputs).map(|k| model.values(rows.view(), &vec![k; rows.nrows()]).unwrap()).collect();
        let views: Vec<_> = every.iter().map(|column| column.view().insert_axis(Axis(1))).collect();
        let found = concatenate(Axis(1), &views).unwrap();
        assert!(gap(&found, &expected) < 1e-5, "{name} {}\n{found}\n{expected}", gap(&found, &expected));
        let spread = expected.iter().fold(f64::MIN, |m, v| m.max(*v))
            - expected.iter().fold(f64::MAX, |m, v| m.min(*v));
        assert!(spread > 0.05, "{name} is too tame: {spread}");
        // Before the activation: what the library calls a margin is the last output's.
        if let (Some(margins), 1..=2) = (truth(npz, "margins"), outputs) {
            let found = load(name, false).values(rows.view(), &vec![outputs - 1; rows.nrows()]).unwrap();
            let found = found.insert_axis(Axis(1));
            assert!(gap(&found, &margins) < 1e-5, "{name} {}", gap(&found, &margins));
        }
    }
}

#[test]
fn lines_have_treeigs_credit_and_certificates_without_residual() {
    let mut compared = 0;
    for (name, npz) in [
        ("xgb.json", "xgb"),
        ("lgb.txt", "lgb"),
        ("sk_forest.onnx", "sk_forest"),
        ("sk_boosted.onnx", "sk_boosted"),
    ] {
        let (model, rows, line) =
            (load(name, false), truth(npz, "rows").unwrap(), truth(npz, "line").unwrap());
        let from = truth(npz, "background").unwrap().slice(ndarray::s![..1, ..]).to_owned();
        let context = Context { baselines: Some(from.view()), ..Context::default() };
        let method = IntegratedGradients { baseline: Baseline::Given, ..IntegratedGradients::default() };
        let found = method.explain(&model, rows.view(), &vec![0; rows.nrows()], &context).unwrap();
        for (found, expected) in found.iter().zip(line.rows()) {
            let gap = (&found.values - &expected).iter().fold(0.0, |m: f64, v| m.max(v.abs()));
            assert!(gap < 1e-6, "{name} {gap}");
            let completeness = found.certificate.completeness.unwrap();
            assert!(
                completeness.residual <= 1e-14 * found.values.iter().map(|v| v.abs()).sum::<f64>(),
                "{name}"
            );
            // Between two rows of the same score there is nothing to explain, which is told.
            let changed = found.certificate.score != completeness.reference_score;
            assert!(!changed || found.certificate.verdict == Verdict::Pass, "{name}");
            assert_eq!(found.certificate.gradient_evaluations, 0);
            assert_eq!(found.certificate.path.as_ref().unwrap().rule_used, "exact jumps");
            compared += 1;
        }
    }
    assert_eq!(compared, 48);
}

#[test]
fn tree_shap_is_shaps_and_that_of_the_definition() {
    for (name, npz, target) in [
        ("xgb.json", "xgb", 0),
        ("xgb_binary.ubj", "xgb_binary", 0),
        ("xgb_classes.json", "xgb_classes", 2),
        ("lgb.txt", "lgb", 0),
        ("sk_forest.onnx", "sk_forest", 0),
        ("sk_histogram.onnx", "sk_histogram", 0),
    ] {
        let (model, rows, background) =
            (load(name, false), truth(npz, "rows").unwrap(), data(npz, "background"));
        let context = Context { data: Some(&background), ..Context::default() };
        let targets = vec![target; rows.nrows()];
        let found = TreeShap {}.explain(&model, rows.view(), &targets, &context).unwrap();
        let absence = brenier::attribute::Absence::Background { rows: 100 };
        let slow = ShapleyValues { absence, ..ShapleyValues::default() };
        let slow = slow.explain(&model, rows.view(), &targets, &context).unwrap();
        let shap = truth(npz, "interventional").unwrap();
        for (k, (found, slow)) in found.iter().zip(&slow).enumerate() {
            let far = |other: ndarray::ArrayView1<f64>| {
                (&found.values - &other).iter().fold(0.0, |m: f64, v| m.max(v.abs()))
            };
            assert!(far(slow.values.view()) < 1e-10, "{name} {k}");
            assert!(far(shap.row(k)) < 1e-5, "{name} {k} {}", far(shap.row(k)));
            let completeness = found.certificate.completeness.unwrap();
            assert!(completeness.residual < 1e-12, "{name}");
            assert_eq!(found.certificate.verdict, Verdict::Pass);
        }
        // Without data: the training data, as far as the file has counted it.
        let alone = TreeShap {}.explain(&model, rows.view(), &targets, &Context::default());
        match (name.ends_with(".onnx"), alone) {
            (true, Err(error)) => assert_eq!(error.remedy(), Some(Remedy::GiveRowsToCompare), "{error}"),
            (false, Ok(found)) => assert!(found[0].certificate.completeness.unwrap().residual < 1e-5),
            (_, other) => panic!("{name}: {other:?}"),
        }
    }
}

/// A score that forwards everything but trees: what methods find by asking.
fn values_of(model: &ValuePredictor) -> impl Score + '_ {
    ValueFn::new(model.shape(), move |x, target| model.values(x.insert_axis(Axis(0)), &[target]).unwrap()[0])
}

#[test]
fn every_path_method_is_exact_on_trees() {
    let model = load("xgb.json", false);
    let (rows, background) = (truth("xgb", "rows").unwrap(), data("xgb", "background"));
    // A flow that bends: rotation of the first two features while all shrink.
    let flow = FieldFn::new(&[6], |x, _| {
        let mut v = 0.5 * &x;
        (v[0], v[1]) = (0.5 * x[0] - 2.0 * x[1], 0.5 * x[1] + 2.0 * x[0]);
        v
    });
    let context = Context { data: Some(&background), flows: vec![&flow], ..Context::default() };
    let targets = vec![0; rows.nrows()];
    let settings = Settings { samples: Some(30), neighbours: Some(5), ..Settings::default() };
    for name in ["ig", "nearest-ig", "expected-gradients", "transport", "transport-line"] {
        let method = Method::new(name, &settings).unwrap();
        let found = method.explain(&model, rows.view(), &targets, &context).unwrap();
        for explanation in &found {
            let completeness = explanation.certificate.completeness.unwrap();
            assert!(completeness.residual < 1e-12, "{name} {completeness:?}");
        }
        // A row may lie between the same thresholds as its reference; not all do.
        assert!(found.iter().any(|e| e.values.iter().any(|v| v.abs() > 1e-3)), "{name}");
        // Asked for values alone, the same model has no such credit.
        let error = method.explain(&values_of(&model), rows.view(), &targets, &context).unwrap_err();
        assert!(matches!(error, Error::NoGradient { .. }), "{name}");
    }
    for name in ["gradient", "ig+idgi", "smoothgrad", "gradient-shap", "guided-ig", "geodesic-ig"] {
        let method = Method::new(name, &settings).unwrap();
        let error = method.explain(&model, rows.view(), &targets, &context).unwrap_err().to_string();
        assert!(error.contains("ensemble of trees, which has no gradient"), "{name}: {error}");
        assert!(error.contains("nearest-ig") && error.contains("tree-shap"), "{name}: {error}");
    }
}

#[test]
fn a_path_that_bends_has_the_credit_of_its_jumps() {
    // The credit of a fine polyline is the path's; the flow's trace is followed in 256 chords.
    let model = load("xgb.json", false);
    let rows = truth("xgb", "rows").unwrap();
    let turn = |x: ndarray::ArrayView1<f64>, t: f64| {
        let mut v = 0.3 * &x;
        (v[0], v[1]) = (-(3.0 * t) * x[1], 3.0 * t * x[0]);
        v
    };
    let flow = FieldFn::new(&[6], turn);
    let context = Context { flows: vec![&flow], ..Context::default() };
    let method = Method::new("transport", &Settings::default()).unwrap();
    let (found, paths) =
        method.explain_with_paths(&model, rows.view(), &vec![0; rows.nrows()], &context).unwrap();
    for (found, path) in found.iter().zip(&paths) {
        let points: Vec<Array1<f64>> = (0..=20_000).map(|k| path.at(f64::from(k) / 20_000.0)).collect();
        let points = Array2::from_shape_fn((points.len(), 6), |(i, j)| points[i][j]);
        let fine = Polyline::new(points).unwrap();
        let fine = PathIntegral::new(Rule::adaptive(1e-3)).explain(&model, &fine, 0).unwrap();
        let sizes: f64 = fine.values.iter().map(|v| v.abs()).sum();
        let gap: f64 = (&found.values - &fine.values).iter().map(|v| v.abs()).sum();
        assert!(gap <= 0.02 * sizes, "{gap} of {sizes}\n{}\n{}", found.values, fine.values);
    }
}

#[test]
fn a_contrast_is_the_difference_and_an_activation_is_kept_where_asked() {
    let rows = truth("xgb_classes", "rows").unwrap();
    let points = rows.slice(ndarray::s![..3, ..]);
    let plain = load("xgb_classes.json", false);
    let contrast = load("xgb_classes.json", false).with_contrast(1).unwrap();
    let credit = |model: &ValuePredictor, target| {
        let trees: &dyn Trees = model.trees().unwrap();
        trees.path_credit(points, target).unwrap()
    };
    let difference = credit(&plain, 2) - credit(&plain, 1);
    assert!((&credit(&contrast, 2) - &difference).iter().all(|v| v.abs() < 1e-12));
    assert!(difference.iter().any(|v| v.abs() > 1e-3));
    let kept = load("xgb_classes.json", true);
    assert!(
        kept.notices().is_empty() && plain.notices()[0].what.contains("softmax"),
        "{:?}",
        plain.notices()
    );
    let scores = kept.values(points, &[2; 3]).unwrap();
    assert!((credit(&kept, 2).sum() - (scores[2] - scores[0])).abs() < 1e-12);
    let background = data("xgb_classes", "background");
    let context = Context { data: Some(&background), ..Context::default() };
    let error = TreeShap {}.explain(&kept, rows.view(), &vec![0; rows.nrows()], &context).unwrap_err();
    assert!(error.to_string().contains("softmax of trees is no sum over them"), "{error}");
}

#[test]
fn a_shift_of_a_boosted_ensemble_is_exact_along_every_line() {
    let model = load("xgb.json", false);
    let a = normal(200, 6, 1);
    let mut b = normal(200, 6, 2);
    b.column_mut(2).mapv_inplace(|v| v + 1.0);
    let population = |name: &str, rows: &Array2<f64>| {
        let rows = rows.mapv(|v| v as f32);
        Population::new(name, Dataset::from_rows(name, &[6], rows.view()).unwrap()).unwrap()
    };
    let config = ShiftConfig { exchanges: 9, ..ShiftConfig::default() };
    let found = shift(&model, 0, &population("a", &a), &population("b", &b), &config).unwrap();
    assert!(found.residual < 1e-12, "{}", found.residual);
    assert!(found.change.value.abs() > 0.1);
    // The column that moved has most of the change.
    let largest = (0..6)
        .max_by(|&i, &j| found.columns[i].credit.value.abs().total_cmp(&found.columns[j].credit.value.abs()));
    assert_eq!(largest, Some(2));
}

#[test]
fn files_that_are_no_trees_are_none_and_broken_ones_say_why() {
    let config = PredictorConfig::default();
    let network = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/perturbation/mlp.onnx"));
    assert!(ValuePredictor::load_trees(network, &config).unwrap().is_none());
    let message = |bytes: &[u8]| ValuePredictor::trees_of(bytes, &config).unwrap_err().to_string();
    let json = message(b"{\"a\": 1}");
    assert!(json.contains("no model of XGBoost that can be read: it has no 'learner'"), "{json}");
    assert!(message(b"tree\nversion=v4\n").contains("LightGBM"));
    let model = load("xgb.json", false);
    let error = model.values(array![[0.0, 1.0]].view(), &[0]).unwrap_err().to_string();
    assert!(error.contains("multiple of the features"), "{error}");
}
