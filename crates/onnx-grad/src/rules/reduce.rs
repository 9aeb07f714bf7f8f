//! Reductions. What was summed over an axis sends the same gradient everywhere along it.

use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::Dim;
use crate::shapes::{dims::Product, reduced_axes};
use crate::tensor::{DType, TensorData};

/// The axes of the reduction, and `value` (shaped like the output) with those axes kept as ones.
fn kept(step: &mut Step<'_>, value: &str) -> Result<(Vec<i64>, Value)> {
    let x = step.x(0)?;
    let rank = step.shape(x)?.len();
    let axes =
        reduced_axes(step.node, &step.facts(), rank)?.ok_or_else(|| step.unknown_shape("constant axes"))?;
    let axes: Vec<i64> = axes.into_iter().map(|a| a as i64).collect();
    let wide = if step.node.int("keepdims", 1) != 0 || axes.is_empty() {
        Value::named(value)
    } else {
        step.b.unsqueeze(value, &axes)
    };
    Ok((axes, wide))
}

/// `dy`, with kept axes, divided by the number of elements along `axes`, over the shape of `x`.
pub(super) fn spread_evenly(step: &mut Step<'_>, dy: &str, x: &str, axes: &[i64]) -> Result<Value> {
    let shape = step.shape(x)?;
    let reduced: Vec<Dim> = axes.iter().map(|&a| shape[a as usize].clone()).collect();
    let count = Product::of(&reduced).map(Product::into_dim).and_then(|d| d.known());
    let share = match count {
        Some(count) => step.b.scale(dy, 1.0 / count as f64),
        None => {
            // The number is known when the graph runs: size of x over size of dy.
            let dtype = step.b.fact(dy).dtype.unwrap_or(DType::F32);
            let (all, some) = (step.b.op("Size", &[x]), step.b.op("Size", &[dy]));
            let (all, some) = (step.b.cast(&all, dtype), step.b.cast(&some, dtype));
            let ratio = step.b.div(&some, &all);
            step.b.mul(dy, &ratio)
        }
    };
    Ok(step.b.expand_like(&share, x))
}

fn only(gradient: Value) -> Gradients {
    Ok(vec![Some(gradient), None])
}

pub(super) fn sum(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    // With kept axes the shapes say it all, also where the axes are known only when the graph runs.
    let dy = if step.node.int("keepdims", 1) != 0 { dy } else { kept(step, &dy)?.1 };
    only(step.b.expand_like(&dy, x))
}

pub(super) fn mean(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (axes, dy) = kept(step, &dy)?;
    only(spread_evenly(step, &dy, x, &axes)?)
}

/// Shared evenly between the elements that attain the extremum, as PyTorch's `amax`, TensorFlow and JAX have it. PyTorch's
/// `max(dim)` takes one of them, but exporters write the same operator for it.
pub(super) fn extremum(step: &mut Step<'_>) -> Gradients {
    let (dy, x, y) = (step.dy()?, step.x(0)?, step.y()?);
    let (axes, dy) = kept(step, &dy)?;
    let (_, y) = kept(step, y)?;
    let dtype = step.b.fact(x).dtype.unwrap_or(DType::F32);
    let equal = step.b.op("Equal", &[x, &y]);
    let mask = step.b.cast(&equal, dtype);
    let count = step.b.reduce_sum(&mask, &axes, true);
    let share = step.b.div(&dy, &count);
    only(step.b.mul(&mask, &share))
}

/// `d(prod x) = sum over i of (prod over j != i of x_j) dx_i`, right also where some `x_j` is 0.
///
/// The products without one factor are products over rows of a square in which the diagonal is 1.
pub(super) fn product(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let rank = step.shape(x)?.len();
    let (axes, dy) = kept(step, &dy)?;
    if axes.is_empty() {
        return only(dy);
    }
    let sizes = axes.iter().map(|&a| step.size(x, a as usize)).collect::<Result<Vec<_>>>()?;
    let n = step.table(&sizes)? as i64;
    step.table(&[n, n])?;
    // The reduced axes last and as one.
    let rest: Vec<usize> = (0..rank).filter(|i| !axes.contains(&(*i as i64))).collect();
    let perm: Vec<usize> = rest.iter().copied().chain(axes.iter().map(|&a| a as usize)).collect();
    let moved = step.b.transpose(x, &perm);
    let factors =
        if rest.is_empty() { step.b.reshape(&moved, &[1, n]) } else { step.b.reshape(&moved, &[-1, n]) };
    let rows = step.b.unsqueeze(&factors, &[1]);
    let eye: Vec<bool> = (0..n * n).map(|i| i / n == i % n).collect();
    let eye = step.b.constant(TensorData::bool(&[1, n as usize, n as usize], &eye));
    let one = step.b.scalar_like(x, 1.0);
    let without = step.b.select(&eye, &one, &rows);
    let last = step.b.ints(&[2]);
    let products = step.b.op_with("ReduceProd", &[&without, &last], &[("keepdims", 0i64.into())]);
    let products = step.b.reshape_like(&products, &moved);
    let mut inverse = vec![0; rank];
    perm.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
    let products = step.b.transpose(&products, &inverse);
    only(step.b.mul(&products, &dy))
}

pub(super) fn l1(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (_, dy) = kept(step, &dy)?;
    let sign = step.b.op("Sign", &[x]);
    only(step.b.mul(&sign, &dy))
}

/// `x / |x| dy`, and 0 at 0.
pub(super) fn l2(step: &mut Step<'_>) -> Gradients {
    let (dy, x, y) = (step.dy()?, step.x(0)?, step.y()?);
    let (_, dy) = kept(step, &dy)?;
    let (_, norm) = kept(step, y)?;
    let zero = step.b.scalar_like(x, 0.0);
    let one = step.b.scalar_like(x, 1.0);
    let nothing = step.b.op("Equal", &[&norm, &zero]);
    let safe = step.b.select(&nothing, &one, &norm);
    let scaled = step.b.div(&dy, &safe);
    only(step.b.mul(x, &scaled))
}

pub(super) fn log_sum(step: &mut Step<'_>) -> Gradients {
    let (dy, x, y) = (step.dy()?, step.x(0)?, step.y()?);
    let (_, dy) = kept(step, &dy)?;
    let (_, y) = kept(step, y)?;
    let total = step.b.op("Exp", &[&y]);
    let share = step.b.div(&dy, &total);
    only(step.b.expand_like(&share, x))
}

/// `exp(x - y) dy`: the softmax.
pub(super) fn log_sum_exp(step: &mut Step<'_>) -> Gradients {
    let (dy, x, y) = (step.dy()?, step.x(0)?, step.y()?);
    let (_, dy) = kept(step, &dy)?;
    let (_, y) = kept(step, y)?;
    let centred = step.b.sub(x, &y);
    let weights = step.b.op("Exp", &[&centred]);
    only(step.b.mul(&weights, &dy))
}

pub(super) fn sum_square(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (_, dy) = kept(step, &dy)?;
    let doubled = step.b.scale(x, 2.0);
    only(step.b.mul(&doubled, &dy))
}
