//! `Scaler`: `(x - offset) scale`.

use super::{row, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((mut x, features)) = table(b, node)? else { return Ok(None) };
    if let Some(offset) = row(b, node, "offset", features)? {
        x = b.sub(&x, &offset);
    }
    if let Some(scale) = row(b, node, "scale", features)? {
        x = b.mul(&x, &scale);
    }
    Ok(Some(x))
}
