//! Inputs and baselines as they are typed: files of arrays, images, folders and tables.

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brenier::data::{Dataset, OpenOptions};
use brenier::{Score, ValuePredictor};
use ndarray::{Array2, ArrayD, Axis, concatenate};
use ndarray_npy::{ReadNpyError, read_npy};

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
        && let Some(array) = read_array(file)?
    {
        // An image without the axis of the example has three axes.
        return Ok(array.shape()[array.ndim().saturating_sub(3)..].to_vec());
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

/// The rows of an array of floats, flat; one example without its axis counts as a batch of one.
pub(super) fn rows(file: &FilePath, predictor: &ValuePredictor) -> Result<Array2<f64>> {
    match floats(file, predictor)? {
        Some(rows) => Ok(rows),
        None => bail!("{} holds no floats\nhint: in NumPy, save x.astype('float32')", file.display()),
    }
}

/// The rows of an array of floats; nothing where the file holds other numbers.
fn floats(file: &FilePath, predictor: &ValuePredictor) -> Result<Option<Array2<f64>>> {
    let Some(mut array) = read_array(file)? else { return Ok(None) };
    let shape = Score::shape(predictor);
    if array.shape() == shape {
        array = array.insert_axis(Axis(0));
    }
    if array.shape().get(1..) != Some(shape) {
        return Err(misfit(file, array.shape().get(1..).unwrap_or_default(), shape));
    }
    let count = array.shape()[0];
    if count == 0 {
        bail!("{} holds no examples", file.display());
    }
    let flat = array
        .to_shape((count, predictor.features()))
        .with_context(|| format!("cannot flatten {}", file.display()))?
        .to_owned();
    if let Some(((row, feature), value)) = flat.indexed_iter().find(|(_, value)| !value.is_finite()) {
        bail!(
            "{} holds {value} in example {row}, feature {feature}\nhint: fill or drop missing values first",
            file.display()
        );
    }
    Ok(Some(flat))
}

/// The examples to be explained, with their names.
pub(crate) struct Inputs {
    pub(crate) rows: Array2<f64>,
    pub(crate) names: Vec<String>,
    /// The names of the features, where they come from a table.
    pub(crate) features: Vec<String>,
}

/// The rows of all files and folders that were given, in their order.
pub(crate) fn read_inputs(
    files: &[PathBuf],
    options: &OpenOptions,
    predictor: &ValuePredictor,
) -> Result<Inputs> {
    let sources = Sources::open(files, options, predictor)?;
    sources.rows(&(0..sources.len()).collect::<Vec<_>>())
}

/// Files and folders of inputs, opened but not yet read into memory in full.
pub(crate) struct Sources(Vec<Source>);

enum Source {
    Array { file: String, rows: Array2<f64> },
    Data(Dataset),
}

impl Source {
    fn len(&self) -> usize {
        match self {
            Source::Array { rows, .. } => rows.nrows(),
            Source::Data(data) => data.len(),
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
        for file in files {
            if !file.exists() {
                bail!(
                    "there is no {}\nhint: give images, a folder of them, or an npy, npz, csv or parquet file",
                    file.display()
                );
            }
            let array = if is_array(file) { floats(file, predictor)? } else { None };
            if let Some(rows) = array {
                sources.push(Source::Array { file: file.display().to_string(), rows });
                continue;
            }
            let data = Dataset::open(file, options)?;
            if data.shape() != Score::shape(predictor) {
                return Err(misfit(file, data.shape(), Score::shape(predictor)));
            }
            sources.push(Source::Data(data));
        }
        Ok(Sources(sources))
    }

    /// The number of rows of all together.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Source::len).sum()
    }

    /// Some of the rows, by their ascending numbers in all together.
    pub(crate) fn rows(&self, chosen: &[usize]) -> Result<Inputs> {
        let (mut parts, mut names, mut features) = (Vec::new(), Vec::new(), Vec::new());
        let mut first = 0;
        for source in &self.0 {
            let here = first..first + source.len();
            let local: Vec<usize> =
                chosen.iter().filter(|row| here.contains(row)).map(|row| row - first).collect();
            first = here.end;
            parts.push(match source {
                Source::Array { file, rows } => {
                    names.extend(local.iter().map(|row| format!("{file}#{row}")));
                    rows.select(Axis(0), &local)
                }
                Source::Data(data) => {
                    names.extend(local.iter().map(|&row| data.name(row)));
                    if !data.columns().is_empty() {
                        features = data.feature_names();
                    }
                    data.rows_f64(&local)?
                }
            });
        }
        let views: Vec<_> = parts.iter().map(|part| part.view()).collect();
        let rows = concatenate(Axis(0), &views).context("cannot join the inputs")?;
        Ok(Inputs { rows, names, features })
    }
}
