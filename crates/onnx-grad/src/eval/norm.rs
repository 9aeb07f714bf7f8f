//! Normalisation.

use super::Array;
use super::call::Call;
use super::walk::{Walk, along, broadcast_strides, offset, spread, strides};
use crate::error::Result;

fn epsilon(call: &Call) -> f64 {
    f64::from(call.node.float("epsilon", 1e-5))
}

/// Mean and (biased) variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n)
}

/// An input with one number per channel.
fn per_channel(call: &Call, i: usize, channels: usize) -> Result<Vec<f64>> {
    let array = call.input(i)?;
    match array.shape() == [channels] {
        true => Ok(array.values().into_owned()),
        false => Err(call.malformed(format!(
            "input {i} has shape {:?}, not one number for each of {channels} channels",
            array.shape()
        ))),
    }
}

/// (x - mean) / sqrt(variance + epsilon) * scale + bias per channel; in training mode with the moments of
/// the batch, which then also move the running ones.
pub(super) fn batch(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    call.rank(x, 1)?;
    // A vector is a batch of one channel.
    let (batch, channels) = (x.shape()[0], x.shape().get(1).copied().unwrap_or(1));
    let inner: usize = x.shape().iter().skip(2).product();
    let (scale, bias) = (per_channel(call, 1, channels)?, per_channel(call, 2, channels)?);
    let (mut mean, mut variance) = (per_channel(call, 3, channels)?, per_channel(call, 4, channels)?);
    let mut values = x.values().into_owned();
    let at = |n: usize, c: usize| (n * channels + c) * inner;
    let mut running = None;
    if call.node.int("training_mode", 0) != 0 {
        let momentum = f64::from(call.node.float("momentum", 0.9));
        let (mut running_mean, mut running_variance) = (mean.clone(), variance.clone());
        for c in 0..channels {
            let all: Vec<f64> =
                (0..batch).flat_map(|n| values[at(n, c)..at(n, c) + inner].to_vec()).collect();
            (mean[c], variance[c]) = moments(&all);
            running_mean[c] = momentum * running_mean[c] + (1.0 - momentum) * mean[c];
            running_variance[c] = momentum * running_variance[c] + (1.0 - momentum) * variance[c];
        }
        running = Some((running_mean, running_variance));
    }
    for n in 0..batch {
        for c in 0..channels {
            let factor = scale[c] / (variance[c] + epsilon(call)).sqrt();
            for v in &mut values[at(n, c)..at(n, c) + inner] {
                *v = (*v - mean[c]) * factor + bias[c];
            }
        }
    }
    let mut outputs = vec![call.array(x.dtype, x.shape(), values)?];
    if let Some((mean, variance)) = running {
        let dtype = call.input(3)?.dtype;
        outputs.push(call.array(dtype, &[channels], mean)?);
        outputs.push(call.array(dtype, &[channels], variance)?);
    }
    Ok(outputs)
}

/// Normalises each chunk of `size` values in place.
fn standardise(values: &mut [f64], size: usize, epsilon: f64) {
    for chunk in values.chunks_exact_mut(size.max(1)) {
        let (mean, variance) = moments(chunk);
        chunk.iter_mut().for_each(|v| *v = (*v - mean) / (variance + epsilon).sqrt());
    }
}

/// Every plane of every sample on its own.
pub(super) fn instance(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    call.rank(x, 2)?;
    let channels = x.shape()[1];
    let (scale, bias) = (per_channel(call, 1, channels)?, per_channel(call, 2, channels)?);
    let plane: usize = x.shape()[2..].iter().product();
    let mut values = x.values().into_owned();
    standardise(&mut values, plane, epsilon(call));
    for (i, chunk) in values.chunks_exact_mut(plane.max(1)).enumerate() {
        let c = i % channels;
        chunk.iter_mut().for_each(|v| *v = *v * scale[c] + bias[c]);
    }
    call.array(x.dtype, x.shape(), values)
}

/// Groups of channels of every sample; scale and bias per group (opset 18) or per channel (opset 21).
pub(super) fn group(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    call.rank(x, 2)?;
    let channels = x.shape()[1];
    let count = call.node.int("num_groups", 0);
    let groups = usize::try_from(count)
        .ok()
        .filter(|&g| g > 0 && channels % g == 0)
        .ok_or_else(|| call.malformed(format!("{channels} channels in {count} groups")))?;
    let parts = if call.input(1)?.shape() == [channels] { channels } else { groups };
    let (scale, bias) = (per_channel(call, 1, parts)?, per_channel(call, 2, parts)?);
    let plane: usize = x.shape()[2..].iter().product();
    let mut values = x.values().into_owned();
    standardise(&mut values, plane * (channels / groups), epsilon(call));
    for (i, chunk) in values.chunks_exact_mut(plane.max(1)).enumerate() {
        let part = i % channels / (channels / parts);
        chunk.iter_mut().for_each(|v| *v = *v * scale[part] + bias[part]);
    }
    call.array(x.dtype, x.shape(), values)
}

/// The first normalised axis, the size of what is normalised together, and the shape of its moments.
fn trailing(call: &Call, x: &Array) -> Result<(usize, Vec<usize>)> {
    let axis = call.axis(call.node.int("axis", -1), x.shape().len())?;
    let mut shape = x.shape().to_vec();
    shape[axis..].fill(1);
    Ok((x.shape()[axis..].iter().product(), shape))
}

/// All axes from `axis` on together; also the mean and the inverse standard deviation.
pub(super) fn layer(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let (size, moments_shape) = trailing(call, x)?;
    let scale = spread(call, call.input(1)?, x.shape())?;
    let bias = call.optional(2).map(|b| spread(call, b, x.shape())).transpose()?;
    let mut values = x.values().into_owned();
    let (mut means, mut inverses) = (Vec::new(), Vec::new());
    for chunk in values.chunks_exact_mut(size.max(1)) {
        let (mean, variance) = moments(chunk);
        let inverse = 1.0 / (variance + epsilon(call)).sqrt();
        chunk.iter_mut().for_each(|v| *v = (*v - mean) * inverse);
        means.push(mean);
        inverses.push(inverse);
    }
    for (i, v) in values.iter_mut().enumerate() {
        *v = *v * scale[i] + bias.as_ref().map_or(0.0, |b| b[i]);
    }
    if size == 0 {
        let groups = call.room(&moments_shape)?;
        (means, inverses) = (vec![f64::NAN; groups], vec![f64::NAN; groups]);
    }
    Ok(vec![
        call.array(x.dtype, x.shape(), values)?,
        call.array(x.dtype, &moments_shape, means)?,
        call.array(x.dtype, &moments_shape, inverses)?,
    ])
}

/// x / sqrt(mean of x² + epsilon) * scale, over all axes from `axis` on.
pub(super) fn rms(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let (size, _) = trailing(call, x)?;
    let scale = spread(call, call.input(1)?, x.shape())?;
    let mut values = x.values().into_owned();
    for chunk in values.chunks_exact_mut(size.max(1)) {
        let mean = chunk.iter().map(|v| v * v).sum::<f64>() / size as f64;
        chunk.iter_mut().for_each(|v| *v /= (mean + epsilon(call)).sqrt());
    }
    values.iter_mut().zip(scale).for_each(|(v, s)| *v *= s);
    call.array(x.dtype, x.shape(), values)
}

/// Divides by the 1- or 2-norm along an axis; zero where the norm is.
pub(super) fn lp(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let axis = call.axis(call.node.int("axis", -1), x.shape().len())?;
    let p = call.node.int("p", 2);
    let values = along(x, axis, |lane| {
        let norm = match p {
            1 => lane.iter().map(|v| v.abs()).sum::<f64>(),
            _ => lane.iter().map(|v| v * v).sum::<f64>().sqrt(),
        };
        lane.iter().map(|v| if norm == 0.0 { 0.0 } else { v / norm }).collect()
    });
    call.array(x.dtype, x.shape(), values)
}

/// x / (bias + alpha / size * sum of x² over `size` neighbouring channels)^beta
pub(super) fn local_response(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    call.rank(x, 2)?;
    let size = call.size(call.node.int("size", 0))?.max(1);
    let number = |name: &str, default: f32| f64::from(call.node.float(name, default));
    let (alpha, beta, bias) = (number("alpha", 1e-4), number("beta", 0.75), number("bias", 1.0));
    let values = along(x, 1, |lane| {
        (0..lane.len())
            .map(|c| {
                let from = c.saturating_sub((size - 1) / 2);
                let to = c.saturating_add(size - (size - 1) / 2).min(lane.len());
                let squares: f64 = lane[from..to].iter().map(|v| v * v).sum();
                lane[c] / (bias + alpha / size as f64 * squares).powf(beta)
            })
            .collect()
    });
    call.array(x.dtype, x.shape(), values)
}

/// (x - mean) / (standard deviation + 1e-9) over `axes`.
pub(super) fn mean_variance(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let axes = call.axes(call.node.ints("axes").unwrap_or(&[0, 2, 3]), x.shape().len())?;
    let mut shape = x.shape().to_vec();
    axes.iter().for_each(|&a| shape[a] = 1);
    let steps = broadcast_strides(&shape, x.shape());
    let own = strides(x.shape());
    let mut values = x.values().into_owned();
    let mut groups = vec![Vec::new(); call.room(&shape)?];
    let mut walk = Walk::new(x.shape());
    while let Some(index) = walk.step() {
        groups[offset(index, &steps)].push(offset(index, &own));
    }
    for members in groups {
        let (mean, variance) = moments(&members.iter().map(|&i| values[i]).collect::<Vec<_>>());
        members.iter().for_each(|&i| values[i] = (values[i] - mean) / (variance.sqrt() + 1e-9));
    }
    call.array(x.dtype, x.shape(), values)
}
