//! What the results of a run, or of one of its shards, are made from.

use std::collections::BTreeMap;
use std::ops::Range;

use super::folder::FINISHED;
use super::inputs::{Fingerprints, fingerprint};
use super::way;
use super::{Inputs, Question, Shard, Targets, Way};
use crate::{Error, Result, fingerprint_row};

/// The facts by their names in records.
pub(super) const COUNT: &str = "the count of inputs";
pub(super) const INPUTS: &str = "the fingerprint of the inputs";
pub(super) const MISSING: &str = "the missing inputs";
const SHARD: &str = "the shard";
const SHARD_INPUTS: &str = "the inputs of the shard";
const SHARD_FINGERPRINT: &str = "the fingerprint of the shard's inputs";
const SAMPLE: &str = "the fingerprint of some of all inputs";
/// Inputs of the whole run that every shard looks at, so that shards of other data are told from it.
const LOOKED_AT: usize = 64;

/// What a run's results are made from.
pub(super) fn about(
    question: &Question,
    way: &Way,
    made_from: &[(String, String)],
    keep_going: bool,
) -> Result<BTreeMap<String, String>> {
    let mut about = apart_from_inputs(question, way, made_from)?;
    let all = 0..question.inputs.count();
    about.insert(INPUTS.to_string(), fingerprint(question.inputs, all, keep_going)?);
    Ok(about)
}

/// What the results of a shard are made from: it reads its own inputs, and a few of the others.
pub(super) fn about_shard(
    question: &Question,
    way: &Way,
    made_from: &[(String, String)],
    keep_going: bool,
    shard: Shard,
) -> Result<BTreeMap<String, String>> {
    let mut about = apart_from_inputs(question, way, made_from)?;
    let inputs = shard.inputs(question.inputs.count());
    about.insert(SHARD.to_string(), shard.to_string());
    about.insert(SHARD_INPUTS.to_string(), format!("{}-{}", inputs.start, inputs.end));
    about.insert(SHARD_FINGERPRINT.to_string(), fingerprint(question.inputs, inputs, keep_going)?);
    about.insert(SAMPLE.to_string(), sample(question.inputs));
    Ok(about)
}

/// Takes out of a shard's record what is its own: its inputs.
pub(super) fn take_inputs(about: &mut BTreeMap<String, String>) -> Option<Range<usize>> {
    about.remove(SHARD);
    about.remove(SHARD_FINGERPRINT);
    let (start, end) = about.remove(SHARD_INPUTS)?.split_once('-').map(|(a, b)| (a.parse(), b.parse()))?;
    Some(start.ok()?..end.ok()?)
}

/// Takes out of a shard's record what a whole run does not say.
pub(super) fn take_sample(about: &mut BTreeMap<String, String>) {
    about.remove(SAMPLE);
}

/// Whether it is the record of a shard without inputs.
pub(super) fn is_empty(about: &BTreeMap<String, String>) -> bool {
    take_inputs(&mut about.clone()).is_some_and(|inputs| inputs.is_empty())
}

/// A fingerprint of inputs that are spread evenly over all.
fn sample(inputs: &dyn Inputs) -> String {
    let (count, mut found) = (inputs.count(), Fingerprints::default());
    for k in 0..LOOKED_AT.min(count) {
        let row = (k as u128 * count as u128 / LOOKED_AT.min(count) as u128) as usize;
        let rows = inputs.rows(row..row + 1).ok();
        found.add(rows.map(|rows| fingerprint_row(rows.row(0))).as_deref());
    }
    found.finish()
}

fn apart_from_inputs(
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
    about.insert(COUNT.to_string(), question.inputs.count().to_string());
    if let Some(baselines) = &question.context.baselines {
        let all = fingerprint(baselines, 0..baselines.nrows(), false)?;
        about.insert("the fingerprint of the baselines".to_string(), all);
    }
    if let Some(comparison) = question.comparison {
        about.insert("what inputs are compared with".to_string(), comparison.fingerprint());
    }
    about.insert("the processor".to_string(), crate::engine::processor());
    about.insert("the version".to_string(), env!("CARGO_PKG_VERSION").to_string());
    Ok(about)
}
