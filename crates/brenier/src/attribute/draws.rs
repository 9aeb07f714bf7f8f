//! Random numbers for one draw of one example.
//!
//! A generator is made anew from the seed, the example and the draw, so any draw can be repeated without
//! those before it, and what an example draws does not depend on its company.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The generator of a draw.
pub(crate) fn generator(seed: u64, example: usize, draw: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // 2^64 independent streams of each seed: 2^32 draws for each of 2^32 examples.
    rng.set_stream(((example as u64) << 32) | (draw as u64 & 0xffff_ffff));
    rng
}
