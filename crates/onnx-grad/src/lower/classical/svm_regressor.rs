//! `SVMRegressor`: a weighted sum of kernels with support vectors.

use super::linear_regressor::product;
use super::{floats, kernel, malformed, post_transform, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    // An outlier detector gives 1 or -1.
    if node.int("one_class", 0) != 0 {
        return Ok(None);
    }
    let Some((x, features)) = table(b, node)? else { return Ok(None) };
    let weights = node.floats("coefficients");
    let count = usize::try_from(node.int("n_supports", 0)).unwrap_or(0);
    let sum = if count == 0 {
        product(b, node, &x, (1, features))?
    } else {
        if weights.len() != count {
            let reason = format!("it has {} coefficients for {count} support vectors", weights.len());
            return Err(malformed(node, &reason));
        }
        let Some(kernels) = kernel::values(b, node, &x, (count, features)) else { return Ok(None) };
        let weights = floats(b, &[count, 1], weights);
        b.matmul(&kernels, &weights)
    };
    let rho = node.floats("rho").first().copied().unwrap_or(0.0);
    let score = b.shift(&sum, f64::from(rho));
    Ok(post_transform::apply(b, node, score))
}
