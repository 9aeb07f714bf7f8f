//! `brenier`: explain what a model did, with evidence: credit for each feature along a path learned from data.
//!
//! stdout is data, stderr is progress and errors. Exit 0: done; 1: failed; 2: wrong usage; 130: interrupted.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod assets;
mod config;
mod data_args;
mod engine_args;
mod output;
mod progress;
mod reference_args;
mod request;
mod run_args;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let arguments = match config::arguments(std::env::args_os().collect()) {
        Ok(arguments) => arguments,
        Err(error) => {
            output::print_error(&error);
            return ExitCode::from(2);
        }
    };
    let args = Args::parse_from(&arguments);
    if args.quiet {
        output::be_quiet();
    }
    match args.command.run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            let stopped = error.downcast_ref::<progress::Stopped>().is_some();
            if stopped { ExitCode::from(130) } else { ExitCode::FAILURE }
        }
    }
}
