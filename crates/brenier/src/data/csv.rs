//! CSV and its kin, also gzipped: a table as text.
//!
//! The character between cells and whether the first line has names are guessed from the first lines: the
//! character is the one that cuts all of them into the same number of cells, the most of them; and the first
//! line has names if one of its cells is no number.

use std::collections::BTreeSet;
use std::path::Path;

use super::table::{Cells, RawColumn, Table, Texts};
use super::{DataError, Dataset, OpenOptions, file};
use crate::error::{Error, Result};

const DELIMITERS: [u8; 5] = [b',', b';', b'\t', b'|', b' '];

/// Reads a CSV file.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    table(path, options)?.into_dataset(options)
}

/// The table of a CSV file.
pub(crate) fn table(path: &Path, options: &OpenOptions) -> Result<Table> {
    let bytes = file::read(path)?;
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(DataError::Unrecognised {
            path: path.to_path_buf(),
            reason: "it is text in UTF-16".into(),
            hint: "save it as UTF-8".into(),
        }
        .into());
    }
    read(path, bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes), options)
}

fn read(path: &Path, bytes: &[u8], options: &OpenOptions) -> Result<Table> {
    let delimiter = match options.delimiter {
        None => guess_delimiter(bytes),
        Some(given) => u8::try_from(given).map_err(|_| Error::Setting {
            name: "the delimiter",
            value: given.to_string(),
            needs: "it must be a single byte",
            hint: "',' or ';'".into(),
        })?,
    };
    let mut records = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(bytes)
        .into_records();
    let ragged = |error: csv::Error| match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => DataError::Ragged {
            path: path.to_path_buf(),
            line: pos.as_ref().map_or(0, csv::Position::line),
            found: *len,
            expected: *expected_len,
        }
        .into(),
        csv::ErrorKind::Utf8 { pos, .. } => {
            let line = pos.as_ref().map_or(0, csv::Position::line);
            let reason = format!("line {line} is not text in UTF-8");
            let (path, hint) = (path.to_path_buf(), "save the file as UTF-8".into());
            DataError::Unrecognised { path, reason, hint }.into()
        }
        _ => Error::Read { path: path.to_path_buf(), source: error.into() },
    };
    let first = match records.next() {
        Some(first) => first.map_err(ragged)?,
        None => {
            return Err(DataError::Empty {
                path: path.to_path_buf(),
                looked_for: "lines".into(),
                hint: "a table has a line of names and a line for each row".into(),
            }
            .into());
        }
    };
    let has_names = options.header.unwrap_or_else(|| first.iter().any(|cell| cell.parse::<f64>().is_err()));
    let mut columns: Vec<(String, Texts)> = first
        .iter()
        .enumerate()
        .map(|(index, cell)| (if has_names { cell.to_owned() } else { index.to_string() }, Texts::default()))
        .collect();
    let mut seen = BTreeSet::new();
    if let Some((name, _)) = columns.iter().find(|(name, _)| !seen.insert(name.as_str())) {
        return Err(DataError::Column {
            path: path.to_path_buf(),
            column: name.clone(),
            reason: "occurs twice in the first line".into(),
            hint: "rename one of them, or say that the first line has no names".into(),
        }
        .into());
    }
    let mut lines = Vec::new();
    let rows = (!has_names).then_some(Ok(first)).into_iter().chain(records);
    for record in rows {
        let record = record.map_err(ragged)?;
        lines.push(record.position().map_or(0, csv::Position::line));
        for ((_, texts), cell) in columns.iter_mut().zip(record.iter()) {
            texts.push(cell);
        }
    }
    let columns =
        columns.into_iter().map(|(name, texts)| RawColumn { name, cells: Cells::Untyped(texts) }).collect();
    Ok(Table { path: path.to_path_buf(), columns, rows: lines.len(), lines: Some(lines) })
}

fn guess_delimiter(bytes: &[u8]) -> u8 {
    let lines: Vec<&[u8]> =
        bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(20).collect();
    let count = |line: &[u8], delimiter: u8| {
        let mut quoted = false;
        line.iter()
            .filter(|&&byte| {
                quoted ^= byte == b'"';
                !quoted && byte == delimiter
            })
            .count()
    };
    let agreed = |delimiter: u8| {
        let first = lines.first().map_or(0, |line| count(line, delimiter));
        if lines.iter().all(|line| count(line, delimiter) == first) { first } else { 0 }
    };
    // Spaces stand around other delimiters, too: they count where there are no others.
    for delimiters in [&DELIMITERS[..4], &DELIMITERS[4..]] {
        let most = delimiters.iter().map(|&delimiter| agreed(delimiter)).max().unwrap_or(0);
        if most > 0 {
            return delimiters.iter().copied().find(|&d| agreed(d) == most).unwrap_or(b',');
        }
    }
    // Lines of different lengths: the error is clearest when they are cut where most cuts are.
    DELIMITERS[..4]
        .iter()
        .copied()
        .rev()
        .max_by_key(|&delimiter| lines.first().map_or(0, |line| count(line, delimiter)))
        .unwrap_or(b',')
}
