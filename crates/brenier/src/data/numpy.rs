//! Arrays of numpy: `.npy` and `.npz`, also compressed. The first axis is the example.
//!
//! In an archive the examples are `x`, `images`, `data` or `inputs` and the labels `y`, `labels` or `targets`;
//! `x_train`, `y_train`, `x_test`, `y_test` are two parts. A lone `.npy` called `x` or `images` finds its labels in
//! `y.npy` or `labels.npy` beside it. Bytes in the shape of images are pixels, 255 is read as 1; every other
//! number is taken as it is.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use ndarray::{ArrayD, IxDyn, OwnedRepr};
use ndarray_npy::{NpzReader, ReadNpyError, ReadNpzError, ReadableElement};

use super::dataset::Names;
use super::{DataError, Dataset, Layout, OpenOptions, Part, file};
use crate::error::{Error, Result};

const EXAMPLES: [&str; 4] = ["x", "images", "data", "inputs"];
const LABELS: [&str; 3] = ["y", "labels", "targets"];

enum Array {
    Bytes(ArrayD<u8>),
    Floats(ArrayD<f32>),
    Integers(ArrayD<i64>),
}

/// Something that an array can be read from, once for each element type tried.
trait Source {
    fn read<T: ReadableElement>(&mut self) -> std::result::Result<ArrayD<T>, ReadNpyError>;
}

struct Npy<'a>(&'a Path);

impl Source for Npy<'_> {
    fn read<T: ReadableElement>(&mut self) -> std::result::Result<ArrayD<T>, ReadNpyError> {
        use ndarray_npy::ReadNpyExt;
        crate::npy::expect_honest(self.0).map_err(|e| ReadNpyError::Io(std::io::Error::other(e)))?;
        ArrayD::read_npy(BufReader::new(crate::readable::open(self.0).map_err(ReadNpyError::Io)?))
    }
}

struct Member<'a> {
    archive: &'a mut NpzReader<BufReader<File>>,
    name: &'a str,
}

impl Source for Member<'_> {
    fn read<T: ReadableElement>(&mut self) -> std::result::Result<ArrayD<T>, ReadNpyError> {
        self.archive.by_name::<OwnedRepr<T>, IxDyn>(self.name).map_err(|error| match error {
            ReadNpzError::Npy(error) => error,
            ReadNpzError::Zip(error) => ReadNpyError::Io(std::io::Error::other(error)),
        })
    }
}

/// Reads a `.npy` file, with its labels if they are beside it.
pub(crate) fn open_npy(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    if options.part == Part::Test {
        return Err(DataError::NoPart { path: path.to_path_buf(), part: "test" }.into());
    }
    let examples = read(&mut Npy(path), path, "the array")?;
    let data = assemble(path, vec![("array".into(), examples)], options)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let beside = EXAMPLES.iter().position(|name| stem.eq_ignore_ascii_case(name)).and_then(|index| {
        Some(path.with_file_name(format!("{}.npy", LABELS.get(index)?))).filter(|path| path.is_file())
    });
    match beside {
        None => Ok(data),
        Some(file) => {
            let labels = labels(read(&mut Npy(&file), &file, "the array")?, &file, "the array")?;
            file::label(data, labels, &[], &file, options)
        }
    }
}

/// Whether an archive holds a training and a test part.
pub(crate) fn has_parts(path: &Path) -> Result<bool> {
    let names = names(&mut archive(path)?, path)?;
    Ok(member(&names, &EXAMPLES, "_train").is_some() && member(&names, &EXAMPLES, "_test").is_some())
}

/// Reads an `.npz` archive.
pub(crate) fn open_npz(path: &Path, options: &OpenOptions) -> Result<Dataset> {
    let mut archive = archive(path)?;
    let names = names(&mut archive, path)?;
    let mut wanted: Vec<(String, Option<String>)> = [(Part::Train, "_train"), (Part::Test, "_test")]
        .into_iter()
        .filter(|(part, _)| options.part.wants(*part))
        .filter_map(|(_, end)| Some((member(&names, &EXAMPLES, end)?, member(&names, &LABELS, end))))
        .collect();
    if wanted.is_empty() {
        if options.part == Part::Test {
            return Err(DataError::NoPart { path: path.to_path_buf(), part: "test" }.into());
        }
        let lone = if let [lone] = names.as_slice() { Some(lone.clone()) } else { None };
        let examples = member(&names, &EXAMPLES, "").or(lone).ok_or_else(|| DataError::Array {
            path: path.to_path_buf(),
            reason: format!(
                "none of its arrays is called {}; it has {}",
                EXAMPLES.join(", "),
                names.join(", ")
            ),
            hint: "save with numpy.savez(file, x=..., y=...)".into(),
        })?;
        wanted.push((examples, member(&names, &LABELS, "")));
    }
    let mut arrays = Vec::new();
    let mut all_labels = Some(Vec::new());
    for (examples, label_name) in wanted {
        let array = read(&mut Member { archive: &mut archive, name: &examples }, path, &examples)?;
        let found = match label_name {
            None => None,
            Some(name) => {
                let array = read(&mut Member { archive: &mut archive, name: &name }, path, &name)?;
                Some(labels(array, path, &name)?)
            }
        };
        if let Some(found) = &found {
            let rows = array.shape().first().copied().unwrap_or(0);
            if found.len() != rows {
                let (data, file) = (path.join(&examples), path.to_path_buf());
                return Err(DataError::LabelCount { data, rows, file, labels: found.len() }.into());
            }
        }
        all_labels = all_labels.zip(found).map(|(mut all, found)| {
            all.extend(found);
            all
        });
        arrays.push((examples, array));
    }
    let data = assemble(path, arrays, options)?;
    match all_labels {
        Some(labels) => file::label(data, labels, &[], path, options),
        None => Ok(data),
    }
}

fn archive(path: &Path) -> Result<NpzReader<BufReader<File>>> {
    crate::npz::expect_honest(path).map_err(file::cannot_read(path))?;
    let file = crate::readable::open(path).map_err(file::cannot_read(path))?;
    NpzReader::new(BufReader::new(file)).map_err(file::cannot_read(path))
}

fn names(archive: &mut NpzReader<BufReader<File>>, path: &Path) -> Result<Vec<String>> {
    let names = archive.names().map_err(file::cannot_read(path))?;
    Ok(names.iter().map(|name| name.strip_suffix(".npy").unwrap_or(name).to_owned()).collect())
}

/// The first of the candidates that an archive has, in any case: `X_train` for `x` and `_train`.
fn member(names: &[String], candidates: &[&str], end: &str) -> Option<String> {
    candidates.iter().find_map(|candidate| {
        let wanted = format!("{candidate}{end}");
        names.iter().find(|name| name.eq_ignore_ascii_case(&wanted)).cloned()
    })
}

fn read(source: &mut impl Source, path: &Path, name: &str) -> Result<Array> {
    /// The array if it has this element type, `None` if it has another.
    fn attempt<T: ReadableElement>(source: &mut impl Source, path: &Path) -> Result<Option<ArrayD<T>>> {
        match source.read::<T>() {
            Ok(array) => Ok(Some(array)),
            Err(ReadNpyError::WrongDescriptor(_)) => Ok(None),
            Err(error) => Err(Error::Read { path: path.to_path_buf(), source: error.into() }),
        }
    }
    if let Some(array) = attempt::<u8>(source, path)? {
        return Ok(Array::Bytes(array));
    }
    if let Some(array) = attempt::<f32>(source, path)? {
        return Ok(Array::Floats(array));
    }
    if let Some(array) = attempt::<f64>(source, path)? {
        return Ok(Array::Floats(array.mapv(|value| value as f32)));
    }
    if let Some(array) = attempt::<i64>(source, path)? {
        return Ok(Array::Integers(array));
    }
    if let Some(array) = attempt::<i32>(source, path)? {
        return Ok(Array::Integers(array.mapv(i64::from)));
    }
    if let Some(array) = attempt::<i16>(source, path)? {
        return Ok(Array::Integers(array.mapv(i64::from)));
    }
    if let Some(array) = attempt::<bool>(source, path)? {
        return Ok(Array::Integers(array.mapv(i64::from)));
    }
    Err(DataError::Array {
        path: path.to_path_buf(),
        reason: format!("{name} has an element type that is not read"),
        hint: "convert it to float32, float64, uint8 or int64 with numpy's astype".into(),
    }
    .into())
}

impl Array {
    fn shape(&self) -> &[usize] {
        match self {
            Array::Bytes(array) => array.shape(),
            Array::Floats(array) => array.shape(),
            Array::Integers(array) => array.shape(),
        }
    }
}

fn assemble(path: &Path, arrays: Vec<(String, Array)>, options: &OpenOptions) -> Result<Dataset> {
    let origin = path.display().to_string();
    let several = arrays.len() > 1;
    let mut row_shape: Option<Vec<usize>> = None;
    let (mut bytes, mut floats) = (Vec::new(), Vec::new());
    let mut names = Vec::new();
    for (name, array) in arrays {
        let shape = array.shape().to_vec();
        let (last, own) = arrange(path, &name, &shape, options)?;
        if row_shape.as_ref().is_some_and(|first| *first != own) {
            return Err(DataError::MixedSizes {
                first: path.to_path_buf(),
                first_shape: row_shape.unwrap_or_default(),
                second: path.join(&name),
                second_shape: own,
            }
            .into());
        }
        let is_image = own.len() == 3;
        row_shape = Some(own);
        let scale = options.maximum.map_or(1.0, |maximum| 1.0 / f64::from(maximum));
        match array {
            Array::Bytes(array) if is_image && options.maximum.is_none() => {
                bytes.extend(channels_first(array, last).iter().copied());
            }
            Array::Bytes(array) => {
                floats.extend(channels_first(array, last).iter().map(|&v| (f64::from(v) * scale) as f32));
            }
            Array::Floats(array) if options.maximum.is_none() => {
                floats.extend(channels_first(array, last).iter().copied())
            }
            Array::Floats(array) => {
                floats.extend(channels_first(array, last).iter().map(|&v| (f64::from(v) * scale) as f32));
            }
            Array::Integers(array) => {
                floats.extend(channels_first(array, last).iter().map(|&v| (v as f64 * scale) as f32));
            }
        }
        let file = file::name(path);
        names.push((if several { format!("{file}/{name}") } else { file }, shape[0]));
    }
    let shape = row_shape.unwrap_or_default();
    let data = match (bytes.is_empty(), floats.is_empty()) {
        (true, true) => {
            return Err(DataError::Empty {
                path: path.to_path_buf(),
                looked_for: "rows".into(),
                hint: "the first axis is the example, and it has length 0".into(),
            }
            .into());
        }
        (false, false) => {
            return Err(DataError::Array {
                path: path.to_path_buf(),
                reason: "one part holds bytes, the other other numbers".into(),
                hint: "save both with the same element type".into(),
            }
            .into());
        }
        (false, true) => Dataset::from_pixels(&origin, &shape, bytes)?,
        (true, false) => Dataset::from_floats(&origin, &shape, floats)?,
    };
    Ok(data.with_names(Names::Numbered(names)))
}

/// Whether the channels are last, and the shape of a row.
fn arrange(path: &Path, name: &str, shape: &[usize], options: &OpenOptions) -> Result<(bool, Vec<usize>)> {
    let [_, row @ ..] = shape else {
        return Err(DataError::Array {
            path: path.to_path_buf(),
            reason: format!("{name} is a single number"),
            hint: "the first axis is the example: save an array of at least one axis".into(),
        }
        .into());
    };
    if let Some(asked) = &options.shape {
        crate::error::expect_shape(
            &format!("a row of {}", path.display()),
            &[asked.iter().product()],
            &[row.iter().product()],
        )?;
        return Ok((false, asked.clone()));
    }
    match *row {
        [] => Ok((false, vec![1])),
        [height, width] => Ok((false, vec![1, height, width])),
        [first, second, third] => {
            let last = match options.layout {
                Layout::Guess => matches!(third, 1 | 3) && !matches!(first, 1 | 3),
                Layout::ChannelsFirst => false,
                Layout::ChannelsLast => true,
            };
            Ok((last, if last { vec![third, first, second] } else { vec![first, second, third] }))
        }
        _ => Ok((false, row.to_vec())),
    }
}

/// `[N, H, W, C]` as `[N, C, H, W]`, or the array as it is.
fn channels_first<T>(mut array: ArrayD<T>, last: bool) -> ArrayD<T> {
    if last && array.ndim() == 4 {
        array = array.permuted_axes(IxDyn(&[0, 3, 1, 2]));
    }
    array
}

fn labels(array: Array, path: &Path, name: &str) -> Result<Vec<usize>> {
    let shape = array.shape().to_vec();
    if !matches!(shape.as_slice(), [_] | [_, 1]) {
        return Err(DataError::Array {
            path: path.to_path_buf(),
            reason: format!("the labels {name} have shape {shape:?}"),
            hint: "labels are one class number per example, shape [N]".into(),
        }
        .into());
    }
    let numbers: Vec<f64> = match array {
        Array::Bytes(array) => array.iter().map(|&label| f64::from(label)).collect(),
        Array::Floats(array) => array.iter().map(|&label| f64::from(label)).collect(),
        Array::Integers(array) => array.iter().map(|&label| label as f64).collect(),
    };
    let path: PathBuf = path.to_path_buf();
    numbers
        .iter()
        .enumerate()
        .map(|(row, &label)| {
            if label >= 0.0 && label.fract() == 0.0 && label < 1e6 {
                return Ok(label as usize);
            }
            Err(DataError::Array {
                path: path.clone(),
                reason: format!("label {label} of row {row} in {name} is not a class number"),
                hint: "labels are whole numbers from 0".into(),
            }
            .into())
        })
        .collect()
}
