//! Products of tiles with weights, all channels of the image summed up in registers.
//!
//! ```text
//! m[o, t] = sum over i of v[i, t] u[o, i]
//! ```
//!
//! Channels lie in blocks of 16: `v` is `[in / 16, tiles, 16]`, `m` is `[out / 16, tiles, 16]`, `u` is `[out / 16, in, 16]`.
//! Two vectors of results for up to twelve tiles are 24 sums, which machines with 32 registers hold; six tiles elsewhere.
//! Each sum goes over the channels in their order, whatever the tile's neighbours.

use rten_simd::Isa;
use rten_simd::ops::{BitOps, NumOps};

/// Channels of a block.
pub(super) const BLOCK: usize = 16;

/// How so many tiles are shared out: tiles of a group, an even number, and groups.
pub(super) fn share(tiles: usize, lanes: usize) -> (usize, usize) {
    let groups = tiles.div_ceil(if lanes >= BLOCK { 12 } else { 6 });
    (tiles.div_ceil(groups).next_multiple_of(2), groups)
}

/// All products of one point. `tiles` is what [`share`] makes of them.
#[inline(always)]
pub(super) fn products<I: Isa>(
    isa: I,
    v: &[f32],
    u: &[f32],
    m: &mut [f32],
    inner: usize,
    tiles: (usize, usize),
) {
    match tiles.0 {
        2 => groups::<I, 2>(isa, v, u, m, inner, tiles.1),
        4 => groups::<I, 4>(isa, v, u, m, inner, tiles.1),
        6 => groups::<I, 6>(isa, v, u, m, inner, tiles.1),
        8 => groups::<I, 8>(isa, v, u, m, inner, tiles.1),
        10 => groups::<I, 10>(isa, v, u, m, inner, tiles.1),
        _ => groups::<I, 12>(isa, v, u, m, inner, tiles.1),
    }
}

/// Groups of `T` tiles, two vectors of results at a time.
#[inline(always)]
fn groups<I: Isa, const T: usize>(isa: I, v: &[f32], u: &[f32], m: &mut [f32], inner: usize, groups: usize) {
    let lanes = isa.f32().len();
    let (tiles, panel) = (groups * T, inner * BLOCK);
    let vectors = u.len() / panel * BLOCK / lanes;
    // Where the weights and the results of a vector begin.
    let place = |vector: usize, size: usize| vector * lanes / BLOCK * size + vector * lanes % BLOCK;
    for first in (0..vectors).step_by(2) {
        let second = first + 1;
        for group in 0..groups {
            let (tile, from) = (group * T * BLOCK, &v[group * T * BLOCK..]);
            let here = place(first, tiles * BLOCK) + tile;
            if second < vectors {
                let weights = [&u[place(first, panel)..], &u[place(second, panel)..]];
                let sums = sums::<I, T, 2>(isa, from, tiles * BLOCK, weights, inner);
                let there = place(second, tiles * BLOCK) + tile;
                for t in 0..T {
                    isa.f32().store(sums[t][0], &mut m[here + t * BLOCK..]);
                    isa.f32().store(sums[t][1], &mut m[there + t * BLOCK..]);
                }
            } else {
                let sums = sums::<I, T, 1>(isa, from, tiles * BLOCK, [&u[place(first, panel)..]], inner);
                for t in 0..T {
                    isa.f32().store(sums[t][0], &mut m[here + t * BLOCK..]);
                }
            }
        }
    }
}

/// The sums for `T` tiles and `V` vectors of results.
#[inline(always)]
fn sums<I: Isa, const T: usize, const V: usize>(
    isa: I,
    v: &[f32],
    plane: usize,
    u: [&[f32]; V],
    inner: usize,
) -> [[I::F32; V]; T] {
    let ops = isa.f32();
    let lanes = ops.len();
    let mut sums = [[ops.zero(); V]; T];
    for block in 0..inner.div_ceil(BLOCK) {
        let channels = (inner - block * BLOCK).min(BLOCK);
        let from = &v[block * plane..][..T * BLOCK];
        // The last vector of weights of a block may end with the slice.
        let length = (channels - 1) * BLOCK + lanes;
        let weights: [&[f32]; V] = std::array::from_fn(
            #[inline(always)]
            |i| &u[i][block * BLOCK * BLOCK..][..length],
        );
        if channels == BLOCK {
            for k in 0..BLOCK {
                channel::<I, T, V>(isa, from, weights, k, &mut sums);
            }
        } else {
            for k in 0..channels {
                channel::<I, T, V>(isa, from, weights, k, &mut sums);
            }
        }
    }
    sums
}

/// What one channel of the image adds.
#[inline(always)]
fn channel<I: Isa, const T: usize, const V: usize>(
    isa: I,
    v: &[f32],
    u: [&[f32]; V],
    k: usize,
    sums: &mut [[I::F32; V]; T],
) {
    let ops = isa.f32();
    let lanes = ops.len();
    let mut weights = [ops.zero(); V];
    for i in 0..V {
        weights[i] = ops.load(&u[i][k * BLOCK..k * BLOCK + lanes]);
    }
    for t in 0..T {
        let value = ops.splat(v[t * BLOCK + k]);
        for i in 0..V {
            sums[t][i] = ops.mul_add(value, weights[i], sums[t][i]);
        }
    }
}
