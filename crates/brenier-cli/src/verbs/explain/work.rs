//! The work of a run: every method on every input for every target.

use std::ops::Range;

use anyhow::Result;
use brenier::attribute::{Frames, Method, frames};
use brenier::{Explanation, Path};
use ndarray::{Array2, s};

use super::parts::Parts;
use super::paths::GivenPaths;
use crate::request::{Loaded, Surroundings};
use crate::verbs::report::SHOWN;

/// Stills of each path.
const PIECES: usize = 20;

/// What is to be explained.
pub(super) struct Work<'a> {
    pub(super) model: &'a Loaded,
    pub(super) surroundings: &'a Surroundings,
    pub(super) inputs: &'a Array2<f64>,
    /// The targets of all inputs, one list for each round.
    pub(super) rounds: &'a [Vec<usize>],
    /// Whether stills of the paths are wanted.
    pub(super) stills: bool,
}

/// An explanation, with stills of its path where the method follows one and the report shows it.
type Shown = (Explanation, Option<Frames>);

impl Work<'_> {
    /// What a method says of all inputs, the targets of one input after another.
    pub(super) fn explain(&self, method: &Method, given: Option<&GivenPaths>) -> Result<Vec<Shown>> {
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
    ) -> Result<Vec<Shown>> {
        let score = self.model.score();
        if let Some(given) = given {
            let explanations = given.explain(score, part.clone(), targets)?;
            return self.with_stills(explanations, &given.paths()[part]);
        }
        let context = self.surroundings.context(self.model.with_gradients(), &part);
        let inputs = self.inputs.slice(s![part.clone(), ..]);
        let (explanations, paths) = method.explain_with_paths(score, inputs, &targets[part], &context)?;
        self.with_stills(explanations, &paths)
    }

    /// Stills for the report, of the examples that it shows.
    fn with_stills(&self, explanations: Vec<Explanation>, paths: &[Box<dyn Path>]) -> Result<Vec<Shown>> {
        let mut paths = paths.iter();
        let still = |explanation: Explanation| {
            let certificate = &explanation.certificate;
            let path = paths.next().filter(|_| self.stills && certificate.example < SHOWN);
            let frames = match path {
                Some(path) => Some(frames(self.model.score(), path.as_ref(), certificate.target, PIECES)?),
                None => None,
            };
            Ok((explanation, frames))
        };
        explanations.into_iter().map(still).collect()
    }
}
