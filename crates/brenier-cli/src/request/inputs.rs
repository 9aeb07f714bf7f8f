//! Inputs and baselines as they are typed: files of arrays, images, folders and tables.

use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brenier::data::{Column, Dataset, NpyRows, OpenOptions, expect_honest_npy};
use brenier::runs::explain::Inputs;
use brenier::text::Tokens;
use brenier::{Score, ValuePredictor};
use ndarray::{Array2, ArrayD, Axis, concatenate, s};
use ndarray_npy::{ReadNpyError, read_npy};

use super::array_change::Change;
use super::schema::tell_of_columns;

/// An array of float32 or float64; nothing where the file holds other numbers.
fn read_array(file: &FilePath) -> Result<Option<ArrayD<f64>>> {
    expect_honest_npy(file)?;
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
        (&[_, _, _], &[_, _, _]) => {
            "give as many channels as the model takes: of image files with --color, of an array in NumPy, such as \
             x.mean(axis=1, keepdims=True) for gray; give the size with --resize"
        }
        (&[_], &[_]) => "give the table that the model was trained on, and its label with --label",
        _ if found.iter().product::<usize>() == taken.iter().product::<usize>() => {
            "the first axis is the example; give the shape of a row with --shape"
        }
        _ => "the first axis is the example; every example must have as many numbers as the model takes",
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
    match floats(file, &OpenOptions::default(), predictor)? {
        Some(rows) => Ok(rows),
        None => bail!("{} holds no floats\nhint: in NumPy, save x.astype('float32')", file.display()),
    }
}

/// The rows of an array of floats; nothing where the file holds other numbers.
fn floats(file: &FilePath, options: &OpenOptions, predictor: &ValuePredictor) -> Result<Option<Array2<f64>>> {
    if let Some(rows) = NpyRows::open(file)? {
        let (rows, change) = fitting(rows, options, predictor)?;
        return Ok(Some(change.apply(rows.rows(0..change.limit(rows.len()))?)));
    }
    // Numbers in Fortran's order cannot be read row by row.
    let Some(mut array) = read_array(file)? else { return Ok(None) };
    let shape = Score::shape(predictor);
    if Change::of(array.shape(), options).is_ok_and(|change| change.shape() == shape) {
        array = array.insert_axis(Axis(0));
    }
    let own = array.shape().get(1..).unwrap_or_default().to_vec();
    let change = Change::of(&own, options)?.expecting(file, array.len_of(Axis(0)))?;
    if array.ndim() == 0 || change.shape() != shape {
        return Err(misfit(file, change.shape(), shape));
    }
    let flat = array
        .to_shape((array.shape()[0], own.iter().product::<usize>()))
        .with_context(|| format!("cannot flatten {}", file.display()))?
        .to_owned();
    let flat = change.apply(flat.slice(s![..change.limit(flat.nrows()), ..]).to_owned());
    if let Some(((row, feature), value)) = flat.indexed_iter().find(|(_, value)| !value.is_finite()) {
        bail!(
            "row {row} of {} is {value} at feature {feature}\nhint: remove the row, or fill in the value",
            file.display()
        );
    }
    Ok(Some(flat))
}

/// An array whose examples the model takes; one example without its axis counts as a batch of one.
fn fitting(rows: NpyRows, options: &OpenOptions, predictor: &ValuePredictor) -> Result<(NpyRows, Change)> {
    let shape = Score::shape(predictor);
    let single = Change::of(rows.array_shape(), options).is_ok_and(|change| change.shape() == shape);
    let rows = if single { rows.as_one_example() } else { rows };
    let change = Change::of(rows.shape(), options)?;
    if change.shape() != shape {
        return Err(misfit(rows.path(), change.shape(), shape));
    }
    if rows.is_empty() {
        bail!("{} holds no examples", rows.path().display());
    }
    let change = change.expecting(rows.path(), rows.len())?;
    Ok((rows, change))
}

/// Refuses flags that say nothing of arrays of floats, which have no columns, no colours and no parts.
pub(crate) fn refuse_for_floats(files: &[PathBuf], flag: Option<&str>) -> Result<()> {
    let Some(flag) = flag else { return Ok(()) };
    for file in files.iter().filter(|file| is_array(file) && file.exists()) {
        if NpyRows::open(file)?.is_some() {
            bail!("{flag} makes no difference to {}, an array of floats\nhint: leave it out", file.display());
        }
    }
    Ok(())
}

/// Files and folders of inputs, opened but not read into memory in full where they are arrays.
pub(crate) struct Sources(Vec<Source>);

enum Source {
    Array(NpyRows, Change),
    /// An array that cannot be read in ranges.
    Held {
        file: String,
        rows: Array2<f64>,
    },
    Data(Dataset),
    /// Texts as ids, with what their tokens are.
    Texts {
        names: Vec<String>,
        tokens: Vec<Tokens>,
        rows: Array2<f64>,
    },
}

impl Source {
    /// Opens a file or folder whose examples the model takes.
    fn open(file: &FilePath, options: &OpenOptions, predictor: &ValuePredictor) -> Result<Source> {
        if is_array(file)
            && let Some(rows) = NpyRows::open(file)?
        {
            let (rows, change) = fitting(rows, options, predictor)?;
            return Ok(Source::Array(rows, change));
        }
        let array = if is_array(file) { floats(file, options, predictor)? } else { None };
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
            Source::Array(rows, change) => change.limit(rows.len()),
            Source::Held { rows, .. } | Source::Texts { rows, .. } => rows.nrows(),
            Source::Data(data) => data.len(),
        }
    }

    fn rows(&self, range: Range<usize>) -> brenier::Result<Array2<f64>> {
        match self {
            Source::Array(rows, change) => Ok(change.apply(rows.rows(range)?)),
            Source::Held { rows, .. } | Source::Texts { rows, .. } => {
                Ok(rows.slice(s![range, ..]).to_owned())
            }
            Source::Data(data) => data.rows_f64(&range.collect::<Vec<_>>()),
        }
    }

    fn name(&self, row: usize) -> String {
        match self {
            Source::Array(rows, _) => format!("{}#{row}", rows.path().display()),
            Source::Held { file, .. } => format!("{file}#{row}"),
            Source::Texts { names, .. } => names.get(row).cloned().unwrap_or_default(),
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

    /// Rows that were read already.
    pub(crate) fn of_rows(origin: &str, rows: Array2<f64>) -> Sources {
        Sources(vec![Source::Held { file: origin.to_string(), rows }])
    }

    /// Texts that were made ids, with their tokens.
    pub(crate) fn of_texts(names: Vec<String>, tokens: Vec<Tokens>, rows: Array2<f64>) -> Sources {
        Sources(vec![Source::Texts { names, tokens, rows }])
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

    fn tokens(&self, row: usize) -> Option<Tokens> {
        match self.find(row)? {
            (Source::Texts { tokens, .. }, row) => tokens.get(row).cloned(),
            _ => None,
        }
    }
}
