//! Gradients of real exported models against PyTorch's autograd, on both engines.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use brenier::engine::{Engine, TensorView, Weights};
use common::engines;
use ndarray::ArrayD;
use ndarray_npy::NpzReader;
use onnx_grad::{GradOptions, Model, grad_with, gradient_name, seed_name};

/// The largest error allowed, relative to the largest entry of the truth.
const TOLERANCE: f32 = 1e-4;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch")
}

/// The exported models of a folder.
fn models(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "onnx"))
        .collect();
    files.sort();
    files
}

/// All arrays of an npz file.
fn arrays(path: &Path) -> BTreeMap<String, ArrayD<f32>> {
    let mut npz = NpzReader::new(File::open(path).unwrap()).unwrap();
    let names = npz.names().unwrap();
    names.iter().map(|name| (name.trim_end_matches(".npy").to_string(), npz.by_name(name).unwrap())).collect()
}

fn error(ours: &ArrayD<f32>, truth: &ArrayD<f32>, scale: f32) -> f32 {
    assert_eq!(ours.shape(), truth.shape());
    let difference =
        (ours - truth).iter().fold(0.0f32, |m, d| if d.is_nan() { f32::INFINITY } else { m.max(d.abs()) });
    difference / scale
}

fn largest(truth: &ArrayD<f32>) -> f32 {
    truth.iter().fold(0.0f32, |m, v| m.max(v.abs()))
}

/// The model's outputs and gradients with respect to `names`, by name.
fn run(
    engine: &dyn Engine,
    model: &Model,
    truth: &BTreeMap<String, ArrayD<f32>>,
    names: &[&str],
) -> Result<BTreeMap<String, ArrayD<f32>>, String> {
    let output = model.graph.outputs[0].name.clone();
    let options = GradOptions {
        weight_gradient: engine.plan(Weights::Inputs).weight_gradient,
        ..GradOptions::default()
    };
    let graph = grad_with(&model.graph, &[&output], names, options).map_err(|e| e.to_string())?;
    let model = Model { graph, ..model.clone() };
    let mut program = engine.load(&model).map_err(|e| e.to_string())?;
    let seed = seed_name(&output);
    let inputs: Vec<(&str, TensorView)> = model
        .graph
        .inputs
        .iter()
        .map(|i| (i.name.as_str(), truth[if i.name == seed { "seed" } else { &i.name }].view().into()))
        .collect();
    let results = program.run(&inputs).map_err(|e| e.to_string())?;
    let names = model.graph.outputs.iter().map(|o| o.name.clone());
    Ok(names.zip(results.into_iter().map(|t| t.into_f32().unwrap())).collect())
}

/// Every exported model: its output, and the gradient with respect to every input.
#[test]
fn input_gradients_agree_with_autograd() {
    agree(&folder(), 26);
}

/// Recurrent layers, whose lengths are fixed.
#[test]
fn recurrent_gradients_agree_with_autograd() {
    agree(&folder().join("../recurrent"), 20);
}

fn agree(folder: &Path, least: usize) {
    let files = models(folder);
    assert!(files.len() >= least, "only {} models were found", files.len());
    let mut complaints = Vec::new();
    for file in &files {
        let stem = file.file_name().unwrap().to_str().unwrap();
        let truth = arrays(&folder.join(format!("{}.npz", stem.split('.').next().unwrap())));
        let model = Model::load(file).unwrap_or_else(|e| panic!("{stem}: {e}"));
        let inputs: Vec<&str> = model.graph.inputs.iter().map(|i| i.name.as_str()).collect();
        for engine in engines() {
            let results = match run(engine.as_ref(), &model, &truth, &inputs) {
                Ok(results) => results,
                Err(message) => {
                    complaints.push(format!("{stem} on {}: {message}", engine.name()));
                    continue;
                }
            };
            let y = &results[&model.graph.outputs[0].name];
            let mut errors = vec![("y".to_string(), error(y, &truth["y"], largest(&truth["y"])))];
            for input in &inputs {
                let expected = &truth[&format!("d{input}")];
                errors.push((
                    format!("d{input}"),
                    error(&results[&gradient_name(input)], expected, largest(expected)),
                ));
            }
            for (what, error) in errors.into_iter().filter(|(_, error)| *error > TOLERANCE) {
                complaints.push(format!("{stem} on {}: {what} differs by {error:.1e}", engine.name()));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The models with parameters under their own names: the gradient of every one of them.
#[test]
fn parameter_gradients_agree_with_autograd() {
    let mut complaints = Vec::new();
    for name in ["mlp", "resnet", "unet"] {
        let truth = arrays(&folder().join(format!("{name}.npz")));
        let parameters = arrays(&folder().join(format!("{name}.params.npz")));
        let model = Model::load(folder().join(format!("{name}.trainable.onnx"))).unwrap();
        let names: Vec<&str> = parameters.keys().map(String::as_str).collect();
        assert!(names.len() >= 8, "{name} has only {} parameters", names.len());
        let scale = parameters.values().map(largest).fold(0.0, f32::max);
        for engine in engines() {
            let results = run(engine.as_ref(), &model, &truth, &names).unwrap();
            for (parameter, expected) in &parameters {
                let error = error(&results[&gradient_name(parameter)], expected, scale);
                if error > TOLERANCE {
                    complaints
                        .push(format!("{name} on {}: {parameter} differs by {error:.1e}", engine.name()));
                }
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
