//! Gradient graphs are valid ONNX: the official checker with full shape inference finds nothing.
#![allow(clippy::unwrap_used)]

#[path = "../../onnx-grad/tests/cases/mod.rs"]
mod cases;

use std::path::Path;
use std::process::Command;

use cases::GENERATORS;
use onnx_grad::{GradOptions, Model, WeightGradient, grad_with};

/// Checks every file it is given, and prints what is wrong.
const CHECK: &str = "
import sys, onnx
for path in sys.argv[1:]:
    try:
        onnx.checker.check_model(path, full_check=True)
    except Exception as error:
        print(path, str(error).splitlines()[:3])
";

/// Random cases of each operator.
const SEEDS: u64 = 4;

fn python() -> String {
    std::env::var("BRENIER_PYTHON").unwrap_or_else(|_| "python3".to_string())
}

#[test]
fn gradient_graphs_pass_the_checker() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    let mut save = |name: String, model: &Model, wrt: &[&str]| {
        for weight_gradient in [WeightGradient::TransposedConv, WeightGradient::Im2col] {
            let output = model.graph.outputs[0].name.clone();
            let options = GradOptions { weight_gradient, ..GradOptions::default() };
            let graph = grad_with(&model.graph, &[&output], wrt, options).unwrap();
            let path = folder.path().join(format!("{name}.{weight_gradient:?}.onnx"));
            Model { graph, ..model.clone() }.save(&path).unwrap();
            files.push(path);
        }
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
    for entry in std::fs::read_dir(fixtures).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "onnx") {
            let model = Model::load(&path).unwrap();
            let mut wrt: Vec<&str> = model.graph.inputs.iter().map(|i| i.name.as_str()).collect();
            let trainable = path.to_str().unwrap().ends_with("trainable.onnx");
            let parameters = model.graph.initializers.keys().filter(|n| trainable && n.ends_with(".weight"));
            wrt.extend(parameters.map(String::as_str));
            save(path.file_stem().unwrap().to_str().unwrap().to_string(), &model, &wrt);
        }
    }
    for &(op, generator) in GENERATORS {
        for seed in 0..SEEDS {
            let case = generator(seed);
            let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
            let model = Model { graph: case.graph.clone(), ir_version: 10, opset: 21, ..Model::default() };
            save(format!("{op}.{seed}"), &model, &wrt);
        }
    }
    assert!(files.len() > 500);
    let output = Command::new(python()).arg("-c").arg(CHECK).args(&files).output();
    let output = output.unwrap_or_else(|e| panic!("{} cannot be run: {e}; use scripts/test", python()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\nthe tests need the onnx package; use scripts/test");
    let complaints = String::from_utf8_lossy(&output.stdout);
    assert!(complaints.is_empty(), "{complaints}");
}
