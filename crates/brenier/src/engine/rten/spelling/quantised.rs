//! Arithmetic of 8-bit integers.

use onnx_grad::{Attribute, Builder, DType, Node, Value};

use super::{input, refusal};
use crate::error::Result;

/// Scales lie along axis 1 where nothing is said; RTen takes the last.
pub(super) fn quantize(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    if node.attributes.contains_key("axis") {
        return Ok(None);
    }
    let inputs: Vec<&str> = node.inputs.iter().map(String::as_str).collect();
    let named = node.attributes.iter().map(|(name, value)| (name.as_str(), value.clone()));
    let attributes: Vec<(&str, Attribute)> = named.chain([("axis", 1i64.into())]).collect();
    Ok(Some(b.op_with("QuantizeLinear", &inputs, &attributes)))
}

/// An 8-bit tensor as floats, less its zero point in the shape of `[.., 1]` by `trailing` axes.
fn centred(b: &mut Builder, node: &Node, data: usize, zero: usize, trailing: &[i64]) -> Result<Value> {
    let x = input(node, data)?;
    let x = b.cast(x, DType::F32);
    let Some(zero) = node.input(zero) else { return Ok(x) };
    let rank = b.fact(zero).rank();
    let single = b.shape(zero).is_some_and(|s| s.iter().all(|d| d.known() == Some(1)));
    let zero = b.cast(zero, DType::F32);
    let zero = match rank {
        Some(1) if !trailing.is_empty() && !single => b.unsqueeze(&zero, trailing),
        Some(1) if single => b.reshape(&zero, &[]),
        Some(_) => zero,
        None => return Err(refusal(node, "the shape of its zero point is not known")),
    };
    Ok(b.sub(&x, &zero))
}

/// Whole numbers below 2^24 are exact in float32, sums of 8-bit products of a few hundred terms always are.
pub(super) fn conv_integer(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let rank = node.input(1).and_then(|w| b.fact(w).rank());
    let rank = rank.ok_or_else(|| refusal(node, "the shape of its weights is not known"))? as i64;
    let features: Vec<i64> = (1..rank).collect();
    let x = centred(b, node, 0, 2, &[])?;
    let w = centred(b, node, 1, 3, &features)?;
    let attributes: Vec<(&str, Attribute)> =
        node.attributes.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let y = b.op_with("Conv", &[&x, &w], &attributes);
    Ok(Some(b.cast(&y, DType::I32)))
}

pub(super) fn matmul_integer(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    // A zero point for each row of the left, for each column of the right.
    let left = centred(b, node, 0, 2, &[1])?;
    let right = centred(b, node, 1, 3, &[])?;
    let y = b.matmul(&left, &right);
    Ok(Some(b.cast(&y, DType::I32)))
}

/// To bytes, with the scale and zero point that just cover the data and 0:
///
/// ```text
/// scale = (max(x, 0) - min(x, 0)) / 255, or 1 where that is 0;   zero = round(-min(x, 0) / scale)
/// ```
///
/// RTen returns a scale of 0 for zeros.
pub(super) fn dynamic_quantize(b: &mut Builder, node: &Node) -> Result<Vec<Value>> {
    let x = input(node, 0)?;
    let flat = b.reshape(x, &[-1]);
    let extreme = |b: &mut Builder, reduce: &str, with: &str| {
        let zero = b.scalar_like(x, 0.0);
        let all = b.op_with(reduce, &[&flat], &[("keepdims", 0i64.into())]);
        b.op(with, &[&all, &zero])
    };
    let (low, high) = (extreme(b, "ReduceMin", "Min"), extreme(b, "ReduceMax", "Max"));
    let range = b.sub(&high, &low);
    let (none, most) = (b.scalar_like(x, 0.0), b.scalar_like(x, 255.0));
    let scale = b.div(&range, &most);
    let (flat_line, one) = (b.op("Equal", &[&range, &none]), b.scalar_like(x, 1.0));
    let scale = b.select(&flat_line, &one, &scale);
    let below = b.neg(&low);
    let zero = b.div(&below, &scale);
    let zero = b.op("Clip", &[&zero, &none, &most]);
    let zero = b.op("Round", &[&zero]);
    let zero = b.cast(&zero, DType::U8);
    let bytes = b.op_with("QuantizeLinear", &[x, &scale, &zero], &[("axis", 0i64.into())]);
    Ok(vec![bytes, scale, zero])
}
