//! LRP, DeepLIFT and DeepSHAP against Zennit and Captum on the models of `fixtures/relevance`, on both engines.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use brenier::attribute::{Baseline, Context, Method, Settings};
use brenier::data::Dataset;
use brenier::{Explanation, OnnxPredictor, PredictorConfig, Score, Verdict};
use common::engine_configs;
use ndarray::{Array2, ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::NpzReader;

/// Networks run in float32; differences from the references are relative to the largest value.
const ROUNDING: f64 = 1e-4;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/relevance").join(name)
}

struct Case {
    name: &'static str,
    predictors: Vec<OnnxPredictor>,
    inputs: Array2<f64>,
    targets: Vec<usize>,
    truth: BTreeMap<String, ArrayD<f64>>,
}

fn flat(array: &ArrayD<f64>) -> Array2<f64> {
    let rows = array.shape()[0];
    array.to_shape((rows, array.len() / rows)).unwrap().to_owned()
}

impl Case {
    fn load(name: &'static str) -> Case {
        let mut npz = NpzReader::new(File::open(file(&format!("{name}.npz"))).unwrap()).unwrap();
        let mut truth = BTreeMap::new();
        for entry in npz.names().unwrap() {
            let array = match npz.by_name::<OwnedRepr<f64>, IxDyn>(&entry) {
                Ok(array) => array,
                Err(_) => npz.by_name::<OwnedRepr<i64>, IxDyn>(&entry).unwrap().mapv(|v| v as f64),
            };
            truth.insert(entry.trim_end_matches(".npy").to_string(), array);
        }
        let predictors = engine_configs()
            .into_iter()
            .map(|engine| {
                let config = PredictorConfig { engine, ..PredictorConfig::default() };
                OnnxPredictor::load(file(&format!("{name}.onnx")), &config).unwrap()
            })
            .collect();
        let inputs = flat(&truth["inputs"]);
        let targets = truth["targets"].iter().map(|&t| t as usize).collect();
        Case { name, predictors, inputs, targets, truth }
    }

    /// The method on every engine, held against what the reference says.
    fn explain(
        &self,
        method: &str,
        settings: &Settings,
        context: &Context,
        key: &str,
        mut see: impl FnMut(&str, Explanation),
    ) {
        let truth = flat(&self.truth[key]);
        let scale = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        for predictor in &self.predictors {
            let context = Context { model: Some(predictor), ..context.clone() };
            let method = Method::new(method, settings).unwrap();
            let found = method.explain(predictor, self.inputs.view(), &self.targets, &context).unwrap();
            for (explanation, truth) in found.into_iter().zip(truth.rows()) {
                let gap = (&explanation.values - &truth).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                let engine = predictor.engine().name();
                if !(self.name == "overlap" && key == "deeplift") {
                    let place = format!("{key} of {} on {engine}", self.name);
                    assert!(gap <= ROUNDING * scale, "{place}: off by {:e}", gap / scale);
                }
                see(engine, explanation);
            }
        }
    }
}

#[test]
fn lrp_agrees_with_zennit_on_both_engines() {
    let rules = [
        ("epsilon", "lrp_epsilon"),
        ("epsilon:0.25", "lrp_epsilon_quarter"),
        ("gamma", "lrp_gamma"),
        ("z-plus", "lrp_z_plus"),
        ("alpha-beta", "lrp_alpha_beta"),
        ("w-square", "lrp_w_square"),
        ("flat", "lrp_flat"),
        ("epsilon-plus", "lrp_epsilon_plus"),
        ("epsilon-plus-flat", "lrp_epsilon_plus_flat"),
        ("epsilon-alpha2-beta1", "lrp_epsilon_alpha2_beta1"),
        ("epsilon-alpha2-beta1-flat", "lrp_epsilon_alpha2_beta1_flat"),
        ("epsilon-gamma-box:-1,2", "lrp_epsilon_gamma_box"),
    ];
    for name in ["convnet", "overlap", "resnet", "mlp"] {
        let case = Case::load(name);
        for (rule, key) in rules.iter().filter(|(_, key)| case.truth.contains_key(*key)) {
            let settings = Settings { lrp_rule: Some(rule.parse().unwrap()), ..Settings::default() };
            case.explain("lrp", &settings, &Context::default(), key, |_, explanation| {
                assert_eq!(explanation.certificate.completeness, None);
            });
        }
    }
}

#[test]
fn deeplift_agrees_with_captum_and_sums_up_on_both_engines() {
    for name in ["convnet", "overlap", "resnet", "mlp"] {
        let case = Case::load(name);
        let baselines = flat(&case.truth["baselines"]);
        let settings = Settings { baseline: Some(Baseline::Given), ..Settings::default() };
        let context = Context { baselines: Some(baselines.view()), ..Context::default() };
        case.explain("deeplift", &settings, &context, "deeplift", |engine, explanation| {
            let completeness = explanation.certificate.completeness.unwrap();
            assert!(completeness.relative_residual.unwrap() < 1e-5, "{name} on {engine}: {completeness:?}");
            assert_eq!(explanation.certificate.verdict, Verdict::Pass);
            let row = explanation.certificate.example;
            assert_eq!(explanation.reference.unwrap(), baselines.row(row));
        });
    }
}

#[test]
fn deep_shap_agrees_with_captum_and_sums_up_on_both_engines() {
    for name in ["convnet", "resnet", "mlp"] {
        let case = Case::load(name);
        let rows = case.truth["background"].mapv(|v| v as f32);
        let flat = rows.to_shape((3, rows.len() / 3)).unwrap();
        let data = Dataset::from_rows("background", &rows.shape()[1..], flat.view()).unwrap();
        let context = Context { data: Some(&data), ..Context::default() };
        case.explain("deep-shap", &Settings::default(), &context, "deep_shap", |engine, explanation| {
            let completeness = explanation.certificate.completeness.unwrap();
            assert!(completeness.residual < 1e-5, "{name} on {engine}: {completeness:?}");
            assert!(explanation.standard_errors.is_some() && explanation.certificate.sampling.is_none());
        });
        // Fewer references than rows: two of them are drawn, by the example's number.
        let settings = Settings { samples: Some(2), ..Settings::default() };
        let method = Method::new("deep-shap", &settings).unwrap();
        let predictor = &case.predictors[0];
        let context = Context { model: Some(predictor), ..context };
        let both = method.explain(predictor, case.inputs.view(), &case.targets, &context).unwrap();
        let second = case.inputs.slice(ndarray::s![1.., ..]);
        let context = Context { first_example: 1, ..context };
        let alone = method.explain(predictor, second, &case.targets[1..], &context).unwrap();
        assert_eq!(both[1].values, alone[0].values);
        assert_eq!(both[1].certificate.sampling.unwrap().samples, 2);
    }
}

/// The bounds of the z-box rule are of what the user gives, whatever is done to it before the first layer.
#[test]
fn bounds_of_the_box_go_through_preprocessing() {
    let case = Case::load("convnet");
    let preprocessing = brenier::Preprocessing { scale: Some(4.0), ..Default::default() };
    let config = PredictorConfig { preprocessing, ..PredictorConfig::default() };
    let predictor = OnnxPredictor::load(file("convnet.onnx"), &config).unwrap();
    let settings =
        Settings { lrp_rule: Some("epsilon-gamma-box:-4,8".parse().unwrap()), ..Settings::default() };
    let context = Context { model: Some(&predictor), ..Context::default() };
    let inputs = &case.inputs * 4.0;
    let method = Method::new("lrp", &settings).unwrap();
    let found = method.explain(&predictor, inputs.view(), &case.targets, &context).unwrap();
    let truth = flat(&case.truth["lrp_epsilon_gamma_box"]);
    let scale = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    for (explanation, truth) in found.iter().zip(truth.rows()) {
        let gap = (&explanation.values - &truth).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(gap <= ROUNDING * scale, "off by {:e}", gap / scale);
    }
    assert_eq!(Score::shape(&predictor), [3, 12, 12]);
}
