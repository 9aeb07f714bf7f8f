//! What the tolerance of a trace costs, and what it does to the credit: the table "Traces" of docs/performance.md.
//!
//!     cargo run --release -p brenier --example solver_tolerance -- model.onnx flow.onnx DATA
//!
//! The first 16 images of DATA, explained along traces of falling tolerance, against a tolerance of 1e-7.
#![allow(clippy::print_stdout, reason = "an example that prints a table")]

use brenier::data::{Dataset, OpenOptions};
use brenier::engine::EngineConfig;
use brenier::flow::OnnxFlow;
use brenier::{
    OnnxPredictor, PathIntegral, PredictorConfig, Rule, Solver, TraceConfig, relative_attribution_error,
    trace,
};

const IMAGES: usize = 16;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, flow, data] = arguments.as_slice() else {
        return Err("usage: solver_tolerance model.onnx flow.onnx DATA".into());
    };
    let model = OnnxPredictor::load(model, &PredictorConfig::default())?;
    let flow = OnnxFlow::load(flow, &EngineConfig::default())?;
    let inputs = Dataset::open(data, &OpenOptions::default())?.rows_f64(&(0..IMAGES).collect::<Vec<_>>())?;
    let targets = model.values_only().predicted(inputs.view())?;
    let credit = |tolerance: f64| -> Result<_, brenier::Error> {
        let config = TraceConfig { solver: Solver::adaptive(tolerance), ..TraceConfig::default() };
        let paths = trace(&flow, inputs.view(), &config)?;
        PathIntegral::new(Rule::Midpoint { steps: 100 }).explain_batch(&model, &paths, &targets)
    };
    let truth = credit(1e-7)?;
    println!(
        "| tolerance | evaluations of the flow | round trip, median | greatest | credit off, median | greatest |"
    );
    println!("|---|---|---|---|---|---|");
    for tolerance in [1e-2, 1e-3, 1e-4, 1e-5, 1e-6] {
        let (mut evaluations, mut trips, mut errors) = (0, Vec::new(), Vec::new());
        for (explanation, truth) in credit(tolerance)?.iter().zip(&truth) {
            let evidence = &explanation.certificate.path.as_ref().ok_or("a trace is a path")?.evidence;
            evaluations += evidence.velocity_evaluations.unwrap_or(0);
            trips.push(evidence.relative_round_trip_error.unwrap_or(f64::NAN));
            errors.push(relative_attribution_error(explanation.values.view(), truth.values.view())?);
        }
        trips.sort_by(f64::total_cmp);
        errors.sort_by(f64::total_cmp);
        println!(
            "| {tolerance:.0e} | {:.0} | {:.1e} | {:.1e} | {:.1e} | {:.1e} |",
            evaluations as f64 / IMAGES as f64,
            trips[IMAGES / 2],
            trips[IMAGES - 1],
            errors[IMAGES / 2],
            errors[IMAGES - 1],
        );
    }
    Ok(())
}
