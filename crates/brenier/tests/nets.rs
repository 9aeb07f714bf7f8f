//! Nets of other kinds than classifiers of images against PyTorch's autograd, as predictors load them, on both engines.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use brenier::engine::{EngineConfig, EngineKind};
use brenier::{Along, Minus, OnnxPredictor, PredictorConfig, Reduce, Score, Scoring, ValuePredictor, Within};
use ndarray::{Array1, Array2, ArrayD};
use ndarray_npy::NpzReader;
use onnx_grad::Model;

const TOLERANCE: f64 = 1e-4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/nets")
}

fn arrays(name: &str) -> BTreeMap<String, ArrayD<f64>> {
    let mut npz = NpzReader::new(File::open(folder().join(format!("{name}.npz"))).unwrap()).unwrap();
    let names = npz.names().unwrap();
    let wide = |array: ArrayD<f32>| array.mapv(f64::from);
    names.iter().map(|n| (n.trim_end_matches(".npy").to_string(), wide(npz.by_name(n).unwrap()))).collect()
}

fn flat(array: &ArrayD<f64>) -> Array2<f64> {
    let rows = array.shape()[0];
    array.to_shape((rows, array.len() / rows)).unwrap().to_owned()
}

fn kinds() -> Vec<EngineKind> {
    let ort = EngineConfig { kind: EngineKind::Ort, ..EngineConfig::default() };
    if ort.build().is_ok() { vec![EngineKind::Rten, EngineKind::Ort] } else { vec![EngineKind::Rten] }
}

fn config(kind: EngineKind, scoring: Option<Scoring>) -> PredictorConfig {
    PredictorConfig {
        engine: EngineConfig { kind, ..EngineConfig::default() },
        scoring,
        ..PredictorConfig::default()
    }
}

/// The largest difference, relative to the largest of the truth.
fn error<'a>(ours: impl IntoIterator<Item = &'a f64>, truth: impl IntoIterator<Item = &'a f64>) -> f64 {
    let pairs: Vec<(f64, f64)> = ours.into_iter().copied().zip(truth.into_iter().copied()).collect();
    let largest = pairs.iter().fold(0.0f64, |most, (_, truth)| most.max(truth.abs()));
    pairs.iter().fold(0.0f64, |most, (a, b)| if a.is_nan() { f64::INFINITY } else { most.max((a - b).abs()) })
        / largest
}

fn exports(name: &str) -> Vec<PathBuf> {
    ["script", "dynamo"].map(|kind| folder().join(format!("{name}.{kind}.onnx"))).to_vec()
}

/// Scores, and the gradient of the sum that the fixture weighs them by.
fn agrees(name: &str) {
    agrees_on(name, &kinds());
}

fn agrees_on(name: &str, engines: &[EngineKind]) {
    let truth = arrays(name);
    let (x, seed) = (flat(&truth["x"]), flat(&truth["seed"]));
    let mut complaints = Vec::new();
    for file in exports(name) {
        for &kind in engines {
            let shown = format!("{} on {kind:?}", file.file_name().unwrap().to_string_lossy());
            let model = match OnnxPredictor::load(&file, &config(kind, None)) {
                Ok(model) => model,
                Err(error) => {
                    complaints.push(format!("{shown}: {error}"));
                    continue;
                }
            };
            let mut gradient = Array2::<f64>::zeros(x.raw_dim());
            let mut scores = Array2::<f64>::zeros(seed.raw_dim());
            for target in 0..model.outputs() {
                let (values, part) = model.gradients(x.view(), &vec![target; x.nrows()]).unwrap();
                scores.column_mut(target).assign(&values);
                for (row, mut sum) in gradient.rows_mut().into_iter().enumerate() {
                    sum.scaled_add(seed[[row, target]], &part.row(row));
                }
            }
            let off = [error(&scores, &flat(&truth["y"])), error(&gradient, &flat(&truth["dx"]))];
            if off.iter().any(|off| *off > TOLERANCE) {
                complaints.push(format!("{shown}: scores and gradient differ by {off:.1?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn spatial_transformers() {
    agrees("transformer");
    agrees("border");
}

#[test]
fn short_time_fourier_transforms() {
    agrees("audio");
}

/// RTen 0.27 convolves along two axes at most.
#[test]
fn three_spatial_axes() {
    let others: Vec<EngineKind> = kinds().into_iter().filter(|kind| *kind != EngineKind::Rten).collect();
    agrees_on("volume", &others);
}

#[test]
fn standardised_weights() {
    agrees("nfnet");
}

#[test]
fn folded_patches() {
    agrees("patches");
}

#[test]
fn weights_in_float16() {
    agrees("halves");
}

fn place(target: &[usize]) -> Vec<Along> {
    target.iter().map(|&at| Along::Place(at)).collect()
}

/// Every form of score of a segmentation, against autograd of the same sum.
#[test]
fn scores_of_a_segmentation() {
    let truth = arrays("segments");
    let x = flat(&truth["x"]);
    let inside = &truth["inside"];
    let within = Within {
        shape: inside.shape().to_vec(),
        weights: inside.iter().map(|&weight| weight as f32).collect(),
    };
    let map = |class: usize| vec![Along::Place(class), Along::All, Along::All];
    let patch = vec![Along::Place(1), Along::Range(2, 6), Along::Range(3, 8)];
    let of = |target: Vec<Along>, reduce: Option<Reduce>| Scoring { target, reduce, ..Scoring::default() };
    let margin = vec![Along::Each, Along::Place(5), Along::Place(2)];
    let cases = [
        ("pixel", of(place(&[3, 5, 2]), None)),
        ("mean", of(map(2), Some(Reduce::Mean))),
        ("largest", of(map(1), Some(Reduce::Max))),
        ("patch", of(patch, Some(Reduce::Sum))),
        ("segment", Scoring { within: Some(within), ..of(map(2), Some(Reduce::Mean)) }),
        (
            "difference",
            Scoring { minus: Some(Minus::Score(place(&[0, 5, 2]))), ..of(place(&[3, 5, 2]), None) },
        ),
        ("margin", Scoring { minus: Some(Minus::HighestOther), ..of(margin, None) }),
    ];
    for file in exports("segments") {
        for kind in kinds() {
            for (name, scoring) in &cases {
                let model = OnnxPredictor::load(&file, &config(kind, Some(scoring.clone()))).unwrap();
                let targets = model.values_only().predicted(x.view()).unwrap();
                assert_eq!(model.outputs(), if *name == "margin" { 4 } else { 1 });
                let (values, gradients) = model.gradients(x.view(), &targets).unwrap();
                let off = [
                    error(&values, &truth[&format!("score_{name}")]),
                    error(&gradients, &flat(&truth[&format!("gradient_{name}")])),
                ];
                assert!(off.iter().all(|off| *off < TOLERANCE), "{name} of {file:?} on {kind:?}: {off:?}");
                // Methods without gradients explain the same scores.
                let plain = ValuePredictor::load(&file, &config(kind, Some(scoring.clone()))).unwrap();
                assert!(error(&plain.values(x.view(), &targets).unwrap(), &values) < 1e-6);
            }
        }
    }
}

/// The largest of a segment, which is not the largest of the map.
#[test]
fn the_largest_within_a_segment() {
    let truth = arrays("segments");
    let (x, y) = (flat(&truth["x"]), &truth["y"]);
    let mut weights = vec![0.0; 64];
    weights[9] = 1.0;
    weights[50] = 0.5;
    let scoring = Scoring {
        target: vec![Along::Place(1), Along::All, Along::All],
        reduce: Some(Reduce::Max),
        within: Some(Within { shape: vec![8, 8], weights }),
        minus: None,
    };
    let model =
        ValuePredictor::load(&exports("segments")[0], &config(EngineKind::Rten, Some(scoring))).unwrap();
    let found = model.values(x.view(), &[0, 0, 0]).unwrap();
    let expected: Array1<f64> = (0..3).map(|row| y[[row, 1, 1, 1]].max(y[[row, 1, 6, 2]])).collect();
    assert!(error(&found, &expected) < 1e-5, "{found} {expected}");
}

/// Every wrong use has a sentence with what was given and what there is.
#[test]
fn wrong_scores_are_refused() {
    let file = &exports("segments")[0];
    let all = || vec![Along::Place(1), Along::All, Along::All];
    let within = |shape: Vec<usize>, weight: f32| {
        Some(Within { weights: vec![weight; shape.iter().product()], shape })
    };
    let of = |target: Vec<Along>| Scoring { target, ..Scoring::default() };
    let mean = |target: Vec<Along>| Scoring { reduce: Some(Reduce::Mean), ..of(target) };
    let cases = [
        (of(place(&[5])), "[4, 8, 8], but the target 5 speaks of 1"),
        (of(place(&[4, 0, 0])), "'4' is not within axis 1 of output 'y', which has 4 places"),
        (mean(vec![Along::Place(0), Along::Range(3, 9), Along::All]), "'3:9' is not within axis 2"),
        (of(all()), "the target 1,:,: names more than one number"),
        (mean(place(&[1, 2, 3])), "the target 1,2,3 names single numbers"),
        (of(vec![Along::Each, Along::Each, Along::Place(1)]), "the predicted place along two axes"),
        (
            Scoring { within: within(vec![8, 7], 1.0), ..mean(all()) },
            "shape [8, 7], but the target's ranges have [8, 8]",
        ),
        (Scoring { within: within(vec![8, 8], 0.0), ..mean(all()) }, "all weights are 0"),
        (Scoring { within: within(vec![8, 8], -1.0), ..mean(all()) }, "a weight is -1"),
        (Scoring { minus: Some(Minus::HighestOther), ..mean(all()) }, "1,:,: is one score"),
        (Scoring { minus: Some(Minus::Score(all())), ..mean(all()) }, "1,:,: is subtracted from itself"),
    ];
    for (scoring, told) in cases {
        let shown = format!("{scoring:?}");
        let refused =
            OnnxPredictor::load(file, &config(EngineKind::Rten, Some(scoring))).unwrap_err().to_string();
        assert!(refused.contains(told), "{shown}: {refused}");
    }
}

/// A model that was exported for one row explains any number of them.
#[test]
fn a_batch_of_one_in_the_file_is_no_limit() {
    let truth = arrays("segments");
    let x = flat(&truth["x"]);
    let mut model = Model::load(&exports("segments")[1]).unwrap();
    model.graph.inputs[0].shape.as_mut().unwrap()[0] = 1usize.into();
    model.graph.outputs[0].shape.as_mut().unwrap()[0] = 1usize.into();
    model.graph.value_info.clear();
    for kind in kinds() {
        let scoring = Scoring { target: place(&[3, 5, 2]), ..Scoring::default() };
        let model = OnnxPredictor::new(&model, &config(kind, Some(scoring))).unwrap();
        let (values, gradients) = model.gradients(x.view(), &[0, 0, 0]).unwrap();
        let off = [error(&values, &truth["score_pixel"]), error(&gradients, &flat(&truth["gradient_pixel"]))];
        assert!(off.iter().all(|off| *off < TOLERANCE), "{kind:?}: {off:?}");
    }
}
