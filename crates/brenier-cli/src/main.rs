//! `brenier`: explain a model's prediction along the path by which the data came to be.
//!
//! stdout is data, stderr is progress and errors. Exit 0: done; 1: failed; 2: wrong usage.

mod args;
mod assets;
mod data_args;
mod engine_args;
mod output;
mod progress;
mod request;
mod run_args;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    match verbs::run(&Args::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            ExitCode::FAILURE
        }
    }
}
