//! From the cells of a table to features: which columns are numbers, which are names, and which rows stay.
//!
//! A column is numeric when at least half of its cells that are not empty are numbers; a text among them is then
//! an error with its place, not a category. Every other column is categorical: a feature per value, in the order
//! of the values as text.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::dataset::Names;
use super::{Column, ColumnKind, DataError, Dataset, Missing, OpenOptions, Part, coding, file};
use crate::error::{Error, Result, expect_shape};

/// A text column with more values than this is taken for names or free text.
const MOST_CATEGORIES: usize = 100;
const MISSING_CATEGORY: &str = "missing";

/// A table as it is in the file.
pub(crate) struct Table {
    pub(crate) path: PathBuf,
    pub(crate) columns: Vec<RawColumn>,
    pub(crate) rows: usize,
    /// The line that each row begins in, for text files.
    pub(crate) lines: Option<Vec<u64>>,
}

pub(crate) struct RawColumn {
    pub(crate) name: String,
    pub(crate) cells: Cells,
}

pub(crate) enum Cells {
    /// Numbers by the file's own types; NaN where empty.
    Numbers(Vec<f64>),
    /// Text by the file's own types; empty where missing.
    Text(Texts),
    /// Text that may stand for numbers.
    Untyped(Texts),
}

impl Cells {
    pub(super) fn len(&self) -> usize {
        match self {
            Cells::Numbers(numbers) => numbers.len(),
            Cells::Text(texts) | Cells::Untyped(texts) => texts.ends.len(),
        }
    }
}

/// Many short texts in one piece of memory.
#[derive(Default)]
pub(crate) struct Texts {
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    pub(crate) fn get(&self, row: usize) -> &str {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.text[start..self.ends[row]]
    }
}

/// A cell as a message shows it: its beginning, where it is long.
fn shown(text: &str) -> String {
    let first: String = text.chars().take(60).collect();
    if first.len() < text.len() { first + "..." } else { first }
}

fn is_missing(text: &str) -> bool {
    matches!(text, "" | "NA" | "N/A" | "NaN" | "nan" | "null" | "NULL" | "?")
}

impl RawColumn {
    fn missing(&self, row: usize) -> bool {
        match &self.cells {
            Cells::Numbers(numbers) => numbers[row].is_nan(),
            Cells::Text(texts) | Cells::Untyped(texts) => is_missing(texts.get(row)),
        }
    }

    /// The number in a cell, if it is one.
    fn number(&self, row: usize) -> Option<f64> {
        match &self.cells {
            Cells::Numbers(numbers) => Some(numbers[row]),
            Cells::Text(_) => None,
            Cells::Untyped(texts) => texts.get(row).parse().ok(),
        }
    }

    /// The cell as a name.
    fn text(&self, row: usize) -> String {
        if self.missing(row) {
            return MISSING_CATEGORY.to_owned();
        }
        match &self.cells {
            Cells::Numbers(numbers) => numbers[row].to_string(),
            Cells::Text(texts) | Cells::Untyped(texts) => texts.get(row).to_owned(),
        }
    }
}

/// A name with `_` for everything but letters and digits.
fn letters(name: &str) -> String {
    name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

impl Table {
    /// The table as features.
    pub(crate) fn into_dataset(self, options: &OpenOptions) -> Result<Dataset> {
        if options.part == Part::Test {
            return Err(DataError::NoPart { path: self.path, part: "test" }.into());
        }
        let bound = !options.columns.is_empty();
        let label = match &options.label {
            // Rows that come without their label can be explained; who needs labels says so.
            Some(name) if bound && !self.has(name) => None,
            Some(name) => Some(self.column(name)?),
            None => None,
        };
        let used = self.used(options)?;
        if used.is_empty() {
            return Err(self.empty("columns of features", "not every column can be left out"));
        }
        let kept = self.rows_kept(&used, label, options);
        // What is coded is what is asked for; how it is coded follows from all rows.
        let rows = &kept[..options.limit.unwrap_or(usize::MAX).min(kept.len())];
        if rows.is_empty() {
            return Err(
                self.empty("rows", "every row has an empty cell, or the file has only its first line")
            );
        }
        let columns: Vec<Column> = if bound {
            options.columns.clone()
        } else {
            used.iter().map(|column| self.decide(column, &kept, options)).collect::<Result<_>>()?
        };

        let width = columns.iter().map(Column::width).sum();
        let mut values = vec![0.0_f32; rows.len() * width];
        let mut start = 0;
        for (column, raw) in columns.iter().zip(&used) {
            let cells = rows.iter().enumerate().map(|(at, &row)| (at * width + start, row));
            match &column.kind {
                ColumnKind::Numeric => {
                    for (at, row) in cells {
                        values[at] = self.number(raw, row)?;
                    }
                }
                ColumnKind::Categorical { values: known } => {
                    let levels = coding::Levels::new(known);
                    for (at, row) in cells {
                        let text = raw.text(row);
                        match levels.find(&text) {
                            Some(feature) => values[at + feature] = 1.0,
                            None if raw.missing(row) => return Err(self.empty_cell(raw, row)),
                            None => return Err(self.unknown_category(raw, row, &text, known)),
                        }
                    }
                }
            }
            start += column.width();
        }
        self.finish(columns, width, values, rows, label, options)
    }

    fn finish(
        &self,
        columns: Vec<Column>,
        width: usize,
        mut values: Vec<f32>,
        rows: &[usize],
        label: Option<&RawColumn>,
        options: &OpenOptions,
    ) -> Result<Dataset> {
        if let Some(maximum) = options.maximum {
            values.iter_mut().for_each(|value| *value /= maximum);
        }
        let shape = options.shape.clone().unwrap_or_else(|| vec![width]);
        let origin = self.path.display().to_string();
        expect_shape(&format!("a row of {origin}"), &[shape.iter().product()], &[width])?;
        let name = file::name(&self.path);
        let names = if rows.len() == self.rows {
            Names::Numbered(vec![(name, self.rows)])
        } else {
            Names::Each(rows.iter().map(|row| format!("{name}#{row}")).collect())
        };
        let data = Dataset::from_floats(&origin, &shape, values)?.with_columns(columns).with_names(names);
        let data = data.with_ignored(self.ignored(options));
        match label {
            None => Ok(data),
            Some(label) => {
                let (labels, classes) = self.labels(label, rows, options)?;
                data.with_labels(labels, classes)
            }
        }
    }

    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Result<&RawColumn> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known = self.columns.iter().map(|column| column.name.clone()).collect();
            DataError::NoColumn { path: self.path.clone(), name: name.to_owned(), known }.into()
        })
    }

    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    /// The columns that become features: those that a coding names, or all but the label and those left out.
    fn used(&self, options: &OpenOptions) -> Result<Vec<&RawColumn>> {
        if options.columns.is_empty() {
            for name in options.drop.iter().chain(&options.categorical) {
                self.column(name)?;
            }
            let left_out =
                |name: &String| Some(name) == options.label.as_ref() || options.drop.contains(name);
            return Ok(self.columns.iter().filter(|column| !left_out(&column.name)).collect());
        }
        let by_name: HashMap<&str, &RawColumn> =
            self.columns.iter().map(|column| (column.name.as_str(), column)).collect();
        let find = |column: &Column| match by_name.get(column.name.as_str()) {
            Some(raw) => Ok(*raw),
            None => self.spelled_alike(&column.name).map_or_else(|| self.column(&column.name), Ok),
        };
        options.columns.iter().map(find).collect()
    }

    /// The one column whose name differs in punctuation only: exporters write `hours_per_week` for `hours-per-week`.
    fn spelled_alike(&self, name: &str) -> Option<&RawColumn> {
        let wanted = letters(name);
        let mut found = self.columns.iter().filter(|column| letters(&column.name) == wanted);
        found.next().filter(|_| found.next().is_none())
    }

    /// The columns that nobody asked for: not in the coding, not the label, not left out on purpose.
    fn ignored(&self, options: &OpenOptions) -> Vec<String> {
        if options.columns.is_empty() {
            return Vec::new();
        }
        let known: HashSet<&str> = (options.columns.iter().map(|column| column.name.as_str()))
            .chain(options.label.as_deref())
            .chain(options.drop.iter().map(String::as_str))
            .collect();
        let used = options.columns.iter().filter(|column| !self.has(&column.name));
        let alike: HashSet<&str> =
            used.filter_map(|column| self.spelled_alike(&column.name)).map(|raw| raw.name.as_str()).collect();
        let known: HashSet<&str> = known.union(&alike).copied().collect();
        let names = self.columns.iter().map(|column| &column.name);
        names.filter(|name| !known.contains(name.as_str())).cloned().collect()
    }

    /// How the columns would be coded, by all rows. A label and columns to leave out may be missing here.
    pub(crate) fn learn(&self, options: &OpenOptions) -> Result<Vec<Column>> {
        let mut options = OpenOptions { columns: Vec::new(), ..options.clone() };
        options.label = options.label.filter(|name| self.has(name));
        options.drop.retain(|name| self.has(name));
        options.categorical.retain(|name| self.has(name));
        let rows: Vec<usize> = (0..self.rows).collect();
        self.used(&options)?.into_iter().map(|column| self.decide(column, &rows, &options)).collect()
    }

    /// The rows that stay, if rows with empty cells are to be left out.
    fn rows_kept(&self, used: &[&RawColumn], label: Option<&RawColumn>, options: &OpenOptions) -> Vec<usize> {
        let drop = options.missing == Missing::DropRow;
        let complete = |row: &usize| !used.iter().copied().chain(label).any(|column| column.missing(*row));
        (0..self.rows).filter(|row| !drop || complete(row)).collect()
    }

    /// Whether a column is numbers or names.
    fn decide(&self, column: &RawColumn, rows: &[usize], options: &OpenOptions) -> Result<Column> {
        let name = column.name.clone();
        let asked = options.categorical.contains(&name);
        let (mut numbers, mut texts) = (0, 0);
        for &row in rows.iter().filter(|row| !column.missing(**row)) {
            if column.number(row).is_some() { numbers += 1 } else { texts += 1 }
        }
        if numbers + texts == 0 {
            return Err(self.bad_column(&name, "is empty in every row".into(), "leave the column out"));
        }
        if !asked && numbers >= texts {
            return Ok(Column { name, kind: ColumnKind::Numeric });
        }
        let mut values = BTreeSet::new();
        for &row in rows {
            // An empty cell is told of where it is coded.
            if column.missing(row) && options.missing != Missing::Category {
                continue;
            }
            values.insert(column.text(row));
            if values.len() > MOST_CATEGORIES && !asked {
                return Err(self.bad_column(
                    &name,
                    format!(
                        "holds text with more than {MOST_CATEGORIES} different values, such as '{}'",
                        shown(&column.text(row))
                    ),
                    "leave the column out, or name it as categorical to have a feature for each value",
                ));
            }
        }
        let values = coding::in_order(values);
        Ok(Column { name, kind: ColumnKind::Categorical { values } })
    }

    fn number(&self, column: &RawColumn, row: usize) -> Result<f32> {
        if column.missing(row) {
            let reason = "the cell is empty or NaN in a column of numbers".into();
            return Err(self.bad_cell(column, row, reason, "fill it in, or leave out rows with empty cells"));
        }
        match column.number(row).map(|number| number as f32) {
            Some(number) if number.is_finite() => Ok(number),
            Some(_) => {
                let reason = format!("'{}' is not a finite number", shown(&column.text(row)));
                Err(self.bad_cell(column, row, reason, "correct the cell, or leave the column out"))
            }
            None => {
                let reason = format!("'{}' is text in a column of numbers", shown(&column.text(row)));
                let hint = "correct the cell, name the column as categorical, or leave it out";
                Err(self.bad_cell(column, row, reason, hint))
            }
        }
    }

    fn unknown_category(&self, column: &RawColumn, row: usize, text: &str, known: &[String]) -> Error {
        let first: Vec<&str> = known.iter().take(20).map(String::as_str).collect();
        let more = if known.len() > first.len() { ", ..." } else { "" };
        let reason = format!("'{}' is none of the values {}{more}", shown(text), first.join(", "));
        let hint =
            "the model knows only the values it was trained with; correct the cell, or leave the row out";
        self.bad_cell(column, row, reason, hint)
    }

    fn empty_cell(&self, column: &RawColumn, row: usize) -> Error {
        let hint = "fill it in, leave out rows with empty cells, or count them as a value of their own";
        self.bad_cell(column, row, "the cell is empty".into(), hint)
    }

    /// The classes of the rows, and their names.
    ///
    /// Whole numbers from 0 are class numbers as they are; anything else is numbered in sorted order.
    pub(crate) fn labels(
        &self,
        column: &RawColumn,
        rows: &[usize],
        options: &OpenOptions,
    ) -> Result<(Vec<usize>, Vec<String>)> {
        let mut texts = Vec::with_capacity(rows.len());
        for &row in rows {
            if column.missing(row) {
                return Err(self.bad_cell(
                    column,
                    row,
                    "the label is empty".into(),
                    "fill it in, or leave out the row",
                ));
            }
            texts.push(column.text(row));
        }
        let whole = |text: &str| {
            text.parse::<f64>().ok().filter(|number| number.fract() == 0.0).map(|number| number as i64)
        };
        if !options.classes.is_empty() {
            let classes = options.classes.clone();
            let find = |text: &String| {
                let by_name = classes.iter().position(|class| class == text);
                by_name.or_else(|| {
                    whole(text).and_then(|n| usize::try_from(n).ok()).filter(|&n| n < classes.len())
                })
            };
            let labels = texts.iter().zip(rows).map(|(text, &row)| {
                find(text).ok_or_else(|| {
                    let (label, classes) = (text.clone(), classes.len());
                    DataError::Label { path: self.path.clone(), row, label, classes }.into()
                })
            });
            let labels = labels.collect::<Result<_>>()?;
            return Ok((labels, classes));
        }
        let fractional = rows.iter().find(|&&row| {
            let number = column.number(row);
            number.is_some_and(|number| number.fract() != 0.0)
        });
        if let Some(&row) = fractional {
            let reason = format!("'{}' is a quantity, not a class", column.text(row));
            return Err(self.bad_cell(
                column,
                row,
                reason,
                "choose a column of classes, or leave this one out as a feature",
            ));
        }
        let numbers: Option<Vec<i64>> = texts.iter().map(|text| whole(text)).collect();
        match numbers {
            Some(numbers) if numbers.iter().all(|number| (0..1000).contains(number)) => {
                let classes = numbers.iter().copied().max().unwrap_or(0) + 1;
                let labels = numbers.into_iter().map(|number| number as usize).collect();
                Ok((labels, (0..classes).map(|class| class.to_string()).collect()))
            }
            numbers => {
                let mut classes: Vec<(i64, &String)> = match &numbers {
                    Some(numbers) => numbers.iter().copied().zip(&texts).collect(),
                    None => texts.iter().map(|text| (0, text)).collect(),
                };
                classes.sort();
                classes.dedup();
                let classes: Vec<String> = classes.into_iter().map(|(_, text)| text.clone()).collect();
                if classes.len() > 1000 {
                    let reason = format!("has {} different labels", classes.len());
                    return Err(self.bad_column(&column.name, reason, "choose a column of classes"));
                }
                let labels =
                    texts.iter().map(|text| classes.iter().position(|class| class == text).unwrap_or(0));
                Ok((labels.collect(), classes))
            }
        }
    }

    fn bad_cell(&self, column: &RawColumn, row: usize, reason: String, hint: &'static str) -> Error {
        let line = match &self.lines {
            Some(lines) => format!("line {}", lines[row]),
            None => format!("row {row}"),
        };
        DataError::Cell {
            path: self.path.clone(),
            line,
            column: column.name.clone(),
            reason,
            hint: hint.into(),
        }
        .into()
    }

    fn bad_column(&self, column: &str, reason: String, hint: &'static str) -> Error {
        DataError::Column { path: self.path.clone(), column: column.to_owned(), reason, hint: hint.into() }
            .into()
    }

    fn empty(&self, looked_for: &str, hint: &'static str) -> Error {
        DataError::Empty { path: self.path.clone(), looked_for: looked_for.to_owned(), hint: hint.into() }
            .into()
    }
}
