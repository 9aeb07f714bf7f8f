//! `brenier`: explain what a model did, with evidence: credit for each feature along a path learned from data.
//!
//! stdout is data, stderr is progress and errors. Exit 0: done; 1: failed; 2: wrong usage; 3: done, but for some
//! inputs that are listed; 130: interrupted.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod assets;
mod config;
mod data_args;
mod engine_args;
mod memory;
mod output;
mod progress;
mod reference_args;
mod request;
mod run_args;
mod verbs;
mod wording;

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
    if let Err(error) = memory::watch(args.max_memory.as_deref()).and_then(|()| progress::leave_on_ctrl_c()) {
        output::print_error(&error);
        return ExitCode::from(2);
    }
    match args.command.run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::print_error(&error);
            if error.downcast_ref::<progress::Stopped>().is_some() {
                return ExitCode::from(130);
            }
            let incomplete = error.downcast_ref::<verbs::explain::Incomplete>().is_some();
            if incomplete { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}
