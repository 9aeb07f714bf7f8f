//! `--reasons`: for each row of a table the few columns that speak most for its score, or against it.

use anyhow::{Result, bail};
use brenier::data::Column;
use brenier::report::{ReasonsConfig, Side};
use clap::{Args, ValueEnum};

/// The reasons
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Reasons for rows of a table")]
pub(crate) struct ReasonsArgs {
    /// Print this many reasons for each row, instead of the summary: the columns that moved its score most, with what the row
    /// and its counterpart have there. With -o also reasons.csv, reasons.json and reasons.txt
    #[arg(long, value_name = "N")]
    reasons: Option<usize>,
    /// Which columns are reasons: those that raise the score (for) or lower it (against); where not given, those that moved it
    /// where it went
    #[arg(long, value_enum, value_name = "SIDE", requires = "reasons")]
    speaking: Option<Speaking>,
    /// The sentence of a reason, with {rank}, {column}, {value}, {counterpart}, {credit}, {low}, {high}, {target}, {against}
    #[arg(long, value_name = "TEXT", requires = "reasons")]
    sentence: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Speaking {
    For,
    Against,
}

impl ReasonsArgs {
    /// Whether reasons are asked for.
    pub(super) fn are_wanted(&self) -> bool {
        self.reasons.is_some()
    }

    /// How reasons are chosen and said, where they are asked for.
    pub(super) fn config(&self, columns: &[Column]) -> Result<Option<ReasonsConfig>> {
        let Some(count) = self.reasons else { return Ok(None) };
        if count == 0 {
            bail!("--reasons is 0\nhint: ask for at least 1");
        }
        if columns.is_empty() {
            bail!(
                "--reasons needs rows of a table, with names of columns\nhint: give a .csv file, and --schema or --background \
                 where the model does not say its columns"
            );
        }
        let side = match self.speaking {
            Some(Speaking::For) => Side::For,
            Some(Speaking::Against) => Side::Against,
            None => Side::Change,
        };
        let template = self.sentence.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        Ok(Some(ReasonsConfig { count, side, template }))
    }
}
