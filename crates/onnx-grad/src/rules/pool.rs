//! Pools.
//!
//! A pool is a convolution with fixed weights (average) or with weights that the data chose (maximum). Its
//! gradient is therefore a transposed convolution with one-hot or constant kernels, a channel at a time.

use super::conv::{adjoint, one_hot_kernels, unfold};
use super::reduce::spread_evenly;
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Attribute, Dim};
use crate::shapes::Window;
use crate::tensor::{DType, TensorData};

/// The window with its padding worked out and no `ceil_mode`: rows that the last place reaches beyond the
/// padding are added to the padding.
fn plain_window(step: &Step<'_>, x: &str) -> Result<(Window, Vec<Dim>, Vec<Dim>)> {
    let window = Window::of(step.node, None)?;
    let sizes = step.spatial(x, window.rank())?;
    let mut window = window.resolved(&sizes).ok_or_else(|| step.unknown_shape("the sizes of its input"))?;
    let places: Vec<Dim> = sizes.iter().enumerate().map(|(i, d)| window.places(i, d)).collect();
    if window.ceil {
        for i in 0..window.rank() {
            let (Some(size), Some(count)) = (sizes[i].known(), places[i].known()) else {
                return Err(step.unknown_shape("the sizes of its input (ceil_mode)"));
            };
            let reach = (count - 1) * window.strides[i] + window.extent(i);
            window.after[i] = window.after[i].max(reach - size - window.before[i]);
        }
        window.ceil = false;
    }
    Ok((window, sizes, places))
}

/// The gradient goes to the first largest element of every window.
///
/// Windows are laid out by one-hot kernels, `ArgMax` finds the element, and the transpose of the same
/// kernels adds up what overlapping windows send to one place.
pub(super) fn max_pool(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (window, sizes, places) = plain_window(step, x)?;
    if window.tiles(&sizes) {
        return max_pool_tiles(step, &dy, x, &window, &sizes);
    }
    let (rank, channels) = (window.rank(), step.size(x, 1)?);
    let taps = step.table(&window.kernel)? as i64;
    // Padding must never win: the lowest number, still finite because 0 times infinity is not 0.
    let padded = pad_lowest(step, x, &window);
    let mut unpadded = window.clone();
    (unpadded.before, unpadded.after) = (vec![0; rank], vec![0; rank]);
    let windows = unfold(step, &padded, channels, &unpadded)?;
    let windows = step.b.reshape(&windows, &[0, channels, taps, -1]);
    let chosen = choose(step, &windows, 2, &dy, taps, 4)?;
    let flat = step.b.reshape(&dy, &[0, channels, 1, -1]);
    let sent = step.b.mul(&chosen, &flat);
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

/// Where windows tile the input, they are axes of their own after a reshape.
fn max_pool_tiles(step: &mut Step<'_>, dy: &str, x: &str, window: &Window, sizes: &[Dim]) -> Gradients {
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

/// Every element gets its share of every window it is in.
pub(super) fn average_pool(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let (window, sizes, places) = plain_window(step, x)?;
    let channels = step.size(x, 1)?;
    let dtype = step.b.fact(x).dtype.unwrap_or(DType::F32);
    let share = shares(step, &window, &sizes, &places, dtype)?;
    let scaled = step.b.mul(&dy, &share);
    let mut shape = vec![channels as usize, 1];
    shape.extend(window.kernel.iter().map(|&k| k as usize));
    let ones = vec![1.0; step.table(&[channels, step.table(&window.kernel)? as i64])?];
    let kernels = step.b.constant(TensorData::from_f64(dtype, &shape, &ones));
    let gradient = adjoint(step, &scaled, x, &kernels, &window, channels, &sizes, &places)?;
    Ok(vec![Some(gradient)])
}

/// One over the number of elements that each place averages.
fn shares(
    step: &mut Step<'_>,
    window: &Window,
    sizes: &[Dim],
    places: &[Dim],
    dtype: DType,
) -> Result<Value> {
    let taps = step.table(&window.kernel)?;
    let ceil = step.node.int("ceil_mode", 0) != 0;
    let padded = window.before.iter().chain(&window.after).any(|&p| p != 0);
    let include = step.node.int("count_include_pad", 0) != 0;
    if !padded || (include && !ceil) {
        return Ok(step.b.constant(TensorData::scalar(dtype, 1.0 / taps as f64)));
    }
    // Along each axis: how many taps of each place count. The count of a window is their product.
    let declared = Window::of(step.node, None)?
        .resolved(sizes)
        .ok_or_else(|| step.unknown_shape("the sizes of its input"))?;
    let mut share = step.b.constant(TensorData::scalar(dtype, 1.0));
    for i in 0..window.rank() {
        let (Some(size), Some(count)) = (sizes[i].known(), places[i].known()) else {
            return Err(step.unknown_shape("the sizes of its input (padding is not counted)"));
        };
        let (low, high) = if include { (-declared.before[i], size + declared.after[i]) } else { (0, size) };
        let counted = |place: i64| {
            let start = place * window.strides[i] - window.before[i];
            (0..window.kernel[i]).filter(|t| (low..high).contains(&(start + t * window.dilations[i]))).count()
        };
        step.table(&[count, window.kernel[i]])?;
        let values: Vec<f64> = (0..count).map(|p| 1.0 / counted(p).max(1) as f64).collect();
        let mut shape = vec![1; window.rank() + 2];
        shape[2 + i] = values.len();
        let along = step.b.constant(TensorData::from_f64(dtype, &shape, &values));
        share = step.b.mul(&share, &along);
    }
    Ok(share)
}

pub(super) fn global_average_pool(step: &mut Step<'_>) -> Gradients {
    let (dy, x) = (step.dy()?, step.x(0)?);
    let axes: Vec<i64> = (2..step.shape(x)?.len() as i64).collect();
    Ok(vec![Some(spread_evenly(step, &dy, x, &axes)?)])
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
