//! The gradient of a convolution's weights, for convolutions that move by single pixels.
//!
//! ```text
//! dw[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, p + distance(k)],      dbias[o] = sum over n, p of dy[n, o, p]
//! ```
//!
//! Inner products of [planes](super::planes), moved against each other by the tap, 4x4 or 6x2 at a time. Gradients are
//! zero at places that are no results, so that every product runs from end to end.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp};
use rten_vecmath::Sum;

use super::planes::{Grid, Planes, Side, Window};
use super::{Input, Misfit};

/// Planes of images come in this number: what is computed together divides it.
const TILE: usize = 4;

/// A gradient of weights and the memory it works in.
#[derive(Debug, Clone)]
pub(super) struct ConvWeights {
    window: Window,
    images: Planes,
    gradients: Planes,
}

impl ConvWeights {
    pub(super) fn new(window: Window) -> ConvWeights {
        ConvWeights { window, images: Planes::default(), gradients: Planes::default() }
    }

    /// Whether an image and a gradient of these shapes belong together.
    pub(super) fn takes(&self, x: &[usize], dy: &[usize]) -> bool {
        let (&[rows, _, height, width], &[same, _, ..]) = (x, dy) else { return false };
        let places = self.window.places([height, width]);
        rows == same && places.is_some_and(|places| dy.get(2..) == Some(&places[..]))
    }

    pub(super) fn run(&mut self, x: Input, dy: Input, dw: &mut [f32], db: &mut [f32]) -> Result<(), Misfit> {
        let (&[rows, inner, height, width], &[_, out, ..]) = (x.shape, dy.shape) else { return Err(Misfit) };
        let grid = Grid::new(&self.window, [height, width], rows).ok_or(Misfit)?;
        let (images, length, offsets) = (grid.images, grid.length(), grid.offsets());
        self.images.prepare(&grid, inner.next_multiple_of(TILE));
        self.gradients.prepare(&grid, out);
        dw.fill(0.0);
        db.fill(0.0);
        let (area, places) = (height * width, grid.places[0] * grid.places[1]);
        for (x, dy) in x.data.chunks(images * inner * area).zip(dy.data.chunks(images * out * places)) {
            let here = x.len() / (inner * area);
            if here < images {
                // What the images before have left is no part of these.
                self.gradients = Planes::default();
                self.gradients.prepare(&grid, out);
            }
            self.images.fill(Side::Input, x, inner);
            self.gradients.fill(Side::Result, dy, out);
            let products = Products {
                x: self.images.data(),
                dy: self.gradients.data(),
                length,
                offsets: &offsets,
                span: grid.span(here),
                inner,
                dw,
            };
            products.dispatch();
            for (db, plane) in db.iter_mut().zip(self.gradients.data().chunks_exact(length)) {
                *db += Sum::new(plane).dispatch();
            }
        }
        self.images.give_back();
        self.gradients.give_back();
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
    inner: usize,
    /// `[out, inner, taps]`.
    dw: &'a mut [f32],
}

impl SimdOp for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(mut self, isa: I) {
        let out = self.dw.len() / (self.inner * self.offsets.len());
        // Sixteen sums are too many for machines with sixteen registers.
        let many = isa.f32().len() >= 16;
        let mut first = 0;
        while first < out {
            first += match (many, out - first) {
                (_, 1) => self.with_gradients::<I, 1, 4>(isa, first),
                (_, 2) | (false, 3) => self.with_gradients::<I, 2, 4>(isa, first),
                (true, 3) => self.with_gradients::<I, 3, 4>(isa, first),
                (true, _) => self.with_gradients::<I, 4, 4>(isa, first),
                (false, 4 | 5) => self.with_gradients::<I, 4, 2>(isa, first),
                (false, _) => self.with_gradients::<I, 6, 2>(isa, first),
            };
        }
    }
}

impl Products<'_> {
    /// `O` planes of gradients, from `first` on, with all planes of images, `T` at a time. Returns `O`.
    #[inline(always)]
    fn with_gradients<I: Isa, const O: usize, const T: usize>(&mut self, isa: I, first: usize) -> usize {
        let (length, taps) = (self.length, self.offsets.len());
        for i in (0..self.inner).step_by(T) {
            for (tap, offset) in self.offsets.iter().enumerate() {
                let (x, dy) = (&self.x[i * length + offset..], &self.dy[first * length..]);
                let products = inner_products::<I, O, T>(isa, x, dy, length, self.span);
                for o in 0..O {
                    let places =
                        self.dw[((first + o) * self.inner + i) * taps + tap..].iter_mut().step_by(taps);
                    places.zip(products[o]).take(self.inner - i).for_each(|(dw, product)| *dw += product);
                }
            }
        }
        O
    }
}

/// Of the first `O` planes of gradients with the first `T` of images.
#[inline(always)]
fn inner_products<I: Isa, const O: usize, const T: usize>(
    isa: I,
    x: &[f32],
    dy: &[f32],
    length: usize,
    span: usize,
) -> [[f32; T]; O] {
    let ops = isa.f32();
    let lanes = ops.len();
    let span = span.next_multiple_of(lanes);
    let x: [&[f32]; T] = std::array::from_fn(|i| &x[i * length..][..span]);
    let dy: [&[f32]; O] = std::array::from_fn(|o| &dy[o * length..][..span]);
    let mut products = [[ops.zero(); T]; O];
    for place in (0..span).step_by(lanes) {
        let mut image = [ops.zero(); T];
        for i in 0..T {
            image[i] = ops.load(&x[i][place..place + lanes]);
        }
        for o in 0..O {
            let gradient = ops.load(&dy[o][place..place + lanes]);
            for i in 0..T {
                products[o][i] = ops.mul_add(gradient, image[i], products[o][i]);
            }
        }
    }
    let mut sums = [[0.0; T]; O];
    for o in 0..O {
        for i in 0..T {
            sums[o][i] = ops.sum(products[o][i]);
        }
    }
    sums
}
