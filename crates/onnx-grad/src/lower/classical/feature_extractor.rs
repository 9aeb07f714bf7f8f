//! `ArrayFeatureExtractor`: some columns by their places, along the last axis.

use super::malformed;
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let (Some(x), Some(places)) = (node.input(0), node.input(1)) else {
        return Err(malformed(node, "it needs two inputs"));
    };
    let Some(rank) = b.fact(x).rank().filter(|&rank| rank > 0) else { return Ok(None) };
    let places = b.reshape(places, &[-1]);
    let taken = b.op_with("Gather", &[x, &places], &[("axis", (rank as i64 - 1).into())]);
    // What has no batch gets one.
    Ok(Some(if rank == 1 { b.unsqueeze(&taken, &[0]) } else { taken }))
}
