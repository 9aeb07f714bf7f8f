//! `brenier`: explain a model's prediction along the path by which the data came to be.
//!
//! stdout is data, stderr is progress and errors. Exit 0: done; 1: failed; 2: wrong usage.

mod args;
mod data_args;
mod engine_args;
mod output;
mod progress;
mod request;
mod run_args;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Evaluate(evaluate) => verbs::evaluate::run(&evaluate),
        Command::Explain(explain) => verbs::explain::run(&explain),
        Command::Inspect(inspect) => verbs::inspect::run(&inspect),
        Command::Reflow(reflow) => verbs::reflow::run(&reflow),
        Command::Train(train) => verbs::train::run(&train),
        Command::Reproduce(reproduce) => verbs::reproduce::run(&reproduce),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
