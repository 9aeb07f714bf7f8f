//! What was typed.

use clap::{Parser, Subcommand, ValueEnum};

use crate::verbs;

/// Explain a model's prediction along the path by which the data came to be.
#[derive(Debug, Parser)]
#[command(name = "brenier", version, propagate_version = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The verbs, a file each under `verbs/`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Explain a model's score: the credit of every feature, with its certificate
    Explain(Box<verbs::explain::Explain>),
    /// Compare methods by metrics: a table with intervals, on a model and data of your own
    Evaluate(Box<verbs::evaluate::Evaluate>),
    /// Show what a model is, and whether and where it can be differentiated
    Inspect(verbs::inspect::Inspect),
    /// Train a flow from a reference distribution to data, a diffusion model, or a classifier
    Train(Box<verbs::train::Train>),
    /// Straighten a flow: train its next rectification level
    Reflow(Box<verbs::reflow::Reflow>),
    /// Reproduce a table or figure of the paper, beside the paper's numbers
    Reproduce(Box<verbs::reproduce::Reproduce>),
}

/// How data is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// JSON for programs
    Json,
}
