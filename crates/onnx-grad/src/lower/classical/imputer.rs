//! `Imputer`: one value, as a rule "not a number", is replaced by that of its column.

use super::{row, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    // Integers have attributes of their own; no exporter of pipelines writes them.
    if !node.ints("imputed_value_int64s").unwrap_or_default().is_empty() {
        return Ok(None);
    }
    let Some((x, features)) = table(b, node)? else { return Ok(None) };
    let Some(imputed) = row(b, node, "imputed_value_floats", features)? else { return Ok(None) };
    let replaced = node.float("replaced_value_float", 0.0);
    let missing = if replaced.is_nan() {
        b.op("IsNaN", &[&x])
    } else {
        let replaced = b.scalar_like(&x, f64::from(replaced));
        b.op("Equal", &[&x, &replaced])
    };
    Ok(Some(b.select(&missing, &imputed, &x)))
}
