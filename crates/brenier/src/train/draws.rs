//! What a step draws, from the seed and the step's number alone.
//!
//! No generator lives from step to step, so a training can be resumed anywhere and steps drawn in any order.

use std::sync::{Arc, Mutex, PoisonError};

use ndarray::Array1;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a generator is for: each has numbers of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Pairs = 0,
    Data = 1,
    Reference = 2,
    Times = 3,
}

/// The generator of a step: a stream of the seed's generator.
pub(crate) fn step_rng(seed: u64, stream: Stream, step: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(step << 2 | stream as u64);
    rng
}

/// One time from each of `rows` equal parts of `[0, 1)`, in random order: as uniform as independent draws, with
/// less noise in the gradient.
pub(crate) fn strata(seed: u64, step: u64, rows: usize) -> Array1<f32> {
    let mut rng = step_rng(seed, Stream::Times, step);
    let mut times: Vec<f32> =
        (0..rows).map(|i| ((i as f64 + rng.random::<f64>()) / rows as f64) as f32).collect();
    for i in (1..rows).rev() {
        times.swap(i, rng.random_range(0..=i));
    }
    times.into()
}

/// Epochs over `count` examples: each is a random order of all, and steps take from it in turn.
#[derive(Debug)]
pub(crate) struct Epochs {
    seed: u64,
    stream: Stream,
    count: usize,
    /// The order of the epoch asked for last; a memory, not a state: it follows from the rest.
    last: Mutex<Option<(u64, Arc<[usize]>)>>,
}

impl Epochs {
    pub(crate) fn new(seed: u64, stream: Stream, count: usize) -> Epochs {
        Epochs { seed, stream, count, last: Mutex::new(None) }
    }

    /// The examples of a step of so many rows.
    pub(crate) fn of_step(&self, step: u64, rows: usize) -> Vec<usize> {
        let first = step * rows as u64;
        let mut order: Option<(u64, Arc<[usize]>)> = None;
        (first..first + rows as u64)
            .map(|position| {
                let (epoch, place) = (position / self.count as u64, (position % self.count as u64) as usize);
                match &order {
                    Some((known, order)) if *known == epoch => order[place],
                    _ => order.insert((epoch, self.order(epoch))).1[place],
                }
            })
            .collect()
    }

    fn order(&self, epoch: u64) -> Arc<[usize]> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, order)) if *known == epoch => order.clone(),
            _ => {
                let mut rng = step_rng(self.seed, self.stream, epoch);
                let mut order: Vec<usize> = (0..self.count).collect();
                for i in (1..self.count).rev() {
                    order.swap(i, rng.random_range(0..=i));
                }
                last.insert((epoch, order.into())).1.clone()
            }
        }
    }
}

impl Clone for Epochs {
    fn clone(&self) -> Self {
        Epochs::new(self.seed, self.stream, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_one_from_each_part() {
        let times = strata(3, 5, 16);
        let mut parts: Vec<usize> = times.iter().map(|t| (t * 16.0) as usize).collect();
        assert_ne!(parts, (0..16).collect::<Vec<_>>());
        parts.sort_unstable();
        assert_eq!(parts, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn an_epoch_has_every_example_once_and_steps_may_cross_its_end() {
        let epochs = Epochs::new(1, Stream::Data, 10);
        let steps: Vec<Vec<usize>> = (0..5).map(|step| epochs.of_step(step, 4)).collect();
        let mut first: Vec<usize> = steps.concat()[..10].to_vec();
        first.sort_unstable();
        assert_eq!(first, (0..10).collect::<Vec<_>>());
        // Asked again, after another epoch was drawn.
        assert_eq!(epochs.of_step(1, 4), steps[1]);
    }
}
