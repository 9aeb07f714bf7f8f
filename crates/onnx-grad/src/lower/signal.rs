//! `DFT` and `STFT`: products with constant matrices of cosines and sines.
//!
//! ```text
//! X[k] = sum over t of x[t] exp(-2 pi i k t / n)        real and imaginary parts beside each other in the last axis
//! ```
//!
//! A short-time transform is a convolution whose kernels are the rows of that matrix times the window.

use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::shapes::normalise_axis;
use crate::tensor::{DType, TensorData};

/// A larger matrix is not written into a graph.
const MAX_MATRIX: usize = 1 << 24;

/// The one number of a constant input.
fn number(b: &Builder, node: &Node, i: usize) -> Option<i64> {
    let fact = b.fact(node.input(i)?);
    let content = fact.known_content().or_else(|| fact.constant.as_ref().map(TensorData::to_i64))?;
    content.first().copied()
}

fn size(dim: &Dim) -> Option<usize> {
    dim.known().and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0)
}

/// The cosine and sine of `2 pi k t / n`, exact in the multiples of the period.
fn turn(k: usize, t: usize, n: usize) -> (f64, f64) {
    let angle = 2.0 * std::f64::consts::PI * ((k * t) % n) as f64 / n as f64;
    (angle.cos(), angle.sin())
}

pub(super) fn dft(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some(x) = node.input(0) else { return Ok(None) };
    let Some(shape) = b.shape(x).map(<[Dim]>::to_vec).filter(|shape| shape.len() > 1) else {
        return Ok(None);
    };
    let rank = shape.len();
    // Up to opset 19 the axis is an attribute, then an input; both leave the last axis to the parts.
    let axis =
        number(b, node, 2).unwrap_or_else(|| node.int("axis", if node.inputs.len() > 2 { -2 } else { 1 }));
    let axis = if node.inputs.len() > 2 && node.input(2).is_none() { -2 } else { axis };
    let Some(axis) = normalise_axis(axis, rank).filter(|axis| axis + 1 < rank) else { return Ok(None) };
    let (Some(given), Some(parts)) = (size(&shape[axis]), size(&shape[rank - 1])) else { return Ok(None) };
    let length = match node.input(1) {
        Some(_) => number(b, node, 1).and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0),
        None => Some(given),
    };
    let (inverse, onesided) = (node.int("inverse", 0) != 0, node.int("onesided", 0) != 0);
    let Some(length) = length.filter(|_| parts <= 2 && !(onesided && (inverse || parts == 2))) else {
        return Ok(None);
    };
    let bins = if onesided { length / 2 + 1 } else { length };
    if given * parts * bins * 2 > MAX_MATRIX {
        return Ok(None);
    }
    let (sign, scale) = if inverse { (1.0, 1.0 / length as f64) } else { (-1.0, 1.0) };
    let mut matrix = Vec::with_capacity(given * parts * bins * 2);
    for t in 0..given {
        for part in 0..parts {
            for k in 0..bins {
                let (cos, sin) = if t < length { turn(k, t, length) } else { (0.0, 0.0) };
                let sin = sign * sin;
                let (re, im) = if part == 0 { (cos, sin) } else { (-sin, cos) };
                matrix.extend([scale * re, scale * im]);
            }
        }
    }
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let matrix = b.constant(TensorData::from_f64(dtype, &[given * parts, bins * 2], &matrix));
    // The axis beside the parts, there and back.
    let mut perm: Vec<usize> = (0..rank).collect();
    perm[axis..rank - 1].rotate_left(1);
    let mut back: Vec<usize> = (0..rank).collect();
    back[axis..rank - 1].rotate_right(1);
    let moved = if axis + 2 == rank { Value::named(x) } else { b.transpose(x, &perm) };
    let mut flat = vec![0; rank - 2];
    let mut apart = flat.clone();
    flat.push((given * parts) as i64);
    apart.extend([bins as i64, 2]);
    let flat = b.reshape(&moved, &flat);
    let product = b.matmul(&flat, &matrix);
    let apart = b.reshape(&product, &apart);
    Ok(Some(if axis + 2 == rank { apart } else { b.transpose(&apart, &back) }))
}

pub(super) fn stft(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some(x) = node.input(0) else { return Ok(None) };
    let Some(shape) = b.shape(x).map(<[Dim]>::to_vec) else { return Ok(None) };
    let real = shape.len() == 2 || (shape.len() == 3 && shape[2].known() == Some(1));
    let (Some(step), Some(samples), true) = (number(b, node, 1), shape.get(1).and_then(size), real) else {
        return Ok(None);
    };
    let window = match node.input(2) {
        Some(window) => match &b.fact(window).constant {
            Some(window) => Some(window.to_f64()),
            None => return Ok(None),
        },
        None => None,
    };
    let asked = match node.input(3) {
        Some(_) => number(b, node, 3).and_then(|n| usize::try_from(n).ok()),
        None => window.as_ref().map(Vec::len),
    };
    let Some(length) = asked.filter(|n| *n > 0 && *n <= samples && step > 0) else { return Ok(None) };
    let window = window.unwrap_or_else(|| vec![1.0; length]);
    let bins = if node.int("onesided", 1) != 0 { length / 2 + 1 } else { length };
    if window.len() != length || length * bins * 2 > MAX_MATRIX {
        return Ok(None);
    }
    let mut kernels = Vec::with_capacity(2 * bins * length);
    for part in 0..2 {
        for k in 0..bins {
            let row = window.iter().enumerate().map(|(t, w)| {
                let (cos, sin) = turn(k, t, length);
                w * if part == 0 { cos } else { -sin }
            });
            kernels.extend(row);
        }
    }
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let kernels = b.constant(TensorData::from_f64(dtype, &[2 * bins, 1, length], &kernels));
    let signal = b.reshape(x, &[0, 1, samples as i64]);
    let attributes = [
        ("strides", vec![step].into()),
        ("dilations", vec![1i64].into()),
        ("pads", vec![0i64, 0].into()),
        ("kernel_shape", vec![length as i64].into()),
    ];
    let found = b.op_with("Conv", &[&signal, &kernels], &attributes);
    let apart = b.reshape(&found, &[0, 2, bins as i64, -1]);
    Ok(Some(b.transpose(&apart, &[0, 3, 2, 1])))
}
