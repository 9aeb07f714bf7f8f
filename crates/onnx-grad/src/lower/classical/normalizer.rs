//! `Normalizer`: a row divided by its largest value, by the sum of absolute values, or by its length; a row of zeros stays.

use super::table;
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((x, _)) = table(b, node)? else { return Ok(None) };
    let op = match node.string("norm", "MAX") {
        "MAX" => "ReduceMax",
        "L1" => "ReduceL1",
        "L2" => "ReduceL2",
        _ => return Ok(None),
    };
    let axes = b.ints(&[1]);
    let norm = b.op_with(op, &[&x, &axes], &[("keepdims", 1i64.into())]);
    let (zero, one) = (b.scalar_like(&x, 0.0), b.scalar_like(&x, 1.0));
    let nothing = b.op("Equal", &[&norm, &zero]);
    let safe = b.select(&nothing, &one, &norm);
    Ok(Some(b.div(&x, &safe)))
}
