//! Inputs and baselines as they are typed: files of arrays, images, folders and tables.

use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brenier::data::{Column, Dataset, NpyRows, OpenOptions};
use brenier::runs::explain::Inputs;
use brenier::{Score, ValuePredictor};
use ndarray::{Array2, ArrayD, Axis, concatenate, s};
use ndarray_npy::{ReadNpyError, read_npy};

use super::schema::tell_of_columns;

/// An array of float32 or float64; nothing where the file holds other numbers.
fn read_array(file: &FilePath) -> Result<Option<ArrayD<f64>>> {
    let wrong = |error: &ReadNpyError| matches!(error, ReadNpyError::WrongDescriptor(_));
    let array = match read_npy::<_, ArrayD<f64>>(file) {
        Err(error) if wrong(&error) => match read_npy::<_, ArrayD<f32>>(file) {
            Err(error) if wrong(&error) => return Ok(None),
            read => read.map(|array| array.mapv(f64::from)),
        },
        read => read,
    };
    let array = array.with_context(|| format!("cannot read {} as an array of numbers", file.display()))?;
    Ok(Some(array))
}

/// The shape of one example of a file or folder.
pub(super) fn input_shape(file: &FilePath, options: &OpenOptions) -> Result<Vec<usize>> {
    if is_array(file)
        && let Some(rows) = NpyRows::open(file)?
    {
        // An image without the axis of the example has three axes.
        let shape = rows.array_shape();
        return Ok(shape[shape.len().saturating_sub(3)..].to_vec());
    }
    Ok(Dataset::open(file, options)?.shape().to_vec())
}

fn is_array(file: &FilePath) -> bool {
    file.extension().is_some_and(|end| end == "npy")
}

/// What to try where examples do not have the shape that the model takes.
fn shape_hint(found: &[usize], taken: &[usize]) -> &'static str {
    match (found, taken) {
        (&[h, w, c], &[c2, h2, w2]) if (h, w, c) == (h2, w2, c2) => {
            "images are channels first here: turn the axes around, in NumPy with x.transpose(0, 3, 1, 2)"
        }
        (&[c, h, w], &[h2, w2, c2]) if (h, w, c) == (h2, w2, c2) => {
            "the model takes its channels last: say --layout nhwc"
        }
        (&[c, _, _], &[c2, _, _]) if c == c2 => {
            "resize the inputs with --resize, or inside the model with --model-size"
        }
        (&[_, _, _], &[_, _, _]) => "give the channels with --color, and the size with --resize",
        (&[_], &[_]) => "give the table that the model was trained on, and its label with --label",
        _ => "the first axis is the example; give the shape of a row with --shape",
    }
}

fn misfit(file: &FilePath, found: &[usize], taken: &[usize]) -> anyhow::Error {
    anyhow!(
        "{} has examples of shape {found:?}, but the model takes {taken:?}\nhint: {}",
        file.display(),
        shape_hint(found, taken)
    )
}

/// Refuses data whose rows the model does not take.
pub(crate) fn expect_fitting(data: &Dataset, predictor: &ValuePredictor) -> Result<()> {
    if data.shape() == Score::shape(predictor) {
        return Ok(());
    }
    Err(misfit(FilePath::new(data.origin()), data.shape(), Score::shape(predictor)))
}

/// The rows of an array of floats, flat; one example without its axis counts as a batch of one.
pub(crate) fn rows(file: &FilePath, predictor: &ValuePredictor) -> Result<Array2<f64>> {
    match floats(file, predictor)? {
        Some(rows) => Ok(rows),
        None => bail!("{} holds no floats\nhint: in NumPy, save x.astype('float32')", file.display()),
    }
}

/// The rows of an array of floats; nothing where the file holds other numbers.
fn floats(file: &FilePath, predictor: &ValuePredictor) -> Result<Option<Array2<f64>>> {
    if let Some(rows) = NpyRows::open(file)? {
        let rows = fitting(rows, predictor)?;
        return Ok(Some(rows.rows(0..rows.len())?));
    }
    // Numbers in Fortran's order cannot be read row by row.
    let Some(mut array) = read_array(file)? else { return Ok(None) };
    let shape = Score::shape(predictor);
    if array.shape() == shape {
        array = array.insert_axis(Axis(0));
    }
    if array.shape().get(1..) != Some(shape) {
        return Err(misfit(file, array.shape().get(1..).unwrap_or_default(), shape));
    }
    let flat = array
        .to_shape((array.shape()[0], predictor.features()))
        .with_context(|| format!("cannot flatten {}", file.display()))?
        .to_owned();
    if let Some(((row, feature), value)) = flat.indexed_iter().find(|(_, value)| !value.is_finite()) {
        bail!(
            "row {row} of {} is {value} at feature {feature}\nhint: remove the row, or fill in the value",
            file.display()
        );
    }
    Ok(Some(flat))
}

/// An array whose examples the model takes; one example without its axis counts as a batch of one.
fn fitting(rows: NpyRows, predictor: &ValuePredictor) -> Result<NpyRows> {
    let shape = Score::shape(predictor);
    let rows = if rows.array_shape() == shape { rows.as_one_example() } else { rows };
    if rows.shape() != shape {
        return Err(misfit(rows.path(), rows.shape(), shape));
    }
    if rows.is_empty() {
        bail!("{} holds no examples", rows.path().display());
    }
    Ok(rows)
}

/// Files and folders of inputs, opened but not read into memory in full where they are arrays.
pub(crate) struct Sources(Vec<Source>);

enum Source {
    Array(NpyRows),
    /// An array that cannot be read in ranges.
    Held {
        file: String,
        rows: Array2<f64>,
    },
    Data(Dataset),
}

impl Source {
    /// Opens a file or folder whose examples the model takes.
    fn open(file: &FilePath, options: &OpenOptions, predictor: &ValuePredictor) -> Result<Source> {
        if is_array(file)
            && let Some(rows) = NpyRows::open(file)?
        {
            return Ok(Source::Array(fitting(rows, predictor)?));
        }
        let array = if is_array(file) { floats(file, predictor)? } else { None };
        if let Some(rows) = array {
            return Ok(Source::Held { file: file.display().to_string(), rows });
        }
        let data = Dataset::open(file, options)?;
        if data.shape() != Score::shape(predictor) {
            return Err(misfit(file, data.shape(), Score::shape(predictor)));
        }
        Ok(Source::Data(data))
    }

    fn len(&self) -> usize {
        match self {
            Source::Array(rows) => rows.len(),
            Source::Held { rows, .. } => rows.nrows(),
            Source::Data(data) => data.len(),
        }
    }

    fn rows(&self, range: Range<usize>) -> brenier::Result<Array2<f64>> {
        match self {
            Source::Array(rows) => rows.rows(range),
            Source::Held { rows, .. } => Ok(rows.slice(s![range, ..]).to_owned()),
            Source::Data(data) => data.rows_f64(&range.collect::<Vec<_>>()),
        }
    }

    fn name(&self, row: usize) -> String {
        match self {
            Source::Array(rows) => format!("{}#{row}", rows.path().display()),
            Source::Held { file, .. } => format!("{file}#{row}"),
            Source::Data(data) => data.name(row),
        }
    }
}

impl Sources {
    pub(crate) fn open(
        files: &[PathBuf],
        options: &OpenOptions,
        predictor: &ValuePredictor,
    ) -> Result<Sources> {
        let mut sources = Vec::with_capacity(files.len());
        let mut options = options.clone();
        for file in files {
            if !file.exists() {
                bail!(
                    "there is no {}\nhint: give images, a folder of them, or an npy, npz, csv or parquet file",
                    file.display()
                );
            }
            let source = Source::open(file, &options, predictor)?;
            if let Source::Data(data) = &source
                && !data.columns().is_empty()
            {
                tell_of_columns(data, !options.columns.is_empty());
                // Further tables have the columns of the first, whatever their order.
                options.columns = data.columns().to_vec();
            }
            sources.push(source);
        }
        Ok(Sources(sources))
    }

    /// The number of rows of all together.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Source::len).sum()
    }

    /// The names of the features, where they come from a table.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut tables = self.0.iter().rev().filter_map(|source| match source {
            Source::Data(data) if !data.columns().is_empty() => Some(data.feature_names()),
            _ => None,
        });
        tables.next().unwrap_or_default()
    }

    /// The columns of tables, as they were coded; none for other inputs.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut tables = self.0.iter().rev().filter_map(|source| match source {
            Source::Data(data) if !data.columns().is_empty() => Some(data.columns().to_vec()),
            _ => None,
        });
        tables.next().unwrap_or_default()
    }

    /// Some of the rows, by their ascending numbers in all together.
    pub(crate) fn some(&self, chosen: &[usize]) -> Result<Array2<f64>> {
        let parts = chosen.iter().map(|&row| self.rows(row..row + 1)).collect::<brenier::Result<Vec<_>>>()?;
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        concatenate(Axis(0), &views).context("cannot join the inputs")
    }

    /// The source of a row, and its number there.
    fn find(&self, row: usize) -> Option<(&Source, usize)> {
        let mut first = 0;
        self.0.iter().find_map(|source| {
            let here = first;
            first += source.len();
            (row < first).then_some((source, row - here))
        })
    }
}

impl Inputs for Sources {
    fn count(&self) -> usize {
        self.len()
    }

    fn rows(&self, range: Range<usize>) -> brenier::Result<Array2<f64>> {
        let (mut parts, mut first) = (Vec::new(), 0);
        for source in &self.0 {
            let here = first..first + source.len();
            let (from, to) = (range.start.max(here.start), range.end.min(here.end));
            if from < to {
                parts.push(source.rows(from - first..to - first)?);
            }
            first = here.end;
        }
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        let columns = views.first().map_or(0, |view| view.ncols());
        Ok(concatenate(Axis(0), &views).unwrap_or_else(|_| Array2::zeros((0, columns))))
    }

    fn name(&self, row: usize) -> Option<String> {
        self.find(row).map(|(source, row)| source.name(row))
    }
}
