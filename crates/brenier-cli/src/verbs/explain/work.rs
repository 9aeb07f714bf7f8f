//! The work of a run, a part of the inputs at a time, so that it can be said how far it is.
//!
//! A part takes about a second, whatever that is in inputs. Neither draws nor sums depend on the parts: an example
//! is known by its number in the run.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;
use brenier::Explanation;
use brenier::attribute::Method;
use ndarray::{Array2, s};

use super::paths::GivenPaths;
use crate::progress::{Gauge, PATIENCE};
use crate::request::{Loaded, Surroundings};

/// Inputs of the first part, before anything is known of the speed.
const FIRST_PART: usize = 4;
/// How long a part should take.
const PART: Duration = Duration::from_secs(1);

/// What is to be explained.
pub(super) struct Work<'a> {
    pub(super) model: &'a Loaded,
    pub(super) surroundings: &'a Surroundings,
    pub(super) inputs: &'a Array2<f64>,
    /// The targets of all inputs, one list for each round.
    pub(super) rounds: &'a [Vec<usize>],
}

impl Work<'_> {
    /// Something that shows how far so many methods are.
    pub(super) fn gauge(&self, methods: usize) -> Gauge {
        let total = methods * self.rounds.len() * self.inputs.nrows();
        Gauge::new("explaining", total as u64, 0, PATIENCE)
    }

    /// What a method says of all inputs, the targets of one input after another. `done` is what the gauge has seen.
    pub(super) fn explain(
        &self,
        method: &Method,
        given: Option<&GivenPaths>,
        gauge: &mut Gauge,
        done: &mut u64,
    ) -> Result<Vec<Explanation>> {
        let count = self.inputs.nrows();
        let mut rounds = Vec::with_capacity(self.rounds.len());
        for targets in self.rounds {
            let mut found = Vec::with_capacity(count);
            // Its graph of neighbours is made for all inputs at once.
            let mut size = if matches!(method, Method::GeodesicIg(_)) { count } else { FIRST_PART };
            while found.len() < count {
                let part = found.len()..(found.len() + size).min(count);
                let began = Instant::now();
                found.extend(self.part(method, given, &part, targets)?);
                size = next_size(part.len(), began.elapsed());
                *done += part.len() as u64;
                gauge.set(*done, &method.name());
            }
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
        part: &Range<usize>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let score = self.model.score();
        if let Some(paths) = given {
            return paths.explain(score, part.clone(), targets);
        }
        let context = self.surroundings.context(self.model.with_gradients(), part);
        let inputs = self.inputs.slice(s![part.clone(), ..]);
        Ok(method.explain(score, inputs, &targets[part.clone()], &context)?)
    }
}

/// As many inputs as take about a second, and at most eight times as many as before.
fn next_size(size: usize, took: Duration) -> usize {
    let fitting = size as f64 * PART.as_secs_f64() / took.as_secs_f64().max(1e-6);
    (fitting as usize).clamp(1, 8 * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_grow_to_a_second() {
        assert_eq!(next_size(4, Duration::from_millis(1)), 32);
        assert_eq!(next_size(4, Duration::from_millis(2000)), 2);
        assert_eq!(next_size(4, Duration::from_secs(60)), 1);
        assert_eq!(next_size(100, Duration::from_millis(500)), 200);
    }
}
