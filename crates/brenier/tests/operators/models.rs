//! Whole files that engines have computed wrongly (`fixtures/engines`), through the predictors.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use brenier::engine::EngineConfig;
use brenier::{OnnxPredictor, PredictorConfig, ValuePredictor};
use ndarray::{ArrayD, Axis};
use ndarray_npy::NpzReader;

use crate::common::engine_configs;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/engines").join(name)
}

fn arrays(name: &str) -> BTreeMap<String, ArrayD<f32>> {
    let mut npz = NpzReader::new(File::open(file(name)).unwrap()).unwrap();
    let names = npz.names().unwrap();
    names.iter().map(|name| (name.trim_end_matches(".npy").to_string(), npz.by_name(name).unwrap())).collect()
}

fn config(engine: &EngineConfig) -> PredictorConfig {
    PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() }
}

fn largest_error(found: &ArrayD<f64>, truth: &ArrayD<f32>) -> f64 {
    assert_eq!(found.shape(), truth.shape());
    let scale = truth.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let apart = found.iter().zip(truth).map(|(f, t)| (f - f64::from(*t)).abs());
    apart.fold(0.0, f64::max) / f64::from(scale)
}

#[test]
fn cubic_interpolation_gives_pytorchs_scores_and_gradients() {
    let truth = arrays("bicubic.npz");
    for engine in engine_configs() {
        for exporter in ["script", "dynamo"] {
            let predictor =
                OnnxPredictor::load(file(&format!("bicubic.{exporter}.onnx")), &config(&engine)).unwrap();
            let x = truth["x"].view();
            let scores = predictor.scores(x.clone()).unwrap().into_dyn();
            let error = largest_error(&scores, &truth["y"]);
            assert!(error < 1e-5, "scores of {exporter} on {} are off by {error:.1e}", engine.kind);
            // The gradient of sum(seed y) is the sum of the targets' gradients, each times its seed.
            let mut gradient = ArrayD::<f64>::zeros(x.shape());
            for target in 0..3 {
                let part = predictor.value_and_grad(x.clone(), &[target; 3]).unwrap().gradients;
                for (row, mut into) in gradient.axis_iter_mut(Axis(0)).enumerate() {
                    let seed = f64::from(truth["seed"][[row, target]]);
                    into.scaled_add(seed, &part.index_axis(Axis(0), row));
                }
            }
            let error = largest_error(&gradient, &truth["x.grad"]);
            assert!(error < 1e-5, "gradients of {exporter} on {} are off by {error:.1e}", engine.kind);
        }
    }
}

#[test]
fn quantised_files_give_the_scores_of_exact_sums() {
    for weights in ["int8", "uint8"] {
        let truth = arrays(&format!("quantised.{weights}.npz"));
        let path = file(&format!("quantised.{weights}.onnx"));
        let predictor = ValuePredictor::load(path, &config(&EngineConfig::default())).unwrap();
        let scores = predictor.scores(truth["x"].view()).unwrap().into_dyn();
        let error = largest_error(&scores, &truth["y"]);
        assert!(error < 1e-5, "scores with {weights} weights are off by {error:.1e}");
        // A row is quantised by itself, whatever company it is in.
        let first = truth["x"].slice_axis(Axis(0), ndarray::Slice::from(..1));
        let alone = predictor.scores(first).unwrap();
        assert_eq!(alone.row(0).to_vec(), scores.index_axis(Axis(0), 0).iter().copied().collect::<Vec<_>>());
    }
}
