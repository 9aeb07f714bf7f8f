//! Operators that only move elements: the gradient moves them back, and adds up what was copied.

use super::linear_map::{LinearMap, padding};
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim};
use crate::resample::Resampling;
use crate::shapes::{normalise_axis, pad_spec, slice_bounds, slice_spec};
use crate::tensor::DType;

/// Beyond the end of any axis, in a form that engines with 32-bit sizes take.
const END: i64 = i32::MAX as i64;

/// The gradient of the first input only.
fn only(step: &Step<'_>, gradient: Value) -> Gradients {
    let mut sent = vec![None; step.node.inputs.len()];
    if let Some(first) = sent.first_mut() {
        *first = Some(gradient);
    }
    Ok(sent)
}

/// `Reshape`, `Flatten`, `Squeeze`, `Unsqueeze`: the old shape again.
pub(super) fn reshaping(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let gradient = step.b.reshape_like(&dy, x);
    only(step, gradient)
}

pub(super) fn identity(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    only(step, dy)
}

pub(super) fn cast(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let dtype = step.b.fact(x).dtype.ok_or_else(|| step.unknown_shape("its input's element type"))?;
    let gradient = step.b.cast(&dy, dtype);
    only(step, gradient)
}

pub(super) fn transpose(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let rank = step.shape(x)?.len();
    let mut inverse: Vec<usize> = (0..rank).rev().collect();
    if let Some(perm) = step.node.ints("perm") {
        for (to, &from) in perm.iter().enumerate() {
            let from = normalise_axis(from, rank).ok_or_else(|| step.malformed("its perm does not fit"))?;
            inverse[from] = to;
        }
    }
    let gradient = step.b.transpose(&dy, &inverse);
    only(step, gradient)
}

pub(super) fn concat(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    let names: Vec<&str> = (0..step.node.inputs.len()).map(|i| step.x(i)).collect::<Result<_>>()?;
    let axis = step.axis("axis", 0, step.shape(step.x(0)?)?.len())?;
    let sizes: Option<Vec<i64>> =
        names.iter().map(|n| step.b.shape(n).and_then(|s| s.get(axis)).and_then(Dim::known)).collect();
    let mut sent = vec![None; names.len()];
    let Some(sizes) = sizes else {
        // Sizes are known when the graph runs.
        let mut parts = Vec::new();
        for name in &names {
            let attributes =
                [("start", Attribute::Int(axis as i64)), ("end", Attribute::Int(axis as i64 + 1))];
            parts.push(step.b.op_with("Shape", &[name], &attributes));
        }
        let parts: Vec<&str> = parts.iter().map(|p| &**p).collect();
        let split = step.b.concat(&parts, 0);
        let axis = [("axis", Attribute::Int(axis as i64))];
        let pieces = step.b.op_many("Split", &[&dy, &split], &axis, names.len());
        for (i, piece) in pieces.into_iter().enumerate() {
            sent[i] = Some(piece).filter(|_| step.wants(i));
        }
        return Ok(sent);
    };
    let mut from = 0;
    for (i, size) in sizes.iter().enumerate() {
        if step.wants(i) {
            sent[i] = Some(step.b.slice(&dy, axis, from, from + size, 1));
        }
        from += size;
    }
    Ok(sent)
}

pub(super) fn split(step: &mut Step<'_>) -> Gradients {
    let axis = step.node.int("axis", 0);
    let mut parts = Vec::new();
    for i in 0..step.node.outputs.len() {
        let part = match (&step.gradients[i], step.node.output(i)) {
            (Some(gradient), _) => gradient.clone(),
            (None, Some(output)) => step.b.zeros_like(output),
            (None, None) => return Err(step.not_differentiable("one of its outputs has no name")),
        };
        parts.push(part);
    }
    let parts: Vec<&str> = parts.iter().map(|p| &**p).collect();
    let gradient = step.b.concat(&parts, axis);
    only(step, gradient)
}

/// What was cut away comes back as zeros.
pub(super) fn slice(step: &mut Step<'_>) -> Gradients {
    let (mut gradient, x) = (step.dy()?, step.x(0)?);
    let shape = step.shape(x)?;
    let spec = slice_spec(step.node, &step.facts(), shape.len())?;
    let known = spec.as_ref().is_some_and(|spec| {
        spec.iter().all(|(axis, from, to, _)| {
            shape[*axis].known().is_some() && from.known().is_some() && to.known().is_some()
        })
    });
    let Some(spec) = spec.filter(|_| known) else {
        let gradient = slice_at_run_time(step, &gradient, x, &shape)?;
        return only(step, gradient);
    };
    let mut pads = vec![(0, 0); shape.len()];
    for (axis, from, to, stride) in spec {
        let (Some(size), Some(from), Some(to)) = (shape[axis].known(), from.known(), to.known()) else {
            continue;
        };
        let (mut first, _, count) = slice_bounds(size, from, to, stride);
        if count == 0 {
            return Ok(vec![None; step.node.inputs.len()]);
        }
        if stride < 0 {
            gradient = step.b.slice(&gradient, axis, -1, -(1 << 30), -1);
            first += (count - 1) * stride;
        }
        let mut taken = count;
        if stride.abs() > 1 && count > 1 {
            gradient = stuff(step, &gradient, axis, count, stride.abs())?;
            taken = (count - 1) * stride.abs() + 1;
        }
        pads[axis] = (first, size - first - taken);
    }
    let gradient = pad_zeros(step, &gradient, &pads);
    only(step, gradient)
}

/// `stride - 1` zeros between neighbours along an axis of `count` elements.
fn stuff(step: &mut Step<'_>, value: &str, axis: usize, count: i64, stride: i64) -> Result<Value> {
    let shape = step.shape(value)?;
    let wide = step.b.unsqueeze(value, &[axis as i64 + 1]);
    let mut pads = vec![(0, 0); shape.len() + 1];
    pads[axis + 1] = (0, stride - 1);
    let wide = pad_zeros(step, &wide, &pads);
    let mut target: Vec<i64> = (0..shape.len()).map(|i| shape[i].known().unwrap_or(-1)).collect();
    target[axis] = count * stride;
    if target.iter().filter(|&&n| n == -1).count() > 1 {
        return Err(step.unknown_shape("the size of all axes but one"));
    }
    let merged = step.b.reshape(&wide, &target);
    Ok(step.b.slice(&merged, axis, 0, (count - 1) * stride + 1, 1))
}

pub(super) fn pad_zeros(step: &mut Step<'_>, value: &str, pads: &[(i64, i64)]) -> Value {
    if pads.iter().all(|&p| p == (0, 0)) {
        return Value::named(value);
    }
    let flat: Vec<i64> = pads.iter().map(|p| p.0).chain(pads.iter().map(|p| p.1)).collect();
    let pads = step.b.ints(&flat);
    step.b.op("Pad", &[value, &pads])
}

/// The same slice of `0, 1, 2, ..` says where every element came from.
fn slice_at_run_time(step: &mut Step<'_>, dy: &str, x: &str, shape: &[Dim]) -> Result<Value> {
    let facts = step.facts();
    let axes: Vec<i64> = match step.node.input(3) {
        Some(_) => {
            facts.get(3).and_then(|f| f.known_content()).ok_or_else(|| step.unknown_shape("constant axes"))?
        }
        None => {
            let count = facts.get(1).and_then(|f| f.shape.as_ref()?.first()?.known());
            let count = count.filter(|&n| n <= shape.len() as i64);
            (0..count.ok_or_else(|| step.unknown_shape("the number of its axes"))?).collect()
        }
    };
    let mut gradient = Value::named(dy);
    let mut sizes: Vec<Dim> = step.shape(dy)?;
    if sizes.len() != shape.len() {
        return Err(step.malformed("its output has another rank than its input"));
    }
    for (i, &axis) in axes.iter().enumerate().rev() {
        let axis = normalise_axis(axis, shape.len()).ok_or_else(|| step.malformed("its axes do not fit"))?;
        let attributes = [("start", Attribute::Int(axis as i64)), ("end", Attribute::Int(axis as i64 + 1))];
        let size = step.b.op_with("Shape", &[x], &attributes);
        let scalar = step.b.squeeze(&size, &[0]);
        let [zero, one] = [0, 1].map(|v| step.b.constant(crate::TensorData::i64(&[], &[v])));
        let places = step.b.op("Range", &[&zero, &scalar, &one]);
        let pick = |step: &mut Step<'_>, k: usize| -> Result<Option<Value>> {
            match step.node.input(k) {
                None => Ok(None),
                Some(name) => Ok(Some(step.b.slice(name, 0, i as i64, i as i64 + 1, 1))),
            }
        };
        let (from, to, stride) = (pick(step, 1)?, pick(step, 2)?, pick(step, 4)?);
        let (Some(from), Some(to)) = (from, to) else { return Err(step.malformed("it has no bounds")) };
        let front = step.b.ints(&[0]);
        let stride = stride.unwrap_or_else(|| step.b.ints(&[1]));
        let picked = step.b.op("Slice", &[&places, &from, &to, &front, &stride]);
        sizes[axis] = shape[axis].clone();
        gradient = super::index::scatter_axis(step, &gradient, &picked, x, axis, &sizes)?;
    }
    Ok(gradient)
}

pub(super) fn expand(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let gradient = step.b.sum_to(&dy, x)?;
    only(step, gradient)
}

/// Copies get axes of their own, which are summed.
pub(super) fn tile(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let shape = step.shape(x)?;
    let repeats = step
        .facts()
        .get(1)
        .and_then(|f| f.known_content())
        .ok_or_else(|| step.unknown_shape("constant repeats"))?;
    let (mut apart, mut copies) = (Vec::new(), Vec::new());
    for (dim, repeat) in shape.iter().zip(&repeats) {
        if *repeat != 1 {
            copies.push(apart.len() as i64);
            apart.push(*repeat);
        }
        apart.push(dim.known().unwrap_or(-1));
    }
    if apart.iter().filter(|&&n| n == -1).count() > 1 {
        return Err(step.unknown_shape("the size of all axes but one"));
    }
    let wide = step.b.reshape(&dy, &apart);
    let gradient = step.b.reduce_sum(&wide, &copies, false);
    only(step, gradient)
}

pub(super) fn pad(step: &mut Step<'_>) -> Gradients {
    let (mut gradient, x) = (step.dy()?, step.x(0)?);
    let shape = step.shape(x)?;
    let spec = pad_spec(step.node, &step.facts(), shape.len())?
        .ok_or_else(|| step.unknown_shape("constant pads"))?;
    let mode = step.node.string("mode", "constant").to_string();
    for (axis, &(before, after)) in spec.iter().enumerate() {
        if (before, after) == (0, 0) {
            continue;
        }
        if mode == "constant" {
            let to = if after > 0 { -after } else { END };
            if before > 0 || after > 0 {
                gradient = step.b.slice(&gradient, axis, before.max(0), to, 1);
            }
            // Negative padding cut elements off: they get nothing.
            let mut pads = vec![(0, 0); shape.len()];
            pads[axis] = ((-before).max(0), (-after).max(0));
            gradient = pad_zeros(step, &gradient, &pads);
            continue;
        }
        let size = step.size(x, axis)?;
        if size < 1 {
            return Err(step.malformed(format!("mode '{mode}' cannot pad an axis of size {size}")));
        }
        step.table(&[before.max(0) + size + after.max(0)])?;
        let map = padding(&mode, size, before, after)
            .ok_or_else(|| step.not_differentiable(format!("mode '{mode}' is not known")))?;
        gradient = map.transposed(step, &gradient, axis)?;
    }
    only(step, gradient)
}

pub(super) fn resize(step: &mut Step<'_>) -> Gradients {
    let (mut gradient, x, y) = (step.dy()?, step.x(0)?, step.y()?);
    let node = step.node;
    let rank = step.shape(x)?.len();
    if node.int("antialias", 0) != 0 {
        return Err(step.not_differentiable("antialias has no rule; export the model without it"));
    }
    if node.string("keep_aspect_ratio_policy", "stretch") != "stretch" && node.input(3).is_some() {
        return Err(
            step.not_differentiable("keep_aspect_ratio_policy has no rule; export the model with scales")
        );
    }
    let resampling = Resampling::of(node);
    let axes: Vec<usize> = match node.ints("axes") {
        Some(axes) => axes.iter().filter_map(|&a| normalise_axis(a, rank)).collect(),
        None => (0..rank).collect(),
    };
    let scales = step.facts().get(2).and_then(|f| f.constant.as_ref()).map(|t| t.to_f64());
    let mut maps: Vec<(usize, LinearMap)> = Vec::new();
    for (i, &axis) in axes.iter().enumerate() {
        let given = scales.as_ref().and_then(|s| s.get(i)).copied();
        let same = step.shape(x)?[axis].same(&step.shape(y)?[axis]);
        if given == Some(1.0) || (given.is_none() && same) {
            continue;
        }
        let (size, resized) = (step.size(x, axis)?, step.size(y, axis)?);
        if size < 1 {
            return Err(step.malformed(format!("it resizes an axis of size {size}")));
        }
        step.table(&[size])?;
        step.table(&[resized])?;
        let scale = given.unwrap_or(resized as f64 / size as f64);
        let rows = resampling
            .rows(size as usize, resized as usize, scale)
            .map_err(|what| step.not_differentiable(format!("{what}, so there is no rule")))?;
        maps.push((axis, LinearMap { inputs: size as usize, rows }));
    }
    if let Some(summed) = sum_repeats(step, &gradient, x, &maps)? {
        return only(step, summed);
    }
    for (axis, map) in maps {
        gradient = map.transposed(step, &gradient, axis)?;
    }
    only(step, gradient)
}

/// Where every element was repeated a whole number of times, blocks are summed.
fn sum_repeats(step: &mut Step<'_>, dy: &str, x: &str, maps: &[(usize, LinearMap)]) -> Result<Option<Value>> {
    let shape = step.shape(x)?;
    if let Some(blocks) = blocks_of_images(step, shape.len(), maps) {
        // A mean over blocks is one pass over memory in every engine; a sum over two axes of six is not.
        let attributes = [("kernel_shape", blocks.clone().into()), ("strides", blocks.clone().into())];
        let mean = step.b.op_with("AveragePool", &[dy], &attributes);
        return Ok(Some(step.b.scale(&mean, blocks.iter().product::<i64>() as f64)));
    }
    let (mut apart, mut copies) = (Vec::new(), Vec::new());
    for (axis, dim) in shape.iter().enumerate() {
        apart.push(dim.known().unwrap_or(-1));
        if let Some((_, map)) = maps.iter().find(|(a, _)| *a == axis) {
            let Some(times) = map.repeats() else { return Ok(None) };
            copies.push(apart.len() as i64);
            apart.push(times as i64);
        }
    }
    if apart.iter().filter(|&&n| n == -1).count() > 1 {
        return Ok(None);
    }
    let wide = step.b.reshape(dy, &apart);
    Ok(Some(step.b.reduce_sum(&wide, &copies, false)))
}

/// How often each pixel of an image (`[n, c, h, w]`) was repeated along its axes, where nothing else was resized.
fn blocks_of_images(step: &Step<'_>, rank: usize, maps: &[(usize, LinearMap)]) -> Option<Vec<i64>> {
    let single = step.y().is_ok_and(|y| step.b.fact(y).dtype == Some(DType::F32));
    if rank != 4 || !single || maps.iter().any(|(axis, _)| *axis < 2) {
        return None;
    }
    let times = |axis: usize| match maps.iter().find(|(a, _)| *a == axis) {
        Some((_, map)) => map.repeats().map(|times| times as i64),
        None => Some(1),
    };
    Some(vec![times(2)?, times(3)?])
}

/// What an element was added to lies on its other side.
pub(super) fn cumsum(step: &mut Step<'_>) -> Gradients {
    let (dy, axis) = (step.dy()?, step.x(1)?);
    let attributes = [
        ("exclusive", Attribute::Int(step.node.int("exclusive", 0))),
        ("reverse", Attribute::Int(i64::from(step.node.int("reverse", 0) == 0))),
    ];
    let gradient = step.b.op_with("CumSum", &[&dy, axis], &attributes);
    only(step, gradient)
}

pub(super) fn trilu(step: &mut Step<'_>) -> Gradients {
    let dy = step.dy()?;
    let upper = [("upper", Attribute::Int(step.node.int("upper", 1)))];
    let inputs: Vec<&str> = std::iter::once(&*dy).chain(step.node.input(1)).collect();
    let gradient = step.b.op_with("Trilu", &inputs, &upper);
    only(step, gradient)
}
