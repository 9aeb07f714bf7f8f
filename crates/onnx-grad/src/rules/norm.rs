//! Normalisations by mean and variance.
//!
//! With `h = (x - mean) / s`, `s = sqrt(variance + epsilon)` and `y = gain h + bias`, over the axes of one
//! group:
//!
//! ```text
//! dx = (g - mean(g) - h mean(g h)) / s,   g = gain dy
//! ```
//!
//! The forward operator stays as it is, since engines have it in one piece; `s` is computed once more here, and `h`
//! where gain and bias are not the constants one and zero, with which `h = y`.

use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::Attribute;
use crate::shapes::normalise_axis;

/// `x - mean` and `1 / s` over `axes`.
fn centred(step: &mut Step<'_>, x: &str, axes: &[i64]) -> (Value, Value) {
    let epsilon = f64::from(step.node.float("epsilon", 1e-5));
    let mean = step.b.reduce_mean(x, axes, true);
    let centred = step.b.sub(x, &mean);
    let variance = mean_square(step, &centred, axes);
    let variance = step.b.shift(&variance, epsilon);
    let deviation = step.b.op("Sqrt", &[&variance]);
    let scale = step.b.op("Reciprocal", &[&deviation]);
    (centred, scale)
}

/// Squares are not written down where their number is known.
fn mean_square(step: &mut Step<'_>, x: &str, axes: &[i64]) -> Value {
    let count = axes.iter().try_fold(1, |n, &axis| Some(n * step.b.shape(x)?.get(axis as usize)?.known()?));
    match count {
        Some(count) if count > 0 => {
            let axes = step.b.ints(axes);
            let sum = step.b.op_with("ReduceSumSquare", &[x, &axes], &[("keepdims", Attribute::Int(1))]);
            step.b.scale(&sum, 1.0 / count as f64)
        }
        _ => {
            let square = step.b.mul(x, x);
            step.b.reduce_mean(&square, axes, true)
        }
    }
}

/// `h` and `1 / s` over `axes`.
fn standardised(step: &mut Step<'_>, x: &str, axes: &[i64]) -> (Value, Value) {
    let (centred, scale) = centred(step, x, axes);
    (step.b.mul(&centred, &scale), scale)
}

/// Whether an input is a constant, the same number everywhere. What is differentiated is none.
fn is_all(step: &Step<'_>, input: usize, number: f64) -> Result<bool> {
    let constant = step.b.fact(step.x(input)?).constant.as_ref();
    Ok(constant.is_some_and(|t| t.to_f64().iter().all(|&v| v == number)))
}

fn input_gradient(step: &mut Step<'_>, g: &str, h: &str, scale: &str, axes: &[i64]) -> Value {
    let mean = step.b.reduce_mean(g, axes, true);
    let product = step.b.mul(g, h);
    let slope = step.b.reduce_mean(&product, axes, true);
    let along = step.b.mul(h, &slope);
    let rest = step.b.sub(g, &mean);
    let rest = step.b.sub(&rest, &along);
    step.b.mul(&rest, scale)
}

/// A group is one channel of one example; gain and bias belong to the channel.
pub(super) fn instance(step: &mut Step<'_>) -> Gradients {
    let (dy, x, gain) = (step.dy()?, step.x(0)?, step.x(1)?);
    let rank = step.shape(x)?.len();
    let axes: Vec<i64> = (2..rank as i64).collect();
    let ones = is_all(step, 1, 1.0)?;
    let (h, scale) = if ones && is_all(step, 2, 0.0)? {
        (Value::named(step.y()?), centred(step, x, &axes).1)
    } else {
        standardised(step, x, &axes)
    };
    let mut sent = vec![None, None, None];
    if step.wants(0) {
        let g = if ones {
            dy.clone()
        } else {
            let per_channel = step.b.unsqueeze(gain, &axes.iter().map(|a| a - 1).collect::<Vec<_>>());
            step.b.mul(&dy, &per_channel)
        };
        sent[0] = Some(input_gradient(step, &g, &h, &scale, &axes));
    }
    let others: Vec<i64> = std::iter::once(0).chain(2..rank as i64).collect();
    if step.wants(1) {
        let product = step.b.mul(&dy, &h);
        sent[1] = Some(step.b.reduce_sum(&product, &others, false));
    }
    if step.wants(2) {
        sent[2] = Some(step.b.reduce_sum(&dy, &others, false));
    }
    Ok(sent)
}

/// A group is everything from `axis` on; gain and bias belong to the place in it.
pub(super) fn layer(step: &mut Step<'_>) -> Gradients {
    let (dy, x, gain) = (step.dy()?, step.x(0)?, step.x(1)?);
    let rank = step.shape(x)?.len();
    let axis = normalise_axis(step.node.int("axis", -1), rank)
        .ok_or_else(|| step.malformed("its axis is not an axis of its input"))?;
    let axes: Vec<i64> = (axis as i64..rank as i64).collect();
    let (h, scale) = standardised(step, x, &axes);
    let mut sent = vec![None; step.node.inputs.len()];
    if step.wants(0) {
        let g = step.b.mul(&dy, gain);
        sent[0] = Some(input_gradient(step, &g, &h, &scale, &axes));
    }
    if step.wants(1) {
        let product = step.b.mul(&dy, &h);
        sent[1] = Some(sum_to(step, &product, 1)?);
    }
    if step.wants(2) {
        sent[2] = Some(sum_to(step, &dy, 2)?);
    }
    Ok(sent)
}

fn sum_to(step: &mut Step<'_>, gradient: &str, input: usize) -> Result<Value> {
    let input = step.x(input)?;
    step.b.sum_to(gradient, input)
}
