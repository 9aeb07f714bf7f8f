//! What is said of inputs that could not be explained.

use std::fmt;

use anyhow::{Result, anyhow};
use brenier::runs::explain::Failure;

use crate::output::print_progress;

/// Failures that are printed one by one.
const LINES: usize = 20;

/// Done, but for some inputs: exit 3.
#[derive(Debug)]
pub(crate) struct Incomplete(pub(crate) String);

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Incomplete {}

/// Lists inputs that could not be explained; an error where there are some.
pub(crate) fn tell_failures(failures: &[Failure]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    for failure in failures.iter().take(LINES) {
        let name = failure.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let reason = failure.reason.split("\nhint: ").next().unwrap_or_default();
        print_progress(&format!("failed: input {}{name}: {reason}", failure.example));
    }
    if failures.len() > LINES {
        print_progress(&format!("and {} more", failures.len() - LINES));
    }
    let (count, inputs) = (failures.len(), if failures.len() == 1 { "input" } else { "inputs" });
    Err(anyhow!(Incomplete(format!(
        "{count} {inputs} could not be explained; all others are\nhint: failures.jsonl lists them with their reasons"
    ))))
}
