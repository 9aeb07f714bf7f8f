//! Ops that move values without changing them.

use super::Array;
use super::call::Call;
use super::elementwise::fit;
use super::walk::{Walk, around, offset, spread, strides};
use crate::error::Result;

/// The same values, in order, under another shape.
fn reshaped(call: &Call, x: &Array, shape: &[usize]) -> Result<Array> {
    call.array(x.dtype, shape, x.values().into_owned())
}

/// An array of `shape` whose value at each position is taken from a position of `x`, or is `other`.
fn taken(
    call: &Call,
    x: &Array,
    shape: &[usize],
    other: f64,
    source: impl Fn(&[usize], &mut [usize]) -> bool,
) -> Result<Array> {
    let mut out = Vec::with_capacity(call.room(shape)?);
    let (values, steps) = (x.values(), strides(x.shape()));
    let mut place = vec![0; x.shape().len()];
    let mut walk = Walk::new(shape);
    while let Some(index) = walk.step() {
        out.push(if source(index, &mut place) { values[offset(&place, &steps)] } else { other });
    }
    call.array(x.dtype, shape, out)
}

pub(super) fn reshape(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let wanted = call.ints(1)?;
    let copy_zeros = call.node.int("allowzero", 0) == 0;
    let mut shape = Vec::with_capacity(wanted.len());
    let mut free = None;
    for (i, &size) in wanted.iter().enumerate() {
        shape.push(match size {
            0 if copy_zeros => *x.shape().get(i).ok_or_else(|| {
                call.malformed(format!("size 0 at axis {i} copies an axis the input does not have"))
            })?,
            -1 if free.replace(i).is_none() => 1,
            size => call.size(size)?,
        });
    }
    if let Some(free) = free {
        let others = call.room(&shape)?;
        if others == 0 || x.data.len() % others != 0 {
            return Err(call.malformed(format!("{:?} cannot take the shape {wanted:?}", x.shape())));
        }
        shape[free] = x.data.len() / others;
    }
    reshaped(call, x, &shape)
}

pub(super) fn flatten(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let axis = match call.node.int("axis", 1) {
        axis if axis == rank as i64 => rank,
        axis => call.axis(axis, rank)?,
    };
    let size = |shape: &[usize]| shape.iter().product::<usize>();
    reshaped(call, x, &[size(&x.shape()[..axis]), size(&x.shape()[axis..])])
}

pub(super) fn squeeze(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let shape = x.shape();
    let axes = match call.optional_ints(1) {
        Some(axes) => call.axes(&axes, shape.len())?,
        None => (0..shape.len()).filter(|&i| shape[i] == 1).collect(),
    };
    if let Some(&axis) = axes.iter().find(|&&a| shape[a] != 1) {
        return Err(call.malformed(format!("axis {axis} of {shape:?} is not of size 1")));
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i)).map(|i| shape[i]).collect();
    reshaped(call, x, &kept)
}

pub(super) fn unsqueeze(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let wanted = call.ints(1)?;
    let rank = x.shape().len() + wanted.len();
    let axes = call.axes(&wanted, rank)?;
    let mut rest = x.shape().iter();
    let mut shape = vec![1; rank];
    for (i, size) in shape.iter_mut().enumerate() {
        if !axes.contains(&i) {
            *size = rest.next().copied().unwrap_or(1);
        }
    }
    reshaped(call, x, &shape)
}

pub(super) fn transpose(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let order = match call.node.ints("perm") {
        Some(order) => call.axes(order, rank)?,
        None => (0..rank).rev().collect(),
    };
    if order.len() != rank {
        return Err(call.malformed(format!("perm is {order:?} for {rank} axes")));
    }
    let view = x.data.view().permuted_axes(order);
    let shape = view.shape().to_vec();
    call.array(x.dtype, &shape, view.iter().copied().collect())
}

pub(super) fn concat(call: &Call) -> Result<Array> {
    let arrays = call.all()?;
    let first = arrays[0];
    let rank = first.shape().len();
    let axis = call.axis(call.node.int("axis", 0), rank)?;
    let mut shape = first.shape().to_vec();
    shape[axis] = 0;
    for array in &arrays {
        let fits = array.shape().len() == rank
            && (0..rank).all(|i| i == axis || array.shape()[i] == first.shape()[i]);
        if !fits {
            return Err(call.malformed(format!(
                "{:?} and {:?} do not join along axis {axis}",
                first.shape(),
                array.shape()
            )));
        }
        shape[axis] += array.shape()[axis];
    }
    let mut out = Vec::with_capacity(call.room(&shape)?);
    let (outer, ..) = around(&shape, axis);
    let values: Vec<_> = arrays.iter().map(|a| a.values()).collect();
    for o in 0..outer {
        for v in &values {
            let chunk = v.len() / outer;
            out.extend_from_slice(&v[o * chunk..(o + 1) * chunk]);
        }
    }
    call.array(first.dtype, &shape, out)
}

pub(super) fn split(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let axis = call.axis(call.node.int("axis", 0), x.shape().len())?;
    let (outer, length, inner) = around(x.shape(), axis);
    let sizes = match call.optional_ints(1) {
        Some(sizes) => call.sizes(&sizes)?,
        None => {
            let parts = call.node.int("num_outputs", call.node.outputs.len() as i64);
            let parts = usize::try_from(parts)
                .ok()
                .filter(|&p| p > 0 && p <= call.node.outputs.len().max(1))
                .ok_or_else(|| call.malformed(format!("it splits into {parts} parts")))?;
            let size = length.div_ceil(parts);
            (0..parts).map(|i| size.min(length.saturating_sub(i * size))).collect()
        }
    };
    if sizes.iter().try_fold(0usize, |sum, &s| sum.checked_add(s)) != Some(length) {
        return Err(call.malformed(format!("an axis of {length} splits into {sizes:?}")));
    }
    let values = x.values();
    let mut start = 0;
    let mut parts = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut shape = x.shape().to_vec();
        shape[axis] = size;
        let mut out = Vec::with_capacity(outer * size * inner);
        for o in 0..outer {
            out.extend_from_slice(&values[(o * length + start) * inner..(o * length + start + size) * inner]);
        }
        parts.push(call.array(x.dtype, &shape, out)?);
        start += size;
    }
    Ok(parts)
}

pub(super) fn slice(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let (starts, ends) = (call.ints(1)?, call.ints(2)?);
    let axes = call.optional_ints(3).unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.optional_ints(4).unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(call.malformed("starts, ends, axes and steps differ in length"));
    }
    let axes = call.axes(&axes, rank)?;
    let (mut shape, mut first, mut stride) = (x.shape().to_vec(), vec![0; rank], vec![1; rank]);
    for (i, &axis) in axes.iter().enumerate() {
        let n = x.shape()[axis] as i64;
        let step = steps[i];
        if step == 0 {
            return Err(call.malformed("a step of 0"));
        }
        let wrap = |at: i64| if at < 0 { at.saturating_add(n) } else { at };
        // Counting back, the end may lie before the first position.
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let start = wrap(starts[i]).clamp(low.max(0).min(high), high);
        let end = wrap(ends[i]).clamp(low, high);
        let span = if step > 0 { end - start } else { start - end };
        let stride_size = step.unsigned_abs();
        shape[axis] = if span > 0 { (span as u64).div_ceil(stride_size) as usize } else { 0 };
        first[axis] = start;
        stride[axis] = step;
    }
    taken(call, x, &shape, 0.0, |index, place| {
        for i in 0..rank {
            place[i] = (first[i] + index[i] as i64 * stride[i]) as usize;
        }
        true
    })
}

pub(super) fn expand(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let wanted = call.sizes(&call.ints(1)?)?;
    let shape = super::walk::broadcast(x.shape(), &wanted)
        .ok_or_else(|| call.malformed(format!("{:?} does not broadcast with {wanted:?}", x.shape())))?;
    call.array(x.dtype, &shape, spread(call, x, &shape)?)
}

pub(super) fn tile(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let repeats = call.sizes(&call.ints(1)?)?;
    if repeats.len() != x.shape().len() {
        return Err(call.malformed(format!("repeats {repeats:?} for the shape {:?}", x.shape())));
    }
    let sizes = x.shape().iter().zip(&repeats).map(|(n, r)| n.saturating_mul(*r));
    let shape: Vec<usize> = sizes.collect();
    taken(call, x, &shape, 0.0, |index, place| {
        (0..index.len()).for_each(|i| place[i] = index[i] % x.shape()[i]);
        true
    })
}

pub(super) fn pad(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = x.shape().len();
    let axes = match call.optional_ints(3) {
        Some(axes) => call.axes(&axes, rank)?,
        None => (0..rank).collect(),
    };
    let pads = call.ints(1)?;
    if pads.len() != 2 * axes.len() {
        return Err(call.malformed(format!("{} pads for {} axes", pads.len(), axes.len())));
    }
    let (mut begin, mut end, mut shape) = (vec![0; rank], vec![0; rank], x.shape().to_vec());
    for (i, &axis) in axes.iter().enumerate() {
        (begin[axis], end[axis]) = (pads[i], pads[i + axes.len()]);
        let size = (shape[axis] as i64).saturating_add(pads[i]).saturating_add(pads[i + axes.len()]);
        shape[axis] = call.size(size)?;
    }
    let mode = call.node.string("mode", "constant");
    if !["constant", "reflect", "edge", "wrap"].contains(&mode) {
        return Err(call.malformed(format!("mode is '{mode}'")));
    }
    if mode != "constant" && (0..rank).any(|i| x.shape()[i] == 0 && shape[i] != 0) {
        return Err(call.malformed("an empty axis has nothing to pad with"));
    }
    let value = match call.optional(2) {
        Some(v) if !v.data.is_empty() => call.scalar(2)?,
        _ => 0.0,
    };
    taken(call, x, &shape, fit(x.dtype, value), |index, place| {
        (0..rank).all(|i| {
            let n = x.shape()[i] as i64;
            let at = index[i] as i64 - begin[i];
            let source = match mode {
                "edge" => at.clamp(0, n - 1),
                // Engines cut off first: what wraps around is what is left.
                "wrap" => {
                    let first = (-begin[i]).max(0);
                    let left = n - first - (-end[i]).max(0);
                    if left < 1 { at } else { first + (at - first).rem_euclid(left) }
                }
                "reflect" if n == 1 => 0,
                "reflect" => {
                    let back_and_forth = at.rem_euclid(2 * (n - 1));
                    back_and_forth.min(2 * (n - 1) - back_and_forth)
                }
                _ => at,
            };
            place[i] = source as usize;
            (0..n).contains(&source)
        })
    })
}

/// Batch, channels, height and width, and the block size.
fn blocks(call: &Call, x: &Array) -> Result<([usize; 4], usize)> {
    let size = call.node.int("blocksize", 0);
    match (<[usize; 4]>::try_from(x.shape()), usize::try_from(size)) {
        (Ok(shape), Ok(block)) if (1..1 << 16).contains(&block) => Ok((shape, block)),
        _ => Err(call.malformed(format!("shape {:?} with blocksize {size}", x.shape()))),
    }
}

pub(super) fn depth_to_space(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let ([n, c, h, w], b) = blocks(call, x)?;
    if c % (b * b) != 0 {
        return Err(call.malformed(format!("{c} channels do not fill blocks of {b} x {b}")));
    }
    let depth = c / (b * b);
    let columns_first = call.node.string("mode", "DCR") == "CRD";
    taken(call, x, &[n, depth, h * b, w * b], 0.0, |index, place| {
        let cell = index[2] % b * b + index[3] % b;
        let channel = if columns_first { index[1] * b * b + cell } else { cell * depth + index[1] };
        place.copy_from_slice(&[index[0], channel, index[2] / b, index[3] / b]);
        true
    })
}

pub(super) fn space_to_depth(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let ([n, c, h, w], b) = blocks(call, x)?;
    if h % b != 0 || w % b != 0 {
        return Err(call.malformed(format!("{h} x {w} does not divide into blocks of {b}")));
    }
    let columns_first = call.node.string("mode", "DCR") == "CRD";
    taken(call, x, &[n, c * b * b, h / b, w / b], 0.0, |index, place| {
        let (channel, cell) = match columns_first {
            true => (index[1] / (b * b), index[1] % (b * b)),
            false => (index[1] % c, index[1] / c),
        };
        place.copy_from_slice(&[index[0], channel, index[2] * b + cell / b, index[3] * b + cell % b]);
        true
    })
}

/// `Trilu`: the part above or below a diagonal.
pub(super) fn triangle(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = call.rank(x, 2)?;
    let k = match call.optional(1) {
        Some(_) => call.scalar(1)? as i64,
        None => 0,
    };
    let upper = call.node.int("upper", 1) != 0;
    taken(call, x, x.shape(), 0.0, |index, place| {
        place.copy_from_slice(index);
        let distance = index[rank - 1] as i64 - index[rank - 2] as i64;
        if upper { distance >= k } else { distance <= k }
    })
}
