//! `brenier export`, as typed: the file that it writes runs in a plain ONNX Runtime and gives what `explain` gives.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::path::Path;
use std::process::Command;

use ndarray::Array4;
use serde_json::Value;

use self::place::Place;

const CLASSES: &str = "cat,dog,cow,hen,elk";

/// A folder with a small VGG, `model.onnx`, and inputs for it, `inputs.npy`.
fn place() -> Place {
    let place = Place::new();
    let vgg = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch/vgg.script.onnx");
    std::fs::copy(vgg, place.file("model.onnx")).unwrap();
    let inputs = Array4::from_shape_fn((3, 3, 16, 16), |(n, c, h, w)| ((7 * n + 3 * c + h * w) as f32).sin());
    ndarray_npy::write_npy(place.file("inputs.npy"), &inputs).unwrap();
    place
}

/// Runs a file in ONNX Runtime, as people do, and compares its credit with that of `explain`.
const RUN: &str = "
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1])
x = np.load('inputs.npy')
given = {session.get_inputs()[0].name: x}
if len(session.get_inputs()) > 1:
    given['target'] = np.array([1, 0, 2])
names = [o.name for o in session.get_outputs()]
found = dict(zip(names, session.run(None, given)))
wanted = np.load('out/explanations.npz')
values = wanted['values']
error = np.abs(found['credit'].ravel() - values.ravel()).max() / np.abs(values).max()
assert found['credit'].shape == x.shape and error < 1e-5, error
assert np.abs(found['residual']).max() < 1, found['residual']
print(names, error)
";

#[test]
fn a_file_gives_what_explain_gives() {
    let place = place();
    let ok = |line: &str| {
        let done = place.run(line);
        assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let python = std::env::var("BRENIER_PYTHON").unwrap_or_else(|_| "python3".to_string());
    for (target, explained) in [("predicted", "predicted"), ("input", "1,0,2"), ("3", "3")] {
        std::fs::remove_dir_all(place.file("out")).ok();
        ok(&format!("explain -m model.onnx inputs.npy --method ig --steps 20 --target {explained} -o out"));
        let said =
            ok(&format!("export -m model.onnx --method ig --steps 20 --target {target} -o explainer.onnx"));
        assert!(said.contains("by ig (gauss-legendre rule, 20 nodes, 1 reference)"), "{said}");
        let done = Command::new(&python)
            .args(["-c", RUN, "explainer.onnx"])
            .current_dir(place.file("."))
            .output()
            .unwrap();
        assert!(done.status.success(), "{target}: {}", String::from_utf8_lossy(&done.stderr));
    }
    // It says what it is.
    assert!(ok("inspect explainer.onnx").starts_with("explainer     an explanation of score 3 by ig"));
    let json: Value = serde_json::from_str(&ok("inspect explainer.onnx --format json")).unwrap();
    assert_eq!(json["explainer"]["gradients"], 22);
}

#[test]
fn mistakes_are_named() {
    let place = place();
    for (flags, expected) in [
        (
            "--method kernel-shap",
            "'kernel-shap' cannot be exported: its work is not known before it sees an input",
        ),
        ("--method gradiant", "did you mean gradient?"),
        ("--method gradient --steps 5", "--steps makes no difference to gradient"),
        ("--rule adaptive", "an exported file has no adaptive rule"),
        ("--steps 0", "an integral needs at least one"),
        ("--baseline blur", "the baseline 'blur' depends on the input"),
        ("--baseline inputs.npy", "inputs.npy holds 3 references"),
        ("--baseline mean", "the baseline 'mean' needs data"),
        ("--method expected-gradients", "expected-gradients needs data of the model's kind"),
        ("--target 99", "target 99 is out of range"),
        ("--target zebra", "'zebra' is not a target"),
        ("--method smoothgrad --samples 0", "the number of samples must be at least 1"),
    ] {
        let done = place.run(&format!("export -m model.onnx -o explainer.onnx {flags}"));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && said.contains(expected), "{flags}: {said}");
        assert!(!place.file("explainer.onnx").exists(), "{flags}");
    }
    let done = place.run(&format!("export -m model.onnx -o explainer.onnx --classes {CLASSES} --target elk"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let done = place.run("export -m model.onnx -o no/such/folder/explainer.onnx");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("no/such/folder"), "{said}");
}
