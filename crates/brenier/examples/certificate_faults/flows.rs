//! Faults of the flow: what it computes, its weights, its scaling, its solver, and its training.

use std::ops::ControlFlow;

use brenier::calibrate::{CalibrateConfig, calibrate};
use brenier::data::{Dataset, Scaling};
use brenier::flow::FlowMetadata;
use brenier::{Scheme, Solver, VelocityField};
use ndarray::{Array1, Axis};
use onnx_grad::{Model, TensorData};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::bench::{Bench, Change, as_it_is, opened};

pub(crate) fn faults(bench: &Bench) {
    let times = |c: f64| -> Change { Box::new(move |flow, x, t| Ok(c * flow.velocity(x, t)?)) };
    let faults: Vec<(&str, Change)> = vec![
        ("output negated", times(-1.0)),
        ("velocity x 0.5", times(0.5)),
        ("velocity x 0.9", times(0.9)),
        ("velocity x 1.1", times(1.1)),
        ("velocity x 50", times(50.0)),
        ("velocity 0", times(0.0)),
        ("velocity not a number", times(f64::NAN)),
        ("only rescales contrast", Box::new(|_, x, _| Ok(&x * -0.9))),
        (
            "time reversed",
            Box::new(|flow, x, t| flow.velocity(x, &t.iter().map(|t| 1.0 - t).collect::<Vec<_>>())),
        ),
    ];
    for (name, change) in faults {
        let field = bench.spoilt(bench.model.clone(), change);
        bench.tell(name, &bench.judged(&field, &bench.inputs, None), bench.inputs.nrows());
    }
    for (name, model) in models(bench) {
        let field = bench.spoilt(model, as_it_is());
        bench.tell(&name, &bench.judged(&field, &bench.inputs, None), bench.inputs.nrows());
    }
    for steps in [5, 20] {
        let solver = Some(Solver::fixed(Scheme::Euler, steps));
        let name = format!("solved by {steps} Euler steps");
        bench.tell(&name, &bench.judged(&bench.sound(), &bench.inputs, solver), bench.inputs.nrows());
    }
}

/// A field that swings 40 times on its way, by several times its speed. At the times at which the calibration looks the swing
/// is 0, so only the flow consistency error tells.
pub(crate) fn stiff(bench: &Bench) {
    let change: Change = Box::new(|flow, x, t| {
        let mut v = flow.velocity(x, t)?;
        for (mut row, t) in v.axis_iter_mut(Axis(0)).zip(t) {
            row += 3.0 * (40.0 * std::f64::consts::TAU * t).sin();
        }
        Ok(v)
    });
    let field = bench.spoilt(bench.model.clone(), change);
    bench.tell(
        "stiff: 40 swings on the way",
        &bench.judged(&field, &bench.inputs, None),
        bench.inputs.nrows(),
    );
}

/// Networks with faults.
fn models(bench: &Bench) -> Vec<(String, Model)> {
    let mut all = Vec::new();
    for part in [0.01, 0.05, 0.1, 0.5] {
        all.push((format!("weights with {:.0} % noise", 100.0 * part), noisy(&bench.model, part)));
    }
    let metadata = FlowMetadata::of(&bench.model).unwrap();
    if let Some(network) = &metadata.network {
        let mut untrained = network.build(&bench.shape, 99).unwrap();
        FlowMetadata { calibration: None, ..metadata.clone() }.write(&mut untrained).unwrap();
        all.push(("never trained".into(), untrained));
    }
    if let Some(scaling) = &metadata.scaling {
        let count = bench.shape.iter().product();
        let (shift, scale): (Vec<f64>, Vec<f64>) = (0..count).map(|i| scaling.of(i)).unzip();
        let with = |scaling: Scaling| {
            let mut model = bench.model.clone();
            FlowMetadata { scaling: Some(scaling), calibration: None, ..metadata.clone() }
                .write(&mut model)
                .unwrap();
            model
        };
        let wider = Scaling::new(&bench.shape, shift, scale.iter().map(|s| 1.1 * s).collect());
        all.push(("scaling removed".into(), with(Scaling::identity(&bench.shape).unwrap())));
        all.push(("scaling 10 % off".into(), with(wider.unwrap())));
    }
    all
}

/// Every weight with normal noise of a part of its tensor's deviation.
fn noisy(model: &Model, part: f64) -> Model {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut model = model.clone();
    for tensor in model.graph.initializers.values_mut() {
        if tensor.dtype().is_float() && tensor.len() > 8 {
            let values: Array1<f32> = tensor.to_f32().into();
            let size = part as f32 * values.std(0.0);
            let values = values.mapv(|v| {
                let e: f32 = StandardNormal.sample(&mut rng);
                v + size * e
            });
            *tensor = TensorData::f32(tensor.shape(), values.as_slice().unwrap());
        }
    }
    model
}

/// Flows that are calibrated by themselves, as their users would do it: those with faults, one that starts from another
/// distribution than it says, and those that were trained too little.
pub(crate) fn by_themselves(bench: &Bench, data: &Dataset, badly_trained: &[(String, String)]) {
    let mut all = models(bench);
    let metadata = FlowMetadata::of(&bench.model).unwrap();
    let mut uniform = bench.model.clone();
    FlowMetadata { reference: Some("uniform".into()), calibration: None, ..metadata }
        .write(&mut uniform)
        .unwrap();
    all.push(("said to start from uniform noise".into(), uniform));
    for (name, path) in badly_trained {
        all.push((name.clone(), Model::load(path).unwrap()));
    }
    println!(
        "\n| flow, calibrated by itself | log-likelihood over a Gaussian | energies | loss ratio | verdict |\n|---|---|---|---|---|"
    );
    let config = CalibrateConfig { rows: 64, ..CalibrateConfig::default() };
    for (name, model) in all {
        let flow = opened(model);
        match calibrate(&flow, data, data, &config, &mut |_, _| ControlFlow::Continue(())) {
            Ok(Some(found)) => {
                let good = found.quality.objection().map_or("good", |_| "not good: nothing passes");
                let number = |value: Option<f64>| value.map_or("-".into(), |v| format!("{v:+.2}"));
                println!(
                    "| {name} | {} | {:.2?} | {} | {good} |",
                    number(found.quality.gain),
                    found.quality.energies,
                    number(found.quality.loss_ratio)
                );
            }
            Ok(None) => {}
            Err(error) => println!("| {name} | - | - | - | refused: {error} |"),
        }
    }
}
