//! The final activation of a linear model or a support vector machine.

use crate::build::{Builder, Value};
use crate::graph::Node;

/// Scores after the node's `post_transform`; none where it is one that is not spelled out.
pub(super) fn apply(b: &mut Builder, node: &Node, scores: Value) -> Option<Value> {
    match node.string("post_transform", "NONE") {
        "NONE" => Some(scores),
        "LOGISTIC" => Some(b.op("Sigmoid", &[&scores])),
        "SOFTMAX" => Some(b.op_with("Softmax", &[&scores], &[("axis", (-1i64).into())])),
        _ => None,
    }
}
