//! Networks that another framework has exported, as flows: what they compute, training from their weights, Reflow.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use brenier::VelocityField;
use brenier::engine::EngineConfig;
use brenier::flow::{OnnxFlow, StoredPairs, TrainConfig, train};
use brenier::{Scheme, Solver, reflow_pairs};
use ndarray::{Array1, Array2, ArrayD};
use ndarray_npy::NpzReader;
use onnx_grad::Model;

use crate::shared::normal;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/flows").join(name)
}

#[test]
fn they_compute_what_their_framework_says() {
    for name in ["rows", "images"] {
        let flow = OnnxFlow::load(file(&format!("{name}.onnx")), &EngineConfig::default()).unwrap();
        let mut npz = NpzReader::new(File::open(file(&format!("{name}.npz"))).unwrap()).unwrap();
        let x: ArrayD<f32> = npz.by_name("x").unwrap();
        let t: Array1<f32> = npz.by_name("t").unwrap();
        let v: ArrayD<f64> = npz.by_name("v").unwrap();
        let flat = (t.len(), flow.features());
        let x = x.mapv(f64::from).into_shape_with_order(flat).unwrap();
        let times: Vec<f64> = t.iter().map(|t| f64::from(*t)).collect();
        let found = flow.velocity(x.view(), &times).unwrap();
        for (found, expected) in found.iter().zip(&v.into_shape_with_order(flat).unwrap()) {
            assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{name}: {found} {expected}");
        }
    }
}

#[test]
fn they_are_trained_from_their_weights_on_and_reflowed() {
    for (name, shape) in [("rows", vec![2]), ("images", vec![1, 8, 8])] {
        let theirs = Model::load(file(&format!("{name}.onnx"))).unwrap();
        let features: usize = shape.iter().product();
        // From noise to a constant image with a little noise: easy to learn, whatever the network.
        let noise = |seed| normal(512, features, seed).mapv(|v| v as f32);
        let pairs = StoredPairs::new(&shape, noise(1), 2.0 + 0.1 * &noise(2), 3).unwrap();
        let config = TrainConfig {
            steps: 150,
            batch: 32,
            learning_rate: 5e-3,
            warmup_steps: 10,
            ema_decay: 0.9,
            log_every: 10,
            ..TrainConfig::default()
        };
        let mut losses = Vec::new();
        let first = train(&theirs, &pairs, &config, None, &mut |progress| {
            losses.push(progress.loss);
            ControlFlow::Continue(())
        })
        .unwrap();
        let (began, ended) = (losses[0], *losses.last().unwrap());
        assert!(ended < 0.5 * began, "{name}: {began} to {ended}");
        let flow = OnnxFlow::new(first.model, &EngineConfig::default()).unwrap();
        let references = normal(64, features, 5);
        let none = Array2::zeros((0, features));
        let solver = Solver::fixed(Scheme::Heun, 5);
        let ends = reflow_pairs(&flow, references.view(), none.view(), &solver, 0).unwrap();
        let short = TrainConfig { steps: 20, ..config };
        let second = train(flow.model(), &ends, &short, None, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(OnnxFlow::new(second.model, &EngineConfig::default()).is_ok());
    }
}
