//! Group normalisation with gain, bias and activation, and its gradient, in one go each.
//!
//! Over the channels and places of one group of one example, with `m` their mean and `r = 1 / sqrt(variance + epsilon)`:
//!
//! ```text
//! u = gain r (x - m) + bias,      y = u  or  u sigmoid(u)
//! du = dy  or  dy (s + u s (1 - s)),  s = sigmoid(u)
//! dx = r (gain du - mean(gain du) - r (x - m) mean(gain du r (x - m)))
//! ```
//!
//! A group is small enough for a core's own memory, so reading it several times costs little; what engines take a pass
//! over all examples for, such as a product, is done here while the group is at hand.

use rten_simd::ops::{BitOps, NumOps};
use rten_simd::{Isa, SimdOp, SimdUnaryOp};
use rten_vecmath::{Sigmoid, Sum, SumSquareSub};

use super::{Input, Misfit};

/// What follows the normalisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Activation {
    /// Nothing.
    None,
    /// `u sigmoid(u)`.
    Silu,
}

/// A group normalisation of `[rows, channels, places..]`.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupNorm {
    pub(super) groups: usize,
    pub(super) epsilon: f32,
    pub(super) activation: Activation,
}

/// How elements of one channel of one example are scaled: `u = scale x + shift`.
#[derive(Clone, Copy)]
struct Affine {
    scale: f32,
    shift: f32,
}

/// The sizes of a normalisation.
struct Sizes {
    channels: usize,
    /// Elements of a channel.
    area: usize,
    /// Elements of a group.
    group: usize,
}

impl GroupNorm {
    /// Whether channels make groups, and there is a gain and a bias for each.
    pub(super) fn takes(&self, x: &[usize], gain: &[usize], bias: &[usize]) -> bool {
        let fits = |channels: usize| [gain, bias].iter().all(|s| s.iter().product::<usize>() == channels);
        self.sizes(x).is_some_and(|sizes| fits(sizes.channels))
    }

    fn sizes(&self, x: &[usize]) -> Option<Sizes> {
        let [_, channels, places @ ..] = x else { return None };
        let area: usize = places.iter().product();
        let fits = area > 0 && *channels > 0 && self.groups > 0 && channels.is_multiple_of(self.groups);
        fits.then(|| Sizes { channels: *channels, area, group: channels / self.groups * area })
    }

    /// The mean and `r` of a group.
    fn statistics(&self, group: &[f32]) -> (f32, f32) {
        let count = group.len() as f32;
        let mean = Sum::new(group).dispatch() / count;
        let variance = SumSquareSub::new(group, mean).dispatch() / count;
        (mean, 1.0 / (variance + self.epsilon).sqrt())
    }

    pub(super) fn run(&self, x: Input, gain: &[f32], bias: &[f32], y: &mut [f32]) -> Result<(), Misfit> {
        let Sizes { channels, area, group } = self.sizes(x.shape).ok_or(Misfit)?;
        let per_group = channels / self.groups;
        for (i, (x, y)) in x.data.chunks_exact(group).zip(y.chunks_exact_mut(group)).enumerate() {
            let (mean, r) = self.statistics(x);
            let first = i % self.groups * per_group;
            for (c, (x, y)) in x.chunks_exact(area).zip(y.chunks_exact_mut(area)).enumerate() {
                let scale = gain[first + c] * r;
                let affine = Affine { scale, shift: bias[first + c] - mean * scale };
                Apply { x, affine, activation: self.activation, y }.dispatch();
            }
        }
        Ok(())
    }

    /// The gradients of `x`, gain and bias.
    pub(super) fn gradient(
        &self,
        dy: &[f32],
        x: Input,
        gain: &[f32],
        bias: &[f32],
        [dx, dgain, dbias]: [&mut [f32]; 3],
    ) -> Result<(), Misfit> {
        let Sizes { channels, area, group } = self.sizes(x.shape).ok_or(Misfit)?;
        let per_group = channels / self.groups;
        dgain.fill(0.0);
        dbias.fill(0.0);
        let parts = x.data.chunks_exact(group).zip(dy.chunks_exact(group)).zip(dx.chunks_exact_mut(group));
        for (i, ((x, dy), dx)) in parts.enumerate() {
            let (mean, r) = self.statistics(x);
            let first = i % self.groups * per_group;
            let (mut level, mut slope) = (0.0, 0.0);
            for c in 0..per_group {
                let here = c * area..(c + 1) * area;
                let scale = gain[first + c] * r;
                let affine = Affine { scale, shift: bias[first + c] - mean * scale };
                let (x, dy, du) = (&x[here.clone()], &dy[here.clone()], &mut dx[here]);
                let (sum, along) = Back { x, dy, affine, mean, activation: self.activation, du }.dispatch();
                dbias[first + c] += sum;
                dgain[first + c] += along * r;
                level += gain[first + c] * sum;
                slope += gain[first + c] * along * r;
            }
            // dx = r gain du + (a x + b)
            let count = group as f32;
            let a = -r * r * slope / count;
            let rest = Affine { scale: a, shift: -r * level / count - a * mean };
            for (c, (x, dx)) in x.chunks_exact(area).zip(dx.chunks_exact_mut(area)).enumerate() {
                Combine { x, rest, scale: gain[first + c] * r, dx }.dispatch();
            }
        }
        Ok(())
    }
}

/// A vector of what is left of a slice, with zeros behind its end.
#[inline(always)]
fn load<I: Isa>(isa: I, xs: &[f32], place: usize) -> I::F32 {
    let ops = isa.f32();
    match xs.get(place..place + ops.len()) {
        Some(whole) => ops.load(whole),
        None => ops.load_pad(&xs[place..]).0,
    }
}

/// As much of a vector as there is room for.
#[inline(always)]
fn store<I: Isa>(isa: I, value: I::F32, xs: &mut [f32], place: usize) {
    let ops = isa.f32();
    match xs.get_mut(place..place + ops.len()) {
        Some(whole) => ops.store(value, whole),
        None => {
            let mut whole = [0.0; 64];
            ops.store(value, &mut whole);
            let rest = xs.len() - place;
            xs[place..].copy_from_slice(&whole[..rest]);
        }
    }
}

/// `y = activation(scale x + shift)`
struct Apply<'a> {
    x: &'a [f32],
    affine: Affine,
    activation: Activation,
    y: &'a mut [f32],
}

impl SimdOp for Apply<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let ops = isa.f32();
        let (scale, shift) = (ops.splat(self.affine.scale), ops.splat(self.affine.shift));
        for place in (0..self.x.len()).step_by(ops.len()) {
            let u = ops.mul_add(load(isa, self.x, place), scale, shift);
            let y = match self.activation {
                Activation::None => u,
                Activation::Silu => ops.mul(u, Sigmoid::apply(isa, u)),
            };
            store(isa, y, self.y, place);
        }
    }
}

/// `du`, with the sums of `du` and of `du (x - mean)`.
struct Back<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    affine: Affine,
    mean: f32,
    activation: Activation,
    du: &'a mut [f32],
}

impl SimdOp for Back<'_> {
    type Output = (f32, f32);

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) -> (f32, f32) {
        let ops = isa.f32();
        let (scale, shift) = (ops.splat(self.affine.scale), ops.splat(self.affine.shift));
        let (mean, one) = (ops.splat(self.mean), ops.one());
        let (mut sum, mut along) = (ops.zero(), ops.zero());
        for place in (0..self.x.len()).step_by(ops.len()) {
            let (x, dy) = (load(isa, self.x, place), load(isa, self.dy, place));
            let du = match self.activation {
                Activation::None => dy,
                Activation::Silu => {
                    let u = ops.mul_add(x, scale, shift);
                    let s = Sigmoid::apply(isa, u);
                    let bent = ops.mul_add(u, ops.sub(one, s), one);
                    ops.mul(dy, ops.mul(s, bent))
                }
            };
            // Behind the end `dy` is zero, and so is what is added.
            sum = ops.add(sum, du);
            along = ops.mul_add(du, ops.sub(x, mean), along);
            store(isa, du, self.du, place);
        }
        (ops.sum(sum), ops.sum(along))
    }
}

/// `dx = scale du + (a x + b)`, `du` being what stands in `dx`.
struct Combine<'a> {
    x: &'a [f32],
    rest: Affine,
    scale: f32,
    dx: &'a mut [f32],
}

impl SimdOp for Combine<'_> {
    type Output = ();

    #[inline(always)]
    fn eval<I: Isa>(self, isa: I) {
        let ops = isa.f32();
        let [a, b, scale] = [self.rest.scale, self.rest.shift, self.scale].map(|v| ops.splat(v));
        for place in (0..self.x.len()).step_by(ops.len()) {
            let rest = ops.mul_add(load(isa, self.x, place), a, b);
            let dx = ops.mul_add(load(isa, self.dx, place), scale, rest);
            store(isa, dx, self.dx, place);
        }
    }
}
