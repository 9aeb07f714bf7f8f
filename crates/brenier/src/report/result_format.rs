//! The files in which a folder holds explanations.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::explanations::{ARRAYS, CERTIFICATES};
use super::parquet::PARQUET;

/// How explanations are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultFormat {
    /// `explanations.npz` and `explanations.jsonl`.
    #[default]
    Npz,
    /// `explanations.parquet`: a row for each explanation.
    Parquet,
}

impl ResultFormat {
    /// The files that it writes; a folder holds results in it where the first is there.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            ResultFormat::Npz => &[ARRAYS, CERTIFICATES],
            ResultFormat::Parquet => &[PARQUET],
        }
    }

    /// The format in which a folder holds explanations, where it does.
    pub fn of(folder: &Path) -> Option<ResultFormat> {
        let is_there = |format: &ResultFormat| folder.join(format.files()[0]).is_file();
        [ResultFormat::Npz, ResultFormat::Parquet].into_iter().find(is_there)
    }

    /// The one that is not this.
    pub(super) fn other(self) -> ResultFormat {
        match self {
            ResultFormat::Npz => ResultFormat::Parquet,
            ResultFormat::Parquet => ResultFormat::Npz,
        }
    }
}
