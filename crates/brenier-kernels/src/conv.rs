//! Convolutions that move by single pixels.
//!
//! ```text
//! y[n, o, p] = bias[o] + sum over i, k of w[o, i, k] x[n, i, p + distance(k)]
//! ```
//!
//! Over places in [planes](super::planes), as many vectors of them and as many channels at a time as there are registers for
//! the sums: three and eight, or six and two. The gradient with respect to `x` is the same sum with the kernel turned
//! around and its channels exchanged, so one kernel serves both.

use std::ops::Range;
use std::sync::Arc;

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};

use super::planes::{Direction, Grid, KEPT, Planes, Side, Window, take_results};
use super::winograd::Winograd;
use super::{Arithmetic, Input, Misfit};

/// Channels of the result whose weights lie together. What is computed together divides it.
const TILE: usize = 8;

/// A convolution and the memory it works in.
#[derive(Debug, Clone)]
pub(super) struct Conv {
    window: Window,
    direction: Direction,
    planes: Planes,
    /// In the order of their use. Clones of a kernel have them in common as long as they are the same.
    weights: Arc<Vec<f32>>,
    /// Whether the weights are the same in every run.
    fixed: bool,
    results: Vec<f32>,
    /// Where weights are the same in every run and fewer products do.
    winograd: Option<Winograd>,
}

impl Conv {
    pub(super) fn new(window: Window, direction: Direction) -> Conv {
        let (planes, weights, results) = (Planes::default(), Arc::default(), Vec::new());
        Conv { window, direction, planes, weights, fixed: false, results, winograd: None }
    }

    /// Weights that are the same in every run. Whether they are kept: their numbers are then not read again.
    pub(super) fn fix_weights(&mut self, w: Input, arithmetic: Arithmetic) -> bool {
        if let &[a, b, ..] = w.shape {
            let (out, inner) = self.channels(a, b);
            self.winograd = Winograd::new(&self.window, self.direction, arithmetic, w);
            if self.winograd.is_none() {
                self.pack(w.data, out, inner);
            }
            self.fixed = true;
        }
        self.fixed
    }

    /// Whether an image, weights and a bias of these shapes belong together, and the window fits the image.
    pub(super) fn takes(&self, x: &[usize], w: &[usize], bias: Option<&[usize]>) -> bool {
        let (&[_, channels, height, width], &[a, b, ..]) = (x, w) else { return false };
        let (out, inner) = self.channels(a, b);
        inner == channels
            && w.get(2..) == Some(&self.window.kernel[..])
            && self.window.places([height, width]).is_some()
            && bias.is_none_or(|bias| bias.iter().product::<usize>() == out)
    }

    /// Channels of result and image, from the weights' first two axes.
    fn channels(&self, a: usize, b: usize) -> (usize, usize) {
        match self.direction {
            Direction::Forward => (a, b),
            Direction::Backward => (b, a),
        }
    }

    pub(super) fn run(
        &mut self,
        x: Input,
        w: Input,
        bias: Option<&[f32]>,
        y: &mut [f32],
    ) -> Result<(), Misfit> {
        let (&[rows, inner, height, width], &[a, b, ..]) = (x.shape, w.shape) else { return Err(Misfit) };
        let grid = Grid::new(&self.window, [height, width], rows).ok_or(Misfit)?;
        let (out, _) = self.channels(a, b);
        if let Some(winograd) = &self.winograd {
            return winograd.run(x.data, [height, width], grid.places, bias, y);
        }
        if !self.fixed {
            self.pack(w.data, out, inner);
        }
        self.planes.prepare(&grid, inner);
        let (images, length, offsets) = (grid.images, grid.length(), grid.offsets());
        self.results.resize(out.next_multiple_of(TILE) * length, 0.0);
        let (area, places) = (height * width, grid.places[0] * grid.places[1]);
        let chunks = x.data.chunks(images * inner * area).zip(y.chunks_mut(images * out * places));
        for (images, y) in chunks {
            self.planes.fill(Side::Input, images, inner);
            let sums = Sums {
                x: self.planes.data(),
                length,
                inner,
                offsets: &offsets,
                weights: &self.weights,
                span: grid.span(images.len() / (inner * area)),
                results: &mut self.results,
            };
            sums.dispatch();
            take_results(&self.results, &grid, out, bias, y);
        }
        self.planes.give_back();
        if self.results.len() > KEPT {
            self.results = Vec::new();
        }
        Ok(())
    }

    /// Weights in the order of their use, `[out / 8, in, taps, 8]`; channels that are not there have zeros.
    fn pack(&mut self, w: &[f32], out: usize, inner: usize) {
        let taps = self.window.taps();
        let weights = Arc::make_mut(&mut self.weights);
        weights.clear();
        weights.resize(out.next_multiple_of(TILE) * inner * taps, 0.0);
        for o in 0..out {
            let tile = &mut weights[o / TILE * TILE * inner * taps..][..TILE * inner * taps];
            for i in 0..inner {
                let places = tile[i * taps * TILE..][..taps * TILE].iter_mut().skip(o % TILE).step_by(TILE);
                match self.direction {
                    Direction::Forward => {
                        let from = &w[(o * inner + i) * taps..][..taps];
                        places.zip(from).for_each(|(to, from)| *to = *from);
                    }
                    Direction::Backward => {
                        let from = &w[(i * out + o) * taps..][..taps];
                        places.zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
                    }
                }
            }
        }
    }
}

/// The sums over channels and taps, for all places of some planes.
struct Sums<'a> {
    x: &'a [f32],
    length: usize,
    inner: usize,
    offsets: &'a [usize],
    weights: &'a [f32],
    span: usize,
    results: &'a mut [f32],
}

impl SimdOp for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(mut self, isa: I) {
        let lanes = isa.f32().len();
        // What is read of so many channels of the image, for all channels of the result, stays in a core's first cache.
        let (vectors, block) = if lanes >= 16 { (3, 32) } else { (6, 16) };
        let (step, tiles) = (vectors * lanes, self.results.len() / (TILE * self.length));
        for from in (0..self.inner).step_by(block) {
            let channels = from..self.inner.min(from + block);
            for place in (0..self.span).step_by(step) {
                (0..tiles).for_each(
                    #[inline(always)]
                    |tile| self.at(isa, tile, place, channels.clone()),
                );
            }
        }
    }
}

impl Sums<'_> {
    /// Up to a step of places for the channels of a tile.
    #[inline(always)]
    fn at<I: Isa>(&mut self, isa: I, tile: usize, place: usize, channels: Range<usize>) {
        let lanes = isa.f32().len();
        let vectors = (self.span - place).div_ceil(lanes);
        if lanes >= 16 {
            match vectors {
                1 => self.sums::<I, 1, 8>(isa, tile * TILE, place, channels),
                2 => self.sums::<I, 2, 8>(isa, tile * TILE, place, channels),
                _ => self.sums::<I, 3, 8>(isa, tile * TILE, place, channels),
            }
            return;
        }
        for first in (tile * TILE..(tile + 1) * TILE).step_by(2) {
            match vectors {
                1 => self.sums::<I, 1, 2>(isa, first, place, channels.clone()),
                2 => self.sums::<I, 2, 2>(isa, first, place, channels.clone()),
                3 => self.sums::<I, 3, 2>(isa, first, place, channels.clone()),
                4 => self.sums::<I, 4, 2>(isa, first, place, channels.clone()),
                _ => self.sums::<I, 6, 2>(isa, first, place, channels.clone()),
            }
        }
    }

    /// Adds what some channels of the image give to `V` vectors of places for `O` channels of the result, from `first` on.
    #[inline(always)]
    fn sums<I: Isa, const V: usize, const O: usize>(
        &mut self,
        isa: I,
        first: usize,
        place: usize,
        channels: Range<usize>,
    ) {
        let ops = isa.f32();
        let lanes = ops.len();
        let mut sums = [[ops.zero(); V]; O];
        if channels.start > 0 {
            for o in 0..O {
                sums[o] = ops.load_many::<V>(&self.results[(first + o) * self.length + place..]);
            }
        }
        let taps = TILE * self.offsets.len();
        let tile = first / TILE * self.inner;
        let mut weights =
            self.weights[(tile + channels.start) * taps..(tile + channels.end) * taps].chunks_exact(TILE);
        for i in channels {
            let plane = &self.x[i * self.length + place..];
            for &offset in self.offsets {
                let Some(weights) = weights.next() else { return };
                let weights = &weights[first % TILE..first % TILE + O];
                let image = &plane[offset..offset + V * lanes];
                // The fewer of the two are held, the others come one by one: there are no registers for all.
                if O > V {
                    let image = ops.load_many::<V>(image);
                    for o in 0..O {
                        let weight = ops.splat(weights[o]);
                        for v in 0..V {
                            sums[o][v] = ops.mul_add(image[v], weight, sums[o][v]);
                        }
                    }
                } else {
                    let mut splat = [ops.zero(); O];
                    for o in 0..O {
                        splat[o] = ops.splat(weights[o]);
                    }
                    for v in 0..V {
                        let image = ops.load(&image[v * lanes..(v + 1) * lanes]);
                        for o in 0..O {
                            sums[o][v] = ops.mul_add(image, splat[o], sums[o][v]);
                        }
                    }
                }
            }
        }
        for o in 0..O {
            let results = &mut self.results[(first + o) * self.length + place..][..V * lanes];
            for v in 0..V {
                ops.store(sums[o][v], &mut results[v * lanes..(v + 1) * lanes]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_large_image_needs_is_given_back() {
        let window = Window { kernel: [1, 1], dilations: [1, 1], before: [0, 0], after: [0, 0] };
        let mut conv = Conv::new(window, Direction::Forward);
        let mut kept = |side: usize| {
            let (x, mut y) = (vec![1.0; side * side], vec![0.0; side * side]);
            let (x, w) =
                (Input { shape: &[1, 1, side, side], data: &x }, Input { shape: &[1; 4], data: &[2.0] });
            conv.run(x, w, None, &mut y).unwrap();
            assert!(y.iter().all(|&v| v == 2.0));
            (!conv.planes.data().is_empty(), !conv.results.is_empty())
        };
        assert_eq!(kept(8), (true, true));
        assert_eq!(kept(1100), (false, false));
        assert_eq!(kept(8), (true, true));
    }
    #[test]
    fn clones_share_fixed_weights_and_need_nothing_but_their_shape() {
        let window = Window { kernel: [1, 1], dilations: [1, 1], before: [0, 0], after: [0, 0] };
        let mut conv = Conv::new(window, Direction::Forward);
        assert!(conv.fix_weights(Input { shape: &[1; 4], data: &[3.0] }, Arithmetic::Fast));
        let mut clone = conv.clone();
        let (mut y, x) = ([0.0; 2], Input { shape: &[1, 1, 1, 2], data: &[1.0, 2.0] });
        clone.run(x, Input { shape: &[1; 4], data: &[] }, None, &mut y).unwrap();
        assert_eq!(y, [3.0, 6.0]);
        assert!(Arc::ptr_eq(&conv.weights, &clone.weights));
    }
}
