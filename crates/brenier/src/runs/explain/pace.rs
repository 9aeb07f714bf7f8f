//! How many inputs make a part.
//!
//! A part takes about a second, so that little is lost when a run stops and there is something to see while it goes
//! on; and it stays small in memory. The clock decides where parts end, never what is in them.

use std::time::{Duration, Instant};

use super::Way;
use crate::Result;

/// Inputs of the first part, before anything is known of the speed.
const FIRST: usize = 4;
/// How long a part should take.
const PART: Duration = Duration::from_secs(1);
/// Numbers that a part may hold in each of its arrays: 2 MB.
const NUMBERS: usize = 1 << 18;
/// What a certificate takes, in numbers.
const CERTIFICATE: usize = 256;
/// Inputs of each part of a method that begins every part with work for all of them.
const TOGETHER: usize = 1024;

/// The size of the next part.
pub(super) struct Pace {
    size: usize,
    most: usize,
    fixed: bool,
}

impl Pace {
    /// For so many explanations of each input, of so many numbers each.
    pub(super) fn new(way: &Way, explanations: usize, features: usize) -> Pace {
        let fixed = way.prepares_for_many();
        let numbers = explanations.max(1) * (features + CERTIFICATE);
        let most = if fixed { TOGETHER } else { (NUMBERS / numbers).max(1) };
        Pace { size: if fixed { most } else { FIRST.min(most) }, most, fixed }
    }

    /// How many inputs the next part has.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Does the work of a part, and sets the pace by the time it took.
    pub(super) fn timed<T>(&mut self, size: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let made = work()?;
        if !self.fixed {
            self.size = next_size(size, began.elapsed()).min(self.most);
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
}
