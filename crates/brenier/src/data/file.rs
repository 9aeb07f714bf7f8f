//! Files as bytes, unpacked if they are gzipped; and the labels that readers of images have in common.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::{DataError, Dataset, OpenOptions};
use crate::error::{Error, Result};

/// Unpacked bytes that nobody asks questions about.
const HARMLESS: u64 = 1 << 30;
/// Unpacked bytes for each packed one beyond which a file is made to fill memory: data do not pack so well.
const DENSEST: u64 = 100;

/// The whole file, unpacked if it begins as gzip does.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = crate::readable::read(path).map_err(cannot_read(path))?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let most = HARMLESS.max((bytes.len() as u64).saturating_mul(DENSEST)).min(crate::memory::most());
    let mut unpacked = Vec::new();
    let unpack = MultiGzDecoder::new(bytes.as_slice()).take(most + 1).read_to_end(&mut unpacked);
    if unpack.map_err(cannot_read(path))? as u64 > most {
        let reason = format!("it would take more than {most} bytes unpacked, and has {}", bytes.len());
        return Err(cannot_read(path)(reason));
    }
    Ok(unpacked)
}

/// The file's name, without its folder.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The end of the name in lower case, `gz` left out: `csv` for `a/B.CSV.gz`.
pub(crate) fn extension(path: &Path) -> String {
    let name = name(path).to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit_once('.').map(|(_, end)| end.to_owned()).unwrap_or_default()
}

/// What a folder holds, sorted by name, without hidden files.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot_read(folder))? {
        let path = entry.map_err(cannot_read(folder))?.path();
        if !name(&path).starts_with('.') {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Turns a failure to read into an error that names the file.
pub(crate) fn cannot_read<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    path: &Path,
) -> impl FnOnce(E) -> Error {
    let path = path.to_path_buf();
    move |source| Error::Read { path, source: source.into() }
}

/// The lines of a text file that are not empty.
pub(crate) fn lines(path: &Path) -> Result<Vec<String>> {
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Gives rows their classes: the names given by the user, or `known`, or the numbers that occur.
pub(crate) fn label(
    data: Dataset,
    labels: Vec<usize>,
    known: &[String],
    file: &Path,
    options: &OpenOptions,
) -> Result<Dataset> {
    if labels.len() != data.len() {
        return Err(DataError::LabelCount {
            data: data.origin().into(),
            rows: data.len(),
            file: file.to_path_buf(),
            labels: labels.len(),
        }
        .into());
    }
    let classes: Vec<String> = match (options.classes.as_slice(), known) {
        ([], []) => (0..=labels.iter().copied().max().unwrap_or(0)).map(|class| class.to_string()).collect(),
        ([], known) => known.to_vec(),
        (given, _) => given.to_vec(),
    };
    if let Some((row, label)) = labels.iter().enumerate().find(|(_, label)| **label >= classes.len()) {
        return Err(DataError::Label {
            path: file.to_path_buf(),
            row,
            label: label.to_string(),
            classes: classes.len(),
        }
        .into());
    }
    data.with_labels(labels, classes)
}
