//! The calibration of a flow: good flows pass, bad ones, foreign inputs and later changes do not.

use std::ops::ControlFlow;

use brenier::calibrate::{CalibrateConfig, calibrate, with_calibration};
use brenier::calibration::{Ordinary, Standard};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::flow::{MlpConfig, NetworkConfig, OnnxFlow};
use brenier::runs::{FlowRun, Generated, train_generator};
use brenier::train::TrainConfig;
use brenier::{Path, TraceConfig, VelocityField, trace};
use ndarray::{Array2, array};
use onnx_grad::Model;

use crate::shared::normal;

/// Two clusters on a diagonal.
fn clusters(rows: usize, seed: u64) -> Dataset {
    let mut x = 0.3 * normal(rows, 2, seed);
    for (i, mut row) in x.rows_mut().into_iter().enumerate() {
        row += if i % 2 == 0 { 1.0 } else { -1.0 };
    }
    Dataset::from_rows("clusters", &[2], x.mapv(|v| v as f32).view()).unwrap()
}

fn trained(steps: u64, folder: &std::path::Path) -> Generated {
    let run = FlowRun {
        network: Some(NetworkConfig::Mlp(MlpConfig { width: 48, ..MlpConfig::default() })),
        training: TrainConfig { steps, batch: 128, learning_rate: 3e-3, ..TrainConfig::default() },
        ..FlowRun::default()
    };
    let mut quiet = |_| ControlFlow::Continue(());
    train_generator(&clusters(2000, 1), &clusters(300, 2), None, None, &run, folder, &mut quiet).unwrap()
}

fn flow(model: Model) -> OnnxFlow {
    OnnxFlow::new(model, &EngineConfig::default()).unwrap()
}

/// The share of rows whose traces are unusual for the flow.
fn unusual(flow: &OnnxFlow, rows: &Array2<f64>) -> f64 {
    let traces = trace(flow, rows.view(), &TraceConfig::default()).unwrap();
    let rare = traces.iter().filter(|trace| match trace.evidence().ordinary {
        Some(Ordinary::Calibrated { standing, .. }) => standing.is_rare(),
        other => panic!("not calibrated: {other:?}"),
    });
    rare.count() as f64 / rows.nrows() as f64
}

#[test]
fn a_trained_flow_is_calibrated_and_tells_ordinary_inputs_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let Generated { outcome, model } = trained(1500, folder.path());
    let about = outcome.calibrated.unwrap();
    assert_eq!((about.rows, about.quality.objection()), (200, None), "{:?}", about.quality);
    // A mixture of two clusters: more than a Gaussian knows of it.
    assert!(about.quality.gain.unwrap() > 0.1, "{:?}", about.quality);
    let model = model.unwrap();
    let good = flow(model.clone());
    let fresh = clusters(300, 3).to_f32().unwrap().mapv(f64::from);
    let share = unusual(&good, &fresh);
    // Four standard errors of 200 and 300 rows.
    assert!(share < 0.03 + 4.0 * (0.03_f64 * 0.97 * (1.0 / 200.0 + 1.0 / 300.0)).sqrt(), "{share}");
    assert_eq!(unusual(&good, &array![[6.0, 6.0], [1.0, -1.0], [-4.0, 0.0]]), 1.0);
    // The file says the same of itself.
    let loaded = OnnxFlow::load(folder.path().join("flow.onnx"), &EngineConfig::default()).unwrap();
    assert!(matches!(loaded.standard(), Standard::Calibrated(_)));
    // One weight that was changed later.
    let mut changed = model;
    let is_weight = |(_, tensor): &(&String, &onnx_grad::TensorData)| tensor.dtype().is_float();
    let name = changed.graph.initializers.iter().find(is_weight).unwrap().0.clone();
    let weight = &changed.graph.initializers[&name];
    let mut values = weight.to_f32();
    values[0] += 1e-3;
    let weight = onnx_grad::TensorData::f32(weight.shape(), &values);
    changed.graph.initializers.insert(name, weight);
    assert!(matches!(flow(changed).standard(), Standard::Missing(why) if why.contains("another flow")));
}

#[test]
fn a_flow_of_a_few_steps_never_passes() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = trained(3, folder.path()).outcome;
    let quality = outcome.calibrated.unwrap().quality;
    assert!(quality.objection().is_some(), "{quality:?}");
}

#[test]
fn a_flow_is_calibrated_by_hand_and_by_rows_enough_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut model = trained(400, folder.path()).model.unwrap();
    model.metadata.remove("brenier.calibration");
    let bare = flow(model);
    assert!(matches!(bare.standard(), Standard::Missing(why) if why.contains("never")));
    let mut go_on = |_, _| ControlFlow::Continue(());
    let (held_out, config) = (clusters(100, 5), CalibrateConfig::default());
    let found = calibrate(&bare, &held_out, &clusters(500, 6), &config, &mut go_on).unwrap().unwrap();
    assert_eq!(found.rows, 100);
    let known = flow(with_calibration(bare.model().clone(), found).unwrap());
    assert!(matches!(known.standard(), Standard::Calibrated(_)));
    let few = calibrate(&bare, &clusters(59, 5), &held_out, &config, &mut go_on).unwrap_err().to_string();
    assert!(few.contains("59"), "{few}");
    let mut stop = |_, _| ControlFlow::Break(());
    assert!(calibrate(&bare, &held_out, &held_out, &config, &mut stop).unwrap().is_none());
}
