//! Finds the parts of a graph that [fused operators](crate::fused) stand for.

mod group_norm;

use crate::error::Result;
use crate::fused::DOMAIN;
use crate::graph::{Graph, Node};
use crate::shapes::{Facts, Window, conv_attributes, conv_window};
use crate::tensor::DType;

/// The operators that fusing takes out of a graph.
pub(crate) const PARTS: &[&str] = &["Conv", "InstanceNormalization", "Reshape", "Mul", "Add", "Sigmoid"];

/// The graph with every part that one of these operators computes in that form.
pub fn fuse(graph: &Graph) -> Result<Graph> {
    let facts = Facts::of(graph)?;
    let mut fused = group_norm::fuse(graph, &facts);
    let made = graph.producers();
    for node in &mut fused.nodes {
        // Weights that nodes make, such as kernels turned around, are constants that engines work out beforehand.
        let own = node.input(1).is_some_and(|weights| !made.contains_key(weights));
        if let Some(window) = window(node, &facts).filter(|_| own) {
            node.domain = DOMAIN.to_string();
            node.attributes = conv_attributes(&window);
        }
    }
    Ok(fused)
}

/// The window of a convolution that can be had in one piece, there and back.
fn window(node: &Node, facts: &Facts) -> Option<Window> {
    let (x, w) = (facts.get(node.input(0)?), facts.get(node.input(1)?));
    let plain = node.is("Conv") && node.int("group", 1) == 1 && x.dtype == Some(DType::F32);
    let window = conv_window(node, w).ok().flatten().filter(|window| plain && !window.is_automatic())?;
    let channels = w.shape.as_ref()?.iter().take(2).all(|dim| dim.known().is_some_and(|n| n > 0));
    (window.rank() == 2 && x.rank() == Some(4) && channels && window.back().is_some()).then_some(window)
}
