//! Which format is it? Decided by what is found: names first, contents where names do not tell.

use std::path::Path;

use super::{
    Color, Column, DataError, Dataset, Layout, Missing, OpenOptions, Part, cifar, csv, file, idx, images,
    numpy, parquet,
};
use crate::error::Result;

const READ: &str = "give a folder of images, IDX or CIFAR files, or a csv, tsv, parquet, npy, npz, idx, png, jpeg or \
                    pgm file";

/// What was found at a path.
enum Found {
    IdxFolder(Vec<(Part, std::path::PathBuf)>),
    IdxFile,
    CifarFolder(Vec<cifar::Batch>),
    CifarFile(cifar::Batch),
    ImageFolder,
    ImageFile,
    Npy,
    Npz,
    Csv,
    Parquet,
}

impl Dataset {
    /// Reads data from a file or folder, in whichever of the formats it is.
    ///
    /// # Errors
    /// If nothing that can be read is there, or it is damaged, or its rows do not belong together; the message names
    /// the file, row or column, and what to try.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        let found = find(path)?;
        refuse_meaningless(path, &found, options)?;
        let data = match &found {
            Found::IdxFolder(files) => images::transform(idx::open_folder(path, files, options)?, options)?,
            Found::IdxFile => images::transform(idx::open_file(path, options)?, options)?,
            Found::CifarFolder(batches) => {
                images::transform(cifar::open_folder(path, batches, options)?, options)?
            }
            Found::CifarFile(batch) => images::transform(cifar::open_file(batch, options)?, options)?,
            Found::ImageFolder => images::open_folder(path, options)?,
            Found::ImageFile => images::open_file(path, options)?,
            Found::Npy => images::transform(numpy::open_npy(path, options)?, options)?,
            Found::Npz => images::transform(numpy::open_npz(path, options)?, options)?,
            Found::Csv => csv::open(path, options)?,
            Found::Parquet => parquet::open(path, options)?,
        };
        match options.limit {
            None => Ok(data),
            Some(limit) => {
                data.require_rows(limit, "the limit asked for")?;
                data.rows(0..limit)
            }
        }
    }

    /// Reads training rows and held-out rows: the parts that the data come in, or else a split of the rows with
    /// this fraction for training, drawn by the seed. A limit and [`OpenOptions::part`] count for the training rows
    /// of data that come in parts only.
    ///
    /// # Errors
    /// As [`Dataset::open`] and [`Dataset::split`].
    pub fn open_split(
        path: impl AsRef<Path>,
        options: &OpenOptions,
        train_fraction: f64,
        seed: u64,
    ) -> Result<(Self, Self)> {
        let path = path.as_ref();
        if !has_parts(path, &find(path)?)? {
            return Self::open(path, options)?.split(train_fraction, seed);
        }
        let train = Self::open(path, &OpenOptions { part: Part::Train, ..options.clone() })?;
        let test = OpenOptions { part: Part::Test, limit: None, ..options.clone() }.like(&train);
        Ok((train, Self::open(path, &test)?))
    }
}

/// How the columns of a table are coded: by their names and kinds, with all values that categories have in it. Nothing
/// where the file holds no table. A label and columns to leave out need not be in it.
///
/// # Errors
/// If the file cannot be read, or a column is neither numbers nor categories.
pub fn learn_columns(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Option<Vec<Column>>> {
    let path = path.as_ref();
    let table = match find(path)? {
        Found::Csv => Some(csv::table(path, options)?),
        Found::Parquet => parquet::table(path, &OpenOptions { columns: Vec::new(), ..options.clone() })?,
        _ => None,
    };
    table.map(|table| table.learn(options)).transpose()
}

fn find(path: &Path) -> Result<Found> {
    if path.is_dir() {
        let entries = file::entries(path)?;
        let files = idx::find(&entries);
        if !files.is_empty() {
            return Ok(Found::IdxFolder(files));
        }
        let batches = cifar::find(&entries);
        if !batches.is_empty() {
            return Ok(Found::CifarFolder(batches));
        }
        if entries.iter().any(|entry| file::name(entry) == "data_batch_1") {
            return Err(DataError::Unrecognised {
                path: path.to_path_buf(),
                reason: "data_batch_1 is the Python version of CIFAR, a pickle".into(),
                hint: "take the binary version, with files data_batch_1.bin to data_batch_5.bin".into(),
            }
            .into());
        }
        return Ok(Found::ImageFolder);
    }
    if !path.exists() {
        return Err(DataError::Unrecognised {
            path: path.to_path_buf(),
            reason: "there is no such file or folder".into(),
            hint: READ.into(),
        }
        .into());
    }
    if let Some(batch) = cifar::recognise(path) {
        return Ok(Found::CifarFile(batch));
    }
    match file::extension(path).as_str() {
        "npy" => Ok(Found::Npy),
        "npz" => Ok(Found::Npz),
        "csv" | "tsv" => Ok(Found::Csv),
        "parquet" | "pq" => Ok(Found::Parquet),
        _ if images::is_image(path) => Ok(Found::ImageFile),
        _ if idx::is_idx(&file::name(path).to_lowercase()) => Ok(Found::IdxFile),
        end => Err(DataError::Unrecognised {
            path: path.to_path_buf(),
            reason: format!("files that end in '{end}' are not read"),
            hint: READ.into(),
        }
        .into()),
    }
}

fn has_parts(path: &Path, found: &Found) -> Result<bool> {
    Ok(match found {
        Found::IdxFolder(files) => {
            [Part::Train, Part::Test].iter().all(|wanted| files.iter().any(|(part, _)| part == wanted))
        }
        Found::CifarFolder(batches) => cifar::has_parts(batches),
        Found::ImageFolder => images::has_parts(path),
        Found::Npz => numpy::has_parts(path)?,
        _ => false,
    })
}

/// Refuses options that would change nothing: whoever gives one expects something of it.
fn refuse_meaningless(path: &Path, found: &Found, options: &OpenOptions) -> Result<()> {
    let (table, array, image, kind) = match found {
        Found::Csv => (true, false, false, "a table"),
        // A Parquet file may hold either.
        Found::Parquet => (true, false, true, "a table"),
        Found::Npy | Found::Npz => (false, true, true, "arrays"),
        _ => (false, false, true, "images"),
    };
    let given = [
        ("the label column", options.label.is_some(), table),
        ("leaving out columns", !options.drop.is_empty(), table),
        ("categorical columns", !options.categorical.is_empty(), table),
        ("a rule for empty cells", options.missing != Missing::Refuse, table),
        ("a header line", options.header.is_some(), matches!(found, Found::Csv)),
        ("a delimiter", options.delimiter.is_some(), matches!(found, Found::Csv)),
        ("the shape of a row", options.shape.is_some(), table || array),
        ("a maximum", options.maximum.is_some(), table || array),
        ("the place of channels", options.layout != Layout::Guess, array),
        ("a resize or crop", !options.transforms.is_empty(), image),
        ("a choice of colour", options.color != Color::AsStored, image),
        ("an extension", options.extension.is_some(), matches!(found, Found::ImageFolder)),
    ];
    match given.iter().find(|(_, given, fits)| *given && !fits) {
        None => Ok(()),
        Some((option, ..)) => Err(DataError::Option { option, path: path.to_path_buf(), kind }.into()),
    }
}
