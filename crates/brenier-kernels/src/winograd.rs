//! Convolutions of 3x3 that move by single pixels, with weights that stay the same: fewer products, by Winograd.
//!
//! The image is cut into tiles of `OUT`x`OUT` results, which read `IN`x`IN` pixels, `IN = OUT + 2`. With the
//! [transforms](scheme) of one axis applied to both,
//!
//! ```text
//! y[o] = bias[o] + A ( sum over i of (G w[o, i] G^T) * (B x[i] B^T) ) A^T
//! ```
//!
//! where `*` goes element by element, so that the sums over channels are `IN^2` [products](product) of matrices. Transformed
//! weights are kept. The gradient with respect to `x` is the same with the kernel turned around and its channels exchanged.
//!
//! While it works, 16 channels of a pixel lie side by side, `[channels / 16, pixels + 1, 16]`: the last pixel is zero, and
//! what is outside the image is read from there.

mod product;
mod scheme;

use std::cell::RefCell;
use std::sync::Arc;

use rten_simd::ops::BitOps;
use rten_simd::{Isa, SimdOp};

use self::product::{BLOCK, products, share};
use self::scheme::{Four, Scheme, Two};
use super::planes::{Direction, Window};
use super::{Arithmetic, Input, Misfit};

/// Numbers of transformed tiles and of their products that are computed at once: what a core's second cache holds.
const AT_ONCE: usize = 1 << 18;

/// With fewer channels, transforms take longer than products are saved.
const FEWEST_CHANNELS: usize = 12;

/// From so many pairs of channels on, transformed weights come from the machine's memory in every run, which takes longer
/// than products do: tiles of 2x2 have less than half of them.
const MANY_PAIRS: usize = 1 << 18;

thread_local! {
    /// The memory that all convolutions of a thread work in, one after the other.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Images and results in blocks of channels, transformed tiles, their products.
#[derive(Default)]
struct Scratch {
    image: Vec<f32>,
    result: Vec<f32>,
    tiles: Vec<f32>,
    products: Vec<f32>,
}

/// The transformed weights of a convolution, `[points, out / 16, in, 16]`.
#[derive(Debug, Clone)]
pub(super) struct Winograd {
    weights: Arc<Vec<f32>>,
    arithmetic: Arithmetic,
    before: [usize; 2],
    inner: usize,
    out: usize,
}

impl Winograd {
    /// For weights `[out, in, 3, 3]`, or `[in, out, 3, 3]` and turned around on the way back. Nothing where it would not pay.
    pub(super) fn new(
        window: &Window,
        direction: Direction,
        arithmetic: Arithmetic,
        w: Input,
    ) -> Option<Winograd> {
        let &[a, b, ..] = w.shape else { return None };
        let (out, inner) = match direction {
            Direction::Forward => (a, b),
            Direction::Backward => (b, a),
        };
        let plain =
            window.kernel == [3, 3] && window.dilations == [1, 1] && window.before.iter().all(|&p| p < 3);
        if !plain || inner < FEWEST_CHANNELS || out < FEWEST_CHANNELS {
            return None;
        }
        let arithmetic = if inner * out < MANY_PAIRS { arithmetic } else { Arithmetic::Accurate };
        let tap = |o: usize, i: usize, k: usize| match direction {
            Direction::Forward => w.data[(o * inner + i) * 9 + k],
            Direction::Backward => w.data[(i * out + o) * 9 + 8 - k],
        };
        let weights = match arithmetic {
            Arithmetic::Fast => transformed::<Four, 6, 4>(inner, out, tap),
            Arithmetic::Accurate => transformed::<Two, 4, 2>(inner, out, tap),
        };
        Some(Winograd { weights: Arc::new(weights), arithmetic, before: window.before, inner, out })
    }

    /// Images of `size` to results of `places`.
    pub(super) fn run(
        &self,
        x: &[f32],
        size: [usize; 2],
        places: [usize; 2],
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) -> Result<(), Misfit> {
        let Winograd { inner, out, .. } = *self;
        let side = match self.arithmetic {
            Arithmetic::Fast => 4,
            Arithmetic::Accurate => 2,
        };
        let grid = places.map(|n| n.div_ceil(side));
        let (tiles, points) = (grid[0] * grid[1], (side + 2) * (side + 2));
        let most = (AT_ONCE / (points * inner.max(out).next_multiple_of(BLOCK))).max(24);
        // Images together where one has few tiles.
        let images = (most / tiles).max(1);
        let (area, results) = (inner * size[0] * size[1], out * places[0] * places[1]);
        if area == 0 || results == 0 {
            return Err(Misfit);
        }
        SCRATCH.with_borrow_mut(|scratch| {
            for (x, y) in x.chunks(images * area).zip(y.chunks_mut(images * results)) {
                into_blocks(x, inner, size[0] * size[1], &mut scratch.image);
                let count = x.len() / area * tiles;
                let blocks = (x.len() / area) * out.div_ceil(BLOCK);
                scratch.result.resize(blocks * (places[0] * places[1] + 1) * BLOCK, 0.0);
                let at_once = count.div_ceil(count.div_ceil(most));
                let convolution = Convolution { of: self, size, places, grid, count, at_once, scratch };
                convolution.dispatch();
                out_of_blocks(&scratch.result, out, places[0] * places[1], bias, y);
            }
        });
        Ok(())
    }
}

/// `G w G^T` of every pair of channels.
fn transformed<S: Scheme<IN, OUT>, const IN: usize, const OUT: usize>(
    inner: usize,
    out: usize,
    tap: impl Fn(usize, usize, usize) -> f32,
) -> Vec<f32> {
    let blocks = out.div_ceil(BLOCK);
    let mut weights = vec![0.0; IN * IN * blocks * inner * BLOCK];
    for o in 0..out {
        for i in 0..inner {
            let rows = [0, 1, 2].map(|r| S::weights([0, 1, 2].map(|c| f64::from(tap(o, i, 3 * r + c)))));
            for c in 0..IN {
                for (r, value) in S::weights(rows.map(|row| row[c])).into_iter().enumerate() {
                    let place = (((r * IN + c) * blocks + o / BLOCK) * inner + i) * BLOCK + o % BLOCK;
                    weights[place] = value as f32;
                }
            }
        }
    }
    weights
}

/// `[images, channels, pixels]` to `[images, channels / 16, pixels + 1, 16]`.
fn into_blocks(x: &[f32], channels: usize, pixels: usize, to: &mut Vec<f32>) {
    let plane = (pixels + 1) * BLOCK;
    to.resize(x.len() / (channels * pixels) * channels.div_ceil(BLOCK) * plane, 0.0);
    let images = x.chunks_exact(channels * pixels);
    let blocks = images.flat_map(|image| image.chunks(BLOCK * pixels));
    for (from, plane) in blocks.zip(to.chunks_exact_mut(plane)) {
        let (to, outside) = plane.split_at_mut(pixels * BLOCK);
        outside.fill(0.0);
        // So many pixels at a time that lines are written once.
        for first in (0..pixels).step_by(BLOCK) {
            let last = pixels.min(first + BLOCK);
            for (c, channel) in from.chunks_exact(pixels).enumerate() {
                let places = to[first * BLOCK..last * BLOCK].chunks_exact_mut(BLOCK);
                places.zip(&channel[first..last]).for_each(|(place, value)| place[c] = *value);
            }
        }
    }
}

/// The way back, with a number added for each channel.
fn out_of_blocks(from: &[f32], channels: usize, pixels: usize, bias: Option<&[f32]>, y: &mut [f32]) {
    let plane = (pixels + 1) * BLOCK;
    let images = y.chunks_exact_mut(channels * pixels);
    let blocks = images.flat_map(|image| image.chunks_mut(BLOCK * pixels).enumerate());
    for (from, (block, to)) in from.chunks_exact(plane).zip(blocks) {
        for first in (0..pixels).step_by(BLOCK) {
            let last = pixels.min(first + BLOCK);
            for (c, channel) in to.chunks_exact_mut(pixels).enumerate() {
                let shift = bias.map_or(0.0, |bias| bias[block * BLOCK + c]);
                let places = from[first * BLOCK..last * BLOCK].chunks_exact(BLOCK);
                channel[first..last].iter_mut().zip(places).for_each(|(y, place)| *y = place[c] + shift);
            }
        }
    }
}

/// Some images together.
struct Convolution<'a> {
    of: &'a Winograd,
    size: [usize; 2],
    places: [usize; 2],
    /// Rows and columns of tiles.
    grid: [usize; 2],
    /// Tiles of all images.
    count: usize,
    at_once: usize,
    scratch: &'a mut Scratch,
}

impl SimdOp for Convolution<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(mut self, isa: I) {
        match self.of.arithmetic {
            Arithmetic::Fast => self.with::<I, Four, 6, 4>(isa),
            Arithmetic::Accurate => self.with::<I, Two, 4, 2>(isa),
        }
    }
}

impl Convolution<'_> {
    #[inline(always)]
    fn with<I: Isa, S: Scheme<IN, OUT>, const IN: usize, const OUT: usize>(&mut self, isa: I) {
        let Winograd { inner, out, ref weights, .. } = *self.of;
        let (inner_blocks, out_blocks) = (inner.div_ceil(BLOCK), out.div_ceil(BLOCK));
        for first in (0..self.count).step_by(self.at_once) {
            let tiles = self.at_once.min(self.count - first);
            let shared = share(tiles, isa.f32().len());
            // Room for groups that are not full.
            let row = shared.0 * shared.1 * BLOCK;
            self.scratch.tiles.resize(IN * IN * inner_blocks * row, 0.0);
            self.scratch.products.resize(IN * IN * out_blocks * row, 0.0);
            for block in 0..inner_blocks {
                for tile in 0..tiles {
                    self.transform::<I, S, IN, OUT>(isa, first + tile, block, tile * BLOCK, row);
                }
            }
            let v = self.scratch.tiles.chunks_exact(inner_blocks * row);
            let m = self.scratch.products.chunks_exact_mut(out_blocks * row);
            let u = weights.chunks_exact(out_blocks * inner * BLOCK);
            for ((v, m), u) in v.zip(m).zip(u) {
                products(isa, v, u, m, inner, shared);
            }
            for block in 0..out_blocks {
                for tile in 0..tiles {
                    self.finish::<I, S, IN, OUT>(isa, first + tile, block, tile * BLOCK, row);
                }
            }
        }
    }

    /// The image of a tile, and its first row and column of results.
    #[inline(always)]
    fn place(&self, tile: usize, side: usize) -> (usize, [usize; 2]) {
        let [rows, columns] = self.grid;
        let (image, rest) = (tile / (rows * columns), tile % (rows * columns));
        (image, [rest / columns * side, rest % columns * side])
    }

    /// `B x B^T` of one tile, for a block of channels.
    #[inline(always)]
    fn transform<I: Isa, S: Scheme<IN, OUT>, const IN: usize, const OUT: usize>(
        &mut self,
        isa: I,
        tile: usize,
        block: usize,
        to: usize,
        row: usize,
    ) {
        let (ops, blocks) = (isa.f32(), self.of.inner.div_ceil(BLOCK));
        let ([height, width], before) = (self.size, self.of.before);
        let (image, at) = self.place(tile, OUT);
        let plane = (height * width + 1) * BLOCK;
        let from = &self.scratch.image[(image * blocks + block) * plane..][..plane];
        let inside = |i: usize, axis: usize, size: usize| {
            (at[axis] + i).checked_sub(before[axis]).filter(|&p| p < size)
        };
        let outside = height * width;
        let mut places = [[outside; IN]; IN];
        for r in 0..IN {
            let Some(y) = inside(r, 0, height) else { continue };
            for c in 0..IN {
                places[r][c] = inside(c, 1, width).map_or(outside, |x| y * width + x);
            }
        }
        for lane in (0..BLOCK).step_by(ops.len()) {
            let mut half = [[ops.zero(); IN]; IN];
            for c in 0..IN {
                let mut column = [ops.zero(); IN];
                for r in 0..IN {
                    let start = places[r][c] * BLOCK + lane;
                    column[r] = ops.load(&from[start..start + ops.len()]);
                }
                half[c] = S::input(ops, column);
            }
            for r in 0..IN {
                let mut line = [ops.zero(); IN];
                for c in 0..IN {
                    line[c] = half[c][r];
                }
                let line = S::input(ops, line);
                for c in 0..IN {
                    let start = ((r * IN + c) * blocks + block) * row + to + lane;
                    ops.store(line[c], &mut self.scratch.tiles[start..start + ops.len()]);
                }
            }
        }
    }

    /// `A m A^T` of one tile, for a block of channels.
    #[inline(always)]
    fn finish<I: Isa, S: Scheme<IN, OUT>, const IN: usize, const OUT: usize>(
        &mut self,
        isa: I,
        tile: usize,
        block: usize,
        from: usize,
        row: usize,
    ) {
        let (ops, blocks) = (isa.f32(), self.of.out.div_ceil(BLOCK));
        let [height, width] = self.places;
        let (image, [y, x]) = self.place(tile, OUT);
        let plane = (height * width + 1) * BLOCK;
        let to = &mut self.scratch.result[(image * blocks + block) * plane..][..plane];
        for lane in (0..BLOCK).step_by(ops.len()) {
            let mut half = [[ops.zero(); OUT]; IN];
            for c in 0..IN {
                let mut column = [ops.zero(); IN];
                for r in 0..IN {
                    let start = ((r * IN + c) * blocks + block) * row + from + lane;
                    column[r] = ops.load(&self.scratch.products[start..start + ops.len()]);
                }
                half[c] = S::output(ops, column);
            }
            for r in 0..OUT.min(height - y) {
                let mut line = [ops.zero(); IN];
                for c in 0..IN {
                    line[c] = half[c][r];
                }
                let line = S::output(ops, line);
                for c in 0..OUT.min(width - x) {
                    let start = ((y + r) * width + x + c) * BLOCK + lane;
                    ops.store(line[c], &mut to[start..start + ops.len()]);
                }
            }
        }
    }
}
