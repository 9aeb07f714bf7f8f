//! `brenier report DIR`: the page of a folder anew, without the model.

use std::path::PathBuf;

use anyhow::{Result, bail};
use brenier::report::Report;
use clap::Args;

use crate::output::print_data;
use crate::verbs::explain::maps::MapArgs;

/// Examples that a page shows where nothing else is said.
pub(crate) const SHOWN: usize = 24;

/// Write report.html anew from the explanations in a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier report out
  brenier report out --superpixels 80
  brenier report out --limit 100 --title 'Coats and shirts' -o coats.html")]
pub(crate) struct ReportVerb {
    /// The folder that was given to `brenier explain -o`
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Where the page is written; default: DIR/report.html
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show the first so many examples
    #[arg(long, value_name = "N", default_value_t = SHOWN)]
    limit: usize,
    /// The heading
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    maps: MapArgs,
}

pub(crate) fn run(args: &ReportVerb) -> Result<()> {
    if !args.folder.exists() {
        bail!("there is no {}\nhint: give a folder that 'explain -o' has written", args.folder.display());
    }
    let mut report = args.maps.show(Report::open(&args.folder, args.limit)?);
    if let Some(title) = &args.title {
        report.title.clone_from(title);
    }
    let file = args.output.clone().unwrap_or_else(|| args.folder.join("report.html"));
    report.save(&file)?;
    print_data(&format!("{}\n", file.display()))
}
