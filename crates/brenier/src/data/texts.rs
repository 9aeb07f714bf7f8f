//! Texts: a file with one a line, or a column of a table.

use std::path::Path;

use super::table::Cells;
use super::{Column, ColumnKind, DataError, OpenOptions, csv, file, parquet};
use crate::error::{Error, Result};

/// Reads texts with their names: the lines of a file that are not blank, or the cells of a table's column.
///
/// # Errors
/// If the file cannot be read, has no such column or no text, and if a cell is empty.
pub fn read_texts(path: impl AsRef<Path>, column: Option<&str>) -> Result<Vec<(String, String)>> {
    let path = path.as_ref();
    let is_table = matches!(file::extension(path).as_str(), "csv" | "tsv" | "parquet" | "pq");
    let name = |row: usize| format!("{}#{row}", file::name(path));
    let texts = match column {
        Some(column) if is_table => of_column(path, column)?,
        Some(column) => {
            return Err(refused(
                path,
                format!("it is no table, so it has no column '{column}'"),
                "give a csv, tsv or parquet file, or leave the column out",
            ));
        }
        None if is_table => {
            return Err(refused(
                path,
                "it is a table, and nothing says which column holds the text".into(),
                "name the column behind the file: reviews.csv:review",
            ));
        }
        None => {
            let whole = std::fs::read(path).map_err(file::cannot_read(path))?;
            let whole = String::from_utf8(whole)
                .map_err(|_| refused(path, "it is not text in UTF-8".into(), "save the file as UTF-8"))?;
            let whole = whole.strip_prefix('\u{feff}').unwrap_or(&whole).to_string();
            whole.lines().map(str::to_string).collect()
        }
    };
    let blank = |text: &String| text.trim().is_empty();
    if let (Some(column), Some(row)) = (column, texts.iter().position(blank)) {
        return Err(refused(
            path,
            format!("row {row} of column '{column}' is empty"),
            "leave the row out, or fill it in",
        ));
    }
    let found: Vec<(String, String)> = texts
        .into_iter()
        .enumerate()
        .filter(|(_, text)| !blank(text))
        .map(|(row, text)| (name(row), text))
        .collect();
    if found.is_empty() {
        return Err(refused(path, "it holds no text".into(), "give a file with a text a line"));
    }
    Ok(found)
}

fn of_column(path: &Path, column: &str) -> Result<Vec<String>> {
    let table = match file::extension(path).as_str() {
        "csv" | "tsv" => csv::table(path, &OpenOptions::default())?,
        _ => {
            // Only this column is looked at: others may be of any kind.
            let only = Column { name: column.to_string(), kind: ColumnKind::Numeric };
            let options = OpenOptions { columns: vec![only], ..OpenOptions::default() };
            parquet::table(path, &options)?.ok_or_else(|| {
                refused(path, "it holds images".into(), "give a table with a column of text")
            })?
        }
    };
    match &table.column(column)?.cells {
        Cells::Text(texts) | Cells::Untyped(texts) => {
            Ok((0..table.rows).map(|row| texts.get(row).to_string()).collect())
        }
        Cells::Numbers(_) => {
            Err(refused(path, format!("column '{column}' holds numbers"), "name a column of text"))
        }
    }
}

fn refused(path: &Path, reason: String, hint: &'static str) -> Error {
    DataError::Unrecognised { path: path.to_path_buf(), reason, hint: hint.into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_lines_or_cells_of_a_column() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let lines = file("a.txt", "\u{feff}one film\n\n  \nanother, bad\n");
        let found = read_texts(&lines, None).unwrap();
        assert_eq!(found, [("a.txt#0".into(), "one film".into()), ("a.txt#3".into(), "another, bad".into())]);
        let table = file("b.csv", "stars,review\n3,\"good, but long\"\n1,bad\n");
        let found = read_texts(&table, Some("review")).unwrap();
        assert_eq!(found, [("b.csv#0".into(), "good, but long".into()), ("b.csv#1".into(), "bad".into())]);
        let told = |path: &Path, column: Option<&str>| read_texts(path, column).unwrap_err().to_string();
        assert!(told(&table, None).contains("which column"));
        assert!(told(&table, Some("text")).contains("review"));
        assert!(told(&lines, Some("text")).contains("it is no table"));
        assert!(told(&file("c.csv", "a,b\n1,x\n2,\n"), Some("b")).contains("row 1 of column 'b' is empty"));
        assert!(told(&file("d.txt", "\n \n"), None).contains("holds no text"));
    }
}
