//! Parts of a run as one: files joined byte by byte, and the record of what they are made from written last.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::failure::{self, FAILURES};
use super::folder::{FINISHED, TRACES};
use crate::path::join_traces;
use crate::report::{ResultFormat, STILLS, join_explanations, join_stills, remove_explanations};
use crate::whole_file::{make_folder, write_whole};
use crate::{Error, Result};

/// Joins folders of results into one, in their order. Folders without explanations may be among them.
pub(super) fn join(
    folders: &[PathBuf],
    into: &Path,
    about: &BTreeMap<String, String>,
    format: ResultFormat,
) -> Result<()> {
    make_folder(into)?;
    let finished = into.join(FINISHED);
    // From here on the old results are not whole.
    remove(&finished)?;
    let mut failures = Vec::new();
    for folder in folders {
        failures.extend(failure::load(folder)?);
    }
    remove(&into.join(FAILURES))?;
    failure::save(into, &failures)?;
    let explained: Vec<PathBuf> =
        folders.iter().filter(|folder| ResultFormat::of(folder).is_some()).cloned().collect();
    if explained.is_empty() {
        remove_explanations(into, ResultFormat::Npz)?;
        remove_explanations(into, ResultFormat::Parquet)?;
    } else {
        join_explanations(&explained, into, format)?;
    }
    let files = [(STILLS, join_stills as fn(&[PathBuf], &Path) -> Result<()>), (TRACES, join_traces)];
    for (file, join) in files {
        // The places of stills count on an explanation of every input.
        let wanted = file != STILLS || failures.is_empty();
        let there: Vec<PathBuf> =
            folders.iter().map(|folder| folder.join(file)).filter(|path| wanted && path.exists()).collect();
        let whole = into.join(file);
        if there.is_empty() { remove(&whole)? } else { join(&there, &whole)? }
    }
    let text = serde_json::to_vec_pretty(about)
        .map_err(|e| Error::Write { path: finished.clone(), source: e.into() })?;
    write_whole(&finished, &text)
}

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Write { path: path.to_owned(), source: e.into() })
        }
        _ => Ok(()),
    }
}
