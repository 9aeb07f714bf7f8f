//! Inputs, baselines and targets as they are typed: files of arrays, and words.

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::data::{Dataset, OpenOptions};
use brenier::{Score, ValuePredictor};
use ndarray::{Array2, ArrayD, Axis, concatenate};

/// An array of float32 or float64.
fn read_array(file: &FilePath) -> Result<ArrayD<f64>> {
    let single = match ndarray_npy::read_npy::<_, ArrayD<f64>>(file) {
        Ok(array) => return Ok(array),
        Err(ndarray_npy::ReadNpyError::WrongDescriptor(_)) => ndarray_npy::read_npy::<_, ArrayD<f32>>(file),
        Err(error) => Err(error),
    };
    let array = single.with_context(|| format!("cannot read {} as an array of floats", file.display()))?;
    Ok(array.mapv(f64::from))
}

/// The rows of a file, flat; one example without its axis counts as a batch of one.
pub(super) fn rows(file: &FilePath, predictor: &ValuePredictor) -> Result<Array2<f64>> {
    let mut array = read_array(file)?;
    let shape = Score::shape(predictor);
    if array.shape() == shape {
        array = array.insert_axis(Axis(0));
    }
    if array.shape().get(1..) != Some(shape) {
        let fits: Vec<String> = shape.iter().map(ToString::to_string).collect();
        bail!(
            "{} has shape {:?}, but the model takes [N, {}]\nhint: the first axis is the example, and images are \
             channels first",
            file.display(),
            array.shape(),
            fits.join(", ")
        );
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
    Ok(flat)
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
            if file.extension().is_some_and(|end| end == "npy") {
                let rows = rows(file, predictor)?;
                sources.push(Source::Array { file: file.display().to_string(), rows });
                continue;
            }
            let data = Dataset::open(file, options)?;
            if data.shape() != Score::shape(predictor) {
                bail!(
                    "{} has examples of shape {:?}, but the model takes {:?}\nhint: give the size with --resize, the \
                     channels with --color, or the shape of a row with --shape",
                    file.display(),
                    data.shape(),
                    Score::shape(predictor)
                );
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

/// One target for each input.
pub(crate) fn targets(text: &str, predictor: &ValuePredictor, inputs: &Array2<f64>) -> Result<Vec<usize>> {
    let count = inputs.nrows();
    if text == "predicted" {
        return Ok(predictor.predicted(inputs.view())?);
    }
    let parse = |part: &str| {
        part.trim().parse::<usize>().with_context(|| {
            format!("'{part}' is not a target\nhint: say 'predicted', a class index, or one for each input (0,2,1)")
        })
    };
    let listed = text.split(',').map(parse).collect::<Result<Vec<usize>>>()?;
    if let Some(wrong) = listed.iter().find(|&&target| target >= predictor.outputs()) {
        bail!(
            "target {wrong} is out of range: the model has {} outputs, numbered from 0",
            predictor.outputs()
        );
    }
    match listed.as_slice() {
        [one] => Ok(vec![*one; count]),
        many if many.len() == count => Ok(listed),
        many => bail!("{} targets are given for {count} inputs\nhint: give one, or one for each", many.len()),
    }
}
