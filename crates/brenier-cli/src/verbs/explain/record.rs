//! What was typed, kept beside the results: `explain.json`. `brenier verify` reads it and asks the same again.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::report::ResultFormat;
use serde::{Deserialize, Serialize};

use super::Explain;
use crate::request::in_run;

/// The name of the file.
pub(crate) const RECORD: &str = "explain.json";

/// A command that was run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Its words, with what a file of flags said among them.
    pub(crate) command: Vec<String>,
    /// The folder that it was typed in, which relative paths start from.
    pub(crate) folder: PathBuf,
}

impl Record {
    /// The command of these words, run here.
    pub(super) fn new(words: &[OsString]) -> Result<Record> {
        let mut command: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        if let Some(program) = command.first_mut() {
            *program = "brenier".to_string();
        }
        // What the file of flags said stands among the words already.
        if let Some(place) = command.iter().position(|word| word == "--config") {
            command.drain(place..(place + 2).min(command.len()));
        }
        // The record is that of the whole run, which shards are merged into.
        if let Some(place) = command.iter().position(|word| word == "--shard") {
            command.drain(place..(place + 2).min(command.len()));
        }
        command.retain(|word| !word.starts_with("--config=") && !word.starts_with("--shard="));
        let folder = std::env::current_dir().context("cannot tell the current folder")?;
        Ok(Record { command, folder })
    }

    pub(super) fn save(&self, folder: &Path) -> Result<()> {
        let file = folder.join(RECORD);
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
    }

    /// The record of results: of their folder, or of the folder above, where there are several methods.
    pub(crate) fn find(results: &Path) -> Result<Record> {
        let places =
            [Some(results), results.parent()].into_iter().flatten().map(|folder| folder.join(RECORD));
        let Some(file) = places.into_iter().find(|file| file.is_file()) else {
            bail!(
                "{} does not say which command it comes from: it has no {RECORD}\nhint: give a folder that 'explain -o' \
                 has written",
                results.display()
            );
        };
        let text =
            brenier::readable::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("cannot read {}", file.display()))
    }
}

/// Files that take the place of those in a record.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) model: Option<PathBuf>,
    pub(crate) data: Vec<PathBuf>,
    pub(crate) flow: Vec<PathBuf>,
    pub(crate) background: Option<PathBuf>,
    pub(crate) baseline: Option<PathBuf>,
}

impl Explain {
    /// The same command with files elsewhere.
    pub(crate) fn with_files(mut self, places: Places) -> Explain {
        if let Some(model) = places.model {
            self.model.model = model;
        }
        if !places.data.is_empty() {
            self.inputs = places.data;
        }
        if !places.flow.is_empty() {
            self.settings.flow = places.flow;
        }
        self.settings.take_files(places.background, places.baseline);
        self
    }

    /// The same command on another engine.
    pub(crate) fn with_engine(
        mut self,
        engine: Option<brenier::engine::EngineKind>,
        library: Option<PathBuf>,
    ) -> Explain {
        self.engine.replace(engine, library);
        self
    }

    /// Files that the command names and that are not there, with the flag that gives them from elsewhere.
    pub(crate) fn missing_files(&self) -> Vec<(PathBuf, &'static str)> {
        let mut named = vec![(self.model.model.clone(), "--model")];
        // A column of a table is named behind its file.
        let text = self.named.text.is_given();
        let is_there = |file: &PathBuf| {
            text && file
                .to_string_lossy()
                .rsplit_once(':')
                .is_some_and(|(table, _)| Path::new(table).exists())
        };
        named.extend(self.inputs.iter().filter(|file| !is_there(file)).map(|file| (file.clone(), "--data")));
        named.extend(self.settings.flow.iter().map(|file| (in_run(file.clone()), "--flow")));
        named.extend(self.settings.background().map(|file| (file.to_owned(), "--background")));
        // Of text a baseline is a word, or an .npz file.
        let baseline = self
            .settings
            .baseline_file()
            .filter(|file| !text || file.extension().is_some_and(|end| end == "npz"));
        named.extend(baseline.map(|file| (file, "--baseline")));
        named.extend(self.named.text.file().map(|file| (file.to_owned(), "its old place")));
        named.extend(self.scoring.within.iter().map(|file| (file.clone(), "its old place")));
        named.extend(self.path.iter().chain(&self.traces).map(|file| (file.clone(), "its old place")));
        named.retain(|(file, _)| !file.exists());
        named
    }

    /// The folders of the methods, by their names.
    pub(crate) fn folders(&self, results: &Path) -> Vec<(String, PathBuf)> {
        let names = self.method_names();
        let one = names.len() == 1 || ResultFormat::of(results).is_some();
        let folder = |name: &String| if one { results.to_owned() } else { results.join(name) };
        names.iter().map(|name| (name.clone(), folder(name))).collect()
    }
}
