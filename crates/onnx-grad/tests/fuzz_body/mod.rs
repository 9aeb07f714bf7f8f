//! What fuzzing does with a file, shared by the fuzz targets in `fuzz/` and by a short test.
//!
//! [`exercise`] takes bytes through everything the crate does with a model: a malformed model is an error,
//! never a panic, a hang or memory without bound. [`mutated`] breaks a real model in ways that bytes alone
//! seldom reach: it stays a readable message, with other operators, wires, attributes and sizes.

#![allow(dead_code, unused_imports)] // Each target uses its own part.

mod mutate;

use std::fs;
use std::path::{Path, PathBuf};

use onnx_grad::shapes::Facts;
use onnx_grad::{Cost, Graph, Model, fuse, grad, lower};

pub(crate) use mutate::mutated;

/// Larger fixtures are left out: they hold the same operators, only more of them.
const MAX_FIXTURE: usize = 32_768;

/// The models of the fixtures that are small enough to be read thousands of times, in a fixed order.
pub(crate) fn fixtures(folder: &Path) -> Vec<Vec<u8>> {
    let mut folders = vec![folder.to_path_buf()];
    let mut models = Vec::new();
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<PathBuf> = fs::read_dir(&folder)
            .expect("the fixtures are there")
            .map(|e| e.expect("a file").path())
            .collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "onnx") {
                models.push(fs::read(&path).expect("a readable file"));
            }
        }
    }
    models.retain(|model| (1..=MAX_FIXTURE).contains(&model.len()));
    models
}

/// How far a file came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reached {
    /// It was refused by the reader.
    Refused,
    /// It was read, but not differentiated.
    Read,
    /// It has a gradient.
    Differentiated,
}

/// Reads, checks, lowers, differentiates, writes, and reads again.
pub(crate) fn exercise(bytes: &[u8]) -> Reached {
    let Ok(model) = Model::from_bytes(bytes.to_vec()) else { return Reached::Refused };
    model.graph.validate().expect("what was read is valid");
    let _ = Facts::of(&model.graph);
    let _ = Cost::of(&model.graph);
    assert!(rewritten(&model) == model.to_bytes(), "reading and writing again changed the model");
    if let Ok(lowered) = lower(&model.graph, &[]) {
        survives_writing(&Model { graph: lowered, ..model.clone() });
    }
    if let Ok(fused) = fuse(&model.graph) {
        fused.validate().expect("what was fused is valid");
    }
    match gradient(&model.graph) {
        Some(gradient) => {
            survives_writing(&Model { graph: gradient, ..model });
            Reached::Differentiated
        }
        None => Reached::Read,
    }
}

/// The gradient of the first output with respect to the first input, or else parameter, that is a float.
fn gradient(graph: &Graph) -> Option<Graph> {
    let output = graph.outputs.first()?.name.as_str();
    let input = graph.inputs.iter().find(|v| v.dtype.is_float()).map(|v| v.name.as_str());
    let parameter = || graph.initializers.iter().find(|(_, t)| t.dtype().is_float()).map(|(n, _)| n.as_str());
    grad(graph, &[output], &[input.or_else(parameter)?]).ok()
}

/// What is written can be read, and what was read once says the same from then on. The first reading may change it: casts
/// of 16-bit constants, which a gradient can have, are carried out.
fn survives_writing(model: &Model) {
    let once = rewritten(model);
    let again = Model::from_bytes(once.clone()).expect("what was written twice can be read");
    assert!(rewritten(&again) == once, "reading and writing again changed the model");
}

/// A model written, read and written again. Models are compared as bytes, because NaN is not equal to itself.
fn rewritten(model: &Model) -> Vec<u8> {
    match Model::from_bytes(model.to_bytes()) {
        Ok(again) => again.to_bytes(),
        Err(error) => panic!("what was written cannot be read: {error}"),
    }
}
