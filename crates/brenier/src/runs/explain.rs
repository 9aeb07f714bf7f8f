//! Explanations of any number of inputs, a part at a time.
//!
//! ```text
//! Question (score, inputs, targets, context)  +  Way (a method, or paths)
//!     for each part of the inputs:   rows -> targets -> explanations, stills, traces -> signed -> taken
//! in a folder:   explanations.parts/00000000-00000032/   whole or not there; each is a folder of results by itself
//!                explanations.npz, .jsonl, ...            all parts joined, at the end
//! ```
//!
//! Nothing here grows with the number of inputs: rows are read when their part begins, and what a part gave is handed
//! on and forgotten. A run that stops, by a key or by a power cut, goes on with its first unfinished part. It ends
//! with the same bits, because an explanation depends on its input and on its number in the run, never on the part
//! it was made in.

mod about;
mod compared;
mod failure;
mod folder;
mod inputs;
mod join;
mod merge;
mod pace;
mod part;
mod shard;
mod targets;
mod verify;
mod way;

use std::ops::ControlFlow;
use std::ops::Range;

pub use crate::predictor::Outputs;
pub use failure::Failure;
pub use folder::{Done, Finished, Folder};
pub use inputs::Inputs;
pub use merge::{Merged, merge};
pub use part::{Part, Provenance};
pub use shard::Shard;
pub use targets::Targets;
pub use verify::{Changed, Difference, Verification, verify};
pub use way::Way;

use self::pace::Pace;
use crate::attribute::Context;
use crate::compare::Comparison;
use crate::score::Score;
use crate::{Error, Result};

/// What is to be explained.
pub struct Question<'a> {
    /// The score that is explained.
    pub score: &'a dyn Score,
    /// The inputs.
    pub inputs: &'a dyn Inputs,
    /// Which outputs, of every input.
    pub targets: Targets<'a>,
    /// What methods need besides. Given baselines are one row, or one for each input.
    pub context: Context<'a>,
    /// Of so many inputs, from the first on, the path is kept as stills.
    pub stills: usize,
    /// What the results are made from.
    pub provenance: Provenance,
    /// What inputs are compared with, for methods that follow a flow or take references from data.
    pub comparison: Option<&'a Comparison<'a>>,
}

impl Question<'_> {
    /// Explains the inputs from `first` on, and hands every finished part to `take`, in order. True where all were
    /// explained, false where `take` broke off.
    ///
    /// # Errors
    /// What the method says, and what `take` says.
    pub fn explain(
        &self,
        way: &Way,
        first: usize,
        take: &mut dyn FnMut(Part) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let all = first..self.inputs.count();
        self.explain_range(way, all, false, &mut |part, _| take(part))
    }

    /// The same for the inputs of a range. Inputs that cannot be explained are an error, or handed over with their part where
    /// `keep_going` says so.
    pub(crate) fn explain_range(
        &self,
        way: &Way,
        range: Range<usize>,
        keep_going: bool,
        take: &mut dyn FnMut(Part, Vec<Failure>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let mut pace = Pace::new(way, self.targets.count(), self.score.features());
        let mut from = range.start;
        while from < range.end {
            let here = from..(from + pace.size()).min(range.end);
            let made = pace.timed(here.len(), || match self.part(way, here.clone()) {
                Err(Error::Stopped) => Err(Error::Stopped),
                Err(_) if keep_going => self.one_by_one(way, here.clone()),
                made => made.map(|part| (part, Vec::new())),
            });
            from = here.end;
            let (part, failures) = made?;
            if take(part, failures)?.is_break() && from < range.end {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Explains the inputs of a range.
    fn part(&self, way: &Way, range: Range<usize>) -> Result<Part> {
        let rows = self.inputs.rows(range.clone())?;
        let rounds = self.targets.of(rows.view(), range.clone())?;
        let mut part = match (self.comparison, way) {
            (Some(comparison), Way::Method(method)) if Comparison::is_used_by(method.spec()) => {
                compared::explain(self, comparison, method, rows.view(), range, &rounds)?
            }
            _ => way.explain(self, rows.view(), range, &rounds)?,
        };
        self.provenance.sign(&mut part.explanations, self.inputs, way);
        Ok(part)
    }
}
