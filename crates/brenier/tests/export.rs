//! Explanations exported as ONNX files give what `explain` gives, on both engines and in ONNX's own checker.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;
use std::process::Command;

use brenier::attribute::{Absence, Baseline, Context, Method, Occlusion, Settings};
use brenier::engine::EngineConfig;
use brenier::export::{Exported, ExportedFacts, ExportedSteps, ExportedTarget, export, export_with};
use brenier::{OnnxPredictor, PredictorConfig, Rule, Score};
use common::engines;
use ndarray::{Array1, Array2, ArrayD, Axis};
use ndarray_npy::NpzReader;
use onnx_grad::Model;

/// Ten networks of both exporters.
const MODELS: [&str; 10] = [
    "conv1d.script",
    "convnext.dynamo",
    "densenet.script",
    "efficientnet.dynamo",
    "mlp.dynamo",
    "mobilenet_v3.script",
    "resnet.dynamo",
    "swin.script",
    "vgg.script",
    "vit.dynamo",
];
/// The largest error allowed, relative to the largest credit: float32 sums against float64.
const TOLERANCE: f64 = 1e-5;
const STEPS: usize = 12;

fn load(name: &str) -> (OnnxPredictor, Array2<f64>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
    let config = PredictorConfig {
        engine: EngineConfig { unchecked: true, ..EngineConfig::default() },
        ..PredictorConfig::default()
    };
    let predictor = OnnxPredictor::load(folder.join(format!("{name}.onnx")), &config).unwrap();
    let npz = folder.join(format!("{}.npz", name.split('.').next().unwrap()));
    let mut npz = NpzReader::new(std::fs::File::open(npz).unwrap()).unwrap();
    let input = predictor.model().graph.inputs[0].name.clone();
    let rows: ArrayD<f32> = npz.by_name(&format!("{input}.npy")).unwrap();
    let rows = rows.mapv(f64::from);
    let shape = (rows.shape()[0], predictor.features());
    (predictor, rows.into_shape_with_order(shape).unwrap())
}

fn ig(references: Array2<f64>) -> Exported {
    Exported::IntegratedGradients { rule: Rule::GaussLegendre { nodes: STEPS }, references }
}

/// Scores, credit, explained classes and residuals of an exported file.
struct Found {
    scores: Array2<f64>,
    credit: Array2<f64>,
    explained: Vec<i64>,
    residual: Option<Array1<f64>>,
}

fn run(engine: &dyn brenier::engine::Engine, file: &Model, rows: &Array2<f64>, shape: &[usize]) -> Found {
    let full: Vec<usize> = [vec![rows.nrows()], shape.to_vec()].concat();
    let x = rows.mapv(|v| v as f32).into_shape_with_order(full).unwrap();
    let mut program = engine.load(file).unwrap();
    let found = program.run(&[(&file.graph.inputs[0].name, x.view().into_dyn().into())]).unwrap();
    let names: Vec<&str> = file.graph.outputs.iter().map(|o| o.name.as_str()).collect();
    assert_eq!(names[..3], ["scores", "credit", "explained"]);
    let mut found = found.into_iter();
    let floats = |t: brenier::engine::Tensor| t.into_f32().unwrap().mapv(f64::from);
    let matrix = |a: ArrayD<f64>| {
        let width = a.len() / rows.nrows();
        a.into_shape_with_order((rows.nrows(), width)).unwrap()
    };
    let scores = matrix(floats(found.next().unwrap()));
    let credit = matrix(floats(found.next().unwrap()));
    let brenier::engine::Tensor::I64(explained) = found.next().unwrap() else {
        panic!("classes are integers")
    };
    let explained = explained.iter().copied().collect();
    let residual = found.next().map(|t| floats(t).into_dimensionality().unwrap());
    Found { scores, credit, explained, residual }
}

/// What `explain` gives for the highest score of each row.
fn explained(predictor: &OnnxPredictor, method: &str, rows: &Array2<f64>) -> (Array2<f64>, Vec<usize>) {
    let settings = Settings { rule: Some(Rule::GaussLegendre { nodes: STEPS }), ..Settings::default() };
    let method = Method::new(method, &settings).unwrap();
    let targets: Vec<usize> = rows
        .rows()
        .into_iter()
        .map(|row| {
            let row = row.insert_axis(Axis(0));
            let of = |c: usize| predictor.values(row, &[c]).unwrap()[0];
            (0..predictor.outputs()).rev().max_by(|&a, &b| of(a).total_cmp(&of(b))).unwrap()
        })
        .collect();
    let context = Context { model: Some(predictor), ..Context::default() };
    let found = method.explain(predictor, rows.view(), &targets, &context).unwrap();
    let mut credit = Array2::zeros(rows.raw_dim());
    for (mut row, explanation) in credit.rows_mut().into_iter().zip(&found) {
        row.assign(&explanation.values);
    }
    (credit, targets)
}

fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    let largest = b.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    (a - b).iter().fold(0.0_f64, |m, v| m.max(if v.is_nan() { f64::INFINITY } else { v.abs() })) / largest
}

#[test]
fn credit_is_that_of_explain_on_both_engines() {
    let mut complaints = Vec::new();
    for name in MODELS {
        let (predictor, rows) = load(name);
        let zero = Array2::zeros((1, rows.ncols()));
        let methods = [Exported::Gradient, Exported::GradientInput, Exported::GuidedBackprop, ig(zero)];
        for method in &methods {
            // Networks without ReLU have no guided gradient, in `explain` either.
            if *method == Exported::GuidedBackprop
                && !predictor.model().graph.nodes.iter().any(|n| n.is("Relu"))
            {
                continue;
            }
            let (credit, targets) = explained(&predictor, method.name(), &rows);
            let file = export(&predictor, method, ExportedTarget::Predicted, None).unwrap();
            for engine in engines() {
                let found = run(engine.as_ref(), &file, &rows, predictor.shape());
                assert!(found.explained.iter().zip(&targets).all(|(a, b)| *a == *b as i64), "{name}");
                let error = distance(&found.credit, &credit);
                if error > TOLERANCE {
                    complaints.push(format!("{name} {} {}: {error:.1e}", method.name(), engine.name()));
                }
                // The residual is what the sum says.
                if let Some(residual) = found.residual {
                    for i in 0..rows.nrows() {
                        let at = |row: ndarray::ArrayView1<f64>| {
                            predictor.values(row.insert_axis(Axis(0)), &targets[i..=i]).unwrap()[0]
                        };
                        let change = at(rows.row(i)) - at(Array1::zeros(rows.ncols()).view());
                        let size = found.credit.row(i).mapv(f64::abs).sum()
                            + found.scores.row(i).mapv(f64::abs).sum();
                        let off = (residual[i] - (found.credit.row(i).sum() - change)).abs() / size;
                        assert!(off < 1e-5, "{name}: {off:e}");
                    }
                } else {
                    assert_ne!(method.name(), "ig");
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn one_row_or_seven_the_same() {
    let (predictor, rows) = load("vgg.script");
    let seven = rows.select(Axis(0), &[0, 1, 0, 1, 0, 1, 0]);
    let file = export(&predictor, &ig(rows.select(Axis(0), &[1])), ExportedTarget::Fixed(2), None).unwrap();
    for engine in engines() {
        let all = run(engine.as_ref(), &file, &seven, predictor.shape());
        assert_eq!(all.explained, [2; 7]);
        let one = run(engine.as_ref(), &file, &rows.select(Axis(0), &[0]), predictor.shape());
        for i in [0, 2, 4, 6] {
            assert!(distance(&all.credit.select(Axis(0), &[i]), &one.credit) < 1e-5);
        }
        // An input that is its own reference has no credit.
        assert!(all.credit.row(1).iter().all(|v| v.abs() < 1e-6));
    }
}

/// Steps one after another add up to the same credit.
#[test]
fn a_loop_adds_up_to_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in ["vgg.script", "vit.dynamo", "mlp.dynamo"] {
        let (predictor, rows) = load(name);
        let one = rows.select(Axis(0), &[1]);
        let three = Array2::from_shape_fn((3, rows.ncols()), |(i, j)| ((i + 2 * j) as f64).sin());
        let smooth = Exported::SmoothGrad { samples: 7, noise: 0.2, seed: 3 };
        for (k, method) in [ig(one), ig(three), smooth].iter().enumerate() {
            let by = |steps| export_with(&predictor, method, ExportedTarget::Predicted, steps, None).unwrap();
            let (batch, looped) = (by(ExportedSteps::Batch), by(ExportedSteps::Loop));
            assert!(looped.graph.nodes.iter().any(|node| node.is("Loop")));
            for (e, engine) in engines().into_iter().enumerate() {
                // RTen computes gradients of convolutions inside a body otherwise than ONNX says, and is not let.
                if e == 0 && name != "mlp.dynamo" {
                    assert!(engine.load(&looped).is_err_and(|e| e.to_string().contains("inside the body")));
                    continue;
                }
                let [a, b] =
                    [&batch, &looped].map(|file| run(engine.as_ref(), file, &rows, predictor.shape()));
                assert!(distance(&b.credit, &a.credit) < TOLERANCE, "{name} {k} {}", engine.name());
                assert_eq!((a.explained, a.scores.dim()), (b.explained, b.scores.dim()));
                assert_eq!(a.residual.is_some(), b.residual.is_some());
            }
            let file = folder.path().join(format!("{name}-{k}.onnx"));
            looped.save(&file).unwrap();
            let facts = ExportedFacts::of(&Model::load(&file).unwrap()).unwrap();
            assert!(facts.in_words().contains("one step after another"));
            files.push(file);
        }
        let refused = |method: &Exported| {
            export_with(&predictor, method, ExportedTarget::Predicted, ExportedSteps::Loop, None)
                .unwrap_err()
                .to_string()
        };
        assert!(refused(&Exported::Gradient).contains("several steps"));
        assert!(refused(&occlusion(rows.ncols())).contains("several steps"));
    }
    check(&files);
}

fn occlusion(features: usize) -> Exported {
    Exported::Occlusion { config: Occlusion::default(), reference: Array2::zeros((1, features)) }
}

/// Occlusion, with windows of several kinds and something behind them, and Grad-CAM.
#[test]
fn occlusion_and_grad_cam_are_those_of_explain() {
    let folder = tempfile::tempdir().unwrap();
    let (mut files, mut complaints) = (Vec::new(), Vec::new());
    for name in ["vgg.script", "resnet.dynamo", "vit.dynamo", "conv1d.script", "mlp.dynamo"] {
        let (predictor, rows) = load(name);
        let behind = Array2::from_shape_fn((1, rows.ncols()), |(_, j)| (0.3 * j as f64).sin());
        let uneven = match predictor.shape().len() {
            3 => Some((vec![1, 5, 3], vec![1, 4, 3])),
            2 => Some((vec![3, 5], vec![2, 2])),
            _ => None,
        };
        let mut methods = vec![occlusion(rows.ncols())];
        if let Some((window, stride)) = uneven {
            let config = Occlusion { window: Some(window), stride: Some(stride), ..Occlusion::default() };
            methods.push(Exported::Occlusion { config, reference: behind.clone() });
            let whole = Occlusion { window: Some(predictor.shape().to_vec()), ..Occlusion::default() };
            methods.push(Exported::Occlusion { config: whole, reference: behind.clone() });
        }
        if predictor.shape().len() == 3 {
            methods.push(Exported::GradCam { layer: None });
        }
        for (k, method) in methods.iter().enumerate() {
            let (settings, baselines) = match method {
                Exported::Occlusion { config, reference } => {
                    let (window, stride) = (config.window.clone(), config.stride.clone());
                    let given = Absence::Baseline(Baseline::Given);
                    (
                        Settings { window, stride, absence: Some(given), ..Settings::default() },
                        Some(reference.view()),
                    )
                }
                _ => (Settings::default(), None),
            };
            let wanted = Method::new(method.name(), &settings).unwrap();
            let context = Context { model: Some(&predictor), baselines, ..Context::default() };
            let file = export(&predictor, method, ExportedTarget::Predicted, None).unwrap();
            for engine in engines() {
                let found = run(engine.as_ref(), &file, &rows, predictor.shape());
                assert!(found.residual.is_none());
                let targets: Vec<usize> = found.explained.iter().map(|c| *c as usize).collect();
                let truth = wanted.explain(&predictor, rows.view(), &targets, &context).unwrap();
                let mut credit = Array2::zeros(rows.raw_dim());
                for (mut row, explanation) in credit.rows_mut().into_iter().zip(&truth) {
                    row.assign(&explanation.values);
                }
                let error = distance(&found.credit, &credit);
                // Small differences of scores in float32: their rounding is that of the scores.
                if error.is_nan() || error > 5.0 * TOLERANCE {
                    complaints.push(format!("{name} {k} {} {}: {error:.1e}", method.name(), engine.name()));
                }
            }
            let place = folder.path().join(format!("{name}-{k}.onnx"));
            file.save(&place).unwrap();
            files.push(place);
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    check(&files);
    let (mlp, rows) = load("mlp.dynamo");
    let refused =
        |method: &Exported| export(&mlp, method, ExportedTarget::Predicted, None).unwrap_err().to_string();
    assert!(refused(&Exported::GradCam { layer: None }).contains("not images"));
    let config = Occlusion { window: Some(vec![99]), ..Occlusion::default() };
    let wide = Exported::Occlusion { config, reference: Array2::zeros((1, rows.ncols())) };
    assert!(refused(&wide).contains("the window is [99]"));
    let (vgg, _) = load("vgg.script");
    let unknown = Exported::GradCam { layer: Some("nowhere".into()) };
    assert!(
        export(&vgg, &unknown, ExportedTarget::Predicted, None).unwrap_err().to_string().contains("nowhere")
    );
}

/// A class by a second input; one that there is not gives no numbers, never zeros.
#[test]
fn a_class_that_there_is_not_has_no_credit() {
    let (predictor, rows) = load("mlp.dynamo");
    let file = export(&predictor, &Exported::GradientInput, ExportedTarget::Input, None).unwrap();
    let fixed = export(&predictor, &Exported::GradientInput, ExportedTarget::Fixed(1), None).unwrap();
    let x = rows.mapv(|v| v as f32);
    for engine in engines() {
        let mut program = engine.load(&file).unwrap();
        let mut targets = ndarray::Array1::from_elem(rows.nrows(), 1_i64);
        targets[0] = 99;
        let name = &file.graph.inputs[0].name;
        let given =
            [(name.as_str(), x.view().into_dyn().into()), ("target", targets.view().into_dyn().into())];
        let credit = program.run(&given).unwrap().swap_remove(1).into_f32().unwrap();
        assert!(credit.index_axis(Axis(0), 0).iter().all(|v| v.is_nan()));
        let wanted = run(engine.as_ref(), &fixed, &rows, predictor.shape()).credit;
        for (a, b) in credit.index_axis(Axis(0), 1).iter().zip(wanted.row(1)) {
            assert!((f64::from(*a) - b).abs() < 1e-5 * b.abs().max(1.0));
        }
    }
}

/// Several references: the mean of the explanations from each.
#[test]
fn several_references_are_averaged() {
    let (predictor, rows) = load("mlp.dynamo");
    let references = Array2::from_shape_fn((3, rows.ncols()), |(i, j)| ((i + 2 * j) as f64).sin());
    let engine = &engines()[0];
    let by = |references: Array2<f64>| {
        let file = export(&predictor, &ig(references), ExportedTarget::Fixed(0), None).unwrap();
        run(engine.as_ref(), &file, &rows, predictor.shape()).credit
    };
    let mean = (0..3)
        .map(|i| by(references.select(Axis(0), &[i])))
        .fold(Array2::zeros(rows.raw_dim()), |s, c| s + c)
        / 3.0;
    assert!(distance(&by(references), &mean) < TOLERANCE);
}

/// SmoothGrad of a network is the mean of its gradients at the noisy copies that the file holds.
#[test]
fn smoothgrad_is_the_mean_of_gradients_around_the_input() {
    let (predictor, rows) = load("vgg.script");
    let engine = &engines()[0];
    let credit = |method: &Exported| {
        let file = export(&predictor, method, ExportedTarget::Fixed(1), None).unwrap();
        run(engine.as_ref(), &file, &rows, predictor.shape()).credit
    };
    let plain = credit(&Exported::Gradient);
    let smooth = |noise| credit(&Exported::SmoothGrad { samples: 20, noise, seed: 3 });
    assert!(distance(&smooth(0.0), &plain) < TOLERANCE, "without noise it is the gradient");
    assert!(distance(&smooth(0.3), &plain) > 0.01, "with noise it is not");
    assert_eq!(smooth(0.3), smooth(0.3));
}

#[test]
fn files_pass_the_checker_and_say_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for name in MODELS {
        let (predictor, rows) = load(name);
        let file = folder.path().join(format!("{name}.onnx"));
        let reference = Array2::from_elem((1, rows.ncols()), 0.25);
        let model = export(&predictor, &ig(reference), ExportedTarget::Input, Some("abc".into())).unwrap();
        assert_eq!(model.graph.inputs[1].name, "target");
        model.save(&file).unwrap();
        let facts = ExportedFacts::of(&Model::load(&file).unwrap()).unwrap();
        assert_eq!(
            (facts.method.as_str(), facts.gradients, facts.model.as_deref()),
            ("ig", STEPS + 2, Some("abc"))
        );
        assert!(facts.in_words().contains("the input 'target' names"));
        files.push(file);
    }
    check(&files);
}

/// ONNX's own checker, with full inference of shapes.
fn check(files: &[std::path::PathBuf]) {
    let check = "import sys, onnx\nfor p in sys.argv[1:]: onnx.checker.check_model(p, full_check=True)";
    let python = std::env::var("BRENIER_PYTHON").unwrap_or_else(|_| "python3".to_string());
    let done = Command::new(python).arg("-c").arg(check).args(files).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn what_cannot_be_exported_is_said_in_a_sentence() {
    let (predictor, rows) = load("mlp.dynamo");
    let zero = Array2::zeros((1, rows.ncols()));
    let refused =
        |method: &Exported, target| export(&predictor, method, target, None).unwrap_err().to_string();
    let adaptive = Exported::IntegratedGradients { rule: Rule::adaptive(1e-3), references: zero.clone() };
    let (smooth, _) = load("vit.dynamo");
    assert!(!smooth.model().graph.nodes.iter().any(|node| node.is("Relu")));
    let guided = export(&smooth, &Exported::GuidedBackprop, ExportedTarget::Predicted, None).unwrap_err();
    assert!(guided.to_string().contains("no ReLU"), "{guided}");
    assert!(refused(&adaptive, ExportedTarget::Predicted).contains("the same nodes for every input"));
    assert!(refused(&ig(zero.clone()), ExportedTarget::Fixed(99)).contains("target 99"));
    assert!(refused(&ig(Array2::zeros((1, 2))), ExportedTarget::Predicted).contains("the references"));
    assert!(refused(&ig(Array2::zeros((0, rows.ncols()))), ExportedTarget::Predicted).contains("references"));
}
