//! The reference evaluator against ONNX's own node tests.
//!
//! `fixtures/onnx_node` holds one folder per case: a model of a single node, inputs and outputs. Set
//! `ONNX_NODE_CASES` to another folder of that layout, such as the whole suite, to run that instead; then
//! operators that the evaluator does not know are counted, not failed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onnx_grad::eval::{Array, evaluate};
use onnx_grad::proto::ModelProto;
use onnx_grad::{DType, Error, Model, NEWEST_OPSET, OLDEST_OPSET, TensorData};
use prost::Message;

/// Fewer cases than this mean that the fixtures are not there.
const LEAST_CASES: usize = 700;

/// What is not evaluated on purpose: the part of the error that says so.
const NOT_COVERED: [&str; 4] = [
    "antialiasing is not implemented",
    "coordinate_transformation_mode 'tf_crop_and_resize' is not implemented",
    "dropout in training mode is random",
    "is not read", // an element type such as bfloat16, float8 or string
];

/// Cases that we read differently, and why.
const OTHERWISE: [(&str, &str); 2] = [
    ("test_resize_downsample_scales_linear_align_corners", ALIGN_CORNERS),
    ("test_resize_downsample_scales_cubic_align_corners", ALIGN_CORNERS),
];
const ALIGN_CORNERS: &str = "align_corners takes the length of the resized axis, here 2, as ONNX Runtime \
    does; the case takes 4 * 0.6";

enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

fn cases() -> (PathBuf, bool) {
    match std::env::var_os("ONNX_NODE_CASES") {
        Some(folder) => (folder.into(), true),
        None => (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/onnx_node"), false),
    }
}

/// The model, with an opset that is read.
///
/// The suite stamps a model with the version that introduced the operator's present form: `And` with 7,
/// `Swish` with 24. So a version below ours is no older dialect, and means the same under opset 18.
fn model(bytes: &[u8]) -> (Vec<String>, onnx_grad::Result<Model>) {
    let mut proto = ModelProto::decode(bytes).unwrap();
    for import in &mut proto.opset_import {
        if import.domain.as_deref().unwrap_or("").is_empty() {
            import.version = import.version.map(|v| match v {
                v if v < OLDEST_OPSET => 18,
                v => v.min(NEWEST_OPSET),
            });
        }
    }
    let graph = proto.graph.as_ref().unwrap();
    let inputs = graph.input.iter().map(|v| v.name.clone().unwrap_or_default()).collect();
    (inputs, Model::from_bytes(proto.encode_to_vec()))
}

fn tensor(folder: &Path, name: &str) -> Option<onnx_grad::Result<TensorData>> {
    let bytes = std::fs::read(folder.join("test_data_set_0").join(name)).ok()?;
    Some(TensorData::decode(bytes))
}

fn run(folder: &Path) -> onnx_grad::Result<Outcome> {
    let (names, model) = model(&std::fs::read(folder.join("model.onnx")).unwrap());
    let model = model?;
    let mut inputs = BTreeMap::new();
    for (i, name) in names.into_iter().enumerate() {
        if let Some(data) = tensor(folder, &format!("input_{i}.pb")) {
            inputs.insert(name, Array::from(&data?));
        }
    }
    let outputs = evaluate(&model.graph, &inputs)?;
    for (i, output) in outputs.iter().enumerate() {
        let Some(expected) = tensor(folder, &format!("output_{i}.pb")) else { continue };
        if let Err(difference) = compare(output, &Array::from(&expected?)) {
            return Ok(Outcome::Failed(format!("output {i}: {difference}")));
        }
    }
    Ok(Outcome::Passed)
}

fn compare(found: &Array, expected: &Array) -> Result<(), String> {
    if (found.dtype, found.shape()) != (expected.dtype, expected.shape()) {
        return Err(format!(
            "{}{:?}, expected {}{:?}",
            found.dtype,
            found.shape(),
            expected.dtype,
            expected.shape()
        ));
    }
    let (relative, absolute) = match found.dtype {
        DType::F16 => (2e-2, 1e-3),
        DType::F32 => (1e-3, 1e-6),
        DType::F64 => (1e-6, 1e-12),
        // 64-bit integers beyond 2^53 are not all values of f64.
        _ => (1e-15, 0.0),
    };
    for (i, (&a, &b)) in found.data.iter().zip(expected.data.iter()).enumerate() {
        let same = a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= absolute + relative * b.abs();
        if !same {
            return Err(format!("{a} at {i}, expected {b}"));
        }
    }
    Ok(())
}

#[test]
fn agrees_with_the_onnx_node_tests() {
    let (root, any_suite) = cases();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("model.onnx").is_file())
        .collect();
    folders.sort();
    assert!(folders.len() >= LEAST_CASES, "only {} cases in {}", folders.len(), root.display());

    let (mut passed, mut failed) = (0, Vec::new());
    let mut skipped: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in &folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        if let Some((_, reason)) = OTHERWISE.iter().find(|(case, _)| *case == name) {
            skipped.entry(reason.to_string()).or_default().push(name);
            continue;
        }
        let outcome = run(folder).unwrap_or_else(|error| {
            let message = error.to_string();
            match NOT_COVERED.iter().find(|reason| message.contains(**reason)) {
                Some(reason) => Outcome::Skipped(reason.to_string()),
                None if any_suite && matches!(error, Error::NotEvaluable { .. } | Error::Invalid { .. }) => {
                    let op = message.split('(').nth(1).and_then(|s| s.split(')').next());
                    Outcome::Skipped(format!("not known: {}", op.unwrap_or(&message)))
                }
                None => Outcome::Failed(message),
            }
        });
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Skipped(reason) => skipped.entry(reason).or_default().push(name),
            Outcome::Failed(reason) => failed.push(format!("{name}: {reason}")),
        }
    }
    for (reason, names) in &skipped {
        println!("skipped {}: {reason} ({} ...)", names.len(), names[0]);
    }
    println!("{passed} passed, {} failed, {} in all", failed.len(), folders.len());
    assert!(failed.is_empty(), "{} of {} cases fail:\n{}", failed.len(), folders.len(), failed.join("\n"));
}
