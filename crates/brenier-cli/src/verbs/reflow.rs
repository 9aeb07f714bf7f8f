//! `brenier reflow FLOW DATA -o run2/`: the next rectification level of a flow.

use std::path::PathBuf;

use anyhow::{Result, bail};
use brenier::data::Dataset;
use brenier::flow::OnnxFlow;
use brenier::runs::{ReflowRun, reflow};
use brenier::{Scheme, Solver, VelocityField};
use clap::Args;

use crate::output::print_progress;
use crate::reference_args::{Reference, ReferenceArgs};
use crate::request::flow_file;
use crate::run_args::RunArgs;

/// Straighten a flow: train its next rectification level
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier reflow run fashion-mnist/ -o run2
  brenier reflow run2 fashion-mnist/ -o run3 --steps 2000
  brenier reflow theirs.onnx data.npz -o run --generated 20000 --inverted 0")]
pub(crate) struct Reflow {
    /// The flow: a run's folder or an ONNX file
    flow: PathBuf,
    /// The data that the flow was trained on
    data: PathBuf,
    /// Pairs to generate from the reference
    #[arg(long, value_name = "N", default_value_t = 5000)]
    generated: usize,
    /// Pairs to obtain by following real data backward
    #[arg(long, value_name = "N", default_value_t = 5000)]
    inverted: usize,
    /// The local error to which trajectories are solved
    #[arg(long, value_name = "TOLERANCE", default_value_t = 1e-3)]
    solver_tolerance: f64,
    /// Solve them with so many Heun steps instead: faster, and mostly too coarse for the way back from data
    #[arg(long, value_name = "N", conflicts_with = "solver_tolerance")]
    solver_steps: Option<usize>,
    #[command(flatten)]
    reference: ReferenceArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub(crate) fn run(args: &Reflow) -> Result<()> {
    args.run.check_folder()?;
    if args.run.is_timed() {
        bail!("--minutes is for train: most of reflow is making pairs\nhint: give --steps");
    }
    let file = flow_file(&args.flow)?;
    let flow = OnnxFlow::load(&file, &args.run.engine.config())?;
    let options = args.run.data.options();
    let (data, held_out) =
        Dataset::open_split(&args.data, &options, args.run.train_fraction, args.run.training.seed)?;
    if data.shape() != flow.shape() {
        bail!(
            "{} has rows of shape {:?}, but the flow was trained on {:?}\nhint: give the data that the flow was trained on",
            args.data.display(),
            data.shape(),
            flow.shape()
        );
    }
    let reference = args.reference.or_like(flow.metadata());
    let (data, held_out, Reference { kind, rows }) = reference.open(data, held_out, &options)?;
    let level = flow.metadata().level.unwrap_or(1) + 1;
    print_progress(&format!("level {level}: {} pairs, then training", args.generated + args.inverted));
    let solver = match args.solver_steps {
        Some(steps) => Solver::fixed(Scheme::Heun, steps),
        None => Solver::adaptive(args.solver_tolerance),
    };
    let run = ReflowRun {
        generated: args.generated,
        inverted: args.inverted,
        solver,
        reference: kind,
        half_weights: args.run.training.half_weights,
        calibration_rows: args.run.calibration_rows,
        training: args.run.training(&data),
    };
    let mut progress = args.run.progress()?;
    let result =
        reflow(&flow, &data, &held_out, rows.as_ref(), &run, &args.run.output, &mut |e| progress.show(e))?;
    args.run.report(&result.outcome)
}
