//! The gradient of a convolution's weights, in the form that suits the engine.

use std::ops::Range;

use super::Step;
use super::conv::{Attributes, attributes, unfold};
use super::layout::pad_zeros;
use crate::build::Value;
use crate::error::Result;
use crate::graph::Dim;
use crate::shapes::Window;
use crate::step::WeightGradient;

/// Kernels with more taps than this would make more nodes than is good for an engine.
const MOST_TAPS: i64 = 121;

/// More elements than an image can have.
const LONGEST_RUN: i64 = 1 << 40;

/// The gradient of `w` where `dy = w * x`, `x` the wide side and `dy` the side with a place per window.
pub(super) fn weight_gradient(
    step: &mut Step<'_>,
    x: &str,
    dy: &str,
    w: &str,
    window: &Window,
    groups: i64,
) -> Result<Value> {
    match step.weight_gradient {
        WeightGradient::TransposedConv if groups == 1 => transposed_conv(step, x, dy, w, window),
        _ => im2col(step, x, dy, w, window, groups),
    }
}

/// `dW[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, s p + d k]`: a correlation over the batch.
fn transposed_conv(step: &mut Step<'_>, x: &str, dy: &str, w: &str, window: &Window) -> Result<Value> {
    let rank = window.rank();
    let perm: Vec<usize> = [1, 0].into_iter().chain(2..2 + rank).collect();
    let (images, filters) = (step.b.transpose(x, &perm), step.b.transpose(dy, &perm));
    let mut across = window.clone();
    (across.strides, across.dilations) = (window.dilations.clone(), window.strides.clone());
    // The filter is the output's gradient, of whatever size that has.
    let attributes: Attributes =
        attributes(&across, 1).into_iter().filter(|(name, _)| *name != "kernel_shape").collect();
    let mut gradient = step.b.op_with("Conv", &[&images, &filters], &attributes);
    // Rows that no window reached make the result too long.
    let kernel = &window.kernel;
    let shape = step.shape(&gradient)?;
    if (0..rank).any(|i| shape[2 + i].known() != Some(kernel[i])) {
        let (zeros, ends) = (step.b.ints(&vec![0; rank]), step.b.ints(kernel));
        let axes: Vec<i64> = (2..2 + rank as i64).collect();
        let axes = step.b.ints(&axes);
        gradient = step.b.op("Slice", &[&gradient, &zeros, &ends, &axes]);
    }
    let gradient = step.b.transpose(&gradient, &perm);
    Ok(step.b.reshape_like(&gradient, w))
}

/// Matrix products of windows and gradient: a tap at a time where that is possible, else every window as a column, then
/// a product for each group.
///
/// ```text
/// dW[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, s p + d k - before]
/// ```
fn im2col(step: &mut Step<'_>, x: &str, dy: &str, w: &str, window: &Window, groups: i64) -> Result<Value> {
    let taps = step.table(&window.kernel)? as i64;
    if let (1, 1..=MOST_TAPS, Some(back)) = (groups, taps, window.back()) {
        return by_taps(step, x, dy, w, window, &back);
    }
    let channels = step.size(x, 1)?;
    let (out, inner) = (step.size(w, 0)? / groups, step.size(w, 1)?);
    let columns = unfold(step, x, channels, window)?;
    let columns = step.b.reshape(&columns, &[0, groups, inner * taps, -1]);
    let columns = step.b.transpose(&columns, &[0, 1, 3, 2]);
    let grads = step.b.reshape(dy, &[0, groups, out, -1]);
    let products = step.b.matmul(&grads, &columns);
    let gradient = step.b.reduce_sum(&products, &[0], false);
    let shape: Vec<i64> = [out * groups, inner].iter().chain(&window.kernel).copied().collect();
    Ok(step.b.reshape(&gradient, &shape))
}

/// Without strides and groups, `dW[.., k]` is one product of image and gradient, moved against each other by the tap
/// `k`, over all places of the whole batch at once.
///
/// ```text
/// dW[o, i, k] = sum over n, p of dy[n, o, p] x[n, i, p + d k - before]
///             = sum over n, r, q of dy[n, o, r - d a + before, q] x[n, i, r, q + d b - before],   k = (a, b)
/// ```
///
/// The gradient is moved along the first axis and the image along the others, so that a kernel of 3x3 takes three copies
/// of each, of which one each is not moved and need not be copied. Columns of all taps would be nine copies, and a
/// product for each row of the batch would have to be summed. With channels first in the gradient and last in the image,
/// products are of matrices as they stand, and what is copied are long runs of neighbours.
fn by_taps(step: &mut Step<'_>, x: &str, dy: &str, w: &str, window: &Window, back: &Window) -> Result<Value> {
    let (out, inner) = (step.size(w, 0)?, step.size(w, 1)?);
    let taps = step.table(&window.kernel)? as i64;
    let gradients = moved_gradients(step, dy, back, out)?;
    let images = moved_images(step, x, window, inner)?;
    let mut products = Vec::with_capacity(taps as usize);
    // Through the window back taps come in the opposite order.
    for gradient in gradients.iter().rev() {
        for image in &images {
            products.push(step.b.matmul(gradient, image));
        }
    }
    let products: Vec<&str> = products.iter().map(|product| &**product).collect();
    let products = step.b.concat(&products, 0);
    let products = step.b.reshape(&products, &[taps, out, inner]);
    let gradient = step.b.transpose(&products, &[1, 2, 0]);
    let shape: Vec<i64> = [out, inner].iter().chain(&window.kernel).copied().collect();
    Ok(step.b.reshape(&gradient, &shape))
}

/// The gradient as each tap along the first axis sees it, `[channels, places]`.
fn moved_gradients(step: &mut Step<'_>, dy: &str, window: &Window, channels: i64) -> Result<Vec<Value>> {
    let mut sizes = step.spatial(dy, window.rank())?;
    let perm: Vec<usize> = [1, 0].into_iter().chain(2..2 + window.rank()).collect();
    let mut image = step.b.transpose(dy, &perm);
    let taps = pads_of_taps(window, 0..1);
    let reach = taps.iter().map(|pads| pads[0].0.saturating_abs().max(pads[0].1.saturating_abs())).max();
    let mut line = 1;
    if let Some((places, width)) = whole_run(&sizes, reach.unwrap_or(0)) {
        line = width;
        sizes = vec![Dim::Known(places)];
        image = step.b.reshape(&image, &[0, -1, places]);
    }
    let mut copies = Vec::with_capacity(window.kernel[0] as usize);
    for pads in taps {
        let mut run = vec![(0, 0); sizes.len()];
        run[0] = (pads[0].0 * line, pads[0].1 * line);
        let copy = moved(step, &image, &sizes, 2, run);
        copies.push(step.b.reshape(&copy, &[channels, -1]));
    }
    Ok(copies)
}

/// All axes as one run that can be copied as a whole: its length, and that of a line, the axes behind the first. Only
/// where sizes are known and neither they nor what is added to them are beyond reason.
fn whole_run(sizes: &[Dim], reach: i64) -> Option<(i64, i64)> {
    let sizes: Vec<i64> = sizes.iter().map(Dim::known).collect::<Option<_>>()?;
    let line = sizes[1..].iter().try_fold(1i64, |n, &size| n.checked_mul(size))?;
    let places = sizes[0].checked_mul(line)?;
    (places > 0 && places < LONGEST_RUN && reach.checked_mul(line)? < LONGEST_RUN).then_some((places, line))
}

/// The image as each tap along the axes behind the first sees it, `[places, channels]`.
fn moved_images(step: &mut Step<'_>, x: &str, window: &Window, channels: i64) -> Result<Vec<Value>> {
    let sizes = step.spatial(x, window.rank())?;
    let perm: Vec<usize> = [0].into_iter().chain(2..2 + window.rank()).chain([1]).collect();
    let image = step.b.transpose(x, &perm);
    let mut copies = Vec::new();
    for pads in pads_of_taps(window, 1..window.rank()) {
        let copy = moved(step, &image, &sizes, 1, pads);
        copies.push(step.b.reshape(&copy, &[-1, channels]));
    }
    Ok(copies)
}

/// How each tap sees an image along some axes: zeros before and after it. What is less than nothing is cut off.
fn pads_of_taps(window: &Window, along: Range<usize>) -> Vec<Vec<(i64, i64)>> {
    let mut taps = vec![vec![(0, 0); window.rank()]];
    for i in along {
        let places = |pads: Vec<(i64, i64)>| {
            (0..window.kernel[i]).map(move |place| {
                let mut pads = pads.clone();
                let behind = window.kernel[i] - 1 - place;
                let pad = |pad: i64, taps: i64| pad - taps * window.dilations[i];
                pads[i] = (pad(window.before[i], place), pad(window.after[i], behind));
                pads
            })
        };
        taps = taps.into_iter().flat_map(places).collect();
    }
    taps
}

/// An image with zeros added, or elements cut off, at the ends of those of its axes that begin with `first`.
fn moved(step: &mut Step<'_>, image: &str, sizes: &[Dim], first: usize, mut pads: Vec<(i64, i64)>) -> Value {
    let all = |pads: &[(i64, i64)]| {
        let mut all = vec![(0, 0); first];
        all.extend(pads);
        all.resize(2 + sizes.len(), (0, 0));
        all
    };
    // Engines cut off no more than there is, which may come to be by padding alone.
    let small = |i: usize| sizes[i].known().is_none_or(|size| size < -pads[i].0.min(pads[i].1));
    let mut copy = Value::named(image);
    if (0..pads.len()).any(|i| pads[i] != (0, 0) && small(i)) {
        let wide: Vec<(i64, i64)> = pads.iter().map(|pad| (pad.0.max(0), pad.1.max(0))).collect();
        copy = pad_zeros(step, &copy, &all(&wide));
        pads.iter_mut().for_each(|pad| *pad = (pad.0.min(0), pad.1.min(0)));
    }
    pad_zeros(step, &copy, &all(&pads))
}
