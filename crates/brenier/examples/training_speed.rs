//! Times training steps: `training_speed mlp|unet rten|ort BATCH STEPS [WIDTH [PATCH [LEVELS [MICRO_BATCH]]]]`, on
//! random data.
//!
//! The MLP is for 10 features, the U-Net for images of 3x32x32. Prints a line of JSON.
#![allow(clippy::print_stdout)] // The result goes to standard output.

use std::error::Error;
use std::ops::ControlFlow;
use std::time::Instant;

use brenier::engine::EngineConfig;
use brenier::flow::{MlpConfig, NetworkConfig, PairsFn, TrainConfig, UnetConfig, train};
use ndarray::Array2;
use rand_distr::{Distribution, StandardNormal};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [network, engine, batch, steps, rest @ ..] = arguments.as_slice() else {
        return Err(
            "usage: training_speed mlp|unet rten|ort BATCH STEPS [WIDTH [PATCH [LEVELS [MICRO_BATCH]]]]"
                .into(),
        );
    };
    let width: Option<usize> = rest.first().map(|w| w.parse()).transpose()?;
    let patch: Option<usize> = rest.get(1).map(|p| p.parse()).transpose()?;
    let levels: Option<Vec<usize>> =
        rest.get(2).map(|l| l.split(',').map(str::parse).collect::<Result<_, _>>()).transpose()?;
    let micro_batch: Option<usize> = rest.get(3).map(|m| m.parse()).transpose()?;
    let (config, shape): (NetworkConfig, &[usize]) = match network.as_str() {
        "mlp" => {
            let default = MlpConfig::default();
            (NetworkConfig::Mlp(MlpConfig { width: width.unwrap_or(default.width), ..default }), &[10])
        }
        "unet" => {
            let default = UnetConfig::default();
            let config = UnetConfig {
                width: width.unwrap_or(default.width),
                patch: patch.unwrap_or(default.patch),
                multipliers: levels.unwrap_or(default.multipliers.clone()),
                ..default
            };
            (NetworkConfig::Unet(config), &[3, 32, 32])
        }
        other => return Err(format!("there is no network '{other}'").into()),
    };
    let model = config.build(shape, 0)?;
    let features: usize = shape.iter().product();
    let pairs = PairsFn::new(shape, 0, |rng, rows| {
        let mut draw = || Array2::<f32>::zeros((rows, features)).mapv(|_| StandardNormal.sample(rng));
        Ok((draw(), draw()))
    });
    let steps: u64 = steps.parse()?;
    let training = TrainConfig {
        steps: steps + 2,
        batch: batch.parse()?,
        micro_batch,
        log_every: 1,
        engine: EngineConfig { kind: engine.parse()?, ..EngineConfig::default() },
        ..TrainConfig::default()
    };
    let mut times = Vec::new();
    let mut before = Instant::now();
    train(&model, &pairs, &training, None, &mut |_| {
        times.push(before.elapsed().as_secs_f64() * 1e3);
        before = Instant::now();
        ControlFlow::Continue(())
    })?;
    // The first steps load and allocate.
    let mut times = times.split_off(2);
    times.sort_by(f64::total_cmp);
    let report = serde_json::json!({
        "network": network,
        "engine": engine,
        "parameters": model.graph.parameter_count(),
        "batch": training.batch,
        "best_ms": times.first(),
        "median_ms": times.get(times.len() / 2),
    });
    println!("{report}");
    Ok(())
}
