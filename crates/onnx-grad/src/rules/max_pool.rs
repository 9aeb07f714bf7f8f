//! Maximum pools: the gradient goes to the first of the largest elements of a window, in row-major order.
//!
//! That is PyTorch's choice, and it matters: after a ReLU, or where an image is black, whole windows are equal. With the
//! taps `x_0, x_1, ..` of a window in that order, its maximum `y` and its gradient `dy`, tap `t` gets
//!
//! ```text
//! g_t = [x_t = y] (dy - g_0 - .. - g_(t-1))
//! ```
//!
//! where the bracket is `dy` until a tap was equal and exactly 0 from there on; the last tap gets what is left. A tap of
//! all windows is a slice of the input, so this is a handful of passes over memory, and it asks nothing of an engine but
//! arithmetic. `ArgMax` takes the first of equals as well, but not on every engine; it is used where taps are too many to
//! write out, and engines that disagree have to put it right.

use super::conv::{adjoint, one_hot_kernels, unfold};
use super::pool::plain_window;
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim};
use crate::shapes::Window;
use crate::tensor::{DType, TensorData};

/// More taps than these (3x3x3) are chosen from by `ArgMax`.
const MAX_TAPS: i64 = 27;

pub(super) fn max_pool(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (window, sizes, places) = plain_window(step, x)?;
    let taps = step.table(&window.kernel)? as i64;
    let known: Option<Vec<i64>> = places.iter().map(Dim::known).collect();
    let sent = match known {
        Some(places) if taps <= MAX_TAPS => {
            let shares = share_out(step, &dy, x, &window, &places)?;
            if window.tiles(&sizes) {
                return join_tiles(step, shares, &window, &places, x);
            }
            let wide: Vec<Value> = shares.iter().map(|share| step.b.unsqueeze(share, &[2])).collect();
            step.b.concat(&wide.iter().map(|v| &**v).collect::<Vec<&str>>(), 2)
        }
        _ if window.tiles(&sizes) => return many_tiles(step, &dy, x, &window, &sizes),
        _ => many_taps(step, &dy, x, &window)?,
    };
    // Every place sends its taps back to where they came from; windows that overlap add up.
    let channels = step.size(x, 1)?;
    let back = match places.iter().map(Dim::known).collect::<Option<Vec<i64>>>() {
        Some(places) => {
            let shape: Vec<i64> = [0, channels * taps].into_iter().chain(places).collect();
            step.b.reshape(&sent, &shape)
        }
        None => {
            let shape = step.b.op("Shape", &[&dy]);
            let front = step.b.ints(&[0, channels * taps]);
            let tail = step.b.slice(&shape, 0, 2, i64::from(i32::MAX), 1);
            let shape = step.b.concat(&[&front, &tail], 0);
            step.b.op("Reshape", &[&sent, &shape])
        }
    };
    let kernels = one_hot_kernels(step, x, channels, &window)?;
    let gradient = adjoint(step, &back, x, &kernels, &window, channels, &sizes, &places)?;
    Ok(vec![Some(gradient)])
}

/// What each tap gets of `dy`, in row-major order of the taps.
fn share_out(step: &mut Step<'_>, dy: &str, x: &str, window: &Window, places: &[i64]) -> Result<Vec<Value>> {
    let (rank, y) = (window.rank(), step.y()?);
    let dtype = step.b.fact(dy).dtype.unwrap_or(DType::F32);
    let padded = pad_lowest(step, x, window);
    let axes: Vec<i64> = (2..2 + rank as i64).collect();
    let [axes, strides] = [&axes, &window.strides].map(|v| step.b.ints(v));
    let taps = step.table(&window.kernel)?;
    let mut left = Value::named(dy);
    let mut shares = Vec::with_capacity(taps);
    for tap in 0..taps.saturating_sub(1) {
        let mut rest = tap as i64;
        let mut from = vec![0; rank];
        for i in (0..rank).rev() {
            from[i] = (rest % window.kernel[i]).saturating_mul(window.dilations[i]);
            rest /= window.kernel[i];
        }
        let reach = |i: usize| (places[i] - 1).saturating_mul(window.strides[i]).saturating_add(1);
        let to: Vec<i64> = (0..rank).map(|i| from[i].saturating_add(reach(i))).collect();
        let [from, to] = [&from, &to].map(|v| step.b.ints(v));
        let values = step.b.op("Slice", &[&padded, &from, &to, &axes, &strides]);
        let equal = step.b.op("Equal", &[&values, y]);
        let mask = step.b.cast(&equal, dtype);
        let share = step.b.mul(&mask, &left);
        left = step.b.sub(&left, &share);
        shares.push(share);
    }
    shares.push(left);
    Ok(shares)
}

/// Taps of windows that tile the input, put side by side: `[n, c, p1, p2, ..]` each to `[n, c, p1 k1, p2 k2, ..]`.
fn join_tiles(
    step: &mut Step<'_>,
    mut shares: Vec<Value>,
    window: &Window,
    places: &[i64],
    x: &str,
) -> Gradients {
    let channels = step.size(x, 1)?;
    let mut shape: Vec<i64> = [0, channels].into_iter().chain(places.iter().copied()).collect();
    for i in (0..window.rank()).rev() {
        shape[2 + i] = shape[2 + i].saturating_mul(window.kernel[i]);
        let mut joined = Vec::new();
        for group in shares.chunks(window.kernel[i] as usize) {
            let apart: Vec<Value> = group.iter().map(|v| step.b.unsqueeze(v, &[3 + i as i64])).collect();
            let parts = step.b.concat(&apart.iter().map(|v| &**v).collect::<Vec<&str>>(), 3 + i as i64);
            joined.push(step.b.reshape(&parts, &shape));
        }
        shares = joined;
    }
    Ok(vec![shares.pop()])
}

/// `[n, c, taps, places]`: the windows are laid out by one-hot kernels, and `ArgMax` finds the element.
fn many_taps(step: &mut Step<'_>, dy: &str, x: &str, window: &Window) -> Result<Value> {
    let (rank, channels) = (window.rank(), step.size(x, 1)?);
    let taps = step.table(&window.kernel)? as i64;
    let padded = pad_lowest(step, x, window);
    let mut unpadded = window.clone();
    (unpadded.before, unpadded.after) = (vec![0; rank], vec![0; rank]);
    let windows = unfold(step, &padded, channels, &unpadded)?;
    let windows = step.b.reshape(&windows, &[0, channels, taps, -1]);
    let chosen = choose(step, &windows, 2, dy, taps, 4)?;
    let flat = step.b.reshape(dy, &[0, channels, 1, -1]);
    Ok(step.b.mul(&chosen, &flat))
}

/// Where windows of many taps tile the input, they are axes of their own after a reshape.
fn many_tiles(step: &mut Step<'_>, dy: &str, x: &str, window: &Window, sizes: &[Dim]) -> Gradients {
    let rank = window.rank();
    let channels = step.size(x, 1)?;
    let taps = step.table(&window.kernel)? as i64;
    // [n, c, p1, k1, p2, k2, ..] to [n, c, p1, p2, .., k1 k2 ..]
    let places: Vec<i64> = (0..rank).map(|i| sizes[i].known().unwrap_or(0) / window.kernel[i]).collect();
    let mut split = vec![0, channels];
    (0..rank).for_each(|i| split.extend([places[i], window.kernel[i]]));
    let perm: Vec<usize> =
        [0, 1].into_iter().chain((0..rank).map(|i| 2 + 2 * i)).chain((0..rank).map(|i| 3 + 2 * i)).collect();
    let apart = step.b.reshape(x, &split);
    let apart = step.b.transpose(&apart, &perm);
    let mut tiled = vec![0, channels];
    tiled.extend(&places);
    let flat: Vec<i64> = tiled.iter().copied().chain([taps]).collect();
    let windows = step.b.reshape(&apart, &flat);
    let chosen = choose(step, &windows, 2 + rank, dy, taps, 3 + rank)?;
    let wide = step.b.unsqueeze(dy, &[-1]);
    let sent = step.b.mul(&chosen, &wide);
    let folded: Vec<i64> = tiled.iter().copied().chain(window.kernel.iter().copied()).collect();
    let sent = step.b.reshape(&sent, &folded);
    let mut inverse = vec![0; perm.len()];
    perm.iter().enumerate().for_each(|(to, &from)| inverse[from] = to);
    let sent = step.b.transpose(&sent, &inverse);
    Ok(vec![Some(step.b.reshape_like(&sent, x))])
}

/// `1` at the first largest element along `axis` of `taps` elements, else `0`.
fn choose(
    step: &mut Step<'_>,
    windows: &str,
    axis: usize,
    like: &str,
    taps: i64,
    rank: usize,
) -> Result<Value> {
    let attributes = [("axis", Attribute::Int(axis as i64)), ("keepdims", Attribute::Int(1))];
    let winner = step.b.op_with("ArgMax", &[windows], &attributes);
    let mut shape = vec![1; rank];
    shape[axis] = taps as usize;
    let positions: Vec<i64> = (0..step.table(&[taps])? as i64).collect();
    let positions = step.b.constant(TensorData::i64(&shape, &positions));
    let mask = step.b.op("Equal", &[&winner, &positions]);
    let dtype = step.b.fact(like).dtype.unwrap_or(DType::F32);
    Ok(step.b.cast(&mask, dtype))
}

/// Padding must never win: the lowest number, still finite because 0 times infinity is not 0.
fn pad_lowest(step: &mut Step<'_>, x: &str, window: &Window) -> Value {
    if window.before.iter().chain(&window.after).all(|&p| p == 0) {
        return Value::named(x);
    }
    let mut pads = vec![0, 0];
    pads.extend(&window.before);
    pads.extend([0, 0]);
    pads.extend(&window.after);
    let pads = step.b.ints(&pads);
    let lowest = step.b.scalar_like(x, f64::from(f32::MIN));
    step.b.op_with("Pad", &[x, &pads, &lowest], &[("mode", "constant".into())])
}

/// The first largest element of every channel.
pub(super) fn global_max_pool(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let rank = step.shape(x)?.len();
    let sizes = (2..rank).map(|i| step.size(x, i)).collect::<Result<Vec<_>>>()?;
    let count = step.table(&sizes)? as i64;
    let flat = step.b.reshape(x, &[0, 0, -1]);
    let chosen = choose(step, &flat, 2, &dy, count, 3)?;
    let gradient = step.b.reshape(&dy, &[0, 0, 1]);
    let sent = step.b.mul(&chosen, &gradient);
    Ok(vec![Some(step.b.reshape_like(&sent, x))])
}
