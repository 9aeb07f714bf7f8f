//! Kernels between rows and support vectors.
//!
//! ```text
//! LINEAR  x s        POLY  (gamma x s + c)^d        RBF  exp(-gamma |x - s|^2)        SIGMOID  tanh(gamma x s + c)
//! ```

use super::floats;
use crate::build::{Builder, Value};
use crate::graph::Node;

/// Up to so many numbers in all support vectors, distances are taken from differences, which loses no digits. More would
/// take too much memory: `rows x support vectors x features` numbers.
const EXACT: usize = 1 << 16;

/// The kernel of every row of `x` with every support vector, `[N, count]`; none where the kernel is not known.
pub(super) fn values(b: &mut Builder, node: &Node, x: &str, sizes: (usize, usize)) -> Option<Value> {
    let (count, features) = sizes;
    let vectors = node.floats("support_vectors");
    if count == 0 || count.checked_mul(features) != Some(vectors.len()) {
        return None;
    }
    let parameters = node.floats("kernel_params");
    let parameter = |i: usize| f64::from(parameters.get(i).copied().unwrap_or(0.0));
    let (gamma, offset, degree) = (parameter(0), parameter(1), parameter(2));
    let kind = node.string("kernel_type", "LINEAR");
    if kind == "RBF" {
        let squares = match vectors.len() <= EXACT {
            true => differences(b, x, vectors, sizes),
            false => expanded(b, x, vectors, sizes),
        };
        let scaled = b.scale(&squares, -gamma);
        return Some(b.op("Exp", &[&scaled]));
    }
    let products = products(b, x, vectors, sizes);
    let affine = |b: &mut Builder| {
        let scaled = b.scale(&products, gamma);
        b.shift(&scaled, offset)
    };
    match kind {
        "LINEAR" => Some(products),
        "POLY" => {
            let inside = affine(b);
            let degree = b.scalar_like(&inside, degree);
            Some(b.op("Pow", &[&inside, &degree]))
        }
        "SIGMOID" => {
            let inside = affine(b);
            Some(b.op("Tanh", &[&inside]))
        }
        _ => None,
    }
}

/// `x S^T`
fn products(b: &mut Builder, x: &str, vectors: &[f32], (count, features): (usize, usize)) -> Value {
    let turned: Vec<f32> =
        (0..features).flat_map(|j| (0..count).map(move |k| vectors[k * features + j])).collect();
    let vectors = floats(b, &[features, count], &turned);
    b.matmul(x, &vectors)
}

/// `|x - s|^2` from the differences.
fn differences(b: &mut Builder, x: &str, vectors: &[f32], (count, features): (usize, usize)) -> Value {
    let vectors = floats(b, &[count, features], vectors);
    let rows = b.unsqueeze(x, &[1]);
    let apart = b.sub(&rows, &vectors);
    let squares = b.mul(&apart, &apart);
    b.reduce_sum(&squares, &[2], false)
}

/// `|x - s|^2 = |x - m|^2 - 2 (x - m)(s - m) + |s - m|^2`, around the mean `m`, which keeps the numbers small.
fn expanded(b: &mut Builder, x: &str, vectors: &[f32], sizes: (usize, usize)) -> Value {
    let (count, features) = sizes;
    let of = |j: usize| vectors.iter().skip(j).step_by(features).map(|&v| f64::from(v)).sum::<f64>();
    let mean: Vec<f32> = (0..features).map(|j| (of(j) / count as f64) as f32).collect();
    let centred: Vec<f32> = vectors.iter().enumerate().map(|(i, v)| v - mean[i % features]).collect();
    let lengths: Vec<f32> = centred
        .chunks(features)
        .map(|s| s.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() as f32)
        .collect();
    let mean = floats(b, &[features], &mean);
    let x = b.sub(x, &mean);
    let squares = b.mul(&x, &x);
    let own = b.reduce_sum(&squares, &[1], true);
    let both = products(b, &x, &centred, sizes);
    let both = b.scale(&both, -2.0);
    let lengths = floats(b, &[count], &lengths);
    let sum = b.add(&own, &both);
    b.add(&sum, &lengths)
}
