//! Fourier transforms, by the sums that define them.

use super::Array;
use super::call::Call;
use super::walk::around;
use crate::error::Result;

/// `exp(sign 2 pi i k t / n)`
fn turn(sign: f64, k: usize, t: usize, n: usize) -> (f64, f64) {
    let angle = sign * std::f64::consts::TAU * ((k * t) % n) as f64 / n as f64;
    (angle.cos(), angle.sin())
}

fn length(call: &Call, i: usize) -> Result<Option<usize>> {
    match call.optional(i) {
        Some(_) => Ok(Some(call.size(call.scalar(i)? as i64)?)),
        None => Ok(None),
    }
}

/// A transform along one axis; the last axis has the real and the imaginary part.
pub(super) fn dft(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = call.rank(x, 2)?;
    let axis = match (call.optional(2), call.node.attributes.contains_key("axis")) {
        (Some(_), _) => call.scalar(2)? as i64,
        (None, true) => call.node.int("axis", 1),
        // What is left out means 1 up to opset 19 and -2 from then on: the same for most signals, [N, L, 1 or 2].
        (None, false) if rank == 3 => 1,
        (None, false) => return Err(call.unsupported("it does not say along which axis")),
    };
    let axis = call.axis(axis, rank)?;
    let parts = x.shape()[rank - 1];
    let (inverse, onesided) = (call.node.int("inverse", 0) != 0, call.node.int("onesided", 0) != 0);
    if axis + 1 == rank || !(1..=2).contains(&parts) {
        return Err(call.malformed(format!("axis {axis} of a signal of shape {:?}", x.shape())));
    }
    if onesided && (inverse || parts == 2) {
        return Err(call.unsupported("one-sided transforms are evaluated forward, of real signals"));
    }
    let given = x.shape()[axis];
    let n = length(call, 1)?.unwrap_or(given);
    let bins = if onesided { n / 2 + 1 } else { n };
    if n == 0 {
        return Err(call.malformed("its length is 0"));
    }
    let (outer, _, inner) = around(x.shape(), axis);
    let inner = inner / parts;
    let mut shape = x.shape().to_vec();
    (shape[axis], shape[rank - 1]) = (bins, 2);
    let mut out = vec![0.0; call.room(&shape)?];
    call.work(&[outer, bins, inner, given])?;
    let values = x.values();
    let (sign, scale) = if inverse { (1.0, 1.0 / n as f64) } else { (-1.0, 1.0) };
    for o in 0..outer {
        for k in 0..bins {
            for i in 0..inner {
                let (mut re, mut im) = (0.0, 0.0);
                for t in 0..given.min(n) {
                    let at = ((o * given + t) * inner + i) * parts;
                    let (a, b) = (values[at], if parts == 2 { values[at + 1] } else { 0.0 });
                    let (cos, sin) = turn(sign, k, t, n);
                    re += a * cos - b * sin;
                    im += a * sin + b * cos;
                }
                let at = ((o * bins + k) * inner + i) * 2;
                (out[at], out[at + 1]) = (scale * re, scale * im);
            }
        }
    }
    call.array(x.dtype, &shape, out)
}

/// Transforms of windows that move along a real signal.
pub(super) fn stft(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = call.rank(x, 2)?;
    if rank > 3 || (rank == 3 && x.shape()[2] != 1) {
        return Err(call.unsupported("transforms of complex signals are not evaluated"));
    }
    let (batch, samples) = (x.shape()[0], x.shape()[1]);
    let step = call.size(call.scalar(1)? as i64)?;
    let window = call.optional(2).map(|window| window.values().into_owned());
    let n = length(call, 3)?.or(window.as_ref().map(Vec::len)).unwrap_or(0);
    let window = window.unwrap_or_else(|| vec![1.0; n]);
    if n == 0 || n > samples || step == 0 || window.len() != n {
        return Err(call.malformed(format!("windows of {n} by steps of {step} along {samples} samples")));
    }
    let bins = if call.node.int("onesided", 1) != 0 { n / 2 + 1 } else { n };
    let frames = (samples - n) / step + 1;
    let shape = [batch, frames, bins, 2];
    let mut out = Vec::with_capacity(call.room(&shape)?);
    call.work(&[batch, frames, bins, n])?;
    let values = x.values();
    for row in values.chunks(samples.max(1)) {
        for frame in 0..frames {
            for k in 0..bins {
                let (mut re, mut im) = (0.0, 0.0);
                for (t, w) in window.iter().enumerate() {
                    let (cos, sin) = turn(-1.0, k, t, n);
                    re += w * row[frame * step + t] * cos;
                    im += w * row[frame * step + t] * sin;
                }
                out.extend([re, im]);
            }
        }
    }
    call.array(x.dtype, &shape, out)
}
