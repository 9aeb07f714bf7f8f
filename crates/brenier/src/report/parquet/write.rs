//! Writes explanations, a group of rows at a time.

use std::path::Path;
use std::sync::Arc;

use ndarray::Array1;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{NAMES, SCHEMA, SHAPE, rows_in_group};
use crate::attribute::{Certificate, Completeness, Explanation, Verdict};
use crate::error::{Error, Result};
use crate::whole_file::{Failure, write_with};

/// Columns whose numbers and words are hardly ever the same twice.
const ALL_DIFFERENT: [&str; 2] = ["id", "certificate"];
const LISTS: [&str; 4] = ["credit", "input", "reference", "standard_errors"];

/// Writes explanations into a file, whole or not at all.
///
/// # Errors
/// If they are not of one shape; what `explanations` says.
pub(crate) fn write(
    path: &Path,
    names: Option<&str>,
    explanations: impl Iterator<Item = Result<Explanation>>,
) -> Result<()> {
    let mut explanations = explanations.peekable();
    let shape = match explanations.peek() {
        Some(Ok(first)) => first.shape.clone(),
        _ => Vec::new(),
    };
    let features = shape.iter().product();
    // What reading says is no fault of the file that is written.
    let mut unread = None;
    let written = write_with(path, |file| {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties(&shape, names)))?;
        let mut group = Vec::new();
        for explanation in explanations {
            match explanation {
                Ok(explanation) if explanation.shape == shape => group.push(explanation),
                Ok(other) => unread = Some(misfit(&shape, &other)),
                Err(error) => unread = Some(error),
            }
            if unread.is_some() {
                return Err("its explanations cannot be read".into());
            }
            if group.len() == rows_in_group(features) {
                write_group(&mut writer, &group)?;
                group.clear();
            }
        }
        if !group.is_empty() {
            write_group(&mut writer, &group)?;
        }
        writer.close()?;
        Ok(())
    });
    unread.map_or(written, Err)
}

fn misfit(shape: &[usize], other: &Explanation) -> Error {
    Error::Shape {
        what: "the explanations to be saved together".to_string(),
        expected: shape.to_vec(),
        found: other.shape.clone(),
    }
}

fn properties(shape: &[usize], names: Option<&str>) -> WriterProperties {
    let sizes = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let facts = [(SHAPE, Some(sizes)), (NAMES, names.map(str::to_string))];
    let facts = facts.into_iter().filter_map(|(key, value)| Some(KeyValue::new(key.to_string(), value?)));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(facts.collect()));
    for name in ALL_DIFFERENT {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(name), false);
    }
    for name in LISTS {
        let element = ColumnPath::new(vec![name.into(), "list".into(), "element".into()]);
        properties = properties.set_column_dictionary_enabled(element, false);
    }
    properties.build()
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write_group<W: std::io::Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    rows: &[Explanation],
) -> std::result::Result<(), Failure> {
    let mut group = writer.next_row_group()?;
    let of =
        |pick: fn(&Certificate) -> i64| rows.iter().map(|row| pick(&row.certificate)).collect::<Vec<_>>();
    let words = |pick: fn(&Certificate) -> String| {
        rows.iter().map(|row| ByteArray::from(pick(&row.certificate).into_bytes())).collect::<Vec<_>>()
    };
    let completeness = |pick: fn(&Completeness) -> Option<f64>| {
        rows.iter().map(|row| row.certificate.completeness.as_ref().and_then(pick)).collect::<Vec<_>>()
    };
    let scores: Vec<f64> = rows.iter().map(|row| row.certificate.score).collect();
    plain::<ByteArrayType, _>(&mut group, &words(id))?;
    plain::<Int64Type, _>(&mut group, &of(|c| c.example as i64))?;
    plain::<ByteArrayType, _>(&mut group, &words(|c| c.method.clone()))?;
    plain::<Int64Type, _>(&mut group, &of(|c| c.target as i64))?;
    plain::<DoubleType, _>(&mut group, &scores)?;
    optional(&mut group, &completeness(|c| Some(c.reference_score)))?;
    optional(&mut group, &completeness(|c| Some(c.residual)))?;
    optional(&mut group, &completeness(|c| c.relative_residual))?;
    plain::<ByteArrayType, _>(&mut group, &words(|c| verdict(&c.verdict).to_string()))?;
    plain::<Int64Type, _>(&mut group, &of(|c| c.gradient_evaluations as i64))?;
    plain::<Int64Type, _>(&mut group, &of(|c| c.score_evaluations as i64))?;
    lists(&mut group, rows, false, |row| Some(&row.values))?;
    lists(&mut group, rows, false, |row| Some(&row.input))?;
    lists(&mut group, rows, true, |row| row.reference.as_ref())?;
    lists(&mut group, rows, true, |row| row.standard_errors.as_ref())?;
    let certificates = rows
        .iter()
        .map(|row| Ok(ByteArray::from(serde_json::to_vec(&row.certificate)?)))
        .collect::<std::result::Result<Vec<_>, serde_json::Error>>()?;
    plain::<ByteArrayType, _>(&mut group, &certificates)?;
    group.close()?;
    Ok(())
}

/// The input's name, such as its file; its number in the run where it has none.
fn id(certificate: &Certificate) -> String {
    certificate.name.clone().unwrap_or_else(|| certificate.example.to_string())
}

/// The verdict by its name in certificates.
fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Warn { .. } => "warn",
        Verdict::NotCalibrated { .. } => "not-calibrated",
        Verdict::NoCheck => "no-check",
    }
}

/// A column without gaps.
fn plain<T: DataType, W: std::io::Write + Send>(
    group: &mut Group<W>,
    values: &[T::T],
) -> std::result::Result<(), Failure> {
    let mut column = group.next_column()?.ok_or("a column is missing")?;
    column.typed::<T>().write_batch(values, None, None)?;
    Ok(column.close()?)
}

/// A column of numbers, some of which are not there.
fn optional<W: std::io::Write + Send>(
    group: &mut Group<W>,
    values: &[Option<f64>],
) -> std::result::Result<(), Failure> {
    let there: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<f64> = values.iter().flatten().copied().collect();
    let mut column = group.next_column()?.ok_or("a column is missing")?;
    column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
    Ok(column.close()?)
}

/// A column of lists. In Parquet's words, a definition level says how much of a value is there (the list, its elements) and a
/// repetition level whether a value goes on with the list of the one before.
fn lists<W: std::io::Write + Send>(
    group: &mut Group<W>,
    rows: &[Explanation],
    may_be_absent: bool,
    pick: fn(&Explanation) -> Option<&Array1<f64>>,
) -> std::result::Result<(), Failure> {
    let mut column = group.next_column()?.ok_or("a column is missing")?;
    let column_of_numbers = column.typed::<DoubleType>();
    let empty_list = i16::from(may_be_absent);
    let (mut defined, mut repeated) = (Vec::new(), Vec::new());
    for row in rows {
        let Some(values) = pick(row) else {
            column_of_numbers.write_batch(&[], Some(&[0]), Some(&[0]))?;
            continue;
        };
        if values.is_empty() {
            column_of_numbers.write_batch(&[], Some(&[empty_list]), Some(&[0]))?;
            continue;
        }
        defined.resize(values.len(), empty_list + 1);
        repeated.resize(values.len(), 1);
        repeated[0] = 0;
        let flat = values.as_standard_layout();
        let flat = flat.as_slice().ok_or("its credit is not flat")?;
        column_of_numbers.write_batch(flat, Some(&defined), Some(&repeated))?;
    }
    Ok(column.close()?)
}
