//! `LinearRegressor`: `x W^T + b`.

use super::{floats, malformed, post_transform, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((x, features)) = table(b, node)? else { return Ok(None) };
    let targets = usize::try_from(node.int("targets", 1)).unwrap_or(1);
    let scores = product(b, node, &x, (targets, features))?;
    Ok(post_transform::apply(b, node, scores))
}

/// `x W^T + b` with the weights of a node, `[outputs, features]`.
pub(super) fn product(b: &mut Builder, node: &Node, x: &str, sizes: (usize, usize)) -> Result<Value> {
    let (outputs, features) = sizes;
    let weights = node.floats("coefficients");
    if outputs.checked_mul(features) != Some(weights.len()) {
        let expected = format!("{outputs} outputs of {features} features");
        return Err(malformed(node, &format!("it has {} coefficients for {expected}", weights.len())));
    }
    let turned: Vec<f32> =
        (0..features).flat_map(|j| (0..outputs).map(move |k| weights[k * features + j])).collect();
    let weights = floats(b, &[features, outputs], &turned);
    let scores = b.matmul(x, &weights);
    let intercepts = node.floats("intercepts");
    Ok(match intercepts.len() {
        0 => scores,
        n if n == outputs => {
            let intercepts = floats(b, &[outputs], intercepts);
            b.add(&scores, &intercepts)
        }
        n => return Err(malformed(node, &format!("it has {n} intercepts for {outputs} outputs"))),
    })
}
