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
//! `pads` are always there. Normalisations have `groups`, `epsilon` and `activation` (empty or [`SILU`]). [`OPERATORS`]
//! declares all that, and [`fused_outputs`](crate::shapes::fused_outputs) which shapes they make. All else stays as it is. These operators belong to no file: the graph of a gradient that has them cannot be written for others, nor
//! differentiated again.

use crate::graph::{Graph, Node};

pub use crate::graph::FUSED_DOMAIN as DOMAIN;

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

/// What is declared of a fused operator, for rules, shapes, kernels and engines alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operator {
    /// Its name in [`DOMAIN`].
    pub name: &'static str,
    /// How many inputs must be given.
    pub inputs: usize,
    /// How many more may be.
    pub optional: usize,
    /// How many outputs it has.
    pub outputs: usize,
    /// Its attributes, all of which are given.
    pub attributes: &'static [(&'static str, AttributeKind)],
}

/// What an attribute holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeKind {
    /// A list of integers.
    Ints,
    /// An integer.
    Int,
    /// A float.
    Float,
    /// A text.
    String,
}

const WINDOW: &[(&str, AttributeKind)] = &[
    ("kernel_shape", AttributeKind::Ints),
    ("dilations", AttributeKind::Ints),
    ("pads", AttributeKind::Ints),
];
const NORM: &[(&str, AttributeKind)] = &[
    ("groups", AttributeKind::Int),
    ("epsilon", AttributeKind::Float),
    ("activation", AttributeKind::String),
];

const fn operator(name: &'static str, inputs: usize, optional: usize, outputs: usize) -> Operator {
    Operator { name, inputs, optional, outputs, attributes: WINDOW }
}

/// Every fused operator.
pub const OPERATORS: &[Operator] = &[
    operator(CONV, 2, 1, 1),
    operator(CONV_INPUT_GRADIENT, 2, 0, 1),
    operator(CONV_WEIGHT_GRADIENT, 2, 0, 2),
    Operator { attributes: NORM, ..operator(GROUP_NORM, 3, 0, 1) },
    Operator { attributes: NORM, ..operator(GROUP_NORM_GRADIENT, 4, 0, 3) },
];

impl Operator {
    /// The declaration of a node's operator; nothing where it is not fused.
    pub fn of(node: &Node) -> Option<&'static Operator> {
        OPERATORS.iter().find(|operator| node.is_fused() && operator.name == node.op)
    }

    /// Whether it takes so many inputs.
    pub fn takes(&self, inputs: usize) -> bool {
        (self.inputs..=self.inputs + self.optional).contains(&inputs)
    }
}

/// Whether the graph has any of these operators.
pub fn has_any(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| node.is_fused())
}
