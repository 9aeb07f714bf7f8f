//! The choices there are in a gradient graph.

use crate::backward::BackwardRules;
use crate::step::WeightGradient;

/// The choices there are in a gradient graph.
#[derive(Debug, Clone, Default)]
pub struct GradOptions {
    /// What replaces the derivative of some operators; nothing by default.
    pub rules: BackwardRules,
    /// How the gradient of a convolution's weights is computed.
    pub weight_gradient: WeightGradient,
    /// Whether the graph may have [fused operators](crate::fused), which only some engines run.
    pub fused: bool,
}
