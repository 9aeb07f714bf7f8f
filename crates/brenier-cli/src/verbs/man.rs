//! `brenier man [DIR]`: the manual as man pages.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, Command};

use crate::output::{print_data, print_progress};

/// Print the man page, or write one for every verb into a folder
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier man | man -l -
  brenier man ~/.local/share/man/man1")]
pub(crate) struct ManPages {
    /// The folder; where it is not given, the first page goes to stdout
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &ManPages, command: Command) -> Result<()> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return print_data(&String::from_utf8(page)?);
    };
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)
    };
    write().with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    print_progress(&format!("wrote man pages into {}", folder.display()));
    Ok(())
}
