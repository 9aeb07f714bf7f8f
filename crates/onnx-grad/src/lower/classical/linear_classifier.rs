//! `LinearClassifier`: `x W^T + b` for each class, then a final activation.
//!
//! One score `z` for two classes is that of the second. ONNX Runtime gives the first `1 - z`, or what is left of the probability.

use super::linear_regressor::product;
use super::{malformed, post_transform, table};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let Some((x, features)) = table(b, node)? else { return Ok(None) };
    let coefficients = node.floats("coefficients").len();
    let outputs = coefficients / features;
    if outputs == 0 {
        return Err(malformed(node, &format!("it has {coefficients} coefficients for {features} features")));
    }
    let scores = product(b, node, &x, (outputs, features))?;
    if outputs == 1 {
        return Ok(match node.string("post_transform", "NONE") {
            "NONE" => {
                let rest = b.rsub(1.0, &scores);
                Some(b.concat(&[&rest, &scores], 1))
            }
            "LOGISTIC" => {
                let opposite = b.neg(&scores);
                let both = b.concat(&[&opposite, &scores], 1);
                Some(b.op("Sigmoid", &[&both]))
            }
            _ => None,
        });
    }
    Ok(post_transform::apply(b, node, scores))
}
