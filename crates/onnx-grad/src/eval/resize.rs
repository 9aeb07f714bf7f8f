//! `Resize`: each output coordinate is a weighted mean of input positions, one axis after the other.

use super::Array;
use super::call::Call;
use super::elementwise::fit;
use super::walk::around;
use crate::error::Result;
use crate::resample::{Resampling, scaled};

/// One axis to be resized.
struct Axis {
    input: usize,
    output: usize,
    scale: f64,
}

pub(super) fn resize(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    if call.node.int("antialias", 0) != 0 {
        return Err(call.unsupported("antialiasing is not implemented"));
    }
    let mut shape = x.shape().to_vec();
    let mut values = x.values().into_owned();
    let axes = axes(call, x)?;
    let resampling = Resampling::of(call.node);
    call.room(&axes.iter().map(|a| a.output).collect::<Vec<_>>())?;
    for (i, axis) in axes.into_iter().enumerate() {
        if axis.input == axis.output && axis.scale == 1.0 {
            continue;
        }
        if axis.input == 0 {
            return Err(call.malformed("an empty axis has nothing to resize"));
        }
        let rows =
            resampling.rows(axis.input, axis.output, axis.scale).map_err(|what| call.unsupported(what))?;
        let (outer, length, inner) = around(&shape, i);
        shape[i] = axis.output;
        let mut out = Vec::with_capacity(call.room(&shape)?);
        for o in 0..outer {
            for row in &rows {
                for k in 0..inner {
                    let at = |source: usize| values[(o * length + source) * inner + k];
                    out.push(row.iter().map(|&(source, w)| w * at(source)).sum());
                }
            }
        }
        values = out;
    }
    call.array(x.dtype, &shape, values.into_iter().map(|v| fit(x.dtype, v)).collect())
}

/// Sizes and scales of all axes, from `scales` or `sizes`.
fn axes(call: &Call, x: &Array) -> Result<Vec<Axis>> {
    let rank = x.shape().len();
    let named = match call.node.ints("axes") {
        Some(axes) => call.axes(axes, rank)?,
        None => (0..rank).collect(),
    };
    let mut axes: Vec<Axis> = x.shape().iter().map(|&n| Axis { input: n, output: n, scale: 1.0 }).collect();
    let scales = call.optional(2).filter(|s| !s.data.is_empty());
    let sizes = call.optional(3).filter(|s| !s.data.is_empty());
    let Some(numbers) = scales.or(sizes) else {
        return Err(call.malformed("it has neither scales nor sizes"));
    };
    if numbers.data.len() != named.len() {
        return Err(call.malformed(format!(
            "{} scales or sizes for {} axes",
            numbers.data.len(),
            named.len()
        )));
    }
    for (&i, &number) in named.iter().zip(numbers.data.iter()) {
        let axis = &mut axes[i];
        if scales.is_some() {
            if !(number > 0.0 && number.is_finite()) {
                return Err(call.malformed(format!("a scale of {number}")));
            }
            axis.scale = number;
            axis.output = call.size(scaled(axis.input as i64, number))?;
        } else {
            axis.output = call.size(number as i64)?;
            axis.scale = axis.output as f64 / axis.input as f64;
        }
    }
    let ratios = || named.iter().map(|&i| axes[i].scale);
    let ratio = match call.node.string("keep_aspect_ratio_policy", "stretch") {
        _ if scales.is_some() => None,
        "not_larger" => Some(ratios().fold(f64::INFINITY, f64::min)),
        "not_smaller" => Some(ratios().fold(0.0, f64::max)),
        _ => None,
    };
    if let Some(ratio) = ratio {
        for &i in &named {
            axes[i].scale = ratio;
            axes[i].output = (axes[i].input as f64 * ratio).round() as usize;
        }
    }
    Ok(axes)
}
