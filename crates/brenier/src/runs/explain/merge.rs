//! Shards of a run as one.
//!
//! ```text
//! records   all facts of all shards agree, apart from the inputs that each explained
//! cover     shards that follow one another from the first input to the last, of any n
//! join      their files, byte by byte: what one run would have written
//! ```

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Failure;
use super::about::{COUNT, INPUTS, MISSING, take_inputs, take_sample};
use super::failure;
use super::folder::FINISHED;
use super::inputs::Fingerprints;
use super::join::join;
use super::verify::record;
use crate::report::{CertificateReader, ResultFormat};
use crate::store::refuse_others;
use crate::{Error, Result};

/// What was merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Inputs of the whole run.
    pub inputs: usize,
    /// How many shards were joined.
    pub shards: usize,
    /// Inputs that no shard has explained, where that was allowed.
    pub missing: Vec<Range<usize>>,
    /// Inputs that could not be explained.
    pub failures: Vec<Failure>,
}

type Found = (Range<usize>, PathBuf);

/// Joins finished shards into a folder, where the files are then those of one run, to the bit.
///
/// Shards may be given in any order, more than once, and of several numbers of shards, as long as some of them follow one
/// another through all inputs. With `keep_going` inputs may be missing, and are told of. Results of another run in the folder
/// are replaced where `replace` says so.
///
/// # Errors
/// A shard that is not whole or of another run; inputs that no shard has; a folder with results of something else.
pub fn merge(shards: &[PathBuf], into: &Path, keep_going: bool, replace: bool) -> Result<Merged> {
    let mut found: Vec<Found> = Vec::with_capacity(shards.len());
    let mut common: Option<BTreeMap<String, String>> = None;
    for shard in shards {
        let mut about = record(shard)?;
        let Some(inputs) = take_inputs(&mut about) else {
            return Err(Error::NoRecord { folder: shard.clone(), file: "record of a shard" });
        };
        if let Some(first) = &common
            && let Some((what, kept, asked)) = difference(first, &about)
        {
            return Err(Error::OtherParts { folder: shard.clone(), what, kept, asked });
        }
        common = Some(about);
        found.push((inputs, shard.clone()));
    }
    let Some(mut about) = common else { return Err(Error::Zero { what: "the number of shards" }) };
    take_sample(&mut about);
    let count: usize = about.get(COUNT).and_then(|count| count.parse().ok()).unwrap_or(0);
    let (chosen, missing) = cover(found, count);
    if !missing.is_empty() && !keep_going {
        return Err(Error::MissingShards { missing });
    }
    let failures = identify(&chosen, &missing, &mut about)?;
    let finished = into.join(FINISHED);
    if finished.exists() && !replace {
        // What was merged before more shards were there is of the same run.
        let mut like = about.clone();
        let kept = record(into)?;
        for fact in [INPUTS, MISSING] {
            like.remove(fact);
            like.extend(kept.get(fact).map(|value| (fact.to_string(), value.clone())));
        }
        refuse_others(into, &finished, &like)?;
    }
    let folders: Vec<PathBuf> = chosen.iter().map(|(_, folder)| folder.clone()).collect();
    // Where one of them is Parquet, all become Parquet.
    let is_parquet = |folder: &PathBuf| ResultFormat::of(folder) == Some(ResultFormat::Parquet);
    let format = if folders.iter().any(is_parquet) { ResultFormat::Parquet } else { ResultFormat::Npz };
    join(&folders, into, &about, format)?;
    Ok(Merged { inputs: count, shards: folders.len(), missing, failures })
}

/// Writes into the record which inputs the shards had, and hands back those that failed.
fn identify(
    chosen: &[Found],
    missing: &[Range<usize>],
    about: &mut BTreeMap<String, String>,
) -> Result<Vec<Failure>> {
    let (mut all, mut failures, mut failed) = (Fingerprints::default(), Vec::new(), 0);
    for (inputs, folder) in chosen {
        failures.extend(failure::load(folder)?);
        let mut known: BTreeMap<usize, Option<String>> = failures[failed..]
            .iter()
            .map(|failure: &Failure| (failure.example, failure.input_hash.clone()))
            .collect();
        failed = failures.len();
        let mut certificates = match ResultFormat::of(folder) {
            Some(_) => Some(CertificateReader::open(folder)?.peekable()),
            None => None,
        };
        for example in inputs.clone() {
            if let Some(hash) = known.remove(&example) {
                all.add(hash.as_deref());
                continue;
            }
            let mut here = None;
            while let Some(next) = certificates
                .as_mut()
                .and_then(|all| all.next_if(|next| next.as_ref().map_or(true, |one| one.example == example)))
            {
                here = next?.input_hash;
            }
            all.add(here.as_deref());
        }
    }
    about.insert(INPUTS.to_string(), all.finish());
    if !missing.is_empty() {
        let ranges: Vec<String> = missing.iter().map(|r| format!("{}-{}", r.start, r.end)).collect();
        about.insert(MISSING.to_string(), ranges.join(", "));
    }
    Ok(failures)
}

/// Shards that follow one another, and the inputs that none of these has. At every input the shard is taken that leaves the
/// fewest inputs missing behind it.
fn cover(mut found: Vec<Found>, count: usize) -> (Vec<Found>, Vec<Range<usize>>) {
    found.retain(|(inputs, _)| !inputs.is_empty() && inputs.end <= count);
    found.sort_by(|(a, x), (b, y)| (a.start, a.end, x).cmp(&(b.start, b.end, y)));
    found.dedup_by(|(a, _), (b, _)| a == b);
    // Bounds from the last to the first: inputs missing from there on, and the shard that is taken there.
    let mut bounds: Vec<usize> = found.iter().flat_map(|(r, _)| [r.start, r.end]).chain([0, count]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut best: BTreeMap<usize, (usize, Option<usize>, usize)> =
        BTreeMap::from([(count, (0, None, count))]);
    for (place, &at) in bounds.iter().enumerate().rev().filter(|(_, at)| **at < count) {
        let next = bounds[place + 1];
        let mut choice = (next - at + best[&next].0, None, next);
        for (k, (inputs, _)) in found.iter().enumerate().filter(|(_, (inputs, _))| inputs.start == at) {
            let left = best[&inputs.end].0;
            if left < choice.0 || (left == choice.0 && choice.1.is_none()) {
                choice = (left, Some(k), inputs.end);
            }
        }
        best.insert(at, choice);
    }
    let (mut at, mut chosen, mut missing) = (0, Vec::new(), Vec::<Range<usize>>::new());
    while at < count {
        let (_, shard, next) = best[&at];
        match (shard, missing.last_mut()) {
            (Some(k), _) => chosen.push(found[k].clone()),
            (None, Some(last)) if last.end == at => last.end = next,
            (None, _) => missing.push(at..next),
        }
        at = next;
    }
    (chosen, missing)
}

/// The first fact in which two records differ.
fn difference(
    a: &BTreeMap<String, String>,
    b: &BTreeMap<String, String>,
) -> Option<(String, String, String)> {
    let value = |facts: &BTreeMap<String, String>, name: &str| {
        facts.get(name).map_or("none", String::as_str).to_string()
    };
    let name = a.keys().chain(b.keys()).find(|name| a.get(*name) != b.get(*name))?;
    Some((name.clone(), value(a, name), value(b, name)))
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::*;

    fn covered(shards: &[Range<usize>], count: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
        let found = shards.iter().map(|inputs| (inputs.clone(), PathBuf::new())).collect();
        let (chosen, missing) = cover(found, count);
        (chosen.into_iter().map(|(inputs, _)| inputs).collect(), missing)
    }

    #[test]
    fn shards_of_several_numbers_are_put_together() {
        assert_eq!(covered(&[5..10, 0..5], 10), (vec![0..5, 5..10], vec![]));
        // The longest at the beginning leads nowhere.
        assert_eq!(covered(&[0..6, 0..5, 5..10, 7..10], 10), (vec![0..5, 5..10], vec![]));
        assert_eq!(covered(&[0..5, 0..5, 7..10], 10), (vec![0..5, 7..10], vec![5..7]));
        assert_eq!(covered(&[4..6], 10), (vec![4..6], vec![0..4, 6..10]));
        assert_eq!(covered(&[], 10), (vec![], vec![0..10]));
        assert_eq!(covered(&[0..0, 0..3], 3), (vec![0..3], vec![]));
    }
}
