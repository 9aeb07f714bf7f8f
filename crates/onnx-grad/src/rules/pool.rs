//! Average pools, and the windows of all pools.
//!
//! A pool is a convolution with fixed weights (average) or with weights that the data chose (maximum). Its
//! gradient is therefore a transposed convolution with constant or one-hot kernels, a channel at a time.

use super::conv::adjoint;
use super::reduce::spread_evenly;
use super::{Gradients, Step};
use crate::build::Value;
use crate::error::Result;
use crate::graph::Dim;
use crate::shapes::Window;
use crate::tensor::{DType, TensorData};

/// The window with its padding worked out and no `ceil_mode`: rows that the last place reaches beyond the
/// padding are added to the padding.
pub(super) fn plain_window(step: &Step<'_>, x: &str) -> Result<(Window, Vec<Dim>, Vec<Dim>)> {
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
