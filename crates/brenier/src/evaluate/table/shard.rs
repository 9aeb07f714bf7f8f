//! A table made on several machines: each scores the methods on some chunks of the examples, and all of them together are the
//! table of one run, to the bit.
//!
//! ```text
//! shard:   chunks 0 to k of the examples  ->  numbers for each method, metric and example, in one file
//! merge:   the files of all chunks        ->  the table; neither model nor data are needed
//! ```

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{CHUNK, Chunk, Collected, Done, Evaluation, Heading, MetricTable};
use crate::attribute::Method;
use crate::store::{Store, around_difference};
use crate::whole_file::{make_folder, write_whole};
use crate::{Error, Result};

/// The file of a finished shard.
pub const EVALUATION_SHARD: &str = "evaluation.shard.json";

/// What one shard of an evaluation has found.
#[derive(Serialize, Deserialize)]
pub struct EvaluationShard {
    /// What the table is called.
    pub title: String,
    /// What there is to know of the run, for the report.
    pub facts: Vec<(String, String)>,
    made_from: BTreeMap<String, String>,
    heading: Heading,
    first: usize,
    /// For every chunk what each method has given.
    chunks: Vec<Vec<Chunk>>,
}

impl Evaluation<'_> {
    /// Chunks of examples, which shards are made of.
    pub fn chunks(&self) -> usize {
        self.inputs.nrows().div_ceil(CHUNK)
    }

    /// What [`Evaluation::run`] does, for some of the chunks; [`EvaluationShard::merge`] makes the table of all.
    ///
    /// # Errors
    /// As for `run`.
    pub fn run_shard(
        &self,
        methods: &[Method],
        chunks: Range<usize>,
        store: &Store,
        made_from: &[(String, String)],
        watch: &mut dyn FnMut(Done) -> ControlFlow<()>,
    ) -> Result<Option<EvaluationShard>> {
        self.check(methods)?;
        let _lock = store.claim(&self.claim(made_from))?;
        let mut found = Vec::with_capacity(chunks.len());
        let mut done = Done { parts: 0, of: chunks.len() * methods.len(), kept: false };
        for range in self.ranges().skip(chunks.start).take(chunks.len()) {
            let mut of_all = Vec::with_capacity(methods.len());
            for method in methods {
                of_all.push(self.kept_chunk(method, &range, store, &mut done)?);
                if watch(done).is_break() && done.parts < done.of {
                    return Ok(None);
                }
            }
            found.push(of_all);
        }
        let (title, facts, first) = (String::new(), Vec::new(), chunks.start);
        let (made_from, heading) = (self.identity(methods, made_from)?, self.heading(methods));
        Ok(Some(EvaluationShard { title, facts, made_from, heading, first, chunks: found }))
    }

    /// Refuses a finished shard of something else.
    ///
    /// # Errors
    /// With the first thing that differs.
    pub fn expect_shard(
        &self,
        shard: &EvaluationShard,
        methods: &[Method],
        made_from: &[(String, String)],
        folder: &Path,
    ) -> Result<()> {
        expect_same(&shard.made_from, &self.identity(methods, made_from)?, folder)
    }

    /// All that the numbers depend on.
    fn identity(
        &self,
        methods: &[Method],
        made_from: &[(String, String)],
    ) -> Result<BTreeMap<String, String>> {
        let mut about = self.claim(made_from);
        let unwritable =
            |e: serde_json::Error| Error::Write { path: EVALUATION_SHARD.into(), source: e.into() };
        about.insert("the list of methods".to_string(), serde_json::to_string(methods).map_err(unwritable)?);
        about.insert(
            "the list of metrics".to_string(),
            serde_json::to_string(self.metrics).map_err(unwritable)?,
        );
        Ok(about)
    }
}

impl EvaluationShard {
    /// Writes it into a folder, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, folder: &Path) -> Result<()> {
        make_folder(folder)?;
        let path = folder.join(EVALUATION_SHARD);
        let text =
            serde_json::to_vec(self).map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
        write_whole(&path, &text)
    }

    /// That of a folder; none where it has none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(folder: &Path) -> Result<Option<EvaluationShard>> {
        let path = folder.join(EVALUATION_SHARD);
        if !path.exists() {
            return Ok(None);
        }
        let unreadable = |source| Error::Read { path: path.clone(), source };
        let bytes = std::fs::read(&path).map_err(|e| unreadable(e.into()))?;
        serde_json::from_slice(&bytes).map(Some).map_err(|e| unreadable(e.into()))
    }

    /// The table of all shards, which may be of any number, in any order, and overlap.
    ///
    /// # Errors
    /// Shards of different runs, with the first thing that differs; examples that no shard has.
    pub fn merge(shards: Vec<EvaluationShard>, folder: &Path) -> Result<MetricTable> {
        let Some(first) = shards.first() else { return Err(Error::Zero { what: "the number of shards" }) };
        for other in &shards[1..] {
            expect_same(&first.made_from, &other.made_from, folder)?;
        }
        let heading = first.heading.clone();
        let mut all: BTreeMap<usize, Vec<Chunk>> = BTreeMap::new();
        for shard in shards {
            all.extend((shard.first..).zip(shard.chunks));
        }
        let count = heading.examples.div_ceil(CHUNK);
        let mut missing: Vec<Range<usize>> = Vec::new();
        for chunk in (0..count).filter(|chunk| !all.contains_key(chunk)) {
            let (from, to) = (chunk * CHUNK, ((chunk + 1) * CHUNK).min(heading.examples));
            match missing.last_mut() {
                Some(last) if last.end == from => last.end = to,
                _ => missing.push(from..to),
            }
        }
        if !missing.is_empty() {
            return Err(Error::MissingShards { missing });
        }
        let mut rows: Vec<Collected> =
            heading.methods.iter().map(|_| Collected::new(heading.metrics.len())).collect();
        for (chunk, of_all) in all {
            rows.iter_mut().zip(of_all).for_each(|(row, found)| row.add(found));
            if chunk == 0 && !heading.leave_out {
                heading.refuse_empty_columns(&rows)?;
            }
        }
        Ok(heading.table(rows))
    }
}

fn expect_same(
    kept: &BTreeMap<String, String>,
    asked: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<()> {
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        facts.get(name).map_or("none", String::as_str).to_string()
    };
    match kept.keys().chain(asked.keys()).find(|name| kept.get(*name) != asked.get(*name)) {
        None => Ok(()),
        Some(name) => {
            let (before, now) = (value(kept, name), value(asked, name));
            Err(Error::OtherParts {
                folder: folder.to_owned(),
                what: name.clone(),
                kept: around_difference(&before, &now),
                asked: around_difference(&now, &before),
            })
        }
    }
}
