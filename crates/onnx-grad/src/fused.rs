//! Operators that stand for larger parts of a graph, for engines that have kernels for them.
//!
//! Gradients are written in ONNX's own operators, which any engine runs. Where training spends its time, that has a price:
//! the gradient of a convolution's weights is nine matrix products of moved copies, that of a normalisation a dozen
//! passes over memory. An engine that can compute these in one piece asks for the operators of this module
//! ([`GradOptions::fused`](crate::GradOptions)):
//!
//! | operator | inputs | outputs |
//! |---|---|---|
//! | [`CONV`] | `x, w` and maybe `bias` | `y`, as ONNX's `Conv` |
//! | [`CONV_INPUT_GRADIENT`] | `dy, w` | `dx`, with the padding of the way back |
//! | [`CONV_WEIGHT_GRADIENT`] | `x, dy` | `dw, dbias` |
//! | [`GROUP_NORM`] | `x, gain, bias` | `y`: groups of channels normalised, a gain and a bias for each channel, an activation |
//! | [`GROUP_NORM_GRADIENT`] | `dy, x, gain, bias` | `dx, dgain, dbias` |
//!
//! Convolutions are of images, move by single pixels and have one group; the attributes `kernel_shape`, `dilations` and
//! `pads` are always there. Normalisations have `groups`, `epsilon` and `activation` (empty or [`SILU`]). All else stays
//! as it is. These operators belong to no file: the graph of a gradient that has them cannot be written for others, nor
//! differentiated again.

mod group_norm;
mod infer;

use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::shapes::{Facts, Window, conv_window};
use crate::tensor::DType;

pub(crate) use infer::infer;

/// The domain of these operators.
pub const DOMAIN: &str = "onnx-grad";
/// A convolution of images that moves by single pixels, without groups.
pub const CONV: &str = "Conv";
/// The gradient of [`CONV`] with respect to its image.
pub const CONV_INPUT_GRADIENT: &str = "ConvInputGradient";
/// The gradients of [`CONV`] with respect to its weights and its bias.
pub const CONV_WEIGHT_GRADIENT: &str = "ConvWeightGradient";
/// A group normalisation with gain, bias and activation.
pub const GROUP_NORM: &str = "GroupNorm";
/// The gradients of [`GROUP_NORM`].
pub const GROUP_NORM_GRADIENT: &str = "GroupNormGradient";
/// The activation `u sigmoid(u)`.
pub const SILU: &str = "silu";

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
            node.attributes = attributes(&window);
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

/// The attributes of a convolution.
pub(crate) fn attributes(window: &Window) -> std::collections::BTreeMap<String, crate::Attribute> {
    [
        ("kernel_shape", window.kernel.clone()),
        ("dilations", window.dilations.clone()),
        ("pads", window.pads()),
    ]
    .map(|(name, values)| (name.to_string(), values.into()))
    .into()
}

/// Whether the graph has any of these operators.
pub fn has_any(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| node.domain == DOMAIN)
}
