//! What fuzzing does with the files that the library reads, shared by the fuzz target in `fuzz/` and by a short test.
//!
//! A [`Reader`] has small sound files, its corpus, and takes the bytes of one file through all that is done with it. A
//! broken file is an error, never a panic, a hang or memory without bound. [`mutated`] breaks files as their formats are made: numbers in
//! headers and texts, members of archives with their checksums put right, and bytes.

#![allow(dead_code, clippy::unwrap_used)] // Each user has its own part.

mod mutate;
mod seeds;

use std::fs;
use std::path::Path;

use brenier::data::{Dataset, Missing, NpyRows, OpenOptions, Part};
use brenier::report::{Report, load_explanations};
use brenier::{PredictorConfig, Sidecar, ValuePredictor, load_traces};

pub(crate) use mutate::{Rng, mutated};
pub(crate) use seeds::seeds;

/// The kinds of files that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Npy,
    Npz,
    Idx,
    Cifar,
    Png,
    Ppm,
    Jpeg,
    Csv,
    Parquet,
    Toml,
    Checkpoint,
    Traces,
    Results,
    Certificates,
    Description,
    Trees,
}

impl Reader {
    pub(crate) const ALL: [Reader; 16] = [
        Reader::Npy,
        Reader::Npz,
        Reader::Idx,
        Reader::Cifar,
        Reader::Png,
        Reader::Ppm,
        Reader::Jpeg,
        Reader::Csv,
        Reader::Parquet,
        Reader::Toml,
        Reader::Checkpoint,
        Reader::Traces,
        Reader::Results,
        Reader::Certificates,
        Reader::Description,
        Reader::Trees,
    ];

    /// The name under which a file is read.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Reader::Npy => "a.npy",
            Reader::Npz => "a.npz",
            Reader::Idx => "train-images-idx3-ubyte",
            Reader::Cifar => "data_batch_1.bin",
            Reader::Png => "a.png",
            Reader::Ppm => "a.ppm",
            Reader::Jpeg => "a.jpg",
            Reader::Csv => "a.csv",
            Reader::Parquet => "a.parquet",
            Reader::Toml => "model.toml",
            Reader::Checkpoint => "checkpoint.npz",
            Reader::Traces => "traces.npz",
            Reader::Results => "explanations.npz",
            Reader::Certificates => "explanations.jsonl",
            Reader::Description => "report.json",
            Reader::Trees => "trees.json",
        }
    }

    /// Reads the file of this kind in a folder, where everything else that belongs to it is sound. Says whether it was taken.
    pub(crate) fn read(self, folder: &Path) -> bool {
        let file = folder.join(self.file());
        let opened = |options: &OpenOptions| match Dataset::open(&file, options) {
            Ok(data) => {
                let some: Vec<usize> = (0..data.len().min(3)).collect();
                let _ = (data.rows_f64(&some).unwrap(), data.fingerprint());
                true
            }
            Err(error) => error.to_string().is_empty(),
        };
        let plain = OpenOptions::default();
        match self {
            Reader::Npy => {
                if let Ok(Some(rows)) = NpyRows::open(&file) {
                    let _ = rows.rows(0..rows.len().min(2));
                }
                opened(&plain)
            }
            Reader::Npz => opened(&plain) | opened(&OpenOptions { limit: Some(1), ..plain.clone() }),
            Reader::Csv => {
                opened(&plain) | opened(&OpenOptions { missing: Missing::Category, ..plain.clone() })
            }
            Reader::Cifar | Reader::Idx => opened(&OpenOptions { part: Part::All, ..plain }),
            Reader::Png | Reader::Ppm | Reader::Jpeg | Reader::Parquet => opened(&plain),
            Reader::Toml => Sidecar::beside(&folder.join("model.onnx")).is_ok(),
            Reader::Checkpoint => brenier::train::steps_done(folder).is_ok(),
            Reader::Traces => load_traces(&file).is_ok(),
            Reader::Results | Reader::Certificates => {
                load_explanations(folder).is_ok()
                    | Report::open(folder, 3).is_ok_and(|page| page.html().is_ok())
            }
            Reader::Description => Report::open(folder, 3).is_ok_and(|page| page.html().is_ok()),
            Reader::Trees => match ValuePredictor::load_trees(&file, &PredictorConfig::default()) {
                Ok(Some(model)) => {
                    let row = ndarray::ArrayD::<f32>::zeros(vec![1, model.shape()[0].min(1000)]);
                    let _ = model.scores(row.view());
                    true
                }
                _ => false,
            },
        }
    }
}

/// Writes a file over the sound one of its kind and reads it.
pub(crate) fn exercise(folder: &Path, reader: Reader, bytes: &[u8]) -> bool {
    fs::write(folder.join(reader.file()), bytes).unwrap();
    reader.read(folder)
}
