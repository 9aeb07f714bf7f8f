//! Inputs that could not be explained, in runs that go on without them.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Part, Question, Way};
use crate::whole_file::write_with;
use crate::{Error, Result, fingerprint_row};

/// The file that lists them, one a line; not there where all were explained.
pub(super) const FAILURES: &str = "failures.jsonl";

/// An input that could not be explained.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its number in the run.
    pub example: usize,
    /// Its name, such as its file.
    pub name: Option<String>,
    /// Fingerprint of the input; none where it could not be read.
    pub input_hash: Option<String>,
    /// What happened.
    pub reason: String,
}

impl Question<'_> {
    /// Explains the inputs of a range one by one, and lists those that cannot be explained.
    ///
    /// # Errors
    /// Only that somebody has stopped the run.
    pub(super) fn one_by_one(&self, way: &Way, range: Range<usize>) -> Result<(Part, Vec<Failure>)> {
        let mut whole = Part { inputs: range.clone(), explanations: vec![], stills: vec![], traces: None };
        let mut failures = Vec::new();
        for example in range {
            match self.part(way, example..example + 1) {
                Ok(part) => {
                    whole.explanations.extend(part.explanations);
                    whole.stills.extend(part.stills);
                    if let Some(traces) = part.traces {
                        whole.traces.get_or_insert_default().extend(traces);
                    }
                }
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(error) => {
                    let input = self.inputs.rows(example..example + 1).ok();
                    failures.push(Failure {
                        example,
                        name: self.inputs.name(example),
                        input_hash: input.map(|rows| fingerprint_row(rows.row(0))),
                        reason: error.to_string(),
                    });
                }
            }
        }
        Ok((whole, failures))
    }
}

/// Writes failures into a folder; nothing where there are none.
pub(super) fn save(folder: &Path, failures: &[Failure]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    crate::whole_file::make_folder(folder)?;
    write_with(&folder.join(FAILURES), |file| {
        for failure in failures {
            serde_json::to_writer(&mut *file, failure)?;
            file.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// The failures of a folder, in order.
pub(super) fn load(folder: &Path) -> Result<Vec<Failure>> {
    let path = folder.join(FAILURES);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let unreadable =
        |e: Box<dyn std::error::Error + Send + Sync>| Error::Read { path: path.clone(), source: e };
    let file = crate::readable::open(&path).map_err(|e| unreadable(e.into()))?;
    let line = |line: std::io::Result<String>| {
        serde_json::from_str(&line.map_err(|e| unreadable(e.into()))?).map_err(|e| unreadable(e.into()))
    };
    BufReader::new(file).lines().map(line).collect()
}
