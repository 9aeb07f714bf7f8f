//! Pooling.

use super::Array;
use super::call::Call;
use super::elementwise::{larger, lowest};
use super::window::Windows;
use crate::error::Result;
use crate::tensor::DType;

/// The windows of a pooling node, with the number of planes (batch times channels) and the output shape.
fn windows(call: &Call, x: &Array) -> Result<(Windows, usize, Vec<usize>)> {
    call.rank(x, 3)?;
    let Some(kernel) = call.node.ints("kernel_shape") else {
        return Err(call.malformed("attribute 'kernel_shape' is missing"));
    };
    let windows = Windows::new(call, &x.shape()[2..], call.sizes(kernel)?)?;
    let mut shape = x.shape()[..2].to_vec();
    shape.extend(&windows.output);
    call.room(&shape)?;
    call.work(&[call.room(&shape)?, call.room(&windows.kernel)?])?;
    Ok((windows, x.shape()[0] * x.shape()[1], shape))
}

/// The largest value of each window, and where in the input it lies.
pub(super) fn max_pool(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let (windows, planes, shape) = windows(call, x)?;
    let pixels: usize = windows.input.iter().product();
    let positions: usize = windows.output.iter().product();
    let values = x.values();
    let column_major = call.node.int("storage_order", 0) != 0;
    let mut largest = vec![lowest(x.dtype); planes * positions];
    let mut places = vec![0.0; planes * positions];
    windows.each(|position, taps| {
        for plane in 0..planes {
            let mut best: Option<usize> = None;
            for &(pixel, _) in taps {
                let pixel = plane * pixels + pixel;
                if best.is_none_or(|b| values[pixel] > values[b]) {
                    best = Some(pixel);
                }
            }
            if let Some(best) = best {
                let at = plane * positions + position;
                largest[at] = values[best];
                let pixel =
                    if column_major { transposed(best % pixels, &windows.input) } else { best % pixels };
                places[at] = (plane * pixels + pixel) as f64;
            }
        }
    });
    Ok(vec![call.array(x.dtype, &shape, largest)?, call.array(DType::I64, &shape, places)?])
}

/// A row-major offset as the column-major one of the same position.
fn transposed(mut pixel: usize, shape: &[usize]) -> usize {
    let mut steps = vec![1; shape.len()];
    for axis in 1..shape.len() {
        steps[axis] = steps[axis - 1] * shape[axis - 1];
    }
    let mut place = 0;
    for axis in (0..shape.len()).rev() {
        place += pixel % shape[axis] * steps[axis];
        pixel /= shape[axis];
    }
    place
}

/// `AveragePool` and `LpPool`.
pub(super) fn mean_pool(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let (windows, planes, shape) = windows(call, x)?;
    let pixels: usize = windows.input.iter().product();
    let positions: usize = windows.output.iter().product();
    let values = x.values();
    let p = (call.node.op == "LpPool").then(|| call.node.int("p", 2) as f64);
    let padded = (call.node.int("count_include_pad", 0) != 0).then(|| windows.padded_counts());
    let mut out = vec![0.0; planes * positions];
    windows.each(|position, taps| {
        let count = padded.as_ref().map_or(taps.len(), |counts| counts[position]) as f64;
        for plane in 0..planes {
            let at = |&(pixel, _): &(usize, usize)| values[plane * pixels + pixel];
            out[plane * positions + position] = match p {
                Some(p) => taps.iter().map(|t| at(t).abs().powf(p)).sum::<f64>().powf(1.0 / p),
                None => taps.iter().map(at).sum::<f64>() / count,
            };
        }
    });
    call.array(x.dtype, &shape, out)
}

/// Pooling over all spatial axes at once.
pub(super) fn global(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let rank = call.rank(x, 2)?;
    let mut shape = x.shape()[..2].to_vec();
    let pixels: usize = x.shape()[2..].iter().product();
    shape.resize(rank, 1);
    let values = x.values();
    let p = call.node.int("p", 2) as f64;
    let pool = |plane: &[f64]| match call.node.op.as_str() {
        "GlobalMaxPool" => plane.iter().copied().fold(f64::NEG_INFINITY, larger),
        "GlobalLpPool" => plane.iter().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p),
        _ => plane.iter().sum::<f64>() / pixels as f64,
    };
    let planes = x.shape()[0] * x.shape()[1];
    let out = (0..planes).map(|i| pool(&values[i * pixels..(i + 1) * pixels])).collect();
    call.array(x.dtype, &shape, out)
}
