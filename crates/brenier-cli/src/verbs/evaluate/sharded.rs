//! One shard of an evaluation, for machines that share it.

use std::path::Path;

use anyhow::{Context as _, Result};
use brenier::Store;
use brenier::attribute::Method;
use brenier::evaluate::{Evaluation, EvaluationShard};
use brenier::runs::explain::Shard;

use super::{Facts, stopped, unless_stopped};
use crate::output::{expect_writable, print_progress};
use crate::progress::{RunProgress, StopKey};
use crate::verbs::explain::SHARDS;

/// What a command asks: everything is loaded, nothing is evaluated yet.
pub(super) struct Asked<'a> {
    pub(super) evaluation: &'a Evaluation<'a>,
    pub(super) methods: &'a [Method],
    pub(super) made_from: Vec<(String, String)>,
    pub(super) facts: Facts,
}

impl Asked<'_> {
    /// Evaluates a shard into its folder, which has its name once it is whole.
    pub(super) fn run(self, shard: Shard, output: &Path, replace: bool, stop: StopKey) -> Result<()> {
        let shards = output.join(SHARDS);
        let (whole, folder) = (shard.folder(&shards), shard.unfinished(&shards));
        if whole.exists() && !replace {
            if let Some(kept) = EvaluationShard::load(&whole)? {
                self.evaluation.expect_shard(&kept, self.methods, &self.made_from, &whole)?;
                print_progress(&format!("shard {shard} is whole: {}", whole.display()));
                return Ok(());
            }
            anyhow::bail!(
                "{} holds a shard of explanations\nhint: choose another folder with -o",
                whole.display()
            );
        }
        expect_writable(&folder)?;
        let store = Store::in_folder(folder.join("parts"));
        let store = if replace { store.replacing() } else { store };
        let chunks = shard.inputs(self.evaluation.chunks());
        let mut progress = RunProgress::new(stop);
        let mut watch = |done| progress.evaluated(done);
        let found = self.evaluation.run_shard(self.methods, chunks, &store, &self.made_from, &mut watch);
        let Some(mut found) = unless_stopped(found)? else { return stopped(Some(&folder)) };
        (found.title, found.facts) = (self.facts.title, self.facts.facts);
        found.save(&folder)?;
        let unwritable = || format!("cannot write {}", whole.display());
        let parts = folder.join("parts");
        if parts.exists() {
            std::fs::remove_dir_all(&parts).with_context(unwritable)?;
        }
        if whole.exists() {
            std::fs::remove_dir_all(&whole).with_context(unwritable)?;
        }
        std::fs::rename(&folder, &whole).with_context(unwritable)?;
        print_progress(&format!("shard {shard} is whole: {}", whole.display()));
        Ok(())
    }
}
