//! `Resize` and `ConvTranspose`.

use onnx_grad::{Attribute, Builder, DType, Dim, Node, Value, resize_by_axes};

use super::refusal;
use crate::error::Result;

pub(super) fn resize(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    if rten_resizes(b, node) {
        return Ok(None);
    }
    match resize_by_axes(b, node) {
        Ok(value) => Ok(Some(value)),
        // Sizes that are known only when it runs: RTen's way is right but for single pixels of odd sizes.
        Err(_) if followed(node) && node.ints("axes").is_none() && plain_mode(node) => Ok(None),
        Err(why) => Err(refusal(node, format!("RTen does not compute it as ONNX says, and {why}"))),
    }
}

fn plain_mode(node: &Node) -> bool {
    matches!(node.string("mode", "nearest"), "nearest" | "linear")
}

/// Whether RTen has the coordinates.
fn followed(node: &Node) -> bool {
    let known = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"];
    known.contains(&node.string("coordinate_transformation_mode", "half_pixel"))
}

/// Whether RTen resizes as ONNX says: two axes at the end, interpolated linearly or by powers of two.
fn rten_resizes(b: &Builder, node: &Node) -> bool {
    let fact = node.input(0).map(|x| b.fact(x));
    let Some(rank) = fact.and_then(|fact| fact.rank()) else { return false };
    let scales = node.input(2).and_then(|s| b.fact(s).constant.as_ref()).map(|t| t.to_f64());
    let sizes = node.input(3).and_then(|s| b.fact(s).known_content());
    let from = fact.and_then(|fact| fact.shape.clone()).unwrap_or_default();
    let scales: Option<Vec<f64>> = scales.filter(|s| !s.is_empty()).or_else(|| {
        let sizes = sizes?;
        let known = |d: &Dim| d.known().map(|n| n as f64);
        from.iter().zip(&sizes).map(|(d, &to)| Some(to as f64 / known(d)?)).collect()
    });
    let Some(scales) = scales.filter(|s| s.len() == rank) else { return false };
    let at_the_end = scales.iter().take(rank.saturating_sub(2)).all(|&s| s == 1.0);
    let doubles = scales.iter().all(|s| s.log2().fract() == 0.0);
    let plain = match node.string("mode", "nearest") {
        "nearest" => doubles,
        "linear" => true,
        _ => false,
    };
    let float = fact.and_then(|fact| fact.dtype) == Some(DType::F32);
    float && (3..=4).contains(&rank) && at_the_end && plain && followed(node) && node.ints("axes").is_none()
}

/// Padding in numbers, where it is asked for by the output's size.
pub(super) fn conv_transpose(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let automatic = node.string("auto_pad", "NOTSET");
    let wanted = node.ints("output_shape");
    if wanted.is_none() && !automatic.starts_with("SAME") {
        return Ok(None);
    }
    let sizes = |i: usize| -> Option<Vec<i64>> {
        b.shape(node.input(i)?)?.get(2..)?.iter().map(Dim::known).collect()
    };
    let (Some(x), Some(kernel)) = (sizes(0), sizes(1)) else {
        return Err(refusal(
            node,
            "RTen does not pad it as ONNX says, and its sizes are not known before it runs",
        ));
    };
    let axes = x.len();
    let each = |name: &str, default: i64, axis: usize| {
        node.ints(name).and_then(|values| values.get(axis).copied()).unwrap_or(default)
    };
    let mut pads = vec![0; 2 * axes];
    for axis in 0..axes {
        let stride = each("strides", 1, axis);
        let full = (x[axis] - 1) * stride
            + (kernel[axis] - 1) * each("dilations", 1, axis)
            + 1
            + each("output_padding", 0, axis);
        // Some writers give batch and channels too.
        let size = match wanted {
            Some(wanted) => wanted.len().checked_sub(axes - axis).and_then(|i| wanted.get(i).copied()),
            None => Some(x[axis] * stride),
        };
        let Some(total) = size.map(|size| full - size).filter(|total| *total >= 0) else {
            return Err(refusal(node, "its output is larger than what it reaches"));
        };
        let (less, more) = (total / 2, total - total / 2);
        let upper = automatic == "SAME_UPPER";
        (pads[axis], pads[axes + axis]) = if upper { (less, more) } else { (more, less) };
    }
    let kept = node
        .attributes
        .iter()
        .filter(|(name, _)| !["auto_pad", "output_shape", "pads"].contains(&name.as_str()));
    let mut attributes: Vec<(&str, Attribute)> =
        kept.map(|(name, value)| (name.as_str(), value.clone())).collect();
    attributes.push(("pads", pads.into()));
    let inputs: Vec<&str> = node.inputs.iter().map(String::as_str).collect();
    Ok(Some(b.op_with("ConvTranspose", &inputs, &attributes)))
}
