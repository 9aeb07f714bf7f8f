//! The gradient of a convolution's weights, for convolutions that move by single pixels.
//!
//! ```text
//! dw[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, p + distance(k)],      dbias[o] = sum over n, p of dy[n, o, p]
//! ```
//!
//! Inner products of [planes](super::planes), moved against each other by the tap, 4x4 at a time. Gradients are zero at
//! places that are no results, so that every product runs from end to end.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};
use rten_vecmath::Sum;

use super::planes::{Grid, Planes, Side, Window};
use super::{Input, Misfit};

/// Channels of either side that are computed together.
const TILE: usize = 4;

/// A gradient of weights and the memory it works in.
#[derive(Debug, Clone)]
pub(super) struct ConvWeights {
    window: Window,
    images: Planes,
    gradients: Planes,
    sums: Vec<f32>,
}

impl ConvWeights {
    pub(super) fn new(window: Window) -> ConvWeights {
        ConvWeights { window, images: Planes::default(), gradients: Planes::default(), sums: Vec::new() }
    }

    /// The shapes of the gradients of weights and bias.
    pub(super) fn shapes(&self, x: &[usize], dy: &[usize]) -> Result<Vec<Vec<usize>>, Misfit> {
        let (&[rows, inner, height, width], &[same, out, ..]) = (x, dy) else { return Err(Misfit) };
        let places = self.window.places([height, width]).ok_or(Misfit)?;
        if rows != same || dy.get(2..) != Some(&places[..]) {
            return Err(Misfit);
        }
        let [tall, wide] = self.window.kernel;
        Ok(vec![vec![out, inner, tall, wide], vec![out]])
    }

    pub(super) fn run(&mut self, x: Input, dy: Input, dw: &mut [f32], db: &mut [f32]) -> Result<(), Misfit> {
        let (&[rows, inner, height, width], &[_, out, ..]) = (x.shape, dy.shape) else { return Err(Misfit) };
        let grid = Grid::new(&self.window, [height, width]).ok_or(Misfit)?;
        let images = grid.images(rows);
        let (tiles_out, tiles_in) = (out.div_ceil(TILE), inner.div_ceil(TILE));
        self.images.prepare(&grid, images, TILE * tiles_in);
        self.gradients.prepare(&grid, images, TILE * tiles_out);
        let offsets = grid.offsets();
        self.sums.clear();
        self.sums.resize(tiles_out * tiles_in * offsets.len() * TILE * TILE, 0.0);
        db.fill(0.0);
        let length = grid.plane(images);
        let (area, places) = (height * width, grid.places[0] * grid.places[1]);
        for (x, dy) in x.data.chunks(images * inner * area).zip(dy.data.chunks(images * out * places)) {
            let here = x.len() / (inner * area);
            if here < images {
                // What the images before have left is no part of these.
                self.gradients = Planes::default();
                self.gradients.prepare(&grid, images, TILE * tiles_out);
            }
            self.images.fill(Side::Input, x, inner);
            self.gradients.fill(Side::Result, dy, out);
            let products = Products {
                x: self.images.data(),
                dy: self.gradients.data(),
                length,
                offsets: &offsets,
                span: grid.span(here),
                tiles: (tiles_out, tiles_in),
                sums: &mut self.sums,
            };
            products.dispatch();
            for (db, plane) in db.iter_mut().zip(self.gradients.data().chunks_exact(length)) {
                *db += Sum::new(plane).dispatch();
            }
        }
        self.images.give_back();
        self.gradients.give_back();
        let taps = offsets.len();
        for o in 0..out {
            for i in 0..inner {
                let tile = (o / TILE * tiles_in + i / TILE) * taps;
                for tap in 0..taps {
                    let place = (tile + tap) * TILE * TILE + o % TILE * TILE + i % TILE;
                    dw[(o * inner + i) * taps + tap] = self.sums[place];
                }
            }
        }
        Ok(())
    }
}

/// Inner products of all planes of one kind with all of the other, at every tap.
struct Products<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    length: usize,
    offsets: &'a [usize],
    span: usize,
    tiles: (usize, usize),
    sums: &'a mut [f32],
}

impl SimdOp for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let (out, inner) = self.tiles;
        let mut sums = self.sums.chunks_exact_mut(TILE * TILE);
        for o in 0..out {
            let dy = &self.dy[o * TILE * self.length..];
            for i in 0..inner {
                for offset in self.offsets {
                    let x = &self.x[i * TILE * self.length + offset..];
                    let Some(sums) = sums.next() else { return };
                    // Sixteen sums are too many for machines with sixteen registers.
                    if isa.f32().len() >= 16 {
                        tile::<I, 4>(isa, x, dy, self.length, self.span, 0, sums);
                    } else {
                        tile::<I, 2>(isa, x, dy, self.length, self.span, 0, sums);
                        tile::<I, 2>(isa, x, dy, self.length, self.span, 2, sums);
                    }
                }
            }
        }
    }
}

/// `O` planes of gradients, from `first` on, with four planes of images.
#[inline(always)]
fn tile<I: Isa, const O: usize>(
    isa: I,
    x: &[f32],
    dy: &[f32],
    length: usize,
    span: usize,
    first: usize,
    sums: &mut [f32],
) {
    let ops = isa.f32();
    let lanes = ops.len();
    let span = span.next_multiple_of(lanes);
    let x: [&[f32]; TILE] = std::array::from_fn(|i| &x[i * length..][..span]);
    let dy: [&[f32]; O] = std::array::from_fn(|o| &dy[(first + o) * length..][..span]);
    let mut products = [[ops.zero(); TILE]; O];
    for place in (0..span).step_by(lanes) {
        let mut image = [ops.zero(); TILE];
        for i in 0..TILE {
            image[i] = ops.load(&x[i][place..place + lanes]);
        }
        for o in 0..O {
            let gradient = ops.load(&dy[o][place..place + lanes]);
            for i in 0..TILE {
                products[o][i] = ops.mul_add(gradient, image[i], products[o][i]);
            }
        }
    }
    for o in 0..O {
        for i in 0..TILE {
            sums[(first + o) * TILE + i] += ops.sum(products[o][i]);
        }
    }
}
