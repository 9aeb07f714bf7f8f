//! The derivative of every operator, a file for each family.
//!
//! A rule is a function that is given one node and the gradients of its outputs, and appends the nodes
//! that compute the gradients of its inputs. Rules use only operators that both engines have, and they
//! never look at data: what they need to know of shapes comes from [`crate::shapes`].
//!
//! The [registry](REGISTRY) is the one list of what can be differentiated; the documentation's coverage
//! table is printed from it.

mod activation;
mod conv;
mod conv_weights;
mod elementwise;
mod fused;
mod index;
mod layout;
mod linear_map;
mod matmul;
mod max_pool;
mod norm;
mod pool;
mod reduce;

use crate::error::Error;
use crate::graph::Node;
use crate::lower::recurrent::MAX_STEPS;
use crate::lower::sample;
use crate::recurrent::{Layer, Recurrence};
use crate::step::{Backward, Gradients, Step};

/// What happens when the walk meets an operator.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Gradients go through by this rule.
    Backward(Backward),
    /// No gradient goes through: the operator is piecewise constant or yields integers.
    Stop(&'static str),
}

/// The entry of one operator.
pub(crate) struct Rule {
    pub(crate) op: &'static str,
    pub(crate) family: &'static str,
    pub(crate) kind: Kind,
}

const fn rule(op: &'static str, family: &'static str, backward: Backward) -> Rule {
    Rule { op, family, kind: Kind::Backward(backward) }
}

const fn stop(op: &'static str, why: &'static str) -> Rule {
    Rule { op, family: "stops", kind: Kind::Stop(why) }
}

const CONSTANT: &str = "it is piecewise constant";
const INTEGER: &str = "its output is not a float";

/// Every operator with a derivative of its own, and those that certainly have none.
pub(crate) const REGISTRY: &[Rule] = &[
    rule("Add", "elementwise", elementwise::add),
    rule("Sub", "elementwise", elementwise::sub),
    rule("Mul", "elementwise", elementwise::mul),
    rule("Div", "elementwise", elementwise::div),
    rule("Neg", "elementwise", elementwise::neg),
    rule("Pow", "elementwise", elementwise::pow),
    rule("Sqrt", "elementwise", elementwise::sqrt),
    rule("Exp", "elementwise", elementwise::exp),
    rule("Log", "elementwise", elementwise::log),
    rule("Abs", "elementwise", elementwise::abs),
    rule("Reciprocal", "elementwise", elementwise::reciprocal),
    rule("Erf", "elementwise", elementwise::erf),
    rule("Sin", "elementwise", elementwise::sin),
    rule("Cos", "elementwise", elementwise::cos),
    rule("Tan", "elementwise", elementwise::tan),
    rule("Asin", "elementwise", elementwise::asin),
    rule("Acos", "elementwise", elementwise::acos),
    rule("Atan", "elementwise", elementwise::atan),
    rule("Sinh", "elementwise", elementwise::sinh),
    rule("Cosh", "elementwise", elementwise::cosh),
    rule("Asinh", "elementwise", elementwise::asinh),
    rule("Acosh", "elementwise", elementwise::acosh),
    rule("Atanh", "elementwise", elementwise::atanh),
    rule("Clip", "elementwise", elementwise::clip),
    rule("Min", "elementwise", elementwise::extremum),
    rule("Max", "elementwise", elementwise::extremum),
    rule("Sum", "elementwise", elementwise::sum),
    rule("Mean", "elementwise", elementwise::mean),
    rule("Where", "elementwise", elementwise::select),
    rule("Mod", "elementwise", elementwise::modulo),
    rule("Tanh", "activation", activation::tanh),
    rule("Sigmoid", "activation", activation::sigmoid),
    rule("Softplus", "activation", activation::softplus),
    rule("Softsign", "activation", activation::softsign),
    rule("Relu", "activation", activation::relu),
    rule("LeakyRelu", "activation", activation::leaky_relu),
    rule("PRelu", "activation", activation::prelu),
    rule("Elu", "activation", activation::elu),
    rule("HardSigmoid", "activation", activation::hard_sigmoid),
    rule("HardSwish", "activation", activation::hard_swish),
    rule("Gelu", "activation", activation::gelu),
    rule("Softmax", "activation", activation::softmax),
    rule("LogSoftmax", "activation", activation::log_softmax),
    rule("MatMul", "matmul", matmul::matmul),
    rule("Gemm", "matmul", matmul::gemm),
    rule("Einsum", "matmul", matmul::einsum),
    rule("Conv", "conv", conv::conv),
    rule("ConvTranspose", "conv", conv::conv_transpose),
    rule("MaxPool", "pool", max_pool::max_pool),
    rule("AveragePool", "pool", pool::average_pool),
    rule("GlobalAveragePool", "pool", pool::global_average_pool),
    rule("GlobalMaxPool", "pool", max_pool::global_max_pool),
    rule("InstanceNormalization", "norm", norm::instance),
    rule("LayerNormalization", "norm", norm::layer),
    rule("ReduceSum", "reduce", reduce::sum),
    rule("ReduceMean", "reduce", reduce::mean),
    rule("ReduceMax", "reduce", reduce::extremum),
    rule("ReduceMin", "reduce", reduce::extremum),
    rule("ReduceProd", "reduce", reduce::product),
    rule("ReduceL1", "reduce", reduce::l1),
    rule("ReduceL2", "reduce", reduce::l2),
    rule("ReduceLogSum", "reduce", reduce::log_sum),
    rule("ReduceLogSumExp", "reduce", reduce::log_sum_exp),
    rule("ReduceSumSquare", "reduce", reduce::sum_square),
    rule("Reshape", "layout", layout::reshaping),
    rule("Flatten", "layout", layout::reshaping),
    rule("Squeeze", "layout", layout::reshaping),
    rule("Unsqueeze", "layout", layout::reshaping),
    rule("Identity", "layout", layout::identity),
    rule("Cast", "layout", layout::cast),
    rule("CastLike", "layout", layout::cast),
    rule("Transpose", "layout", layout::transpose),
    rule("Concat", "layout", layout::concat),
    rule("Split", "layout", layout::split),
    rule("Slice", "layout", layout::slice),
    rule("Expand", "layout", layout::expand),
    rule("Tile", "layout", layout::tile),
    rule("Pad", "layout", layout::pad),
    rule("Resize", "layout", layout::resize),
    rule("CumSum", "layout", layout::cumsum),
    rule("Trilu", "layout", layout::trilu),
    rule("Gather", "index", index::gather),
    rule("GatherElements", "index", index::gather_elements),
    rule("GatherND", "index", index::gather_nd),
    rule("ScatterElements", "index", index::scatter),
    rule("ScatterND", "index", index::scatter),
    rule("TopK", "index", index::top_k),
    stop("Floor", CONSTANT),
    stop("Ceil", CONSTANT),
    stop("Round", CONSTANT),
    stop("Sign", CONSTANT),
    stop("Hardmax", CONSTANT),
    stop("ArgMax", INTEGER),
    stop("ArgMin", INTEGER),
    stop("NonZero", INTEGER),
    stop("Shape", INTEGER),
    stop("Size", INTEGER),
    stop("Equal", INTEGER),
    stop("Greater", INTEGER),
    stop("GreaterOrEqual", INTEGER),
    stop("Less", INTEGER),
    stop("LessOrEqual", INTEGER),
    stop("Not", INTEGER),
    stop("And", INTEGER),
    stop("Or", INTEGER),
    stop("Xor", INTEGER),
    stop("IsNaN", INTEGER),
    stop("IsInf", INTEGER),
    stop("OneHot", "it depends on indices only"),
    stop("Range", "it depends on integers only"),
    stop("ConstantOfShape", "it depends on a shape only"),
    stop("EyeLike", "it depends on a shape only"),
    stop("RandomNormalLike", "it depends on a shape only"),
    stop("RandomUniformLike", "it depends on a shape only"),
];

/// The rule for a node's operator, where there is one.
pub(crate) fn find(node: &Node) -> Option<Kind> {
    if node.is_fused() {
        return fused::find(node).map(Kind::Backward);
    }
    REGISTRY.iter().find(|rule| node.is(rule.op)).map(|rule| rule.kind)
}

/// What the derivative of a node's operator sends to its inputs.
pub(crate) fn derivative(step: &mut Step<'_>) -> Gradients {
    match find(step.node) {
        Some(Kind::Backward(backward)) => backward(step),
        Some(Kind::Stop(why)) => Err(step.not_differentiable(why)),
        None => Err(unknown(step.node)),
    }
}

/// Whether a node belongs to a model whose numbers were made integers.
pub(crate) fn is_quantised(node: &Node) -> bool {
    const QUANTISED: &[&str] = &["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"];
    QUANTISED.contains(&node.op.as_str()) || node.op.starts_with("QLinear") || node.op.ends_with("Integer")
}

/// Why a node without a rule cannot be differentiated.
pub(crate) fn unknown(node: &Node) -> Error {
    let reason = if is_quantised(node) {
        "the model is quantised; use the float model it was made from".to_string()
    } else if !node.is_standard() {
        format!("domain '{}' is not ONNX's own; export the model without custom operators", node.domain)
    } else if matches!(node.op.as_str(), "Loop" | "Scan" | "If") {
        match node.op.as_str() {
            "If" => "its condition depends on the input; export the model for the branch that is meant, or explain it by a method \
                     without gradients",
            _ => "how often it turns is not known before it runs; export the model with fixed sizes",
        }
        .to_string()
    } else if node.is("GridSample") && !sample::covered(node) {
        "of its modes, linear and nearest with the padding zeros or border have one".to_string()
    } else if ["GridSample", "Col2Im", "DFT", "STFT"].iter().any(|op| node.is(op)) {
        "its sizes, windows and axes must be known before it runs; export the model with fixed sizes"
            .to_string()
    } else if Layer::of(node).is_some() {
        // With a length that is known it would have been spelled out.
        Recurrence::of(node).err().unwrap_or_else(|| {
            format!(
                "the length of its sequences is not known, or above {MAX_STEPS}; export the model with \
                 one fixed length"
            )
        })
    } else {
        format!("{} has no rule", node.op)
    };
    Error::NotDifferentiable { node: node.label(), reason }
}
