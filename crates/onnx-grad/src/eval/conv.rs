//! Convolution and its transpose, over any number of spatial axes.

use super::Array;
use super::call::Call;
use super::window::{Windows, extent, pads, per_axis, same_padding};
use crate::error::Result;

/// Batch, channels and spatial sizes of an array.
fn spatial<'a>(call: &Call, array: &'a Array) -> Result<(usize, usize, &'a [usize])> {
    call.rank(array, 3)?;
    Ok((array.shape()[0], array.shape()[1], &array.shape()[2..]))
}

/// The number of groups, which must divide the channels.
fn groups(call: &Call, channels: usize) -> Result<usize> {
    let groups = call.node.int("group", 1);
    usize::try_from(groups)
        .ok()
        .filter(|&g| g > 0 && channels.is_multiple_of(g))
        .ok_or_else(|| call.malformed(format!("{channels} channels in {groups} groups")))
}

/// The bias of every output channel, zero where it is left out.
fn bias(call: &Call, channels: usize) -> Result<Vec<f64>> {
    match call.optional(2) {
        None => Ok(vec![0.0; channels]),
        Some(b) if b.shape() == [channels] => Ok(b.values().into_owned()),
        Some(b) => Err(call.malformed(format!("a bias of shape {:?} for {channels} channels", b.shape()))),
    }
}

/// y\[n, m\] = b\[m\] + sum over c of w\[m, c\] correlated with x\[n, c\]
pub(super) fn conv(call: &Call) -> Result<Array> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let (batch, channels, input) = spatial(call, x)?;
    let (features, group_channels, kernel) = spatial(call, w)?;
    let groups = groups(call, channels)?;
    if group_channels != channels / groups || features % groups != 0 {
        return Err(call.malformed(format!(
            "weights of shape {:?} for {channels} channels in {groups} groups",
            w.shape()
        )));
    }
    if call
        .node
        .ints("kernel_shape")
        .is_some_and(|k| !k.iter().map(|&k| k as usize).eq(kernel.iter().copied()))
    {
        return Err(call.malformed(format!("kernel_shape is not that of the weights, {kernel:?}")));
    }
    let bias = bias(call, features)?;
    let windows = Windows::new(call, input, kernel.to_vec())?;
    let mut shape = vec![batch, features];
    shape.extend(&windows.output);
    let cells: usize = kernel.iter().product();
    call.work(&[call.room(&shape)?, group_channels.max(1), cells])?;
    let pixels: usize = input.iter().product();
    let positions: usize = windows.output.iter().product();
    let (xs, ws) = (x.values(), w.values());
    let mut out = vec![0.0; batch * features * positions];
    windows.each(|position, taps| {
        for n in 0..batch {
            for m in 0..features {
                let first = m / (features / groups) * group_channels;
                let mut sum = bias[m];
                for c in 0..group_channels {
                    let x = &xs[(n * channels + first + c) * pixels..];
                    let w = &ws[(m * group_channels + c) * cells..];
                    sum += taps.iter().map(|&(pixel, cell)| x[pixel] * w[cell]).sum::<f64>();
                }
                out[(n * features + m) * positions + position] = sum;
            }
        }
    });
    call.array(x.dtype, &shape, out)
}

/// The transpose of the convolution with the same attributes: every input position spreads its value,
/// times the kernel, over the output.
pub(super) fn conv_transpose(call: &Call) -> Result<Array> {
    let (x, w) = (call.input(0)?, call.input(1)?);
    let (batch, channels, input) = spatial(call, x)?;
    let (weight_channels, group_features, kernel) = spatial(call, w)?;
    let groups = groups(call, channels)?;
    if weight_channels != channels || kernel.len() != input.len() {
        return Err(call.malformed(format!("weights of shape {:?} for {channels} channels", w.shape())));
    }
    let features =
        groups.checked_mul(group_features).ok_or_else(|| call.malformed("too many output channels"))?;
    let bias = bias(call, features)?;
    let windows = transposed_windows(call, input, kernel)?;
    let mut shape = vec![batch, features];
    shape.extend(&windows.input);
    call.room(&shape)?;
    let cells: usize = kernel.iter().product();
    call.work(&[x.data.len(), group_features.max(1), cells])?;
    let pixels: usize = input.iter().product();
    let positions: usize = windows.input.iter().product();
    let (xs, ws) = (x.values(), w.values());
    let mut out: Vec<f64> = Vec::with_capacity(batch * features * positions);
    for _ in 0..batch {
        bias.iter().for_each(|&b| out.extend(std::iter::repeat_n(b, positions)));
    }
    windows.each(|pixel, taps| {
        for n in 0..batch {
            for c in 0..channels {
                let value = xs[(n * channels + c) * pixels + pixel];
                let first = c / (channels / groups) * group_features;
                for m in 0..group_features {
                    let w = &ws[(c * group_features + m) * cells..];
                    let out = &mut out[(n * features + first + m) * positions..];
                    taps.iter().for_each(|&(position, cell)| out[position] += value * w[cell]);
                }
            }
        }
    });
    call.array(x.dtype, &shape, out)
}

/// The windows of the convolution that is transposed: their input is our output.
fn transposed_windows(call: &Call, input: &[usize], kernel: &[usize]) -> Result<Windows> {
    let axes = input.len();
    let strides = per_axis(call, "strides", axes, 1, 1)?;
    let dilations = per_axis(call, "dilations", axes, 1, 1)?;
    let extra = per_axis(call, "output_padding", axes, 0, 0)?;
    let wanted = call.node.ints("output_shape").map(|shape| call.sizes(shape)).transpose()?;
    // Some writers give batch and channels too.
    let wanted = wanted.map(|shape| shape[shape.len().saturating_sub(axes)..].to_vec());
    if kernel.contains(&0) || wanted.as_ref().is_some_and(|s| s.len() != axes) {
        return Err(call.malformed("kernel or output_shape do not fit the input"));
    }
    let (mut begin, mut end) = pads(call, axes)?;
    let same = same_padding(call.node);
    let mut output = Vec::with_capacity(axes);
    for i in 0..axes {
        let full = input[i].saturating_sub(1) * strides[i] + extent(kernel[i], dilations[i]) + extra[i];
        let size =
            match (&wanted, same) {
                (Some(wanted), _) => wanted[i],
                (None, Some(_)) => input[i] * strides[i],
                (None, None) => {
                    output.push(full.checked_sub(begin[i] + end[i]).ok_or_else(|| {
                        call.malformed(format!("padding leaves nothing of an axis of {full}"))
                    })?);
                    continue;
                }
            };
        let total = full.saturating_sub(size);
        (begin[i], end[i]) = (total / 2, total - total / 2);
        if same != Some(true) {
            (begin[i], end[i]) = (end[i], begin[i]);
        }
        output.push(size);
    }
    Ok(Windows {
        kernel: kernel.to_vec(),
        strides,
        dilations,
        begin,
        end,
        input: output,
        output: input.to_vec(),
    })
}
