//! Reads explanations again, a few rows at a time.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use ndarray::Array1;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{NAMES, SHAPE, rows_in_group};
use crate::attribute::{Certificate, Explanation};
use crate::error::Result;
use crate::report::saved::read;
use crate::whole_file::Failure;

type Answer<T> = std::result::Result<T, Failure>;

/// Certificates that are read at a time.
const CERTIFICATES: usize = 256;
/// Numbers of a column of lists that are read at a time, about.
const NUMBERS: usize = 1 << 16;

/// Explanations of a file, one after another.
pub(crate) struct Rows {
    path: PathBuf,
    shape: Vec<usize>,
    names: Option<String>,
    left: usize,
    certificates: Column<ByteArrayType>,
    credit: Column<DoubleType>,
    input: Column<DoubleType>,
    reference: Column<DoubleType>,
    standard_errors: Column<DoubleType>,
}

impl Rows {
    /// Those of a file that [`super::write`] has written.
    pub(crate) fn open(path: &Path) -> Result<Rows> {
        read(path, |path| {
            let file = open(path)?;
            let facts = file.metadata().file_metadata();
            let left = usize::try_from(facts.num_rows())?;
            let fact = |key: &str| {
                let found = facts.key_value_metadata().into_iter().flatten().find(|pair| pair.key == key);
                found.and_then(|pair| pair.value.clone())
            };
            let Some(shape) = fact(SHAPE) else {
                return Err("it was not written by Brenier: its metadata have no 'brenier.shape'".into());
            };
            let shape: Vec<usize> = match shape.is_empty() {
                true => Vec::new(),
                false => shape.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?,
            };
            let features: usize = shape
                .iter()
                .try_fold(1_usize, |all, size| all.checked_mul(*size))
                .ok_or("the shape of its rows is larger than memory")?;
            let at_once = (NUMBERS / features.max(1)).clamp(1, rows_in_group(features));
            let numbers = |name: &str| Column::open(path, name, at_once, Some(features));
            Ok(Rows {
                path: path.to_owned(),
                shape,
                names: fact(NAMES),
                left,
                certificates: Column::open(path, "certificate", CERTIFICATES, None)?,
                credit: numbers("credit")?,
                input: numbers("input")?,
                reference: numbers("reference")?,
                standard_errors: numbers("standard_errors")?,
            })
        })
    }

    /// How many are left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// The shape of one.
    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// What was saved with them about names.
    pub(crate) fn names(&self) -> Option<&str> {
        self.names.as_deref()
    }

    fn row(&mut self) -> Answer<Explanation> {
        let needed = |row: Option<Array1<f64>>| row.ok_or_else(|| Failure::from("a row has no credit"));
        Ok(Explanation {
            certificate: self.certificates.next_certificate()?,
            values: needed(self.credit.next_list()?)?,
            input: needed(self.input.next_list()?)?,
            reference: self.reference.next_list()?,
            standard_errors: self.standard_errors.next_list()?,
            shape: self.shape.clone(),
        })
    }
}

impl Iterator for Rows {
    type Item = Result<Explanation>;

    fn next(&mut self) -> Option<Result<Explanation>> {
        self.left = self.left.checked_sub(1)?;
        let path = self.path.clone();
        Some(read(&path, |_| self.row()).inspect_err(|_| self.left = 0))
    }
}

/// The certificates of a file, one after another; nothing else of it is read.
pub(crate) struct CertificateColumn {
    path: PathBuf,
    left: usize,
    certificates: Column<ByteArrayType>,
}

impl CertificateColumn {
    /// Those of a file.
    pub(crate) fn open(path: &Path) -> Result<CertificateColumn> {
        read(path, |path| {
            let left = usize::try_from(open(path)?.metadata().file_metadata().num_rows())?;
            let certificates = Column::open(path, "certificate", CERTIFICATES, None)?;
            Ok(CertificateColumn { path: path.to_owned(), left, certificates })
        })
    }
}

impl Iterator for CertificateColumn {
    type Item = Result<Certificate>;

    fn next(&mut self) -> Option<Result<Certificate>> {
        self.left = self.left.checked_sub(1)?;
        let path = self.path.clone();
        Some(read(&path, |_| self.certificates.next_certificate()).inspect_err(|_| self.left = 0))
    }
}

fn open(path: &Path) -> Answer<SerializedFileReader<File>> {
    Ok(SerializedFileReader::new(File::open(path)?)?)
}

/// What a column holds for one row.
enum Cell {
    Bytes(ByteArray),
    Numbers(Array1<f64>),
    Absent,
}

/// One column, through all groups of rows.
struct Column<T: Read> {
    file: SerializedFileReader<File>,
    name: String,
    index: usize,
    group: usize,
    reader: Option<ColumnReaderImpl<T>>,
    at_once: usize,
    /// Numbers in a list; none for a column without lists.
    features: Option<usize>,
    cells: VecDeque<Cell>,
}

impl<T: Read> Column<T> {
    fn open(path: &Path, name: &str, at_once: usize, features: Option<usize>) -> Answer<Column<T>> {
        let file = open(path)?;
        let described = file.metadata().file_metadata().schema_descr_ptr();
        let index = described
            .columns()
            .iter()
            .position(|column| column.path().parts().first().is_some_and(|part| part == name))
            .ok_or_else(|| format!("it has no column '{name}'"))?;
        let levels = (described.column(index).max_rep_level(), features.is_some());
        if levels.0 != i16::from(levels.1) {
            return Err(format!("its column '{name}' is not of the kind that was written").into());
        }
        let (name, cells) = (name.to_string(), VecDeque::new());
        Ok(Column { file, name, index, group: 0, reader: None, at_once, features, cells })
    }

    /// The cell of the next row.
    fn next(&mut self) -> Answer<Cell> {
        while self.cells.is_empty() {
            let mut reader = match self.reader.take() {
                Some(reader) => reader,
                None if self.group < self.file.num_row_groups() => {
                    let column = self.file.get_row_group(self.group)?.get_column_reader(self.index)?;
                    self.group += 1;
                    T::typed(column).ok_or_else(|| format!("its column '{}' has another type", self.name))?
                }
                None => return Err(format!("its column '{}' ends too early", self.name).into()),
            };
            let cells = T::cells(&mut reader, self.at_once, self.features)?;
            if !cells.is_empty() {
                self.reader = Some(reader);
            }
            self.cells.extend(cells);
        }
        Ok(self.cells.pop_front().unwrap_or(Cell::Absent))
    }

    fn next_list(&mut self) -> Answer<Option<Array1<f64>>> {
        match self.next()? {
            Cell::Numbers(numbers) => Ok(Some(numbers)),
            _ => Ok(None),
        }
    }

    fn next_certificate(&mut self) -> Answer<Certificate> {
        match self.next()? {
            Cell::Bytes(bytes) => Ok(serde_json::from_slice(bytes.data())?),
            _ => Err("a row has no certificate".into()),
        }
    }
}

/// A type of columns that are read here.
trait Read: parquet::data_type::DataType + Sized {
    fn typed(column: ColumnReader) -> Option<ColumnReaderImpl<Self>>;

    /// The cells of some rows; none at the end of a group.
    fn cells(reader: &mut ColumnReaderImpl<Self>, rows: usize, features: Option<usize>) -> Answer<Vec<Cell>>;
}

impl Read for ByteArrayType {
    fn typed(column: ColumnReader) -> Option<ColumnReaderImpl<Self>> {
        match column {
            ColumnReader::ByteArrayColumnReader(column) => Some(column),
            _ => None,
        }
    }

    fn cells(reader: &mut ColumnReaderImpl<Self>, rows: usize, _: Option<usize>) -> Answer<Vec<Cell>> {
        let (mut defined, mut values) = (Vec::new(), Vec::new());
        let (records, found, _) = reader.read_records(rows, Some(&mut defined), None, &mut values)?;
        if records != found {
            return Err("a row has no certificate".into());
        }
        Ok(values.into_iter().map(Cell::Bytes).collect())
    }
}

impl Read for DoubleType {
    fn typed(column: ColumnReader) -> Option<ColumnReaderImpl<Self>> {
        match column {
            ColumnReader::DoubleColumnReader(column) => Some(column),
            _ => None,
        }
    }

    fn cells(reader: &mut ColumnReaderImpl<Self>, rows: usize, features: Option<usize>) -> Answer<Vec<Cell>> {
        let features = features.unwrap_or(1);
        let (mut defined, mut repeated, mut values) = (Vec::new(), Vec::new(), Vec::new());
        reader.read_records(rows, Some(&mut defined), Some(&mut repeated), &mut values)?;
        // The highest level is that of an element; one below is a list without any.
        let mut cells = Vec::new();
        let (mut level, mut value) = (0, 0);
        while level < repeated.len() {
            let end =
                repeated[level + 1..].iter().position(|r| *r == 0).map_or(repeated.len(), |n| level + 1 + n);
            let absent = defined.get(level) == Some(&0);
            let count = if absent || features == 0 { 0 } else { end - level };
            let Some(list) = values.get(value..value + count) else {
                return Err("a list is shorter than it says".into());
            };
            if !absent && count != features {
                return Err(format!("a list has {count} numbers where {features} are needed").into());
            }
            cells.push(if absent { Cell::Absent } else { Cell::Numbers(Array1::from(list.to_vec())) });
            (level, value) = (end, value + count);
        }
        Ok(cells)
    }
}
