//! Methods against their reference implementations, on the models of `fixtures/methods`, on both engines.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path as FilePath, PathBuf};

use brenier::attribute::{
    Allocation, Baseline, BlurIg, Context, Draw, GradCam, GradientShap, GuidedIg, IntegratedGradients,
    Method, Settings, SmoothGrad, Smoothing, StepCredit,
};
use brenier::{BlurPath, Border, Explanation, OnnxPredictor, Path, PredictorConfig, Rule, Score, Verdict};
use common::engine_configs;
use ndarray::{Array1, Array2, ArrayD, Axis, s};
use ndarray_npy::NpzReader;

fn file(name: &str) -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/methods").join(name)
}

/// A model on every engine, its inputs and targets, and what the references say.
struct Case {
    predictors: Vec<OnnxPredictor>,
    inputs: Array2<f64>,
    targets: Vec<usize>,
    truth: BTreeMap<String, ArrayD<f64>>,
}

impl Case {
    fn load(name: &str) -> Case {
        let mut npz = NpzReader::new(File::open(file(&format!("{name}.npz"))).unwrap()).unwrap();
        let mut truth = BTreeMap::new();
        for entry in npz.names().unwrap() {
            let key = entry.trim_end_matches(".npy").to_string();
            let array = match npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::IxDyn>(&entry) {
                Ok(array) => array,
                Err(_) => {
                    npz.by_name::<ndarray::OwnedRepr<i64>, ndarray::IxDyn>(&entry).unwrap().mapv(|v| v as f64)
                }
            };
            truth.insert(key, array);
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
        Case { predictors, inputs, targets, truth }
    }

    /// Compares what every engine gives with what the reference gave, relative to its largest value.
    fn agree(&self, name: &str, tolerance: f64, explain: impl Fn(&OnnxPredictor) -> Vec<Explanation>) {
        let truth = flat(&self.truth[name]);
        let scale = truth.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        assert!(scale > 0.0, "{name} is all zeros");
        for predictor in &self.predictors {
            for (explanation, truth) in explain(predictor).iter().zip(truth.rows()) {
                let gap = (&explanation.values - &truth).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                let engine = predictor.engine().name();
                assert!(gap <= tolerance * scale, "{name} on {engine}: off by {:e}", gap / scale);
            }
        }
    }

    fn by_name(&self, name: &str, settings: &Settings, predictor: &OnnxPredictor) -> Vec<Explanation> {
        let context = Context { model: Some(predictor), ..Context::default() };
        let method = Method::new(name, settings).unwrap();
        method.explain(predictor, self.inputs.view(), &self.targets, &context).unwrap()
    }

    fn integrated_gradients(&self, rule: Rule, predictor: &OnnxPredictor) -> Vec<Explanation> {
        let baselines = flat(&self.truth["baselines"]);
        let context = Context { baselines: Some(baselines.view()), ..Context::default() };
        let allocation = Allocation::PathIntegral { rule };
        IntegratedGradients { baseline: Baseline::Given, allocation, seed: 0 }
            .explain(predictor, self.inputs.view(), &self.targets, &context)
            .unwrap()
    }
}

fn flat(array: &ArrayD<f64>) -> Array2<f64> {
    let rows = array.shape()[0];
    array.to_shape((rows, array.len() / rows)).unwrap().to_owned()
}

/// Row `sample` of example `example` of an array `[examples, samples, ...]`.
fn entry(array: &ArrayD<f64>, example: usize, sample: usize) -> Array1<f64> {
    let chosen = array.index_axis(Axis(0), example);
    chosen.index_axis(Axis(0), sample).iter().copied().collect()
}

const ROUNDING: f64 = 1e-5;

#[test]
fn integrated_gradients_agree_with_captum_for_every_rule_that_is_right_there() {
    let rules = [
        ("ig_gausslegendre", Rule::GaussLegendre { nodes: 20 }),
        ("ig_riemann_left", Rule::Left { steps: 20 }),
        ("ig_riemann_right", Rule::Right { steps: 20 }),
        ("ig_riemann_middle", Rule::Midpoint { steps: 20 }),
    ];
    for name in ["convnet", "smooth"] {
        let case = Case::load(name);
        for (reference, rule) in rules {
            case.agree(reference, ROUNDING, |predictor| case.integrated_gradients(rule, predictor));
        }
    }
}

/// With as many gradients, ours sums to the score's change and those two do not.
#[test]
fn captums_trapezoid_and_pairs_weights_do_not_sum_up_and_ours_do() {
    let case = Case::load("smooth");
    let (scores, targets) = (&case.truth["scores"], &case.targets);
    let predictor = &case.predictors[0];
    let zero = |rule: Rule| {
        let settings = Settings { rule: Some(rule), ..Settings::default() };
        case.by_name("ig", &settings, predictor)
    };
    let runs = [
        (
            "ig_riemann_trapezoid",
            "baseline_scores",
            0.04,
            case.integrated_gradients(Rule::Trapezoid { steps: 19 }, predictor),
        ),
        ("pair_ig", "zero_scores", 0.002, zero(Rule::GaussLegendre { nodes: 20 })),
    ];
    for (reference, from, miss, ours) in runs {
        let theirs = flat(&case.truth[reference]);
        for (i, explanation) in ours.iter().enumerate() {
            let change = scores[[i, targets[i]]] - case.truth[from][[i, targets[i]]];
            let residual = |sum: f64| (sum - change).abs() / change.abs();
            let (theirs, ours) = (residual(theirs.row(i).sum()), residual(explanation.values.sum()));
            assert!(theirs > miss, "{reference} sums to the change within {theirs}");
            assert!(
                ours < 0.004 && ours < 0.2 * theirs,
                "{reference}: ours misses by {ours}, theirs by {theirs}"
            );
            assert_eq!(explanation.certificate.verdict, Verdict::Pass);
        }
    }
}

#[test]
fn one_gradient_methods_agree_with_captum() {
    let case = Case::load("convnet");
    let methods = [
        ("gradient", "gradient"),
        ("gradient_input", "gradient-input"),
        ("guided_backprop", "guided-backprop"),
        ("deconvnet", "deconvnet"),
    ];
    for (reference, name) in methods {
        case.agree(reference, ROUNDING, |p| case.by_name(name, &Settings::default(), p));
    }
    // The three differ, or the comparison would say nothing.
    assert!((&case.truth["gradient"] - &case.truth["guided_backprop"]).iter().any(|d| d.abs() > 0.1));
    assert!((&case.truth["deconvnet"] - &case.truth["guided_backprop"]).iter().any(|d| d.abs() > 0.1));
    let smooth = Case::load("smooth");
    smooth.agree("gradient_input", ROUNDING, |p| smooth.by_name("gradient-input", &Settings::default(), p));
}

#[test]
fn grad_cam_agrees_with_captum_on_the_last_and_on_a_named_convolution() {
    let case = Case::load("convnet");
    for (reference, layer) in [("grad_cam", None), ("grad_cam_first", Some("/first/Conv"))] {
        let truth = flat(&case.truth[reference]);
        let scale = truth.iter().fold(0.0_f64, |m, v| m.max(*v));
        assert!(scale > 0.0);
        for predictor in &case.predictors {
            let method = GradCam { layer: layer.map(str::to_string) };
            let found = method.explain(predictor, case.inputs.view(), &case.targets).unwrap();
            for (explanation, truth) in found.iter().zip(truth.rows()) {
                // Each channel has a third of the map.
                let map = explanation.values.to_shape((3, 64)).unwrap().sum_axis(Axis(0));
                let gap = (&map - &truth).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                assert!(gap < ROUNDING * scale, "{reference}: {gap}");
            }
        }
    }
}

#[test]
fn smoothgrad_and_its_relatives_agree_with_captum_on_the_same_draws() {
    for name in ["convnet", "smooth"] {
        let case = Case::load(name);
        let kinds = [
            ("smoothgrad", Smoothing::Mean),
            ("smoothgrad_sq", Smoothing::Square),
            ("vargrad", Smoothing::Variance),
        ];
        for (reference, smoothing) in kinds {
            let noise = &case.truth[&format!("{reference}_noise")];
            case.agree(reference, ROUNDING, |predictor| {
                let method = SmoothGrad { smoothing, samples: 12, ..SmoothGrad::default() };
                let draw = |example: usize, sample: usize| entry(noise, example, sample);
                method.explain_with(predictor, case.inputs.view(), &case.targets, draw).unwrap()
            });
        }
    }
}

#[test]
fn gradient_shap_agrees_with_captum_on_the_same_draws() {
    for name in ["convnet", "smooth"] {
        let case = Case::load(name);
        let of = |part: &str| &case.truth[&format!("gradient_shap_{part}")];
        case.agree("gradient_shap", ROUNDING, |predictor| {
            let method = GradientShap { samples: 10, noise: 0.1, seed: 0 };
            let draw = |example: usize, sample: usize| {
                Ok(Draw {
                    reference: entry(of("references"), example, sample),
                    input: entry(of("inputs"), example, sample),
                    time: of("times")[[example, sample]],
                })
            };
            method.explain_with(predictor, case.inputs.view(), &case.targets, draw).unwrap()
        });
    }
}

#[test]
fn guided_ig_agrees_with_pair() {
    for name in ["convnet", "smooth"] {
        let case = Case::load(name);
        let near = GuidedIg { steps: 40, credit: StepCredit::Left, ..GuidedIg::default() };
        let far = GuidedIg { steps: 25, fraction: 0.1, max_distance: 0.5, ..near };
        for (reference, method) in [("guided_ig", near), ("guided_ig_far", far)] {
            case.agree(reference, ROUNDING, |predictor| {
                method.explain(predictor, case.inputs.view(), &case.targets, &Context::default()).unwrap()
            });
        }
    }
}

/// PAIR's rule is of order 1 and its kernel is cut off at four sigma: 4,000 steps bring it near the integral.
#[test]
fn blur_ig_agrees_with_pair() {
    let case = Case::load("convnet");
    case.agree("blur_ig", 5e-3, |predictor| {
        let allocation = Allocation::PathIntegral { rule: Rule::adaptive(1e-4) };
        let method = BlurIg { max_sigma: Some(3.0), allocation, ..BlurIg::default() };
        let found = method.explain(predictor, case.inputs.view(), &case.targets).unwrap();
        assert!(found.iter().all(|e| e.certificate.verdict == Verdict::Pass));
        found
    });
    for (reference, border) in [("blurred", Border::Zero), ("blurred_mirror", Border::Mirror)] {
        let blurred = &case.truth[reference];
        for (i, sigma) in [0.7, 1.5, 3.0].into_iter().enumerate() {
            for example in 0..2 {
                let path = BlurPath::new(case.inputs.row(example), &[3, 8, 8], sigma, border).unwrap();
                let truth: Array1<f64> = blurred.slice(s![i, example, .., .., ..]).iter().copied().collect();
                let gap = (path.at(0.0) - truth).iter().fold(0.0_f64, |m, v| m.max(v.abs()));
                assert!(gap < 3e-4, "{reference} sigma {sigma}: {gap}");
            }
        }
    }
}

/// Real architectures: batch normalisation folded into its convolution, branches, depthwise convolutions.
#[test]
fn grad_cam_looks_at_the_last_convolution_of_real_architectures() {
    for name in ["resnet", "densenet", "mobilenet_v3", "convnext"] {
        let path = file(&format!("../torch/{name}.script.onnx"));
        let predictor = OnnxPredictor::load(path, &PredictorConfig::default()).unwrap();
        let inputs = Array2::from_shape_fn((2, predictor.features()), |(n, i)| ((3 * n + i) as f64).sin());
        let found = GradCam::default().explain(&predictor, inputs.view(), &[0, 1]).unwrap();
        let direct = predictor.values(inputs.view(), &[0, 1]).unwrap();
        for (explanation, score) in found.iter().zip(&direct) {
            assert!((explanation.certificate.score - score).abs() < 1e-5 * score.abs().max(1.0), "{name}");
            assert!(explanation.values.iter().all(|v| *v >= 0.0), "{name}");
        }
    }
}

/// One sentence and a hint for what cannot be done.
#[test]
fn what_a_model_cannot_do_is_refused() {
    let smooth = Case::load("smooth");
    let predictor = &smooth.predictors[0];
    let refused = |name: &str, settings: &Settings| {
        let context = Context { model: Some(predictor), ..Context::default() };
        let method = Method::new(name, settings).unwrap();
        method.explain(predictor, smooth.inputs.view(), &smooth.targets, &context).unwrap_err().to_string()
    };
    let none = Settings::default();
    for (name, expected) in [
        ("guided-backprop", "it has no ReLU"),
        ("deconvnet", "it has no ReLU"),
        ("grad-cam", "it has no convolution"),
        ("blur-ig", "inputs of shape [6] are not images"),
        ("transport", "there is no flow to follow"),
        ("expected-gradients", "it needs rows of data"),
        ("gradient-shap", "it needs rows of data"),
        ("geodesic-ig", "it needs rows of data"),
    ] {
        let message = refused(name, &none);
        assert!(message.contains(expected) && message.contains("\nhint: "), "{name}: {message}");
    }
    let mean = Settings { baseline: Some(Baseline::Mean), ..Settings::default() };
    assert!(refused("ig", &mean).contains("it needs rows of data"));
    let convnet = Case::load("convnet");
    let method = GradCam { layer: Some("third".to_string()) };
    let refused = method.explain(&convnet.predictors[0], convnet.inputs.view(), &convnet.targets);
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("there is no layer 'third'; convolutions are '/first/Conv' (Conv)"),
        "{message}"
    );
    let method = GradCam { layer: Some("/Flatten".to_string()) };
    let refused = method.explain(&convnet.predictors[0], convnet.inputs.view(), &convnet.targets);
    assert!(refused.unwrap_err().to_string().contains("are not maps"));
}
