//! Parquet: a table with types of its own, or images in a column of bytes.
//!
//! Columns of numbers (also decimals and truth values) are numbers, columns of text are categories. If a column
//! of bytes begins as a PNG or JPEG does, the file is a set of images: that column is decoded, and of the others
//! only the label is used. Nested columns and times are refused unless they are left out.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::basic::{ConvertedType, LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use rayon::prelude::*;

use super::dataset::Names;
use super::images::{self, Gathered};
use super::table::{Cells, RawColumn, Table, Texts};
use super::{DataError, Dataset, OpenOptions, file};
use crate::error::{Error, Result};

/// Images decoded at once.
const AT_ONCE: usize = 64;

/// Cells that any file may have.
const MOST_CELLS: usize = 100_000_000;
/// Cells for each byte of a file beyond which it is made to fill memory.
const DENSEST: usize = 100;

/// Reads a Parquet file.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    let handle = crate::readable::open(path).map_err(file::cannot_read(path))?;
    let reader = SerializedFileReader::new(handle).map_err(unreadable(path))?;
    let described = reader.metadata().file_metadata().schema_descr_ptr();
    if let Some(index) = image_column(path, &reader, described.columns(), options)? {
        return open_images(path, &reader, index, options);
    }
    read_table(path, &reader, options)?.into_dataset(options)
}

/// The table of a Parquet file; nothing where it holds images.
pub(crate) fn table(path: &Path, options: &OpenOptions) -> Result<Option<Table>> {
    let handle = crate::readable::open(path).map_err(file::cannot_read(path))?;
    let reader = SerializedFileReader::new(handle).map_err(unreadable(path))?;
    let described = reader.metadata().file_metadata().schema_descr_ptr();
    if image_column(path, &reader, described.columns(), options)?.is_some() {
        return Ok(None);
    }
    read_table(path, &reader, options).map(Some)
}

fn read_table(path: &Path, reader: &SerializedFileReader<File>, options: &OpenOptions) -> Result<Table> {
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema_descr_ptr();
    let rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap_or(0);
    let cells = rows.saturating_mul(schema.num_columns());
    let bytes = std::fs::metadata(path).map_or(0, |about| about.len());
    if cells > MOST_CELLS.max((bytes as usize).saturating_mul(DENSEST)) {
        let reason = format!("it declares {rows} rows of {} columns in {bytes} bytes", schema.num_columns());
        return Err(file::cannot_read(path)(reason));
    }
    let described: Vec<_> = schema.columns().to_vec();
    let mut columns = Vec::new();
    for (index, described) in described.iter().enumerate() {
        let name = described.path().string();
        if options.drop.contains(&name) || !used(&name, options) {
            // Its name is kept, so that leaving out a column that is not there is noticed.
            columns.push(RawColumn { name, cells: Cells::Numbers(Vec::new()) });
            continue;
        }
        let cells = match kind(path, described)? {
            Kind::Number(scale) => Cells::Numbers(read_numbers(path, reader, index, scale)?),
            Kind::Text => Cells::Text(read_texts(path, reader, index)?),
        };
        expect_rows(path, &name, &cells, rows)?;
        columns.push(RawColumn { name, cells });
    }
    Ok(Table { path: path.to_path_buf(), columns, rows, lines: None })
}

/// The groups of a broken file may have other rows than its header says.
fn expect_rows(path: &Path, column: &str, cells: &Cells, rows: usize) -> Result<()> {
    if cells.len() == rows {
        return Ok(());
    }
    let reason = format!("column '{column}' has {} rows, but the file says {rows}", cells.len());
    Err(file::cannot_read(path)(reason))
}

/// Whether a column is looked at: all are, unless a coding says which.
fn used(name: &str, options: &OpenOptions) -> bool {
    options.columns.is_empty()
        || options.label.as_deref() == Some(name)
        || options.categorical.iter().any(|column| column == name)
        || options.columns.iter().any(|column| column.name == name)
}

fn open_images(
    path: &Path,
    reader: &SerializedFileReader<File>,
    index: usize,
    options: &OpenOptions,
) -> Result<Dataset> {
    let mut gathered = Gathered::default();
    let mut row = 0;
    for group in 0..reader.num_row_groups() {
        let bytes = read_bytes(path, reader, group, index)?;
        for chunk in bytes.chunks(AT_ONCE) {
            let place = |row: usize| format!("{}#{row}", path.display());
            let decoded: Vec<Result<_>> = chunk
                .par_iter()
                .enumerate()
                .map(|(at, bytes)| {
                    let place = place(row + at);
                    let bytes = bytes.as_ref().map(ByteArray::data).unwrap_or_default();
                    images::prepare(images::decode(bytes, &place)?, &place, options)
                })
                .collect();
            for planes in decoded {
                gathered.push(PathBuf::from(place(row)), planes?)?;
                row += 1;
            }
        }
    }
    let data = gathered.finish(&path.display().to_string())?;
    let data = data.with_names(Names::Numbered(vec![(file::name(path), row)]));
    let Some(label) = &options.label else { return Ok(data) };
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for (index, described) in schema.columns().iter().enumerate() {
        let name = described.path().string();
        let cells = match (name == *label).then(|| kind(path, described)).transpose()? {
            None => Cells::Numbers(Vec::new()),
            Some(Kind::Number(scale)) => Cells::Numbers(read_numbers(path, reader, index, scale)?),
            Some(Kind::Text) => Cells::Text(read_texts(path, reader, index)?),
        };
        if name == *label {
            expect_rows(path, &name, &cells, row)?;
        }
        columns.push(RawColumn { name, cells });
    }
    let table = Table { path: path.to_path_buf(), columns, rows: row, lines: None };
    let rows: Vec<usize> = (0..row).collect();
    let (labels, classes) = table.labels(table.column(label)?, &rows, options)?;
    data.with_labels(labels, classes)
}

/// The first column of bytes that holds images.
fn image_column(
    path: &Path,
    reader: &SerializedFileReader<File>,
    columns: &[std::sync::Arc<ColumnDescriptor>],
    options: &OpenOptions,
) -> Result<Option<usize>> {
    for (index, column) in columns.iter().enumerate() {
        let plain = column.physical_type() == PhysicalType::BYTE_ARRAY && !is_text(column);
        if !plain || column.max_rep_level() > 0 || options.drop.contains(&column.path().string()) {
            continue;
        }
        if reader.num_row_groups() == 0 {
            return Ok(None);
        }
        let first = read_bytes(path, reader, 0, index)?.into_iter().flatten().next();
        let begins = |magic: &[u8]| first.as_ref().is_some_and(|bytes| bytes.data().starts_with(magic));
        if begins(b"\x89PNG") || begins(b"\xff\xd8\xff") {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

enum Kind {
    /// Numbers, to be multiplied by this (decimals are stored as whole numbers).
    Number(f64),
    Text,
}

fn is_text(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::String | LogicalType::Enum))
        || matches!(column.converted_type(), ConvertedType::UTF8 | ConvertedType::ENUM)
}

fn kind(path: &Path, column: &ColumnDescriptor) -> Result<Kind> {
    let refuse = |reason: String| {
        let (path, column) = (path.to_path_buf(), column.path().string());
        Err(DataError::Column {
            path,
            column,
            reason,
            hint: "leave the column out, or convert it to numbers or text".into(),
        }
        .into())
    };
    if column.max_rep_level() > 0 || column.max_def_level() > 1 {
        return refuse("is nested".into());
    }
    use ConvertedType as C;
    match (column.physical_type(), column.converted_type()) {
        (_, C::DATE | C::TIME_MILLIS | C::TIME_MICROS | C::TIMESTAMP_MILLIS | C::TIMESTAMP_MICROS) => {
            refuse("holds times".into())
        }
        (PhysicalType::INT64, _)
            if matches!(
                column.logical_type_ref(),
                Some(LogicalType::Timestamp(_) | LogicalType::Time(_))
            ) =>
        {
            refuse("holds times".into())
        }
        (PhysicalType::INT32 | PhysicalType::INT64, C::DECIMAL) => {
            Ok(Kind::Number(10_f64.powi(-column.type_scale())))
        }
        (
            PhysicalType::BOOLEAN
            | PhysicalType::INT32
            | PhysicalType::INT64
            | PhysicalType::FLOAT
            | PhysicalType::DOUBLE,
            _,
        ) => Ok(Kind::Number(1.0)),
        (PhysicalType::BYTE_ARRAY, _) if is_text(column) => Ok(Kind::Text),
        (other, _) => refuse(format!("holds {other}, which is neither numbers nor text")),
    }
}

fn read_numbers(
    path: &Path,
    reader: &SerializedFileReader<File>,
    index: usize,
    scale: f64,
) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    for group in 0..reader.num_row_groups() {
        let (column, rows) = column(path, reader, group, index)?;
        let fail = unreadable(path);
        let found: std::result::Result<Vec<Option<f64>>, ParquetError> = match column {
            ColumnReader::BoolColumnReader(column) => {
                read_all(column, rows, |value| f64::from(u8::from(*value)))
            }
            ColumnReader::Int32ColumnReader(column) => read_all(column, rows, |value| f64::from(*value)),
            ColumnReader::Int64ColumnReader(column) => read_all(column, rows, |value| *value as f64),
            ColumnReader::FloatColumnReader(column) => read_all(column, rows, |value| f64::from(*value)),
            ColumnReader::DoubleColumnReader(column) => read_all(column, rows, |value| *value),
            _ => Err(ParquetError::General("the column's type differs between row groups".into())),
        };
        numbers.extend(
            found.map_err(fail)?.into_iter().map(|value| value.map_or(f64::NAN, |value| value * scale)),
        );
    }
    Ok(numbers)
}

fn read_texts(path: &Path, reader: &SerializedFileReader<File>, index: usize) -> Result<Texts> {
    let mut texts = Texts::default();
    for group in 0..reader.num_row_groups() {
        for value in read_bytes(path, reader, group, index)? {
            match value {
                None => texts.push(""),
                Some(bytes) => texts.push(bytes.as_utf8().map_err(unreadable(path))?),
            }
        }
    }
    Ok(texts)
}

fn read_bytes(
    path: &Path,
    reader: &SerializedFileReader<File>,
    group: usize,
    index: usize,
) -> Result<Vec<Option<ByteArray>>> {
    match column(path, reader, group, index)? {
        (ColumnReader::ByteArrayColumnReader(column), rows) => {
            read_all(column, rows, Clone::clone).map_err(unreadable(path))
        }
        _ => Err(unreadable(path)(ParquetError::General(
            "the column's type differs between row groups".into(),
        ))),
    }
}

fn column(
    path: &Path,
    reader: &SerializedFileReader<File>,
    group: usize,
    index: usize,
) -> Result<(ColumnReader, usize)> {
    let group = reader.get_row_group(group).map_err(unreadable(path))?;
    let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
    // The library asserts that places of a file are not below 0.
    let opened = catch_unwind(AssertUnwindSafe(|| group.get_column_reader(index)));
    let broken = |_| ParquetError::General("the places of a column contradict the file".into());
    let reader = opened.map_err(broken).and_then(|opened| opened).map_err(unreadable(path))?;
    Ok((reader, rows))
}

/// All values of a flat column in a row group, `None` where empty.
fn read_all<T: DataType, V>(
    mut column: ColumnReaderImpl<T>,
    rows: usize,
    convert: impl Fn(&T::T) -> V,
) -> std::result::Result<Vec<Option<V>>, ParquetError> {
    // What a header declares is not yet there.
    let mut all = Vec::with_capacity(rows.min(1 << 16));
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    while all.len() < rows {
        levels.clear();
        values.clear();
        // The decoder asserts that counts of a file agree with one another, which those of a broken file may not.
        let read =
            AssertUnwindSafe(|| column.read_records(rows - all.len(), Some(&mut levels), None, &mut values));
        let broken = |_| ParquetError::General("the counts of a page contradict one another".into());
        let (records, ..) = catch_unwind(read).map_err(broken)??;
        if records == 0 {
            return Err(ParquetError::EOF(format!("a column ends after {} of {rows} rows", all.len())));
        }
        if levels.is_empty() {
            all.extend(values.iter().map(|value| Some(convert(value))));
        } else {
            let mut next = values.iter();
            all.extend(levels.iter().map(|&level| if level > 0 { next.next().map(&convert) } else { None }));
        }
    }
    Ok(all)
}

fn unreadable(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    let path = path.to_path_buf();
    move |error| {
        match error {
        ParquetError::NYI(reason) => DataError::Array {
            path,
            reason,
            hint: "write the file with snappy, gzip or no compression; zstd is read when brenier is built with its feature zstd".into(),
        }
        .into(),
        error => Error::Read { path, source: error.into() },
    }
    }
}
