//! Times deletion and insertion over attributions that are there already; `bench/removal` drives it beside Quantus.
//!
//! `removal_speed FOLDER ENGINE FRACTIONS` reads `model.onnx`, `inputs.npy`, `targets.npy` and `credit.npy`
//! (`[methods, images, ...]`), and prints a line of JSON with the seconds and the mean areas.
#![allow(clippy::print_stdout)] // The result is on standard output.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use brenier::attribute::Baseline;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Cases, Order, Removal, Units};
use brenier::{PredictorConfig, ValuePredictor};
use ndarray::{Array1, Array2, ArrayD, Axis};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, engine, fractions] = arguments.as_slice() else {
        return Err("usage: removal_speed FOLDER rten|ort FRACTIONS".into());
    };
    let file = |name: &str| Path::new(folder).join(name);
    let inputs: ArrayD<f32> = ndarray_npy::read_npy(file("inputs.npy"))?;
    let targets: Array1<i64> = ndarray_npy::read_npy(file("targets.npy"))?;
    let credit: ArrayD<f32> = ndarray_npy::read_npy(file("credit.npy"))?;
    let rows = inputs.shape()[0];
    let flat = |array: ArrayD<f32>| -> Result<Array2<f64>, ndarray::ShapeError> {
        let features = array.len() / rows;
        array.mapv(f64::from).into_shape_with_order((rows, features))
    };
    let inputs = flat(inputs)?;
    let targets: Vec<usize> = targets.iter().map(|target| *target as usize).collect();
    let engine = EngineConfig { kind: engine.parse()?, ..EngineConfig::default() };
    let model =
        ValuePredictor::load(file("model.onnx"), &PredictorConfig { engine, ..PredictorConfig::default() })?;
    let steps = fractions.parse()?;
    let begin = Instant::now();
    let mut areas = [0.0, 0.0];
    for values in credit.axis_iter(Axis(0)) {
        let cases = Cases::new(&model, inputs.clone(), targets.clone(), flat(values.to_owned())?)?;
        for (area, order) in areas.iter_mut().zip([Order::Deletion, Order::Insertion]) {
            let removal = Removal {
                order,
                replacement: Baseline::Zero,
                units: Units::Features,
                steps,
                ..Removal::default()
            };
            let curves = removal.curves(&cases)?;
            *area += curves.iter().map(|curve| curve.area()).sum::<f64>() / rows as f64;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let [deletion, insertion] = areas.map(|area| area / credit.shape()[0] as f64);
    println!("{}", serde_json::json!({ "seconds": seconds, "deletion": deletion, "insertion": insertion }));
    Ok(())
}
