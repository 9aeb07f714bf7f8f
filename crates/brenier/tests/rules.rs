//! Every rule of `onnx-grad` on both engines, against the reference evaluator.
#![allow(clippy::unwrap_used)]

#[path = "../../onnx-grad/tests/cases/mod.rs"]
mod cases;
mod common;

use brenier::engine::{Engine, Tensor, TensorView, Weights};
use cases::{Case, GENERATORS, Rng};
use common::engines;
use ndarray::ArrayD;
use onnx_grad::eval::{Array, evaluate};
use onnx_grad::{GradOptions, Model, grad_with, seed_name};

/// Engines compute in float32.
const TOLERANCE: f64 = 2e-5;
/// Random cases of each operator.
const SEEDS: u64 = 12;

fn complaint(engine: &dyn Engine, case: &Case, fused: bool) -> Option<String> {
    let wrt: Vec<&str> = case.wrt.iter().map(String::as_str).collect();
    let options = GradOptions {
        weight_gradient: engine.plan(Weights::Inputs).weight_gradient,
        ..GradOptions::default()
    };
    let graph = grad_with(&case.graph, &["y"], &wrt, options.clone()).unwrap();
    let y = &evaluate(&case.graph, &case.inputs).unwrap()[0];
    let mut inputs = case.inputs.clone();
    if graph.input(&seed_name("y")).is_some() {
        let shape = y.data.shape();
        let seed = Rng(17).apart(y.data.len(), -1.0, 1.0);
        inputs.insert(seed_name("y"), Array::new(y.dtype, shape, seed));
    }
    let truth = evaluate(&graph, &inputs).unwrap();
    // Fused operators have no meaning but that of the graph they stand for.
    let graph = match fused {
        true => grad_with(&case.graph, &["y"], &wrt, GradOptions { fused, ..options }).unwrap(),
        false => graph,
    };
    let model = Model { graph, ir_version: 10, opset: 21, ..Model::default() };
    let narrow: Vec<(&String, ArrayD<f32>)> =
        inputs.iter().map(|(name, array)| (name, array.data.mapv(|v| v as f32))).collect();
    let views: Vec<(&str, TensorView)> =
        narrow.iter().map(|(name, array)| (name.as_str(), array.view().into())).collect();
    let results = match engine.load(&model).and_then(|mut program| program.run(&views)) {
        Ok(results) => results,
        Err(error) => return Some(error.to_string()),
    };
    for ((output, truth), result) in model.graph.outputs.iter().zip(&truth).zip(results) {
        let Tensor::F32(result) = result else { return Some(format!("{} is no float", output.name)) };
        if result.shape() != truth.data.shape() {
            return Some(format!(
                "{} has shape {:?}, not {:?}",
                output.name,
                result.shape(),
                truth.data.shape()
            ));
        }
        let scale = truth.data.iter().fold(1.0f64, |m, v| m.max(v.abs()));
        let worst = result.iter().zip(&truth.data).map(|(r, t)| (f64::from(*r) - t).abs() / scale);
        let worst = worst.fold(0.0, |m: f64, e| if e.is_nan() { f64::INFINITY } else { m.max(e) });
        if worst > TOLERANCE {
            return Some(format!("{} differs by {worst:.1e}", output.name));
        }
    }
    None
}

/// Complaints of all engines about all operators, with some choice about the graph.
fn complaints(fused: bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for &(op, generator) in GENERATORS {
        let cases: Vec<(u64, Case)> =
            (0..SEEDS).map(|seed| (seed, generator(seed))).filter(|(_, case)| !case.reference_only).collect();
        for engine in engines().into_iter().filter(|engine| !fused || engine.plan(Weights::Inputs).fused) {
            for (seed, case) in &cases {
                if let Some(what) = complaint(engine.as_ref(), case, fused) {
                    complaints.push(format!("{op}, seed {seed}, on {}: {what}", engine.name()));
                }
            }
        }
    }
    complaints
}

#[test]
fn engines_agree_with_the_reference_on_every_rule() {
    let complaints = complaints(false);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn engines_with_kernels_agree_with_the_reference_on_every_rule() {
    let complaints = complaints(true);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
