//! Reductions, products and expansions with shapes that RTen takes for others.

use onnx_grad::{Attribute, Builder, DType, Node, Value};

use super::{input, refusal};
use crate::error::Result;

/// A reduction over no axis at all is its function of every element, where `noop_with_empty_axes` says so: RTen leaves the
/// elements as they are, or takes the mean of all. Booleans are integers in RTen, and the largest of none is no boolean.
pub(super) fn reduce(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = input(node, 0)?;
    let count = node.input(1).map(|axes| b.shape(axes).and_then(|shape| shape.first()?.known()));
    let idle = node.int("noop_with_empty_axes", 0) != 0;
    if idle && count == Some(None) {
        return Err(refusal(
            node,
            "RTen leaves elements as they are where no axes are given, which is not known before",
        ));
    }
    if idle && count.flatten().is_none_or(|count| count == 0) {
        return Ok(Some(match node.op.as_str() {
            "ReduceL1" | "ReduceL2" => b.op("Abs", &[x]),
            "ReduceLogSum" => b.op("Log", &[x]),
            "ReduceSumSquare" => b.mul(x, x),
            _ => Value::named(x),
        }));
    }
    if b.fact(x).dtype != Some(DType::Bool) {
        return Ok(None);
    }
    let numbers = b.cast(x, DType::I32);
    let inputs: Vec<&str> = node
        .inputs
        .iter()
        .enumerate()
        .map(|(i, name)| if i == 0 { &*numbers } else { name.as_str() })
        .collect();
    let named: Vec<(&str, Attribute)> =
        node.attributes.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let extreme = b.op_with(&node.op, &inputs, &named);
    let zero = b.scalar_like(&extreme, 0.0);
    Ok(Some(b.op("Greater", &[&extreme, &zero])))
}

/// A product with a vector on the right has no last axis; RTen keeps one where the left has more than two.
pub(super) fn matmul(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (x, w) = (input(node, 0)?, input(node, 1)?);
    if b.fact(w).rank() != Some(1) || b.fact(x).rank().is_none_or(|rank| rank <= 2) {
        return Ok(None);
    }
    let column = b.unsqueeze(w, &[1]);
    let product = b.matmul(x, &column);
    Ok(Some(b.squeeze(&product, &[-1])))
}

/// A shape with fewer axes than the data: RTen panics.
pub(super) fn expand(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (x, shape) = (input(node, 0)?, input(node, 1)?);
    let (Some(rank), Some(content)) = (b.fact(x).rank(), b.fact(shape).known_content()) else {
        return Ok(None);
    };
    if content.len() >= rank {
        return Ok(None);
    }
    let full: Vec<i64> = std::iter::repeat_n(1, rank - content.len()).chain(content).collect();
    let full = b.ints(&full);
    Ok(Some(b.op("Expand", &[x, &full])))
}
