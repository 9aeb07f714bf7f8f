//! `Resize`: each output coordinate is a weighted mean of input positions, one axis after the other.

use super::Array;
use super::call::Call;
use super::elementwise::fit;
use super::walk::around;
use crate::error::Result;

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
    call.room(&axes.iter().map(|a| a.output).collect::<Vec<_>>())?;
    for (i, axis) in axes.into_iter().enumerate() {
        if axis.input == axis.output && axis.scale == 1.0 {
            continue;
        }
        if axis.input == 0 {
            return Err(call.malformed("an empty axis has nothing to resize"));
        }
        let weights = (0..axis.output).map(|o| weights(call, &axis, o)).collect::<Result<Vec<_>>>()?;
        let (outer, length, inner) = around(&shape, i);
        shape[i] = axis.output;
        let mut out = Vec::with_capacity(call.room(&shape)?);
        for o in 0..outer {
            for weights in &weights {
                for k in 0..inner {
                    let at = |source: usize| values[(o * length + source) * inner + k];
                    out.push(weights.iter().map(|&(source, w)| w * at(source)).sum());
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
            // In float32, as everywhere: 3 times the float32 nearest to 7/3 must be 7.
            axis.output = (axis.input as f32 * number as f32).floor() as usize;
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

/// Where an output coordinate lies on the input's axis.
fn coordinate(call: &Call, axis: &Axis, o: usize) -> Result<f64> {
    let (o, scale) = (o as f64, axis.scale);
    let (input, output) = (axis.input as f64, axis.output as f64);
    let half_pixel = (o + 0.5) / scale - 0.5;
    Ok(match call.node.string("coordinate_transformation_mode", "half_pixel") {
        "half_pixel" => half_pixel,
        "half_pixel_symmetric" => {
            // The output has a whole number of pixels; what is cut off is cut on both sides.
            let adjustment = output / (scale * input);
            input / 2.0 * (1.0 - adjustment) + half_pixel
        }
        "pytorch_half_pixel" if axis.output > 1 => half_pixel,
        "pytorch_half_pixel" => 0.0,
        "align_corners" if axis.output > 1 => o * (input - 1.0) / (output - 1.0),
        "align_corners" => 0.0,
        "asymmetric" => o / scale,
        "tf_half_pixel_for_nn" => (o + 0.5) / scale,
        other => {
            return Err(
                call.unsupported(format!("coordinate_transformation_mode '{other}' is not implemented"))
            );
        }
    })
}

/// The input positions that an output coordinate is made of, with their weights.
fn weights(call: &Call, axis: &Axis, o: usize) -> Result<Vec<(usize, f64)>> {
    let x = coordinate(call, axis, o)?;
    let last = axis.input as f64 - 1.0;
    let clamped = |at: f64| at.clamp(0.0, last) as usize;
    match call.node.string("mode", "nearest") {
        "nearest" => {
            // Rounded to float32, so that 3 / 0.6 is 5 for the float32 nearest to 0.6 too.
            let x = f64::from(x as f32);
            let at = match call.node.string("nearest_mode", "round_prefer_floor") {
                "round_prefer_floor" => (x - 0.5).ceil(),
                "round_prefer_ceil" => (x + 0.5).floor(),
                "floor" => x.floor(),
                "ceil" => x.ceil(),
                other => return Err(call.malformed(format!("nearest_mode is '{other}'"))),
            };
            Ok(vec![(clamped(at), 1.0)])
        }
        "linear" => {
            let x = x.clamp(0.0, last);
            let low = x.floor();
            Ok(vec![(clamped(low), 1.0 - (x - low)), (clamped(low + 1.0), x - low)])
        }
        "cubic" => {
            let a = f64::from(call.node.float("cubic_coeff_a", -0.75));
            let low = x.floor();
            let taps = (-1..=2).map(|k| low + f64::from(k)).map(|at| (at, cubic((x - at).abs(), a)));
            if call.node.int("exclude_outside", 0) == 0 {
                return Ok(taps.map(|(at, w)| (clamped(at), w)).collect());
            }
            let inside: Vec<(f64, f64)> = taps.filter(|(at, _)| (0.0..=last).contains(at)).collect();
            let sum: f64 = inside.iter().map(|(_, w)| w).sum();
            Ok(inside.into_iter().map(|(at, w)| (at as usize, w / sum)).collect())
        }
        other => Err(call.malformed(format!("mode is '{other}'"))),
    }
}

/// Keys' cubic convolution kernel at distance `d`.
fn cubic(d: f64, a: f64) -> f64 {
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}
