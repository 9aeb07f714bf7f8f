//! A run in a folder: its parts, what is finished of it, and the files it ends with.
//!
//! ```text
//! DIR/explanations.parts/run.json             what the parts are made from
//!                       /00000000-00000032/   inputs 0 to 31: explanations.npz, .jsonl, and stills and traces
//! DIR/explanations.npz, explanations.jsonl, stills.npz, traces.npz, explanations.run.json     when all are there
//! ```
//!
//! Where Parquet was asked for, `explanations.parquet` stands in place of the arrays and certificates of the end; parts are as before.
//!
//! A part is made under another name and renamed when it is whole. The files at the end are the parts joined, byte by
//! byte. `explanations.run.json` comes last: where it is, the results are whole, and it says what they are made from.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use super::about::{about, about_shard, is_empty};
use super::failure;
use super::join::join;
use super::{Failure, Part, Question, Shard, Way};
use crate::attribute::Certificate;
use crate::path::save_traces;
use crate::report::{CertificateReader, ResultFormat, save_explanations, save_stills};
use crate::store::{Store, refuse_others};
use crate::{Error, Result};

const PARTS: &str = "explanations.parts";
pub(super) const FINISHED: &str = "explanations.run.json";
pub(super) const TRACES: &str = "traces.npz";
/// Inputs of an earlier session that are told of at a time.
const TOLD: usize = 256;
/// So many failures and nothing explained: the fault is not with single inputs.
const HOPELESS: usize = 1000;
/// Begins the name of a part that is not whole yet.
const UNFINISHED: &str = "unfinished-";

/// Where the results of a run are kept.
pub struct Folder {
    path: PathBuf,
    replace: bool,
    keep_going: bool,
    shard: Option<Shard>,
    format: ResultFormat,
}

/// What has been done of a run.
pub struct Done<'a> {
    /// Inputs that are explained, those of earlier sessions among them.
    pub inputs: usize,
    /// Inputs in all.
    pub of: usize,
    /// Whether an earlier session did this part.
    pub kept: bool,
    /// The certificates of this part.
    pub certificates: &'a [Certificate],
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finished {
    /// All inputs are explained and the files are there.
    Whole,
    /// Somebody stopped it; the same call goes on.
    Stopped,
}

impl Folder {
    /// Results go into this folder, which is made where it is missing.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder {
            path: path.into(),
            replace: false,
            keep_going: false,
            shard: None,
            format: ResultFormat::Npz,
        }
    }

    /// The same, where results of another run are replaced.
    pub fn replacing(self) -> Folder {
        Folder { replace: true, ..self }
    }

    /// The same, where inputs that cannot be explained are left out and listed in `failures.jsonl`.
    pub fn keeping_going(self) -> Folder {
        Folder { keep_going: true, ..self }
    }

    /// The same, for one shard of the inputs; [`merge`](super::merge) joins them.
    pub fn for_shard(self, shard: Shard) -> Folder {
        Folder { shard: Some(shard), ..self }
    }

    /// The same, with results in this format.
    pub fn in_format(self, format: ResultFormat) -> Folder {
        Folder { format, ..self }
    }

    /// The inputs that could not be explained, in order.
    ///
    /// # Errors
    /// If their list cannot be read.
    pub fn failures(&self) -> Result<Vec<Failure>> {
        failure::load(&self.path)
    }

    /// The files of explanations that a run ends with.
    pub fn results(&self) -> Vec<PathBuf> {
        self.format.files().iter().map(|file| self.path.join(file)).collect()
    }

    /// The file of traces, which is there where a flow was followed.
    pub fn traces(&self) -> PathBuf {
        self.path.join(TRACES)
    }

    /// The folder of finished parts, each a folder of results by itself.
    pub fn parts(&self) -> PathBuf {
        self.path.join(PARTS)
    }

    /// Refuses a folder that holds results of something else, before any work is done.
    ///
    /// # Errors
    /// If there are results that this run would replace, with the first thing that differs where that is known.
    pub fn check(&self, question: &Question, way: &Way, made_from: &[(String, String)]) -> Result<()> {
        self.begin(&self.about(question, way, made_from)?).map(|_| ())
    }

    /// Explains what is not explained yet, part by part, and joins the parts. `made_from` says by name what the
    /// results depend on besides inputs, targets and method; `watch` is told of every part.
    ///
    /// # Errors
    /// What the method says; a folder of another run; a folder in which another process is at work.
    pub fn explain(
        &self,
        question: &Question,
        way: &Way,
        made_from: &[(String, String)],
        watch: &mut dyn FnMut(Done) -> ControlFlow<()>,
    ) -> Result<Finished> {
        let about = self.about(question, way, made_from)?;
        let inputs = self.inputs(question);
        let of = inputs.len();
        let rounds = question.targets.count();
        if self.begin(&about)? {
            let told = inputs.is_empty() || tell(&self.path, 0, rounds, of, watch)?;
            return Ok(if told { Finished::Whole } else { Finished::Stopped });
        }
        let parts = self.parts();
        let store = Store::in_folder(&parts);
        let store = if self.replace { store.replacing() } else { store };
        let _lock = store.claim(&about)?;
        let (mut done, mut explained, mut first) = (inputs.start, 0, None);
        for part in finished_parts(&parts, inputs.start)? {
            done = part.end;
            let folder = parts.join(name(&part));
            let failures = failure::load(&folder)?;
            explained += part.len() - failures.len();
            first = first.or_else(|| failures.into_iter().next());
            let holds_some = ResultFormat::of(&folder).is_some();
            if holds_some && !tell(&folder, part.start - inputs.start, rounds, of, watch)? {
                return Ok(Finished::Stopped);
            }
        }
        let left = done..inputs.end;
        let whole = question.explain_range(way, left, self.keep_going, &mut |part, failures| {
            explained += part.inputs.len() - failures.len();
            write_part(&parts, &part, &failures, rounds)?;
            first = first.take().or_else(|| failures.into_iter().next());
            if let (0, Some(failure), true) = (explained, &first, part.inputs.end - inputs.start >= HOPELESS)
            {
                return Err(hopeless(part.inputs.end - inputs.start, failure));
            }
            let certificates: Vec<Certificate> =
                part.explanations.into_iter().map(|explanation| explanation.certificate).collect();
            let inputs = part.inputs.end - inputs.start;
            Ok(watch(Done { inputs, of, kept: false, certificates: &certificates }))
        })?;
        if !whole {
            return Ok(Finished::Stopped);
        }
        if let (0, Some(failure)) = (explained, &first) {
            return Err(hopeless(of, failure));
        }
        self.join(&about, inputs.start)?;
        Ok(Finished::Whole)
    }

    /// The inputs that are explained into this folder.
    fn inputs(&self, question: &Question) -> Range<usize> {
        let count = question.inputs.count();
        self.shard.map_or(0..count, |shard| shard.inputs(count))
    }

    fn about(
        &self,
        question: &Question,
        way: &Way,
        made_from: &[(String, String)],
    ) -> Result<BTreeMap<String, String>> {
        match self.shard {
            Some(shard) => about_shard(question, way, made_from, self.keep_going, shard),
            None => about(question, way, made_from, self.keep_going),
        }
    }

    /// Whether the folder holds the whole results of this very run already.
    fn begin(&self, about: &BTreeMap<String, String>) -> Result<bool> {
        let finished = self.path.join(FINISHED);
        if !finished.exists() {
            if let Some(there) = self.there()
                && !self.parts().exists()
                && !self.replace
            {
                return Err(Error::Exists { path: there });
            }
            return Ok(false);
        }
        match refuse_others(&self.path, &finished, about) {
            Ok(()) => match self.there() {
                _ if is_empty(about) || self.results().iter().all(|file| file.exists()) => Ok(true),
                // The same results in another format are not replaced unasked.
                Some(there) if !self.replace && ResultFormat::of(&self.path) != Some(self.format) => {
                    Err(Error::Exists { path: there })
                }
                _ => Ok(false),
            },
            Err(Error::OtherParts { .. }) if self.replace => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The first file of results that are there, in any format.
    fn there(&self) -> Option<PathBuf> {
        ResultFormat::of(&self.path).map(|format| self.path.join(format.files()[0]))
    }

    /// Makes one of all parts, and removes them.
    fn join(&self, about: &BTreeMap<String, String>, first: usize) -> Result<()> {
        let parts = self.parts();
        let folders: Vec<PathBuf> =
            finished_parts(&parts, first)?.iter().map(|part| parts.join(name(part))).collect();
        join(&folders, &self.path, about, self.format)?;
        fs::remove_dir_all(&parts).map_err(|e| Error::Write { path: parts.clone(), source: e.into() })
    }
}

/// Tells of explanations that an earlier session made, a few at a time. False where the watch broke off.
fn tell(
    folder: &Path,
    first: usize,
    rounds: usize,
    of: usize,
    watch: &mut dyn FnMut(Done) -> ControlFlow<()>,
) -> Result<bool> {
    let mut certificates = CertificateReader::open(folder)?;
    let mut inputs = first;
    loop {
        let some = certificates.by_ref().take(TOLD * rounds.max(1)).collect::<Result<Vec<_>>>()?;
        if some.is_empty() {
            return Ok(true);
        }
        inputs += some.len().div_ceil(rounds.max(1));
        if watch(Done { inputs, of, kept: true, certificates: &some }).is_break() && inputs < of {
            return Ok(false);
        }
    }
}

/// The name of a part: its first input, and the one after its last.
fn name(inputs: &Range<usize>) -> String {
    format!("{:08}-{:08}", inputs.start, inputs.end)
}

/// The parts that are whole, from input `first` on, up to the first that is missing.
fn finished_parts(folder: &Path, first: usize) -> Result<Vec<Range<usize>>> {
    let unreadable = |e: std::io::Error| Error::Read { path: folder.to_owned(), source: e.into() };
    let mut found: Vec<Range<usize>> = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.starts_with(UNFINISHED) {
            fs::remove_dir_all(entry.path()).map_err(unreadable)?;
        } else if let Some((from, to)) = file.split_once('-')
            && let (Ok(from), Ok(to)) = (from.parse(), to.parse())
        {
            found.push(from..to);
        }
    }
    found.sort_by_key(|part| part.start);
    let mut next = first;
    found.retain(|part| {
        let follows = part.start == next && part.end > next;
        next = if follows { part.end } else { next };
        follows
    });
    Ok(found)
}

/// Writes a part, whole or not at all. `rounds` is the number of explanations of each input.
fn write_part(parts: &Path, part: &Part, failures: &[Failure], rounds: usize) -> Result<()> {
    let place = parts.join(name(&part.inputs));
    let unfinished = parts.join(format!("{UNFINISHED}{}", name(&part.inputs)));
    failure::save(&unfinished, failures)?;
    if !part.explanations.is_empty() {
        save_explanations(&unfinished, &part.explanations)?;
    }
    // The places of stills count on an explanation of every input.
    if failures.is_empty() {
        save_stills(&unfinished, part.inputs.start * rounds, &part.stills)?;
    }
    if let Some(traces) = &part.traces {
        save_traces(&unfinished.join(TRACES), traces)?;
    }
    let unwritable = |e: std::io::Error| Error::Write { path: place.clone(), source: e.into() };
    fs::rename(&unfinished, &place).map_err(unwritable)?;
    // The new name must reach the disk too; not every system lets a folder be flushed.
    if let Ok(folder) = File::open(parts) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// What is said where nothing could be explained.
fn hopeless(inputs: usize, first: &Failure) -> Error {
    Error::NothingExplained { inputs, example: first.example, reason: first.reason.clone() }
}
