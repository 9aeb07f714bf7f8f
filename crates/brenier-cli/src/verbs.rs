//! A file per verb: its arguments and the function that does it.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod reflow;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod train;

use anyhow::Result;

use crate::args::Command;

/// Does what was asked for.
pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Demo(demo) => demo::run(demo),
        Command::Evaluate(evaluate) => evaluate::run(evaluate),
        Command::Explain(explain) => explain::run(explain),
        Command::Inspect(inspect) => inspect::run(inspect),
        Command::Reflow(reflow) => reflow::run(reflow),
        Command::Train(train) => train::run(train),
        Command::Reproduce(reproduce) => reproduce::run(reproduce),
        Command::Report(report) => report::run(report),
        Command::Completions(completions) => completions::run(completions),
        Command::Man(pages) => man::run(pages),
    }
}
