//! The reasons of a whole run as files: `reasons.csv`, `reasons.json`, `reasons.txt`. Explanations are read one at a time.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{REASONS_CAVEAT, Reasons, ReasonsConfig};
use crate::data::Column;
use crate::error::Result;
use crate::report::ExplanationReader;
use crate::whole_file::write_with;

/// Writes the reasons of all explanations of a folder beside them; gives the files.
///
/// # Errors
/// If there are no explanations, or a file cannot be written.
pub fn save_reasons(
    folder: &Path,
    config: &ReasonsConfig,
    columns: &[Column],
    classes: &[String],
) -> Result<Vec<PathBuf>> {
    let files: Vec<PathBuf> =
        ["reasons.csv", "reasons.json", "reasons.txt"].map(|name| folder.join(name)).into();
    let all = || -> Result<_> {
        let found = ExplanationReader::open(folder)?;
        Ok(found.filter_map(|explanation| match explanation {
            Ok(explanation) => config.of(columns, classes, &explanation).map(Ok),
            Err(error) => Some(Err(error)),
        }))
    };
    write_with(&files[0], |file| {
        file.write_all(Reasons::HEADER.as_bytes())?;
        for reasons in all()? {
            reasons?.write_csv(file)?;
        }
        Ok(())
    })?;
    write_with(&files[1], |file| {
        write!(file, "{{\"caveat\":{},\"rows\":[", serde_json::to_string(REASONS_CAVEAT)?)?;
        for (place, reasons) in all()?.enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(file, "{comma}\n{}", serde_json::to_string(&reasons?)?)?;
        }
        Ok(file.write_all(b"\n]}\n")?)
    })?;
    write_with(&files[2], |file| {
        for reasons in all()? {
            writeln!(file, "{}", reasons?.text())?;
        }
        Ok(writeln!(file, "{REASONS_CAVEAT}")?)
    })?;
    Ok(files)
}
