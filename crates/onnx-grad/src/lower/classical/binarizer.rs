//! `Binarizer`: 1 above the threshold, else 0. No gradient goes through it.

use super::table;
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;
use crate::tensor::DType;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((x, _)) = table(b, node)? else { return Ok(None) };
    let threshold = b.scalar_like(&x, f64::from(node.float("threshold", 0.0)));
    let above = b.op("Greater", &[&x, &threshold]);
    Ok(Some(b.cast(&above, DType::F32)))
}
