//! CIFAR-10 and CIFAR-100 in their binary form, and CIFAR-10 as PNG sprites.
//!
//! Binary: records of a label (CIFAR-100: a coarse and a fine label, of which the fine one is taken) and 3072
//! bytes, the red, green and blue planes of a 32x32 image. Sprites: a PNG 1024 pixels wide whose row i is image
//! i, its 32x32 pixels one after another; the labels of all training batches are in `train_lables.json`, those
//! of the test batch in `test_lables.json` (the names are spelled so).

use std::path::{Path, PathBuf};

use super::dataset::Names;
use super::{DataError, Dataset, OpenOptions, Part, file, images};
use crate::error::Result;

const SHAPE: [usize; 3] = [3, 32, 32];
const PIXELS: usize = 3 * 32 * 32;
const CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// A file of images, as its name tells.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    path: PathBuf,
    part: Part,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Records with so many label bytes.
    Records(usize),
    /// A PNG, the `n`-th batch of its part counted from 0.
    Sprite(usize),
}

/// The batches of a folder: binary ones if there are any, otherwise sprites.
pub(crate) fn find(entries: &[PathBuf]) -> Vec<Batch> {
    let batches: Vec<Batch> = entries.iter().filter_map(|path| recognise(path)).collect();
    let records: Vec<Batch> =
        batches.iter().filter(|batch| matches!(batch.form, Form::Records(_))).cloned().collect();
    if records.is_empty() { batches } else { records }
}

/// Whether batches hold a training and a test part.
pub(crate) fn has_parts(batches: &[Batch]) -> bool {
    [Part::Train, Part::Test].iter().all(|part| batches.iter().any(|batch| batch.part == *part))
}

/// What a file is by its name.
pub(crate) fn recognise(path: &Path) -> Option<Batch> {
    let name = file::name(path);
    let batch = |part, form| Some(Batch { path: path.to_path_buf(), part, form });
    match name.as_str() {
        "test_batch.bin" => return batch(Part::Test, Form::Records(1)),
        "train.bin" => return batch(Part::Train, Form::Records(2)),
        "test.bin" => return batch(Part::Test, Form::Records(2)),
        "test_batch.png" => return batch(Part::Test, Form::Sprite(0)),
        _ => {}
    }
    let (number, end) = name.strip_prefix("data_batch_")?.split_once('.')?;
    let number: usize = number.parse().ok().filter(|number| *number > 0)?;
    match end {
        "bin" => batch(Part::Train, Form::Records(1)),
        "png" => batch(Part::Train, Form::Sprite(number - 1)),
        _ => None,
    }
}

/// Reads the batches of a folder that belong to the part asked for.
pub(crate) fn open_folder(folder: &Path, batches: &[Batch], options: &OpenOptions) -> Result<Dataset> {
    let mut wanted: Vec<&Batch> = batches.iter().filter(|batch| options.part.wants(batch.part)).collect();
    if wanted.is_empty() {
        return Err(DataError::NoPart { path: folder.to_path_buf(), part: options.part.name() }.into());
    }
    // By name `test.bin` would come before `train.bin`.
    wanted.sort_by_key(|batch| batch.part == Part::Test);
    read(&folder.display().to_string(), &wanted, options)
}

/// Reads one batch.
pub(crate) fn open_file(batch: &Batch, options: &OpenOptions) -> Result<Dataset> {
    read(&batch.path.display().to_string(), &[batch], options)
}

fn read(origin: &str, batches: &[&Batch], options: &OpenOptions) -> Result<Dataset> {
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    let mut names = Vec::new();
    let mut classes: Vec<String> = CLASSES.iter().map(|&class| class.to_owned()).collect();
    let mut unlabelled = false;
    for batch in batches {
        let before = pixels.len();
        match batch.form {
            Form::Records(label_bytes) => {
                classes = class_names(batch, label_bytes)?.unwrap_or(classes);
                read_records(&batch.path, label_bytes, classes.len(), &mut pixels, &mut labels)?;
            }
            Form::Sprite(number) => {
                read_sprite(&batch.path, &mut pixels)?;
                let rows = (pixels.len() - before) / PIXELS;
                match sprite_labels(batch, number, rows, classes.len())? {
                    Some(found) => labels.extend(found),
                    None => unlabelled = true,
                }
            }
        }
        names.push((file::name(&batch.path), (pixels.len() - before) / PIXELS));
    }
    if pixels.is_empty() {
        return Err(DataError::Empty {
            path: origin.into(),
            looked_for: "CIFAR images".into(),
            hint: "the files are empty; fetch them again".into(),
        }
        .into());
    }
    let data = Dataset::from_pixels(origin, &SHAPE, pixels)?.with_names(Names::Numbered(names));
    if unlabelled {
        return Ok(data);
    }
    file::label(data, labels, &classes, Path::new(origin), options)
}

/// The names of the classes in the file that comes with the batches; CIFAR-100 needs it for its hundred.
fn class_names(batch: &Batch, label_bytes: usize) -> Result<Option<Vec<String>>> {
    let file = if label_bytes == 2 { "fine_label_names.txt" } else { "batches.meta.txt" };
    let path = batch.path.with_file_name(file);
    if !path.is_file() {
        let numbered = (0..100).map(|class| class.to_string()).collect();
        return Ok((label_bytes == 2).then_some(numbered));
    }
    file::lines(&path).map(Some)
}

fn read_records(
    path: &Path,
    label_bytes: usize,
    classes: usize,
    pixels: &mut Vec<u8>,
    labels: &mut Vec<usize>,
) -> Result<()> {
    let bytes = file::read(path)?;
    let record = label_bytes + PIXELS;
    if bytes.len() % record != 0 {
        let expected = bytes.len().div_ceil(record) * record;
        return Err(DataError::Length {
            path: path.to_path_buf(),
            expected: expected as u64,
            found: bytes.len() as u64,
        }
        .into());
    }
    pixels.reserve(bytes.len());
    for (row, record) in bytes.chunks_exact(record).enumerate() {
        let label = usize::from(record[label_bytes - 1]);
        if label >= classes {
            return Err(DataError::Label {
                path: path.to_path_buf(),
                row,
                label: label.to_string(),
                classes,
            }
            .into());
        }
        labels.push(label);
        pixels.extend_from_slice(&record[label_bytes..]);
    }
    Ok(())
}

fn read_sprite(path: &Path, pixels: &mut Vec<u8>) -> Result<()> {
    let sprite = images::decode_file(path)?.into_rgb8();
    if sprite.width() != 1024 {
        return Err(DataError::Array {
            path: path.to_path_buf(),
            reason: format!("the sprite is {} pixels wide, not the 1024 of a 32x32 image", sprite.width()),
            hint:
                "a PNG named like a CIFAR batch has an image in each row; rename it if it is an image itself"
                    .into(),
        }
        .into());
    }
    pixels.reserve(sprite.len());
    for row in sprite.as_raw().chunks_exact(PIXELS) {
        for channel in 0..3 {
            pixels.extend(row[channel..].iter().step_by(3));
        }
    }
    Ok(())
}

/// The labels of a sprite; `None` without a label file.
fn sprite_labels(batch: &Batch, number: usize, rows: usize, classes: usize) -> Result<Option<Vec<usize>>> {
    let part = batch.part.name();
    let names = [format!("{part}_lables.json"), format!("{part}_labels.json")];
    let Some(path) = names.iter().map(|name| batch.path.with_file_name(name)).find(|path| path.is_file())
    else {
        return Ok(None);
    };
    let all: Vec<usize> = serde_json::from_slice(&file::read(&path)?).map_err(file::cannot_read(&path))?;
    let range = number * rows..(number + 1) * rows;
    let Some(labels) = all.get(range.clone()) else {
        return Err(DataError::LabelCount {
            data: batch.path.clone(),
            rows,
            file: path,
            labels: all.len().saturating_sub(range.start),
        }
        .into());
    };
    if let Some((row, label)) = labels.iter().enumerate().find(|(_, label)| **label >= classes) {
        let (row, label) = (range.start + row, label.to_string());
        return Err(DataError::Label { path, row, label, classes }.into());
    }
    Ok(Some(labels.to_vec()))
}
