//! What was typed.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{CommandFactory, Parser, Subcommand};

use crate::verbs;

/// Explain what a model did, with evidence: credit for each feature along a path learned from data.
#[derive(Debug, Parser)]
#[command(name = "brenier", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say nothing on the way, only errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// The most memory to use, such as 4G or 500M; default: most of the free memory
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) max_memory: Option<String>,
    /// Take flags from a TOML file: `method = ["ig", "transport"]` for --method ig,transport, for every verb or under
    /// its name, such as `[explain]`; flags on the command line take precedence
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The verbs, a file each under `verbs/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// See it work: embedded images, models and flows, from explanations to a report
    Demo(verbs::demo::Demo),
    /// Explain a model's score: the credit of every feature, with its certificate
    Explain(Box<verbs::explain::Explain>),
    /// Join the shards of an explain run; the result is that of one run, to the bit
    Merge(verbs::merge::Merge),
    /// Compare methods by metrics: a table with intervals, on a model and data of your own
    Evaluate(Box<verbs::evaluate::Evaluate>),
    /// Why the mean score differs between two populations: the credit of every column, with intervals
    Shift(Box<verbs::shift::ShiftVerb>),
    /// Describe a model: its inputs, outputs and cost, and whether it has a gradient
    Inspect(verbs::inspect::Inspect),
    /// Calibrate a flow with held-out rows, so that certificates can tell which inputs are unusual for it
    Calibrate(Box<verbs::calibrate::Calibrate>),
    /// Train a flow from a reference distribution to data, a diffusion model, or a classifier
    Train(Box<verbs::train::Train>),
    /// Straighten a flow: train its next rectification level
    Reflow(Box<verbs::reflow::Reflow>),
    /// Reproduce a table or figure of the paper, beside the paper's numbers
    Reproduce(Box<verbs::reproduce::Reproduce>),
    /// Write an explanation as an ONNX file that any runtime can run beside the model
    Export(Box<verbs::export::Export>),
    /// Recompute explanations that were saved, and compare: exit 0 where they are the same, 1 where they differ
    Verify(verbs::verify::Verify),
    /// Write report.html anew from the explanations in a folder
    Report(verbs::report::ReportVerb),
    /// Print a script that completes verbs and flags in your shell
    Completions(verbs::completions::Completions),
    /// Print the man page, or write one for every verb into a folder
    Man(verbs::man::ManPages),
}

impl Command {
    /// Does what was typed; `words` are what it was parsed from.
    pub(crate) fn run(&self, words: &[OsString]) -> Result<()> {
        match self {
            Command::Demo(demo) => verbs::demo::run(demo, &|typed| {
                let words: Vec<OsString> = typed.iter().map(OsString::from).collect();
                Args::try_parse_from(&words)?.command.run(&words)
            }),
            Command::Evaluate(evaluate) => verbs::evaluate::run(evaluate),
            Command::Explain(explain) => verbs::explain::run(explain, words),
            Command::Merge(merge) => verbs::merge::run(merge),
            Command::Shift(shift) => verbs::shift::run(shift),
            Command::Inspect(inspect) => verbs::inspect::run(inspect),
            Command::Calibrate(calibrate) => verbs::calibrate::run(calibrate),
            Command::Reflow(reflow) => verbs::reflow::run(reflow),
            Command::Train(train) => verbs::train::run(train),
            Command::Reproduce(reproduce) => verbs::reproduce::run(reproduce),
            Command::Export(export) => verbs::export::run(export),
            Command::Verify(verify) => {
                verbs::verify::run(verify, &|words| match Args::try_parse_from(words)?.command {
                    Command::Explain(explain) => Ok(explain),
                    _ => bail!("the record is not that of an explain run"),
                })
            }
            Command::Report(report) => verbs::report::run(report),
            Command::Completions(completions) => verbs::completions::run(completions, Args::command()),
            Command::Man(pages) => verbs::man::run(pages, Args::command()),
        }
    }
}
