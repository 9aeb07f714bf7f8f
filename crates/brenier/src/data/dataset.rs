//! Rows of features with their labels and names, in the space a user sees.
//!
//! Pixels stay bytes until a batch is asked for, so CIFAR-10 takes 154 MB for its 50,000 images and not four
//! times that. A `Dataset` is a list of rows over values that are shared: a part, a selection or a shuffled
//! order costs a row number per row and copies no value.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ndarray::{Array2, ArrayView2};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

use super::{Column, DataError, coding};
use crate::error::{Error, Result, expect_shape};

/// Rows of features, with what is known of them.
///
/// ```
/// use brenier::data::Dataset;
/// use ndarray::array;
///
/// let data = Dataset::from_rows("points", &[2], array![[0., 1.], [2., 3.], [4., 5.], [6., 7.]].view())?
///     .with_labels(vec![0, 1, 0, 1], vec!["even".into(), "odd".into()])?;
/// let (train, test) = data.split(0.75, 7)?;
/// assert_eq!((train.len(), test.len()), (3, 1));
/// assert_eq!(data.rows_f32(&[2])?, array![[4., 5.]]);
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Clone)]
pub struct Dataset {
    stored: Arc<Stored>,
    /// Which of the stored rows, in order.
    rows: Arc<[usize]>,
}

#[derive(Clone)]
struct Stored {
    /// Where the data come from, for messages.
    origin: String,
    shape: Vec<usize>,
    values: Values,
    labels: Option<Vec<u32>>,
    classes: Vec<String>,
    columns: Vec<Column>,
    /// Columns of the file that were not asked for.
    ignored: Vec<String>,
    names: Names,
}

#[derive(Clone)]
enum Values {
    /// Pixels; 255 is 1.
    Bytes(Vec<u8>),
    Floats(Vec<f32>),
}

/// Names of the stored rows.
#[derive(Debug, Clone)]
pub(crate) enum Names {
    /// Each its own.
    Each(Vec<String>),
    /// `file#row`: files in order, each with its number of rows.
    Numbered(Vec<(String, usize)>),
}

impl Dataset {
    /// Rows of features `[rows, features]`, each row of the given shape.
    ///
    /// # Errors
    /// If the shape does not have as many features as a row, or a value is not finite.
    pub fn from_rows(origin: &str, shape: &[usize], rows: ArrayView2<f32>) -> Result<Self> {
        expect_shape("a row of data", &[shape.iter().product()], &[rows.ncols()])?;
        Self::from_floats(origin, shape, rows.iter().copied().collect())
    }

    pub(crate) fn from_floats(origin: &str, shape: &[usize], values: Vec<f32>) -> Result<Self> {
        let data = Self::new(origin, shape, values.len(), Values::Floats(values))?;
        if let Values::Floats(values) = &data.stored.values
            && let Some(at) = values.iter().position(|value| !value.is_finite())
        {
            let features = data.features();
            return Err(DataError::NotFinite {
                data: origin.to_owned(),
                row: at / features,
                place: data.feature_name(at % features),
                value: f64::from(values[at]),
            }
            .into());
        }
        Ok(data)
    }

    /// Images as bytes, rows one after another, each `[channels, height, width]`; 255 is read as 1.
    ///
    /// # Errors
    /// If the number of bytes is not a multiple of the shape's.
    pub fn from_pixels(origin: &str, shape: &[usize], pixels: Vec<u8>) -> Result<Self> {
        Self::new(origin, shape, pixels.len(), Values::Bytes(pixels))
    }

    fn new(origin: &str, shape: &[usize], len: usize, values: Values) -> Result<Self> {
        let features: usize = shape.iter().product();
        if shape.is_empty() || features == 0 {
            return Err(Error::Zero { what: "the number of features of a row" });
        }
        let rows = len / features;
        expect_shape("all values together", &[rows * features], &[len])?;
        let names = Names::Numbered(vec![(origin.to_owned(), rows)]);
        let stored = Stored {
            origin: origin.to_owned(),
            shape: shape.to_vec(),
            values,
            labels: None,
            classes: Vec::new(),
            columns: Vec::new(),
            ignored: Vec::new(),
            names,
        };
        Ok(Self { stored: Arc::new(stored), rows: (0..rows).collect() })
    }

    /// The same rows with a class for each.
    ///
    /// # Errors
    /// If the labels are not as many as the rows, or one is not below the number of classes.
    pub fn with_labels(self, labels: Vec<usize>, classes: Vec<String>) -> Result<Self> {
        expect_shape("the labels", &[self.len()], &[labels.len()])?;
        if let Some((row, label)) = labels.iter().enumerate().find(|(_, label)| **label >= classes.len()) {
            return Err(DataError::Label {
                path: self.origin().into(),
                row,
                label: label.to_string(),
                classes: classes.len(),
            }
            .into());
        }
        let mut by_stored_row = vec![0; self.stored_rows()];
        for (&row, label) in self.rows.iter().zip(labels) {
            by_stored_row[row] = label as u32;
        }
        Ok(self.edit(|stored| {
            stored.labels = Some(by_stored_row);
            stored.classes = classes;
        }))
    }

    /// The same rows with a name for each of their features, which become columns of numbers.
    ///
    /// # Errors
    /// If the names are not as many as the features.
    pub fn with_column_names(self, names: Vec<String>) -> Result<Self> {
        expect_shape("the names of columns", &[self.features()], &[names.len()])?;
        let numeric = |name| Column { name, kind: super::ColumnKind::Numeric };
        Ok(self.with_columns(names.into_iter().map(numeric).collect()))
    }

    /// The same rows with the columns that their features code.
    pub fn with_columns(self, columns: Vec<Column>) -> Self {
        self.edit(|stored| stored.columns = columns)
    }

    pub(crate) fn with_ignored(self, ignored: Vec<String>) -> Self {
        self.edit(|stored| stored.ignored = ignored)
    }

    pub(crate) fn with_names(self, names: Names) -> Self {
        self.edit(|stored| stored.names = names)
    }

    fn edit(mut self, change: impl FnOnce(&mut Stored)) -> Self {
        // Copies the values only if another data set shares them.
        change(Arc::make_mut(&mut self.stored));
        self
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The shape of a row: `[channels, height, width]` of images, `[columns]` of tables.
    pub fn shape(&self) -> &[usize] {
        &self.stored.shape
    }

    /// The number of features of a row.
    pub fn features(&self) -> usize {
        self.stored.shape.iter().product()
    }

    /// Whether rows are images, `[channels, height, width]` with 1 or 3 channels.
    pub fn is_images(&self) -> bool {
        matches!(self.shape(), [1 | 3, _, _])
    }

    /// Where the data come from.
    pub fn origin(&self) -> &str {
        &self.stored.origin
    }

    /// The columns of a table, in order; empty for other data.
    pub fn columns(&self) -> &[Column] {
        &self.stored.columns
    }

    /// The columns of the file that a coding does not know: they were left out.
    pub fn ignored_columns(&self) -> &[String] {
        &self.stored.ignored
    }

    /// The name of a feature: its column, `column=value`, or its place such as `channel 0, row 3, column 5`.
    pub fn feature_name(&self, feature: usize) -> String {
        let of_columns = coding::with_features(self.columns())
            .find(|(_, range)| range.contains(&feature))
            .and_then(|(column, range)| column.feature_names().into_iter().nth(feature - range.start));
        match (of_columns, self.shape()) {
            (Some(name), _) => name,
            (None, &[_, height, width]) => {
                let (pixel, area) = (feature % (height * width), height * width);
                format!("channel {}, row {}, column {}", feature / area, pixel / width, pixel % width)
            }
            (None, _) => format!("feature {feature}"),
        }
    }

    /// The names of all features, in order.
    pub fn feature_names(&self) -> Vec<String> {
        match self.columns() {
            [] => (0..self.features()).map(|feature| self.feature_name(feature)).collect(),
            columns => columns.iter().flat_map(Column::feature_names).collect(),
        }
    }

    /// The names of the classes, in the order of their numbers; empty without labels.
    pub fn classes(&self) -> &[String] {
        &self.stored.classes
    }

    /// The class of each row, or `None` if the data have no labels.
    pub fn labels(&self) -> Option<Vec<usize>> {
        let labels = self.stored.labels.as_ref()?;
        Some(self.rows.iter().map(|&row| labels[row] as usize).collect())
    }

    /// The class of each row.
    ///
    /// # Errors
    /// If the data have no labels.
    pub fn require_labels(&self) -> Result<Vec<usize>> {
        self.labels().ok_or_else(|| DataError::NoLabels { data: self.origin().to_owned() }.into())
    }

    /// Refuses to go on with fewer than `needed` rows.
    ///
    /// # Errors
    /// If there are fewer; `what` says what they are needed for, such as `a batch`.
    pub fn require_rows(&self, needed: usize, what: &str) -> Result<()> {
        if self.len() >= needed {
            return Ok(());
        }
        let (data, rows) = (self.origin().to_owned(), self.len());
        Err(DataError::TooFewRows { data, rows, needed, what: what.to_owned() }.into())
    }

    /// The name of a row: its file, or `file#row` counted from 0 in that file.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn name(&self, row: usize) -> String {
        let mut row = self.rows[row];
        match &self.stored.names {
            Names::Each(names) => names[row].clone(),
            Names::Numbered(files) => {
                for (file, rows) in files {
                    if row < *rows {
                        return format!("{file}#{row}");
                    }
                    row -= rows;
                }
                format!("{}#{row}", self.origin())
            }
        }
    }

    /// The rows in a range, in order. No value is copied.
    ///
    /// # Errors
    /// If the range ends after the last row.
    pub fn rows(&self, range: Range<usize>) -> Result<Self> {
        self.require_rows(range.end, &format!("rows {} to {}", range.start, range.end))?;
        let start = range.start.min(range.end);
        Ok(self.with_rows(self.rows[start..range.end].into()))
    }

    /// The rows with these numbers, in this order; a row may come more than once. No value is copied.
    ///
    /// # Errors
    /// If there is no row of one of the numbers.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        self.check(indices)?;
        Ok(self.with_rows(indices.iter().map(|&index| self.rows[index]).collect()))
    }

    /// An order of all rows that depends on the seed alone.
    pub fn shuffled_order(&self, seed: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        order
    }

    /// The rows in an order that depends on the seed alone. No value is copied.
    pub fn shuffled(&self, seed: u64) -> Self {
        self.with_rows(self.shuffled_order(seed).into_iter().map(|index| self.rows[index]).collect())
    }

    /// A training part with the given fraction of the rows and the rest, drawn by the seed; each keeps the
    /// order the rows had.
    ///
    /// # Errors
    /// If the fraction is not between 0 and 1, or one of the parts would be empty.
    pub fn split(&self, train_fraction: f64, seed: u64) -> Result<(Self, Self)> {
        if !(train_fraction > 0.0 && train_fraction < 1.0) {
            return Err(Error::Setting {
                name: "the training fraction",
                value: train_fraction.to_string(),
                needs: "it must be above 0 and below 1",
                hint: "0.8".into(),
            });
        }
        self.require_rows(2, "a training part and a held-out part")?;
        let train = (self.len() as f64 * train_fraction).round() as usize;
        let mut order = self.shuffled_order(seed);
        let (first, second) = order.split_at_mut(train.clamp(1, self.len() - 1));
        first.sort_unstable();
        second.sort_unstable();
        Ok((self.select(first)?, self.select(second)?))
    }

    /// The values of these rows, `[rows, features]`.
    ///
    /// # Errors
    /// If there is no row of one of the numbers.
    pub fn rows_f32(&self, indices: &[usize]) -> Result<Array2<f32>> {
        self.gather(indices, |value| value)
    }

    /// The values of these rows in double precision, `[rows, features]`.
    ///
    /// # Errors
    /// If there is no row of one of the numbers.
    pub fn rows_f64(&self, indices: &[usize]) -> Result<Array2<f64>> {
        self.gather(indices, f64::from)
    }

    /// The values of all rows, `[rows, features]`. Four bytes a value: for large image sets, take batches.
    pub fn to_f32(&self) -> Result<Array2<f32>> {
        self.rows_f32(&(0..self.len()).collect::<Vec<_>>())
    }

    /// SHA-256 over the shape, the values and the labels of the rows in their order, as hexadecimal digits.
    ///
    /// The hash is over: the element type (`u8` or `f32`), the shape as decimal numbers with spaces between, a
    /// line break, the rows' values (little-endian), and, if there are labels, each as four bytes.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        let shape: Vec<String> = self.shape().iter().map(ToString::to_string).collect();
        let element = match self.stored.values {
            Values::Bytes(_) => "u8",
            Values::Floats(_) => "f32",
        };
        hash.update(format!("{element} {}\n", shape.join(" ")));
        let features = self.features();
        let mut bytes = Vec::with_capacity(4 * features);
        for &row in self.rows.iter() {
            let range = row * features..(row + 1) * features;
            match &self.stored.values {
                Values::Bytes(values) => hash.update(&values[range]),
                Values::Floats(values) => {
                    bytes.clear();
                    bytes.extend(values[range].iter().flat_map(|value| value.to_le_bytes()));
                    hash.update(&bytes);
                }
            }
        }
        if let Some(labels) = &self.stored.labels {
            for &row in self.rows.iter() {
                hash.update(labels[row].to_le_bytes());
            }
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A fingerprint of the values alone: two data sets with the same rows in the same order have the same one.
    pub(crate) fn values_fingerprint(&self) -> String {
        let mut hash = Sha256::new();
        for row in 0..self.len() {
            self.for_each_value(row, |_, value| hash.update(value.to_le_bytes()));
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Every value of a row in turn, without a copy.
    pub(crate) fn for_each_value(&self, row: usize, mut visit: impl FnMut(usize, f32)) {
        let features = self.features();
        let range = self.rows[row] * features..(self.rows[row] + 1) * features;
        match &self.stored.values {
            Values::Bytes(values) => {
                values[range].iter().enumerate().for_each(|(feature, &value)| visit(feature, pixel(value)));
            }
            Values::Floats(values) => {
                values[range].iter().enumerate().for_each(|(feature, &value)| visit(feature, value));
            }
        }
    }

    /// Whether the values are kept as bytes.
    pub(crate) fn is_pixels(&self) -> bool {
        matches!(self.stored.values, Values::Bytes(_))
    }

    /// The bytes of a row, if the values are pixels.
    pub(crate) fn pixels(&self, row: usize) -> Option<&[u8]> {
        let features = self.features();
        match &self.stored.values {
            Values::Bytes(values) => {
                Some(&values[self.rows[row] * features..(self.rows[row] + 1) * features])
            }
            Values::Floats(_) => None,
        }
    }

    fn gather<T: Copy>(&self, indices: &[usize], convert: impl Fn(f32) -> T) -> Result<Array2<T>> {
        self.check(indices)?;
        let features = self.features();
        let mut gathered = Vec::with_capacity(indices.len() * features);
        for &index in indices {
            let range = self.rows[index] * features..(self.rows[index] + 1) * features;
            match &self.stored.values {
                Values::Bytes(values) => {
                    gathered.extend(values[range].iter().map(|&value| convert(pixel(value))));
                }
                Values::Floats(values) => gathered.extend(values[range].iter().map(|&value| convert(value))),
            }
        }
        let len = gathered.len();
        Array2::from_shape_vec((indices.len(), features), gathered).map_err(|_| Error::Shape {
            what: "the gathered rows".into(),
            expected: vec![indices.len(), features],
            found: vec![len],
        })
    }

    fn check(&self, indices: &[usize]) -> Result<()> {
        match indices.iter().find(|&&index| index >= self.len()) {
            None => Ok(()),
            Some(index) => self.require_rows(index + 1, &format!("row {index}")),
        }
    }

    fn with_rows(&self, rows: Arc<[usize]>) -> Self {
        Self { stored: Arc::clone(&self.stored), rows }
    }

    fn stored_rows(&self) -> usize {
        let len = match &self.stored.values {
            Values::Bytes(values) => values.len(),
            Values::Floats(values) => values.len(),
        };
        len / self.features()
    }
}

impl fmt::Debug for Dataset {
    /// What it is, not the millions of numbers in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dataset")
            .field("origin", &self.origin())
            .field("rows", &self.len())
            .field("shape", &self.shape())
            .field("classes", &self.classes().len())
            .finish_non_exhaustive()
    }
}

fn pixel(value: u8) -> f32 {
    f32::from(value) / 255.0
}
