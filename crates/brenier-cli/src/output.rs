//! The one place that writes: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::wording::{flags, told};

/// How data is written to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people
    Text,
    /// JSON for programs
    Json,
}

/// What a terminal would take for a command, or for a change of direction, spelled out as `\\u001b`. JSON reads it back.
fn plain(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if !text.contains(hidden) {
        return text.into();
    }
    let spelled = |c: char| match hidden(c) {
        true => format!("\\u{:04x}", u32::from(c)),
        false => c.to_string(),
    };
    text.chars().map(spelled).collect::<String>().into()
}

/// Writes data to stdout. A reader that has gone away (`| head`) is no error.
pub(crate) fn print_data(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(plain(text).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to stdout"),
    }
}

/// Finds out before the work whether its results can be written: the folder is made where it is missing, and a file in it.
pub(crate) fn expect_writable(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}\nhint: choose another with -o", folder.display())
    })?;
    let probe = folder.join(format!(".writable-{}", std::process::id()));
    let made = OpenOptions::new().write(true).create_new(true).open(&probe);
    made.with_context(|| {
        format!("cannot write into {}\nhint: choose another folder with -o", folder.display())
    })?;
    // Whoever may make files there may remove them.
    let _ = std::fs::remove_file(&probe);
    Ok(())
}

/// Whether the user wants to hear of nothing but errors.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says nothing on the way from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether nothing is said on the way.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Writes a line of progress to stderr.
pub(crate) fn print_progress(line: &str) {
    if !is_quiet() {
        eprintln!("{}", plain(line));
    }
}

/// Writes what a model has to say.
pub(crate) fn print_notices(notices: &[brenier::Notice]) {
    for notice in notices {
        print_progress(&format!("notice: {}", notice.worded(flags)));
    }
}

/// Writes the last words of a process that ends at once.
pub(crate) fn print_last_words(message: &str) {
    print_error(&anyhow::anyhow!("{message}"));
}

/// Writes an error to stderr: what happened, why, and a hint on a line of its own where there is one.
pub(crate) fn print_error(error: &anyhow::Error) {
    let chain = error.chain().map(told).collect::<Vec<_>>();
    let mut message = String::new();
    let mut hints = Vec::new();
    for (i, part) in chain.iter().enumerate() {
        let (what, hint) = match part.split_once("\nhint: ") {
            Some((what, hint)) => (what, Some(hint)),
            None => (part.as_str(), None),
        };
        // Errors that quote their cause in their own message would otherwise say it twice.
        if !message.contains(what) {
            message.push_str(if i == 0 { "" } else { ": " });
            message.push_str(what);
        }
        hints.extend(hint);
    }
    eprintln!("error: {}", plain(&message));
    for hint in hints {
        eprintln!("hint: {}", plain(hint));
    }
}
