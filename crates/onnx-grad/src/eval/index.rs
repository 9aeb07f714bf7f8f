//! Ops that take and put values at positions given by other tensors.

use super::Array;
use super::call::Call;
use super::elementwise::{fit, larger, smaller};
use super::walk::{Walk, around, offset, strides};
use crate::error::Result;
use crate::tensor::DType;

/// An index as the specification counts it, negative from the back.
fn resolve(call: &Call, index: f64, size: usize) -> Result<usize> {
    let wrapped = if index < 0.0 { index + size as f64 } else { index };
    match wrapped >= 0.0 && wrapped < size as f64 {
        true => Ok(wrapped as usize),
        false => Err(call.malformed(format!("index {index} into an axis of {size}"))),
    }
}

pub(super) fn gather(call: &Call) -> Result<Array> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis(call.node.int("axis", 0), x.shape().len())?;
    let (outer, length, inner) = around(x.shape(), axis);
    let mut shape = x.shape().to_vec();
    shape.splice(axis..axis + 1, indices.shape().iter().copied());
    let mut out = Vec::with_capacity(call.room(&shape)?);
    let values = x.values();
    for o in 0..outer {
        for &index in indices.data.iter() {
            let at = (o * length + resolve(call, index, length)?) * inner;
            out.extend_from_slice(&values[at..at + inner]);
        }
    }
    call.array(x.dtype, &shape, out)
}

/// Checks that `indices` lie inside `x` on every axis but one.
fn within(call: &Call, x: &Array, indices: &Array, axis: usize) -> Result<()> {
    let (shape, part) = (x.shape(), indices.shape());
    match shape.len() == part.len() && (0..shape.len()).all(|i| i == axis || part[i] <= shape[i]) {
        true => Ok(()),
        false => Err(call.malformed(format!("indices of shape {part:?} into {shape:?} along axis {axis}"))),
    }
}

pub(super) fn gather_elements(call: &Call) -> Result<Array> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis(call.node.int("axis", 0), x.shape().len())?;
    within(call, x, indices, axis)?;
    let (values, steps, wanted) = (x.values(), strides(x.shape()), indices.values());
    let mut out = Vec::with_capacity(wanted.len());
    let mut walk = Walk::new(indices.shape());
    while let Some(index) = walk.step() {
        let along = resolve(call, wanted[out.len()], x.shape()[axis])?;
        out.push(values[offset(index, &steps) - index[axis] * steps[axis] + along * steps[axis]]);
    }
    call.array(x.dtype, indices.shape(), out)
}

pub(super) fn gather_nd(call: &Call) -> Result<Array> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let batch_axes = call.size(call.node.int("batch_dims", 0))?;
    let rank = call.rank(indices, 1)?;
    let depth = indices.shape()[rank - 1];
    let fits = batch_axes < rank
        && batch_axes.saturating_add(depth) <= x.shape().len()
        && x.shape()[..batch_axes] == indices.shape()[..batch_axes];
    if !fits {
        return Err(call.malformed(format!(
            "indices of shape {:?} into {:?} with {batch_axes} batch axes",
            indices.shape(),
            x.shape()
        )));
    }
    let mut shape = indices.shape()[..rank - 1].to_vec();
    shape.extend(&x.shape()[batch_axes + depth..]);
    let mut out = Vec::with_capacity(call.room(&shape)?);
    let inner: usize = x.shape()[batch_axes + depth..].iter().product();
    let per_batch: usize = indices.shape()[batch_axes..rank - 1].iter().product();
    let (values, wanted, steps) = (x.values(), indices.values(), strides(x.shape()));
    let whole: usize = x.shape()[batch_axes..].iter().product();
    let tuples: usize = indices.shape()[..rank - 1].iter().product();
    for tuple in 0..tuples {
        let mut at = tuple / per_batch * whole;
        for d in 0..depth {
            let axis = batch_axes + d;
            at += resolve(call, wanted[tuple * depth + d], x.shape()[axis])? * steps[axis];
        }
        out.extend_from_slice(&values[at..at + inner]);
    }
    call.array(x.dtype, &shape, out)
}

/// How an update joins the value that is already there.
fn reduction(call: &Call) -> Result<fn(f64, f64) -> f64> {
    Ok(match call.node.string("reduction", "none") {
        "none" => |_, update| update,
        "add" => |old, update| old + update,
        "mul" => |old, update| old * update,
        "max" => larger,
        "min" => smaller,
        other => return Err(call.malformed(format!("reduction is '{other}'"))),
    })
}

pub(super) fn scatter_elements(call: &Call) -> Result<Array> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = call.axis(call.node.int("axis", 0), x.shape().len())?;
    within(call, x, indices, axis)?;
    if updates.shape() != indices.shape() {
        return Err(call.malformed(format!(
            "updates of shape {:?} at indices of shape {:?}",
            updates.shape(),
            indices.shape()
        )));
    }
    let join = reduction(call)?;
    let (mut out, steps) = (x.values().into_owned(), strides(x.shape()));
    let (wanted, new) = (indices.values(), updates.values());
    let mut walk = Walk::new(indices.shape());
    let mut i = 0;
    while let Some(index) = walk.step() {
        let along = resolve(call, wanted[i], x.shape()[axis])?;
        let at = offset(index, &steps) - index[axis] * steps[axis] + along * steps[axis];
        out[at] = fit(x.dtype, join(out[at], new[i]));
        i += 1;
    }
    call.array(x.dtype, x.shape(), out)
}

pub(super) fn scatter_nd(call: &Call) -> Result<Array> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let rank = call.rank(indices, 1)?;
    let depth = indices.shape()[rank - 1];
    let mismatch = || {
        call.malformed(format!(
            "updates of shape {:?} at indices of shape {:?} in {:?}",
            updates.shape(),
            indices.shape(),
            x.shape()
        ))
    };
    if depth > x.shape().len() {
        return Err(mismatch());
    }
    let mut shape = indices.shape()[..rank - 1].to_vec();
    let tuples: usize = shape.iter().product();
    shape.extend(&x.shape()[depth..]);
    if updates.shape() != shape {
        return Err(mismatch());
    }
    let join = reduction(call)?;
    let inner: usize = x.shape()[depth..].iter().product();
    let (mut out, steps) = (x.values().into_owned(), strides(x.shape()));
    let (wanted, new) = (indices.values(), updates.values());
    for tuple in 0..tuples {
        let mut at = 0;
        for d in 0..depth {
            at += resolve(call, wanted[tuple * depth + d], x.shape()[d])? * steps[d];
        }
        for i in 0..inner {
            out[at + i] = fit(x.dtype, join(out[at + i], new[tuple * inner + i]));
        }
    }
    call.array(x.dtype, x.shape(), out)
}

pub(super) fn one_hot(call: &Call) -> Result<Array> {
    let (indices, values) = (call.input(0)?, call.input(2)?);
    let depth = call.size(call.scalar(1)? as i64)?;
    let &[off, on] = values.values().as_ref() else {
        return Err(call.malformed("its values are not off and on"));
    };
    let rank = indices.shape().len();
    let axis = call.axis(call.node.int("axis", -1), rank + 1)?;
    let mut shape = indices.shape().to_vec();
    shape.insert(axis, depth);
    let mut out = vec![off; call.room(&shape)?];
    let inner: usize = indices.shape()[axis..].iter().product();
    for (i, &index) in indices.data.iter().enumerate() {
        // An index outside the depth is no error: it lights nothing.
        if let Ok(hot) = resolve(call, index.trunc(), depth) {
            out[(i / inner * depth + hot) * inner + i % inner] = on;
        }
    }
    call.array(values.dtype, &shape, out)
}

/// The `k` largest (or smallest) along an axis, in order; equal values by position.
pub(super) fn top_k(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let axis = call.axis(call.node.int("axis", -1), x.shape().len())?;
    let (outer, length, inner) = around(x.shape(), axis);
    let k = call.size(call.scalar(1)? as i64)?;
    if k > length {
        return Err(call.malformed(format!("the first {k} of an axis of {length}")));
    }
    let sign = if call.node.int("largest", 1) != 0 { -1.0 } else { 1.0 };
    let mut shape = x.shape().to_vec();
    shape[axis] = k;
    let count = call.room(&shape)?;
    let (mut top, mut places) = (vec![0.0; count], vec![0.0; count]);
    let values = x.values();
    for o in 0..outer {
        for i in 0..inner {
            let at = |j: usize| values[(o * length + j) * inner + i];
            let mut order: Vec<usize> = (0..length).collect();
            order.sort_by(|&a, &b| {
                let (a, b) = (sign * at(a), sign * at(b));
                // 0 and -0 are equal; only what has no order is put in that of its bits.
                a.partial_cmp(&b).unwrap_or_else(|| a.total_cmp(&b))
            });
            for (rank, &j) in order[..k].iter().enumerate() {
                top[(o * k + rank) * inner + i] = at(j);
                places[(o * k + rank) * inner + i] = j as f64;
            }
        }
    }
    Ok(vec![call.array(x.dtype, &shape, top)?, call.array(DType::I64, &shape, places)?])
}

/// The positions of values that are not zero, one row per axis.
pub(super) fn non_zero(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let values = x.values();
    let mut rows = vec![Vec::new(); rank];
    let mut walk = Walk::new(x.shape());
    let (mut i, mut count) = (0, 0);
    while let Some(index) = walk.step() {
        if values[i] != 0.0 {
            index.iter().zip(&mut rows).for_each(|(&at, row)| row.push(at as f64));
            count += 1;
        }
        i += 1;
    }
    call.array(DType::I64, &[rank, count], rows.concat())
}
