//! Work on many inputs, a part of them at a time, so that it can be said how far it is.
//!
//! A part takes about a second, whatever that is in inputs. Neither draws nor sums depend on the parts: an example
//! is known by its number in the run.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::progress::{Gauge, PATIENCE};

/// Inputs of the first part, before anything is known of the speed.
const FIRST: usize = 4;
/// How long a part should take.
const PART: Duration = Duration::from_secs(1);

/// Work that goes over all inputs once or several times.
pub(super) struct Parts {
    gauge: Gauge,
    done: u64,
    message: String,
}

impl Parts {
    /// So many rounds over so many inputs; the message says with what.
    pub(super) fn new(name: &'static str, inputs: usize, rounds: usize, message: &str) -> Parts {
        let gauge = Gauge::new(name, (inputs * rounds) as u64, 0, PATIENCE);
        Parts { gauge, done: 0, message: message.to_string() }
    }

    /// One round: what `make` makes of every part, in order.
    pub(super) fn round<T>(
        &mut self,
        inputs: usize,
        mut make: impl FnMut(Range<usize>) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let (mut made, mut from, mut size) = (Vec::with_capacity(inputs), 0, FIRST);
        while from < inputs {
            let part = from..(from + size).min(inputs);
            let began = Instant::now();
            made.extend(make(part.clone())?);
            size = next_size(part.len(), began.elapsed());
            from = part.end;
            self.done += part.len() as u64;
            self.gauge.set(self.done, &self.message);
        }
        Ok(made)
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

    #[test]
    fn a_round_goes_over_every_input_once_and_in_order() {
        for inputs in [0, 1, 4, 5, 100] {
            let made = Parts::new("counting", inputs, 1, "").round(inputs, |part| Ok(part.collect())).ok();
            assert_eq!(made, Some((0..inputs).collect::<Vec<usize>>()));
        }
    }
}
