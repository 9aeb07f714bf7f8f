//! Elementwise operators, with broadcasting: `dx = dy * f'(x)`, summed over the axes that were broadcast.

use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;

/// `dy * factor` for the one input of a unary operator.
pub(super) fn chain(step: &mut Step<'_>, factor: Value) -> Gradients {
    let dy = step.dy()?;
    Ok(vec![Some(step.b.mul(&dy, &factor))])
}

/// `gradient`, summed down to the shape of input `i`, where that input needs one.
fn reduced(step: &mut Step<'_>, i: usize, gradient: &str) -> Result<Option<Value>> {
    let input = step.x(i)?;
    step.b.sum_to(gradient, input).map(Some)
}

pub(super) fn add(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    let mut sent = vec![None, None];
    for i in 0..2 {
        if step.wants(i) {
            sent[i] = reduced(step, i, &dy)?;
        }
    }
    Ok(sent)
}

pub(super) fn sub(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    let mut sent = vec![None, None];
    if step.wants(0) {
        sent[0] = reduced(step, 0, &dy)?;
    }
    if step.wants(1) {
        let gradient = reduced(step, 1, &dy)?;
        sent[1] = gradient.map(|g| step.b.neg(&g));
    }
    Ok(sent)
}

pub(super) fn mul(step: &mut Step<'_>) -> Gradients {
    let (dy, a, b) = (step.dy()?, step.x(0)?, step.x(1)?);
    let mut sent = vec![None, None];
    for (i, value, gate) in [(0, a, b), (1, b, a)] {
        if step.wants(0) && step.wants(1) && step.gates.get(gate).is_some_and(|of| of == value) {
            sent[i] = Some(silu(step, &dy, gate)?);
            return Ok(sent);
        }
    }
    for (i, other) in [(0, b), (1, a)] {
        if step.wants(i) {
            let gradient = step.b.mul(&dy, other);
            sent[i] = reduced(step, i, &gradient)?;
        }
    }
    Ok(sent)
}

/// `y = x s` with `s = sigmoid(x)`: `dy/dx = s + y (1 - s)`, for value and gate at once, in four passes over memory
/// where the rules of product and sigmoid take six.
fn silu(step: &mut Step<'_>, dy: &str, gate: &str) -> Result<Value> {
    let y = step.y()?;
    let rest = step.b.rsub(1.0, gate);
    let bent = step.b.mul(y, &rest);
    let slope = step.b.add(gate, &bent);
    Ok(step.b.mul(dy, &slope))
}

/// `d(a/b) = da / b - y db / b`
pub(super) fn div(step: &mut Step<'_>) -> Gradients {
    let (dy, b, y) = (step.dy()?, step.x(1)?, step.y()?);
    let scaled = step.b.div(&dy, b);
    let mut sent = vec![None, None];
    if step.wants(0) {
        sent[0] = reduced(step, 0, &scaled)?;
    }
    if step.wants(1) {
        let gradient = step.b.mul(&scaled, y);
        let gradient = step.b.neg(&gradient);
        sent[1] = reduced(step, 1, &gradient)?;
    }
    Ok(sent)
}

pub(super) fn neg(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    Ok(vec![Some(step.b.neg(&dy))])
}

/// `d(a^b) = b a^(b-1) da + a^b log(a) db`, the second where `a` is positive.
pub(super) fn pow(step: &mut Step<'_>) -> Gradients {
    let (dy, a, b, y) = (step.dy()?, step.x(0)?, step.x(1)?, step.y()?);
    let mut sent = vec![None, None];
    // The exponent may have another type; arithmetic is in the base's.
    let dtype = step.b.fact(a).dtype.unwrap_or(crate::DType::F32);
    let exponent = step.b.cast(b, dtype);
    if step.wants(0) {
        let constant = step.b.fact(b).constant.as_ref().filter(|t| t.len() == 1).map(|t| t.to_f64()[0]);
        let factor = match constant {
            Some(2.0) => step.b.scale(a, 2.0),
            Some(3.0) => {
                let square = step.b.mul(a, a);
                step.b.scale(&square, 3.0)
            }
            _ => {
                let lower = step.b.shift(&exponent, -1.0);
                let power = step.b.op("Pow", &[a, &lower]);
                let product = step.b.mul(&power, &exponent);
                // 0 x^(-1) is 0, also at x = 0.
                let zero = step.b.scalar_like(&exponent, 0.0);
                let constant = step.b.op("Equal", &[&exponent, &zero]);
                step.b.select(&constant, &zero, &product)
            }
        };
        let gradient = step.b.mul(&dy, &factor);
        sent[0] = reduced(step, 0, &gradient)?;
    }
    if step.wants(1) {
        let zero = step.b.scalar_like(a, 0.0);
        let one = step.b.scalar_like(a, 1.0);
        let positive = step.b.op("Greater", &[a, &zero]);
        let safe = step.b.select(&positive, a, &one);
        let log = step.b.op("Log", &[&safe]);
        let gradient = step.b.mul(&dy, y);
        let gradient = step.b.mul(&gradient, &log);
        sent[1] = reduced(step, 1, &gradient)?;
    }
    Ok(sent)
}

/// `d sqrt(x) = dx / (2 y)`
pub(super) fn sqrt(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let half = step.b.scale(&dy, 0.5);
    Ok(vec![Some(step.b.div(&half, y))])
}

pub(super) fn exp(step: &mut Step<'_>) -> Gradients {
    let y = Value::named(step.y()?);
    chain(step, y)
}

pub(super) fn log(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    Ok(vec![Some(step.b.div(&dy, x))])
}

/// The derivative at 0 is taken as 0.
pub(super) fn abs(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let sign = step.b.op("Sign", &[x]);
    chain(step, sign)
}

/// `d(1/x) = -y^2 dx`
pub(super) fn reciprocal(step: &mut Step<'_>) -> Gradients {
    let y = step.y()?;
    let square = step.b.mul(y, y);
    let factor = step.b.neg(&square);
    chain(step, factor)
}

/// `d erf(x) = 2 / sqrt(pi) exp(-x^2) dx`
pub(super) fn erf(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let square = step.b.mul(x, x);
    let negative = step.b.neg(&square);
    let bell = step.b.op("Exp", &[&negative]);
    let factor = step.b.scale(&bell, std::f64::consts::FRAC_2_SQRT_PI);
    chain(step, factor)
}

pub(super) fn sin(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let factor = step.b.op("Cos", &[x]);
    chain(step, factor)
}

pub(super) fn cos(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let sine = step.b.op("Sin", &[x]);
    let factor = step.b.neg(&sine);
    chain(step, factor)
}

/// `d tan(x) = (1 + y^2) dx`
pub(super) fn tan(step: &mut Step<'_>) -> Gradients {
    let y = step.y()?;
    let square = step.b.mul(y, y);
    let factor = step.b.shift(&square, 1.0);
    chain(step, factor)
}

/// `dy / sqrt(offset + sign x^2)`, the pattern of the inverse functions.
fn inverse_root(step: &mut Step<'_>, offset: f64, sign: f64, outer: f64) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let square = step.b.mul(x, x);
    let square = step.b.scale(&square, sign);
    let inside = step.b.shift(&square, offset);
    let root = step.b.op("Sqrt", &[&inside]);
    let gradient = step.b.div(&dy, &root);
    Ok(vec![Some(step.b.scale(&gradient, outer))])
}

pub(super) fn asin(step: &mut Step<'_>) -> Gradients {
    inverse_root(step, 1.0, -1.0, 1.0)
}

pub(super) fn acos(step: &mut Step<'_>) -> Gradients {
    inverse_root(step, 1.0, -1.0, -1.0)
}

pub(super) fn asinh(step: &mut Step<'_>) -> Gradients {
    inverse_root(step, 1.0, 1.0, 1.0)
}

pub(super) fn acosh(step: &mut Step<'_>) -> Gradients {
    inverse_root(step, -1.0, 1.0, 1.0)
}

/// `dy / (1 + sign x^2)`
fn inverse_square(step: &mut Step<'_>, sign: f64) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let square = step.b.mul(x, x);
    let square = step.b.scale(&square, sign);
    let below = step.b.shift(&square, 1.0);
    Ok(vec![Some(step.b.div(&dy, &below))])
}

pub(super) fn atan(step: &mut Step<'_>) -> Gradients {
    inverse_square(step, 1.0)
}

pub(super) fn atanh(step: &mut Step<'_>) -> Gradients {
    inverse_square(step, -1.0)
}

pub(super) fn sinh(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let factor = step.b.op("Cosh", &[x]);
    chain(step, factor)
}

pub(super) fn cosh(step: &mut Step<'_>) -> Gradients {
    let x = step.x(0)?;
    let factor = step.b.op("Sinh", &[x]);
    chain(step, factor)
}

/// Where `x` lies between the bounds. At a bound it is 0, as in PyTorch 2.15: `clamp`, `hardtanh` and `relu6` all become
/// this operator, and `clamp(x, min=0)` is then the same as `Relu`.
pub(super) fn clip(step: &mut Step<'_>) -> Gradients {
    let (mut gradient, x) = (step.dy()?, step.x(0)?);
    for (i, compare) in [(1, "Greater"), (2, "Less")] {
        if let Some(bound) = step.node.input(i) {
            let inside = step.b.op(compare, &[x, bound]);
            gradient = step.b.keep_where(&inside, &gradient);
        }
    }
    Ok(vec![Some(gradient), None, None])
}

/// The gradient goes to the inputs that attain the extremum, shared evenly between them.
pub(super) fn extremum(step: &mut Step<'_>) -> Gradients {
    let (dy, y) = (step.dy()?, step.y()?);
    let dtype = step.b.fact(y).dtype.unwrap_or(crate::DType::F32);
    let mut masks = Vec::new();
    for i in 0..step.node.inputs.len() {
        let equal = step.b.op("Equal", &[step.x(i)?, y]);
        masks.push(step.b.cast(&equal, dtype));
    }
    let Some((first, others)) = masks.split_first() else { return Err(step.malformed("it has no inputs")) };
    let mut count = first.clone();
    for mask in others {
        count = step.b.add(&count, mask);
    }
    let share = step.b.div(&dy, &count);
    let mut sent = vec![None; masks.len()];
    for (i, mask) in masks.iter().enumerate() {
        if step.wants(i) {
            let gradient = step.b.mul(&share, mask);
            sent[i] = reduced(step, i, &gradient)?;
        }
    }
    Ok(sent)
}

fn spread(step: &mut Step<'_>, weight: f64) -> Gradients {
    let dy = step.dy()?;
    let gradient = step.b.scale(&dy, weight);
    let mut sent = vec![None; step.node.inputs.len()];
    for i in 0..sent.len() {
        if step.wants(i) {
            sent[i] = reduced(step, i, &gradient)?;
        }
    }
    Ok(sent)
}

pub(super) fn sum(step: &mut Step<'_>) -> Gradients {
    spread(step, 1.0)
}

pub(super) fn mean(step: &mut Step<'_>) -> Gradients {
    let count = step.node.inputs.len().max(1);
    spread(step, 1.0 / count as f64)
}

pub(super) fn select(step: &mut Step<'_>) -> Gradients {
    let (dy, condition) = (step.dy()?, step.x(0)?);
    let zero = step.b.scalar_like(&dy, 0.0);
    let mut sent = vec![None, None, None];
    if step.wants(1) {
        let gradient = step.b.select(condition, &dy, &zero);
        sent[1] = reduced(step, 1, &gradient)?;
    }
    if step.wants(2) {
        let gradient = step.b.select(condition, &zero, &dy);
        sent[2] = reduced(step, 2, &gradient)?;
    }
    Ok(sent)
}

/// `a mod b` has slope 1 in `a`; its slope in `b` is a step function, which is refused.
pub(super) fn modulo(step: &mut Step<'_>) -> Gradients {
    if step.wants(1) {
        return Err(step.not_differentiable("the modulus depends on the input"));
    }
    let dy = step.dy()?;
    Ok(vec![reduced(step, 0, &dy)?, None])
}
