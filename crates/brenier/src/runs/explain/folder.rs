//! A run in a folder: its parts, what is finished of it, and the files it ends with.
//!
//! ```text
//! DIR/explanations.parts/run.json             what the parts are made from
//!                       /00000000-00000032/   inputs 0 to 31: explanations.npz, .jsonl, and stills and traces
//! DIR/explanations.npz, explanations.jsonl, stills.npz, traces.npz, explanations.run.json     when all are there
//! ```
//!
//! A part is made under another name and renamed when it is whole. The files at the end are the parts joined, byte by
//! byte. `explanations.run.json` comes last: where it is, the results are whole, and it says what they are made from.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use super::inputs::fingerprint;
use super::way;
use super::{Part, Question, Targets, Way};
use crate::attribute::Certificate;
use crate::path::{join_traces, save_traces};
use crate::report::{
    ARRAYS, CERTIFICATES, CertificateReader, STILLS, join_explanations, join_stills, save_explanations,
    save_stills,
};
use crate::store::{Store, refuse_others};
use crate::whole_file::write_whole;
use crate::{Error, Result};

const PARTS: &str = "explanations.parts";
pub(super) const FINISHED: &str = "explanations.run.json";
const TRACES: &str = "traces.npz";
/// Inputs of an earlier session that are told of at a time.
const TOLD: usize = 256;
/// Begins the name of a part that is not whole yet.
const UNFINISHED: &str = "unfinished-";

/// Where the results of a run are kept.
pub struct Folder {
    path: PathBuf,
    replace: bool,
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
        Folder { path: path.into(), replace: false }
    }

    /// The same, where results of another run are replaced.
    pub fn replacing(self) -> Folder {
        Folder { replace: true, ..self }
    }

    /// The file of arrays that a run ends with.
    pub fn arrays(&self) -> PathBuf {
        self.path.join(ARRAYS)
    }

    /// The file of certificates, one a line.
    pub fn certificates(&self) -> PathBuf {
        self.path.join(CERTIFICATES)
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
        self.begin(&about(question, way, made_from)?).map(|_| ())
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
        let about = about(question, way, made_from)?;
        let of = question.inputs.count();
        let rounds = question.targets.count();
        if self.begin(&about)? {
            let told = tell(&self.certificates(), 0, rounds, of, watch)?;
            return Ok(if told { Finished::Whole } else { Finished::Stopped });
        }
        let parts = self.parts();
        let store = Store::in_folder(&parts);
        let store = if self.replace { store.replacing() } else { store };
        let _lock = store.claim(&about)?;
        let mut done = 0;
        for part in finished_parts(&parts)? {
            done = part.end;
            let file = parts.join(name(&part)).join(CERTIFICATES);
            if !tell(&file, part.start, rounds, of, watch)? {
                return Ok(Finished::Stopped);
            }
        }
        let whole = question.explain(way, done, &mut |part| {
            write_part(&parts, &part, rounds)?;
            let certificates: Vec<Certificate> =
                part.explanations.into_iter().map(|explanation| explanation.certificate).collect();
            Ok(watch(Done { inputs: part.inputs.end, of, kept: false, certificates: &certificates }))
        })?;
        if !whole {
            return Ok(Finished::Stopped);
        }
        self.join(&about)?;
        Ok(Finished::Whole)
    }

    /// Whether the folder holds the whole results of this very run already.
    fn begin(&self, about: &BTreeMap<String, String>) -> Result<bool> {
        let finished = self.path.join(FINISHED);
        if !finished.exists() {
            if self.arrays().exists() && !self.parts().exists() && !self.replace {
                return Err(Error::Exists { path: self.arrays() });
            }
            return Ok(false);
        }
        match refuse_others(&self.path, &finished, about) {
            Ok(()) => Ok(self.arrays().exists() && self.certificates().exists()),
            Err(Error::OtherParts { .. }) if self.replace => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes one of all parts, and removes them.
    fn join(&self, about: &BTreeMap<String, String>) -> Result<()> {
        let parts = self.parts();
        let folders: Vec<PathBuf> =
            finished_parts(&parts)?.iter().map(|part| parts.join(name(part))).collect();
        let finished = self.path.join(FINISHED);
        // From here on the old results are not whole.
        remove(&finished)?;
        join_explanations(&folders, &self.path)?;
        for (file, join) in
            [(STILLS, join_stills as fn(&[PathBuf], &Path) -> Result<()>), (TRACES, join_traces)]
        {
            let there: Vec<PathBuf> =
                folders.iter().map(|folder| folder.join(file)).filter(|path| path.exists()).collect();
            let whole = self.path.join(file);
            if there.is_empty() { remove(&whole)? } else { join(&there, &whole)? }
        }
        let text = serde_json::to_vec_pretty(about)
            .map_err(|e| Error::Write { path: finished.clone(), source: e.into() })?;
        write_whole(&finished, &text)?;
        fs::remove_dir_all(&parts).map_err(|e| Error::Write { path: parts.clone(), source: e.into() })
    }
}

/// What a run's results are made from.
pub(super) fn about(
    question: &Question,
    way: &Way,
    made_from: &[(String, String)],
) -> Result<BTreeMap<String, String>> {
    let mut about: BTreeMap<String, String> = made_from.iter().cloned().collect();
    let targets = match &question.targets {
        Targets::Same(targets) => format!("{targets:?}"),
        Targets::Each(targets) => {
            format!("one for each: {}", crate::fingerprint(format!("{targets:?}").as_bytes()))
        }
        Targets::Highest { count, .. } => format!("the highest {count}"),
    };
    let method = match way {
        Way::Method(method) => serde_json::to_string(method)
            .map_err(|e| Error::Write { path: FINISHED.into(), source: e.into() })?,
        Way::Along { allocation, paths, .. } => {
            about.insert("the fingerprint of the paths".to_string(), way::fingerprint(paths));
            format!("{} with {allocation:?}", way.name())
        }
    };
    about.insert("the method".to_string(), method);
    about.insert("the targets".to_string(), targets);
    about.insert("the count of inputs".to_string(), question.inputs.count().to_string());
    about.insert("the fingerprint of the inputs".to_string(), fingerprint(question.inputs)?);
    if let Some(baselines) = &question.context.baselines {
        about.insert("the fingerprint of the baselines".to_string(), fingerprint(baselines)?);
    }
    if let Some(comparison) = question.comparison {
        about.insert("what inputs are compared with".to_string(), comparison.fingerprint());
    }
    about.insert("the processor".to_string(), crate::engine::processor());
    about.insert("the version".to_string(), env!("CARGO_PKG_VERSION").to_string());
    Ok(about)
}

/// Tells of explanations that an earlier session made, a few at a time. False where the watch broke off.
fn tell(
    file: &Path,
    first: usize,
    rounds: usize,
    of: usize,
    watch: &mut dyn FnMut(Done) -> ControlFlow<()>,
) -> Result<bool> {
    let mut certificates = CertificateReader::open(file)?;
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

/// The parts that are whole, from the first input on, up to the first that is missing.
fn finished_parts(folder: &Path) -> Result<Vec<Range<usize>>> {
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
    let mut next = 0;
    found.retain(|part| {
        let follows = part.start == next && part.end > next;
        next = if follows { part.end } else { next };
        follows
    });
    Ok(found)
}

/// Writes a part, whole or not at all. `rounds` is the number of explanations of each input.
fn write_part(parts: &Path, part: &Part, rounds: usize) -> Result<()> {
    let place = parts.join(name(&part.inputs));
    let unfinished = parts.join(format!("{UNFINISHED}{}", name(&part.inputs)));
    save_explanations(&unfinished, &part.explanations)?;
    save_stills(&unfinished, part.inputs.start * rounds, &part.stills)?;
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

/// Removes a file that may not be there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::Write { path: path.to_owned(), source: e.into() })
        }
        _ => Ok(()),
    }
}
