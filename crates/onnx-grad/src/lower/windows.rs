//! Convolutions and pools with everything said: strides, dilations, and padding in numbers.
//!
//! `auto_pad` means the same to all engines only on paper: ONNX Runtime refuses it together with dilations,
//! and RTen places the odd row of `SAME_LOWER` elsewhere. Left-out strides are a matter of taste as well.

use crate::build::Builder;
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::shapes::{Window, conv_window};

/// Fills in the attributes of a node with a window, as far as its sizes are known.
pub(super) fn spell_out(node: &mut Node, builder: &Builder) -> Result<()> {
    if !node.is_standard() {
        return Ok(());
    }
    let window = match node.op.as_str() {
        "Conv" | "ConvInteger" | "ConvTranspose" => match node.input(1) {
            Some(weights) => conv_window(node, builder.fact(weights))?,
            None => None,
        },
        "MaxPool" | "AveragePool" | "LpPool" => Some(Window::of(node, None)?),
        _ => None,
    };
    let Some(window) = window else { return Ok(()) };
    *node = std::mem::take(node).with("strides", window.strides.clone());
    if node.op.starts_with("Conv") {
        *node = std::mem::take(node).with("dilations", window.dilations.clone());
    }
    // The padding of a transposed convolution is worked out from its output.
    if !window.is_automatic() {
        *node = std::mem::take(node).with("pads", window.pads());
        return Ok(());
    }
    if node.op == "ConvTranspose" {
        return Ok(());
    }
    let sizes: Option<Vec<Dim>> =
        node.input(0).and_then(|x| builder.shape(x)).and_then(|s| s.get(2..)).map(<[Dim]>::to_vec);
    if let Some(resolved) = sizes.and_then(|sizes| window.resolved(&sizes)) {
        node.attributes.remove("auto_pad");
        *node = std::mem::take(node).with("pads", resolved.pads());
    }
    Ok(())
}
