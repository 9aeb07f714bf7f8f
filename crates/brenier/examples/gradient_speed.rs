//! Times scores and input gradients on request; `bench/gradient` drives it beside PyTorch.
//!
//! `gradient_speed MODEL.onnx INPUTS.npy ENGINE [GRADIENTS.npy ARITHMETIC]` reads `forward` or `gradient` from standard input, line by
//! line, does that once for all inputs, and prints a line of JSON with the time and the peak memory. Gradients are written to the
//! file where one is given.
#![allow(clippy::print_stdout)] // The protocol is on standard output.

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use brenier::engine::{Arithmetic, EngineConfig};
use brenier::{OnnxPredictor, PredictorConfig};
use ndarray::ArrayD;

/// Largest resident memory so far, in MB; 0 where the system does not tell.
fn peak_rss_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, inputs, engine, more @ ..] = arguments.as_slice() else {
        return Err(
            "usage: gradient_speed MODEL.onnx INPUTS.npy rten|ort [GRADIENTS.npy fast|accurate]".into()
        );
    };
    let arithmetic = more.get(1).map_or(Ok(Arithmetic::default()), |name| name.parse())?;
    let inputs: ArrayD<f32> = ndarray_npy::read_npy(inputs)?;
    let workers = std::env::var("OMP_NUM_THREADS").ok().and_then(|n| n.parse().ok());
    let engine = EngineConfig { kind: engine.parse()?, workers, arithmetic, ..EngineConfig::default() };
    let predictor = OnnxPredictor::load(model, &PredictorConfig { engine, ..PredictorConfig::default() })?;
    let targets: Vec<usize> = (0..inputs.shape()[0]).map(|row| row % predictor.outputs()).collect();
    let start_rss_mb = peak_rss_mb();
    for line in std::io::stdin().lock().lines() {
        let what = line?;
        let begin = Instant::now();
        let mean_abs = match what.trim() {
            "forward" => predictor.scores(inputs.view())?.abs().mean(),
            "gradient" => {
                let gradients = predictor.value_and_grad(inputs.view(), &targets)?.gradients;
                more.first().map_or(Ok(()), |file| ndarray_npy::write_npy(file, &gradients))?;
                gradients.abs().mean()
            }
            other => return Err(format!("there is no '{other}' to time; say forward or gradient").into()),
        };
        let milliseconds = begin.elapsed().as_secs_f64() * 1e3;
        let report = serde_json::json!({
            "what": what.trim(),
            "milliseconds": milliseconds,
            "peak_rss_mb": peak_rss_mb(),
            "start_rss_mb": start_rss_mb,
            "mean_abs": mean_abs,
        });
        println!("{report}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
