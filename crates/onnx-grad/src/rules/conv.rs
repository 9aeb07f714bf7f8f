//! Convolutions.
//!
//! With `y = W * x` (`*` the correlation that networks call convolution), `W` of shape
//! `[out, in / groups, k...]`:
//!
//! - `dx` is the transposed convolution of `dy` with `W`. Without strides that is a convolution with the
//!   weights flipped, and in and out exchanged, which engines run fastest.
//! - `dW` is the correlation of `x` with `dy`, where strides and dilations exchange their roles.
//!
//! A transposed convolution is the same the other way round.

use super::conv_weights::weight_gradient;
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim};
use crate::shapes::{Window, conv_window};
use crate::tensor::{DType, TensorData};

pub(super) type Attributes = Vec<(&'static str, Attribute)>;

/// The attributes of a convolution with this window.
pub(super) fn attributes(window: &Window, groups: i64) -> Attributes {
    vec![
        ("strides", window.strides.clone().into()),
        ("dilations", window.dilations.clone().into()),
        ("pads", window.pads().into()),
        ("group", groups.into()),
        ("kernel_shape", window.kernel.clone().into()),
    ]
}

fn window(step: &Step<'_>, x: &str) -> Result<Window> {
    let unknown = || step.unknown_shape("the sizes of its input and kernel");
    let window = conv_window(step.node, step.b.fact(step.x(1)?))?.ok_or_else(unknown)?;
    window.resolved(&step.spatial(x, window.rank())?).ok_or_else(unknown)
}

/// The number of groups, which must divide the first axis of the weights.
fn groups(step: &Step<'_>, w: &str) -> Result<i64> {
    let groups = step.node.int("group", 1);
    let rows = step.b.shape(w).and_then(|s| s.first()).and_then(Dim::known);
    match groups > 0 && rows.is_none_or(|rows| rows % groups == 0) {
        true => Ok(groups),
        false => Err(step.malformed(format!("its weights do not make {groups} groups"))),
    }
}

pub(super) fn conv(step: &mut Step<'_>) -> Gradients {
    let (dy, x, w) = (step.dy()?, step.x(0)?, step.x(1)?);
    let window = window(step, x)?;
    let groups = groups(step, w)?;
    let mut sent = vec![None; step.node.inputs.len()];
    if step.wants(0) {
        sent[0] = Some(input_gradient(step, &dy, x, w, &window, groups)?);
    }
    if step.wants(1) {
        sent[1] = Some(weight_gradient(step, x, &dy, w, &window, groups)?);
    }
    if step.wants(2) {
        sent[2] = Some(bias_gradient(step, &dy, window.rank()));
    }
    Ok(sent)
}

fn bias_gradient(step: &mut Step<'_>, dy: &str, spatial: usize) -> Value {
    let axes: Vec<i64> = std::iter::once(0).chain(2..2 + spatial as i64).collect();
    step.b.reduce_sum(dy, &axes, false)
}

fn input_gradient(
    step: &mut Step<'_>,
    dy: &str,
    x: &str,
    w: &str,
    window: &Window,
    groups: i64,
) -> Result<Value> {
    let rank = window.rank();
    if let Some(back) = window.back() {
        let flipped = flip_and_exchange(step, w, window, groups)?;
        return Ok(step.b.op_with("Conv", &[dy, &flipped], &attributes(&back, groups)));
    }
    let (sizes, places) = (step.spatial(x, rank)?, step.spatial(dy, rank)?);
    adjoint(step, dy, x, w, window, groups, &sizes, &places)
}

/// The transposed convolution that takes places back to sizes.
///
/// Rows at the end that no window reached come back as padding of the output; where sizes are symbols,
/// as much as there can be is made, and what is too much cut off when the graph runs.
#[allow(clippy::too_many_arguments)] // All of them say what to transpose; a struct would only rename them.
pub(super) fn adjoint(
    step: &mut Step<'_>,
    dy: &str,
    x: &str,
    w: &str,
    window: &Window,
    groups: i64,
    sizes: &[Dim],
    places: &[Dim],
) -> Result<Value> {
    let missing = |i: usize| match (&sizes[i], window.transposed_size(i, &places[i], 0)) {
        (Dim::Known(size), Dim::Known(reached)) => Some(size - reached),
        _ => None,
    };
    let known: Option<Vec<i64>> = (0..window.rank()).map(missing).collect();
    let mut back = window.clone();
    let padding = match &known {
        Some(missing) => missing.iter().map(|m| (*m).max(0)).collect(),
        None => window.strides.iter().map(|s| s - 1).collect::<Vec<i64>>(),
    };
    if let Some(missing) = &known {
        for i in 0..window.rank() {
            // A pool in ceil mode may reach beyond the padding.
            back.after[i] += (-missing[i]).max(0);
        }
    }
    let mut attributes = attributes(&back, groups);
    // Engines want output padding below the stride: more of it is zeros anyway.
    let within: Vec<i64> = padding.iter().zip(&window.strides).map(|(p, s)| (*p).min(s - 1)).collect();
    attributes.push(("output_padding", within.clone().into()));
    let mut gradient = step.b.op_with("ConvTranspose", &[dy, w], &attributes);
    if padding != within {
        let rest: Vec<i64> = padding.iter().zip(&within).map(|(p, w)| p - w).collect();
        let mut pads = vec![0; window.rank() + 4];
        pads.extend(rest);
        let pads = step.b.ints(&pads);
        gradient = step.b.op("Pad", &[&gradient, &pads]);
    }
    if known.is_none() {
        let shape = step.b.op("Shape", &[x]);
        let sizes = step.b.slice(&shape, 0, 2, i64::from(i32::MAX), 1);
        let starts = step.b.ints(&vec![0; window.rank()]);
        let axes: Vec<i64> = (2..2 + window.rank() as i64).collect();
        let axes = step.b.ints(&axes);
        gradient = step.b.op("Slice", &[&gradient, &starts, &sizes, &axes]);
    }
    Ok(gradient)
}

/// `[out, in / g, k...]` to `[in, out / g, k...]`, every kernel turned around.
fn flip_and_exchange(step: &mut Step<'_>, w: &str, window: &Window, groups: i64) -> Result<Value> {
    let exchanged = exchange_in_out(step, w, groups, window.rank())?;
    let turned: Vec<i64> =
        (0..window.rank() as i64).filter(|&i| window.kernel[i as usize] > 1).map(|i| i + 2).collect();
    if turned.is_empty() {
        return Ok(exchanged);
    }
    let all = |v: i64| vec![v; turned.len()];
    let [from, to, steps] = [-1, -(1 << 30), -1].map(|v| step.b.ints(&all(v)));
    let axes = step.b.ints(&turned);
    Ok(step.b.op("Slice", &[&exchanged, &from, &to, &axes, &steps]))
}

fn exchange_in_out(step: &mut Step<'_>, w: &str, groups: i64, rank: usize) -> Result<Value> {
    let spatial: Vec<usize> = (2..2 + rank).collect();
    if groups == 1 {
        return Ok(step.b.transpose(w, &[&[1, 0], spatial.as_slice()].concat()));
    }
    let shape: Vec<i64> = (0..2 + rank).map(|i| step.size(w, i)).collect::<Result<_>>()?;
    let (out, inner) = (shape[0] / groups, shape[1]);
    if out == 1 && inner == 1 {
        return Ok(Value::named(w));
    }
    let grouped = step.b.reshape(w, &[&[groups, out, inner], &shape[2..]].concat());
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..3 + rank).collect();
    let exchanged = step.b.transpose(&grouped, &perm);
    Ok(step.b.reshape(&exchanged, &[&[groups * inner, out], &shape[2..]].concat()))
}

/// One-hot kernels: channel `c * taps + t` of the result is tap `t` of the windows of channel `c`.
pub(super) fn one_hot_kernels(
    step: &mut Step<'_>,
    like: &str,
    channels: i64,
    window: &Window,
) -> Result<Value> {
    let taps = step.table(&window.kernel)? as i64;
    let dtype = step.b.fact(like).dtype.unwrap_or(DType::F32);
    let mut weights = vec![0.0; step.table(&[channels, taps, taps])?];
    for row in 0..(channels * taps) as usize {
        weights[row * taps as usize + row % taps as usize] = 1.0;
    }
    let mut shape = vec![(channels * taps) as usize, 1];
    shape.extend(window.kernel.iter().map(|&k| k as usize));
    Ok(step.b.constant(TensorData::from_f64(dtype, &shape, &weights)))
}

/// `[n, c, sizes...]` to `[n, c * taps, places...]`.
pub(super) fn unfold(step: &mut Step<'_>, x: &str, channels: i64, window: &Window) -> Result<Value> {
    let plain = |sizes: &[i64], size: i64| sizes.iter().all(|&s| s == size);
    let unpadded = plain(&window.before, 0) && plain(&window.after, 0);
    if unpadded && plain(&window.kernel, 1) && plain(&window.strides, 1) {
        return Ok(Value::named(x));
    }
    let kernels = one_hot_kernels(step, x, channels, window)?;
    Ok(step.b.op_with("Conv", &[x, &kernels], &attributes(window, channels)))
}

pub(super) fn conv_transpose(step: &mut Step<'_>) -> Gradients {
    let (dy, x, w) = (step.dy()?, step.x(0)?, step.x(1)?);
    let groups = groups(step, w)?;
    let window = transposed_window(step, x)?;
    let mut sent = vec![None; step.node.inputs.len()];
    if step.wants(0) {
        // The weights are those of the convolution from wide to narrow, as they stand.
        let gradient = step.b.op_with("Conv", &[&dy, w], &attributes(&window, groups));
        sent[0] = Some(gradient);
    }
    if step.wants(1) {
        sent[1] = Some(weight_gradient(step, &dy, x, w, &window, groups)?);
    }
    if step.wants(2) {
        sent[2] = Some(bias_gradient(step, &dy, window.rank()));
    }
    Ok(sent)
}

/// The window with the padding that a transposed convolution really used.
fn transposed_window(step: &Step<'_>, x: &str) -> Result<Window> {
    let mut window = conv_window(step.node, step.b.fact(step.x(1)?))?
        .ok_or_else(|| step.unknown_shape("the size of its kernel"))?;
    let mode = step.node.string("auto_pad", "NOTSET");
    let rank = window.rank();
    if step.node.ints("output_shape").is_none() && !mode.starts_with("SAME") {
        return window.resolved(&vec![Dim::Unknown; rank]).ok_or_else(|| step.unknown_shape("its padding"));
    }
    let extra = |i: usize| step.node.ints("output_padding").and_then(|e| e.get(i)).copied().unwrap_or(0);
    let y = step.y()?;
    for i in 0..rank {
        let (from, to) = (step.size(x, 2 + i)?, step.size(y, 2 + i)?);
        let total = (window.strides[i] * (from - 1))
            .saturating_add(extra(i))
            .saturating_add(window.extent(i) - to)
            .clamp(0, 1 << 40);
        let small = total / 2;
        (window.before[i], window.after[i]) =
            if mode == "SAME_UPPER" { (small, total - small) } else { (total - small, small) };
    }
    Ok(window)
}
