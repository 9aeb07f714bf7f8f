//! A short seeded run of what `fuzz/` runs for long: broken models are errors, never panics.
//!
//! `FUZZ_FILES=1000000 cargo test -p onnx-grad --test fuzz_short` runs it for longer without cargo-fuzz.

mod fuzz_body;

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};

use fuzz_body::{Reached, exercise, fixtures, mutated};

/// No small file may take longer than this, even in an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }
}

fn models() -> Vec<Vec<u8>> {
    let models = fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"));
    assert!(models.len() > 700, "only {} fixtures", models.len());
    models
}

/// How many files were refused, read and differentiated; a panic names the file's number.
fn tally(count: u64, mut file: impl FnMut(&mut Rng) -> Vec<u8>) -> [usize; 3] {
    let more = std::env::var("FUZZ_FILES").ok().and_then(|n| n.parse().ok());
    let count = more.unwrap_or(0).max(count);
    let mut reached = [0; 3];
    for seed in 0..count {
        let bytes = file(&mut Rng(seed));
        let start = Instant::now();
        let how_far = catch_unwind(|| exercise(&bytes)).unwrap_or_else(|_| panic!("file {seed} panics"));
        assert!(start.elapsed() < PATIENCE, "file {seed} took {:?}", start.elapsed());
        reached[how_far as usize] += 1;
    }
    reached
}

#[test]
fn models_changed_in_structure() {
    let models = models();
    let reached = tally(12_000, |rng| {
        let model = &models[rng.below(models.len())];
        mutated(model, &rng.bytes(48))
    });
    // The run is worth little if most files are refused at the door.
    assert!(reached[Reached::Read as usize] > 1500, "{reached:?}");
    assert!(reached[Reached::Differentiated as usize] > 100, "{reached:?}");
}

#[test]
fn models_changed_in_bytes() {
    let models = models();
    let reached = tally(12_000, |rng| {
        let mut bytes = models[rng.below(models.len())].clone();
        for _ in 0..rng.below(6) {
            let at = rng.below(bytes.len());
            match rng.below(5) {
                0 => bytes[at] = rng.next() as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => bytes.truncate(at.max(1)),
                3 => bytes.insert(at, rng.next() as u8),
                _ => {
                    let end = (at + rng.below(16)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        bytes
    });
    assert!(reached[Reached::Refused as usize] > 100, "{reached:?}");
}

#[test]
fn random_bytes() {
    tally(20_000, |rng| rng.bytes(200));
}
