//! The choices there are in a gradient graph.

/// How a `Relu` sends gradients back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReluBackward {
    /// The derivative: where the input was positive.
    #[default]
    Standard,
    /// Guided Backpropagation: where the input was positive and the gradient is
    /// (Springenberg et al., 2015).
    Guided,
    /// The deconvolutional network: where the gradient is positive (Zeiler and Fergus, 2014).
    Deconvnet,
}

/// How the gradient of a convolution's weights is computed; engines differ in which is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightGradient {
    /// A convolution of the input with the output's gradient, batch and channels exchanged.
    #[default]
    TransposedConv,
    /// Matrix products of windows and the output's gradient: one for every tap of a kernel without strides and groups,
    /// with the image moved by that tap; else of windows laid out as columns.
    Im2col,
}

/// The choices there are in a gradient graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GradOptions {
    /// How a `Relu` sends gradients back.
    pub relu: ReluBackward,
    /// How the gradient of a convolution's weights is computed.
    pub weight_gradient: WeightGradient,
    /// Whether the graph may have [fused operators](crate::fused), which only some engines run.
    pub fused: bool,
}
