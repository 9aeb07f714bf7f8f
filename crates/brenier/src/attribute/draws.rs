//! Random numbers for one draw of one input.
//!
//! A generator is made anew from the seed, the input itself and the draw: any draw can be repeated without those before it,
//! and an input draws the same alone, in another order, or on another machine.

use ndarray::{ArrayView1, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sha2::{Digest, Sha256};

/// What an input draws by: the same for the same values, and for no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key(u64);

impl Key {
    /// What is drawn for all inputs.
    pub(crate) const SHARED: Key = Key(0);

    /// Of what has a number instead of values.
    pub(crate) fn numbered(number: usize) -> Key {
        Key(number as u64)
    }

    /// Of an input.
    pub(crate) fn of(input: ArrayView1<f64>) -> Key {
        let mut hash = Sha256::new();
        input.iter().for_each(|value| hash.update(value.to_le_bytes()));
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize()[..8]);
        Key(u64::from_le_bytes(first))
    }

    /// Of each row.
    pub(crate) fn of_each(inputs: ArrayView2<f64>) -> Vec<Key> {
        inputs.rows().into_iter().map(Key::of).collect()
    }
}

/// The generator of a draw.
pub(crate) fn generator(seed: u64, key: Key, draw: usize) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&key.0.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(bytes);
    rng.set_stream(draw as u64);
    rng
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;
    use rand::RngExt;

    #[test]
    fn draws_follow_from_seed_input_and_number() {
        let (a, b) = (array![1.0, 2.0], array![1.0, 2.0000001]);
        let first =
            |seed, x: &ndarray::Array1<f64>, draw| generator(seed, Key::of(x.view()), draw).random::<u64>();
        assert_eq!(first(1, &a, 2), first(1, &a.clone(), 2));
        let all = [first(1, &a, 2), first(1, &b, 2), first(2, &a, 2), first(1, &a, 3)];
        for (i, x) in all.iter().enumerate() {
            assert!(!all[..i].contains(x));
        }
    }
}
