//! Operators that RTen 0.27 computes otherwise than ONNX says, written in others that it computes as ONNX says.
//!
//! | operator | what RTen does | what is done here |
//! |---|---|---|
//! | `Sign` | 1 at 0, where ONNX has 0 | `sign(x) = [x > 0] - [x < 0]` |
//! | `Resize` | cubic as linear; no `axes`; picks by `1 / scale`, one pixel off for some sizes | along each axis a matrix product or a `Gather` |
//! | `ConvInteger`, `MatMulInteger` | sums of 8-bit products saturate without VNNI, zero points of weights | in float32 |
//!
//! `tests/operators.rs` compares every operator with the reference; what it finds belongs here.

use onnx_grad::{Attribute, Builder, DType, Graph, Node, Value, resize_by_axes};

use super::Rten;
use crate::error::{Error, Result};

/// Whether a node must be looked at.
pub(super) fn concerns(node: &Node) -> bool {
    ["Sign", "Resize", "ConvInteger", "MatMulInteger"].iter().any(|op| node.is(op))
}

/// What takes the place of a node, or nothing where RTen computes it as it should.
pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Vec<Value>>> {
    let value = match node.op.as_str() {
        _ if !node.is_standard() => return Ok(None),
        "Sign" => sign(b, node),
        "Resize" => resize(b, node)?,
        "ConvInteger" => conv_integer(b, node)?,
        "MatMulInteger" => matmul_integer(b, node)?,
        _ => None,
    };
    Ok(value.map(|value| vec![value]))
}

/// Refuses what would be spelled out, inside bodies: their nodes stay as they are.
pub(super) fn refuse_bodies(graph: &Graph) -> Result<()> {
    for body in graph.nodes.iter().flat_map(Node::bodies) {
        if let Some(node) = body.nodes.iter().find(|node| concerns(node)) {
            return Err(refusal(node, "inside the body of another node RTen may compute it otherwise than ONNX says"));
        }
        refuse_bodies(body)?;
    }
    Ok(())
}

fn refusal(node: &Node, reason: impl Into<String>) -> Error {
    Error::EngineLoad {
        engine: Rten::NAME,
        node: Some(node.label()),
        reason: reason.into(),
        remedy: "ONNX Runtime runs it (--engine ort)",
    }
}

/// `[x > 0] - [x < 0]`
fn sign(b: &mut Builder, node: &Node) -> Option<Value> {
    let x = node.input(0)?;
    let dtype = b.fact(x).dtype.unwrap_or(DType::F32);
    let zero = b.scalar_like(x, 0.0);
    let [above, below] = ["Greater", "Less"].map(|op| {
        let mask = b.op(op, &[x, &zero]);
        b.cast(&mask, dtype)
    });
    Some(b.sub(&above, &below))
}

fn resize(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
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
        let known = |d: &onnx_grad::Dim| d.known().map(|n| n as f64);
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

/// An 8-bit tensor as floats, less its zero point in the shape of `[.., 1]` by `trailing` axes.
fn centred(b: &mut Builder, node: &Node, data: usize, zero: usize, trailing: &[i64]) -> Result<Value> {
    let x = node.input(data).ok_or_else(|| refusal(node, format!("it has no input {data}")))?;
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
fn conv_integer(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
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

fn matmul_integer(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    // A zero point for each row of the left, for each column of the right.
    let left = centred(b, node, 0, 2, &[1])?;
    let right = centred(b, node, 1, 3, &[])?;
    let y = b.matmul(&left, &right);
    Ok(Some(b.cast(&y, DType::I32)))
}
