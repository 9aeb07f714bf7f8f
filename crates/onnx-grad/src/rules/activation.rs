//! Activation functions. Where the derivative can be had from the output, the input need not be kept.

use super::elementwise::chain;
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::Attribute;

/// `d tanh(x) = (1 - y^2) dx`
pub(super) fn tanh(step: &mut Step<'_>) -> Gradients {
    // No constant in it: engines are slow where a scalar is broadcast over a small tensor.
    let (dy, y) = (step.dy()?, step.y()?);
    let square = step.b.mul(y, y);
    let lost = step.b.mul(&dy, &square);
    Ok(vec![Some(step.b.sub(&dy, &lost))])
}

/// `d sigmoid(x) = y (1 - y) dx`
pub(super) fn sigmoid(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let kept = step.b.mul(&dy, y);
    let lost = step.b.mul(&kept, y);
    Ok(vec![Some(step.b.sub(&kept, &lost))])
}

pub(super) fn softplus(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let factor = step.b.op("Sigmoid", &[x]);
    chain(step, factor)
}

/// `d (x / (1 + |x|)) = dx / (1 + |x|)^2`
pub(super) fn softsign(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let size = step.b.op("Abs", &[x]);
    let below = step.b.shift(&size, 1.0);
    let square = step.b.mul(&below, &below);
    Ok(vec![Some(step.b.div(&dy, &square))])
}

/// Where the output is positive, which it is where the input was.
///
/// The mask is `min(y * largest, 1)`: 1 for every positive number that is not within 3e-39 of 0, and 0
/// at 0. Two plain float operations cost engines less than `Greater` and `Where`, whose booleans they
/// handle element by element.
pub(super) fn relu(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let large = step.b.scale(y, f64::from(f32::MAX));
    let one = step.b.scalar_like(y, 1.0);
    let mask = step.b.op("Min", &[&large, &one]);
    Ok(vec![Some(step.b.mul(&dy, &mask))])
}

/// `dy` above 0, `alpha dy` elsewhere.
pub(super) fn leaky_relu(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let zero = step.b.scalar_like(x, 0.0);
    let above = step.b.op("Greater", &[x, &zero]);
    let scaled = step.b.scale(&dy, f64::from(step.node.float("alpha", 0.01)));
    Ok(vec![Some(step.b.select(&above, &dy, &scaled))])
}

/// `dy` above 0, `slope dy` elsewhere, also at 0.
pub(super) fn prelu(step: &mut Step<'_>) -> Gradients {
    let (dy, x, slope) = (step.dy()?, step.x(0)?, step.x(1)?);
    let zero = step.b.scalar_like(x, 0.0);
    let above = step.b.op("Greater", &[x, &zero]);
    let mut sent = vec![None, None];
    if step.wants(0) {
        let scaled = step.b.mul(&dy, slope);
        sent[0] = Some(step.b.select(&above, &dy, &scaled));
    }
    if step.wants(1) {
        let gradient = step.b.mul(&dy, x);
        let gradient = step.b.select(&above, &zero, &gradient);
        sent[1] = Some(step.b.sum_to(&gradient, slope)?);
    }
    Ok(sent)
}

/// `1` above 0, `y + alpha` below.
pub(super) fn elu(step: &mut Step<'_>) -> Gradients {
    let (x, y) = (step.x(0)?, step.y()?);
    let alpha = f64::from(step.node.float("alpha", 1.0));
    let zero = step.b.scalar_like(x, 0.0);
    let one = step.b.scalar_like(x, 1.0);
    let above = step.b.op("Greater", &[x, &zero]);
    let slope = step.b.shift(y, alpha);
    let factor = step.b.select(&above, &one, &slope);
    chain(step, factor)
}

/// `alpha` where `0 < alpha x + beta < 1`
pub(super) fn hard_sigmoid(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let alpha = f64::from(step.node.float("alpha", 0.2));
    let inside = strictly_between(step, y, 0.0, 1.0)?;
    let scaled = step.b.scale(&dy, alpha);
    Ok(vec![Some(step.b.keep_where(&inside, &scaled))])
}

fn strictly_between(step: &mut Step<'_>, v: &str, low: f64, high: f64) -> Result<Value> {
    let low = step.b.scalar_like(v, low);
    let high = step.b.scalar_like(v, high);
    let above = step.b.op("Greater", &[v, &low]);
    let below = step.b.op("Less", &[v, &high]);
    Ok(step.b.op("And", &[&above, &below]))
}

/// `x h(x)` with `h` the hard sigmoid of slope 1/6: `h(x) + x / 6 [-3 < x < 3]`
pub(super) fn hard_swish(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let attributes = [("alpha", Attribute::Float(1.0 / 6.0)), ("beta", Attribute::Float(0.5))];
    let gate = step.b.op_with("HardSigmoid", &[x], &attributes);
    let inside = strictly_between(step, x, -3.0, 3.0)?;
    let slope = step.b.scale(x, 1.0 / 6.0);
    let slope = step.b.keep_where(&inside, &slope);
    let factor = step.b.add(&gate, &slope);
    chain(step, factor)
}

/// `Phi(x) + x phi(x)`, with the normal distribution function and density; or the same of the tanh form.
pub(super) fn gelu(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let factor = if step.node.string("approximate", "none") == "tanh" {
        // y = x/2 (1 + tanh u), u = c (x + 0.044715 x^3)
        let c = (2.0 / std::f64::consts::PI).sqrt();
        let square = step.b.mul(x, x);
        let inner = step.b.scale(&square, 0.044715 * c);
        let inner = step.b.shift(&inner, c);
        let u = step.b.mul(&inner, x);
        let t = step.b.op("Tanh", &[&u]);
        let sech = step.b.mul(&t, &t);
        let sech = step.b.rsub(1.0, &sech);
        let du = step.b.scale(&square, 3.0 * 0.044715 * c);
        let du = step.b.shift(&du, c);
        let bend = step.b.mul(&sech, &du);
        let bend = step.b.mul(&bend, x);
        let total = step.b.add(&bend, &t);
        let total = step.b.shift(&total, 1.0);
        step.b.scale(&total, 0.5)
    } else {
        let scaled = step.b.scale(x, std::f64::consts::FRAC_1_SQRT_2);
        let erf = step.b.op("Erf", &[&scaled]);
        let cdf = step.b.shift(&erf, 1.0);
        let cdf = step.b.scale(&cdf, 0.5);
        let square = step.b.mul(x, x);
        let exponent = step.b.scale(&square, -0.5);
        let density = step.b.op("Exp", &[&exponent]);
        let bend = step.b.mul(&density, x);
        let bend = step.b.scale(&bend, 1.0 / (2.0 * std::f64::consts::PI).sqrt());
        step.b.add(&cdf, &bend)
    };
    chain(step, factor)
}

/// `dx = y (dy - sum(y dy))`
pub(super) fn softmax(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let axis = step.node.int("axis", -1);
    let weighted = step.b.mul(y, &dy);
    let total = step.b.reduce_sum(&weighted, &[axis], true);
    let centred = step.b.sub(&dy, &total);
    Ok(vec![Some(step.b.mul(y, &centred))])
}

/// `dx = dy - exp(y) sum(dy)`
pub(super) fn log_softmax(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let axis = step.node.int("axis", -1);
    let probabilities = step.b.op("Exp", &[y]);
    let total = step.b.reduce_sum(&dy, &[axis], true);
    let share = step.b.mul(&probabilities, &total);
    Ok(vec![Some(step.b.sub(&dy, &share))])
}
