//! The work of a run: every method on every input for every target.

use std::ops::Range;

use anyhow::Result;
use brenier::Explanation;
use brenier::attribute::Method;
use ndarray::{Array2, s};

use super::parts::Parts;
use super::paths::GivenPaths;
use crate::request::{Loaded, Surroundings};

/// What is to be explained.
pub(super) struct Work<'a> {
    pub(super) model: &'a Loaded,
    pub(super) surroundings: &'a Surroundings,
    pub(super) inputs: &'a Array2<f64>,
    /// The targets of all inputs, one list for each round.
    pub(super) rounds: &'a [Vec<usize>],
}

impl Work<'_> {
    /// What a method says of all inputs, the targets of one input after another.
    pub(super) fn explain(&self, method: &Method, given: Option<&GivenPaths>) -> Result<Vec<Explanation>> {
        let count = self.inputs.nrows();
        let mut parts = Parts::new("explaining", count, self.rounds.len(), &method.name());
        let mut rounds = Vec::with_capacity(self.rounds.len());
        for targets in self.rounds {
            let found = match method {
                // Its graph of neighbours is made for all inputs at once.
                Method::GeodesicIg(_) => self.part(method, given, 0..count, targets)?,
                _ => parts.round(count, |part| self.part(method, given, part, targets))?,
            };
            rounds.push(found.into_iter());
        }
        let mut all = Vec::with_capacity(count * rounds.len());
        for _ in 0..count {
            all.extend(rounds.iter_mut().filter_map(Iterator::next));
        }
        Ok(all)
    }

    fn part(
        &self,
        method: &Method,
        given: Option<&GivenPaths>,
        part: Range<usize>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let score = self.model.score();
        if let Some(paths) = given {
            return paths.explain(score, part, targets);
        }
        let context = self.surroundings.context(self.model.with_gradients(), &part);
        let inputs = self.inputs.slice(s![part.clone(), ..]);
        Ok(method.explain(score, inputs, &targets[part], &context)?)
    }
}
