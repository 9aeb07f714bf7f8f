//! `FeatureVectorizer`: columns beside each other.

use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;
use crate::tensor::DType;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let sizes = node.ints("inputdimensions").unwrap_or_default();
    let mut parts = Vec::new();
    for (i, input) in node.given_inputs().enumerate() {
        let Some([_, size]) = b.shape(input) else { return Ok(None) };
        // Where sizes differ, engines cut or fill up; no exporter writes that.
        if sizes.get(i).is_some_and(|&said| size.known() != Some(said)) {
            return Ok(None);
        }
        parts.push(b.cast(input, DType::F32));
    }
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    Ok((!parts.is_empty()).then(|| b.concat(&parts, 1)))
}
