//! `brenier completions SHELL`: what makes a shell complete verbs and flags.

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::output::print_data;

/// Print a script that completes verbs and flags in your shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier completions bash > ~/.local/share/bash-completion/completions/brenier
  brenier completions zsh > ~/.zfunc/_brenier
  brenier completions fish > ~/.config/fish/completions/brenier.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Completions, mut command: Command) -> Result<()> {
    let mut text = Vec::new();
    generate(args.shell, &mut command, "brenier", &mut text);
    print_data(&String::from_utf8(text)?)
}
