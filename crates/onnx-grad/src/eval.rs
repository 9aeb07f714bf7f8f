//! A slow, plain evaluator: what a graph means, in `f64`.
//!
//! It serves two ends. Lowering folds constants with it, and tests take it for the truth: a gradient is
//! checked against central differences of this evaluator. For the latter, float values are *not*
//! rounded to their element type — a float32 graph is evaluated in `f64`, which is what makes
//! differences sharp. Integers are whole and wrap to their width, booleans are 0 and 1.
//!
//! ```
//! use onnx_grad::eval::{Array, evaluate_node};
//! use onnx_grad::{DType, Node};
//!
//! let x = Array::new(DType::F32, &[3], vec![-1.0, 0.0, 2.0]);
//! let y = evaluate_node(&Node::new("Relu", &["x"], &["y"]), &[Some(&x)])?;
//! assert_eq!(y[0], Array::new(DType::F32, &[3], vec![0.0, 0.0, 2.0]));
//! # Ok::<(), onnx_grad::Error>(())
//! ```
//!
//! Each family of ops has a file; an op is a function from a `Call` (a node with its inputs) to
//! arrays. Operators mean what they mean in opset 18 and later.

mod activation;
mod attention;
mod call;
mod control;
mod conv;
mod elementwise;
mod index;
mod layout;
mod matmul;
mod norm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod resize;
mod sample;
mod signal;
mod source;
#[cfg(test)]
mod tests;
mod walk;
mod window;

use std::borrow::Cow;
use std::collections::BTreeMap;

use ndarray::{ArrayD, IxDyn};

use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::tensor::{DType, TensorData};
use call::Call;
pub(crate) use call::Limits;

/// A tensor in the evaluator: an element type and its values as `f64`.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The element type the values stand for.
    pub dtype: DType,
    /// The values, not rounded where the type is a float.
    pub data: ArrayD<f64>,
}

impl Array {
    /// An array of values in row-major order. Panics where their number does not fit the shape.
    pub fn new(dtype: DType, shape: &[usize], values: Vec<f64>) -> Array {
        let data = ArrayD::from_shape_vec(IxDyn(shape), values).expect("as many values as the shape holds");
        Array { dtype, data }
    }

    /// An array without axes.
    pub fn scalar(dtype: DType, value: f64) -> Array {
        Array::new(dtype, &[], vec![value])
    }

    /// A vector of int64.
    pub fn ints(values: impl IntoIterator<Item = i64>) -> Array {
        let values: Vec<f64> = values.into_iter().map(|v| v as f64).collect();
        Array::new(DType::I64, &[values.len()], values)
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    /// The values in row-major order.
    pub fn values(&self) -> Cow<'_, [f64]> {
        match self.data.as_slice() {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(self.data.iter().copied().collect()),
        }
    }

    /// The tensor, its values rounded to the element type.
    pub fn to_tensor(&self) -> TensorData {
        TensorData::from_f64(self.dtype, self.shape(), &self.values())
    }
}

impl From<&TensorData> for Array {
    fn from(tensor: &TensorData) -> Array {
        Array::new(tensor.dtype(), tensor.shape(), tensor.to_f64())
    }
}

impl From<&Array> for TensorData {
    fn from(array: &Array) -> TensorData {
        array.to_tensor()
    }
}

/// Evaluates a graph on its inputs by name; all outputs in order.
///
/// Values of the input map that the graph does not ask for are ignored.
pub fn evaluate(graph: &Graph, inputs: &BTreeMap<String, Array>) -> Result<Vec<Array>> {
    control::run(graph, inputs, None)
}

/// Evaluates one node on given inputs (`None` where an optional input is left out).
///
/// All outputs of the op are computed, also those that the node does not name. A node with a body
/// (`If`) needs the graph around it: see [`evaluate`].
pub fn evaluate_node(node: &Node, inputs: &[Option<&Array>]) -> Result<Vec<Array>> {
    evaluate_within(node, inputs, Limits::EVALUATION)
}

/// As [`evaluate_node`], but what is larger than `limits` is refused before it is computed.
pub(crate) fn evaluate_within(node: &Node, inputs: &[Option<&Array>], limits: Limits) -> Result<Vec<Array>> {
    let call = Call::new(node, inputs, limits);
    if !node.is_standard() {
        return Err(call.unsupported("its operator is not one of ONNX's own"));
    }
    let one = |array: Result<Array>| array.map(|a| vec![a]);
    match node.op.as_str() {
        "Neg" | "Sqrt" | "Exp" | "Log" | "Abs" | "Reciprocal" | "Erf" | "Sin" | "Cos" | "Tan" | "Asin"
        | "Acos" | "Atan" | "Sinh" | "Cosh" | "Asinh" | "Acosh" | "Atanh" | "Floor" | "Ceil" | "Round"
        | "Sign" | "Not" | "IsNaN" | "IsInf" => one(elementwise::unary(&call)),
        "Add" | "Sub" | "Mul" | "Div" | "Pow" | "Mod" => one(elementwise::arithmetic(&call)),
        "And" | "Or" | "Xor" | "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" => {
            one(elementwise::comparison(&call))
        }
        "Min" | "Max" | "Sum" | "Mean" => one(elementwise::variadic(&call)),
        "Clip" => one(elementwise::clip(&call)),
        "Where" => one(elementwise::choose(&call)),
        "Cast" | "CastLike" => one(elementwise::cast(&call)),
        "Tanh" | "Sigmoid" | "Softplus" | "Softsign" | "Relu" | "LeakyRelu" | "Elu" | "Selu" | "Celu"
        | "HardSigmoid" | "HardSwish" | "ThresholdedRelu" | "Gelu" | "Mish" | "Swish" | "Shrink" => {
            one(activation::pointwise(&call))
        }
        "PRelu" => one(activation::prelu(&call)),
        "Softmax" | "LogSoftmax" | "Hardmax" => one(activation::softmax(&call)),
        "MatMul" => one(matmul::matmul(&call)),
        "Gemm" => one(matmul::gemm(&call)),
        "Einsum" => one(matmul::einsum(&call)),
        "Conv" => one(conv::conv(&call)),
        "ConvTranspose" => one(conv::conv_transpose(&call)),
        "ConvInteger" => one(quantize::conv_integer(&call)),
        "MatMulInteger" => one(quantize::matmul_integer(&call)),
        "QuantizeLinear" => one(quantize::quantize(&call)),
        "DequantizeLinear" => one(quantize::dequantize(&call)),
        "DynamicQuantizeLinear" => quantize::dynamic_quantize(&call),
        "MaxPool" => pool::max_pool(&call),
        "AveragePool" | "LpPool" => one(pool::mean_pool(&call)),
        "GlobalAveragePool" | "GlobalMaxPool" | "GlobalLpPool" => one(pool::global(&call)),
        "BatchNormalization" => norm::batch(&call),
        "InstanceNormalization" => one(norm::instance(&call)),
        "LayerNormalization" => norm::layer(&call),
        "RMSNormalization" => one(norm::rms(&call)),
        "GroupNormalization" => one(norm::group(&call)),
        "LpNormalization" => one(norm::lp(&call)),
        "LRN" => one(norm::local_response(&call)),
        "MeanVarianceNormalization" => one(norm::mean_variance(&call)),
        "ReduceSum" | "ReduceMean" | "ReduceMax" | "ReduceMin" | "ReduceProd" | "ReduceL1" | "ReduceL2"
        | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceSumSquare" => one(reduce::reduce(&call)),
        "ArgMax" | "ArgMin" => one(reduce::arg(&call)),
        "CumSum" => one(reduce::cumulative_sum(&call)),
        "Identity" => Ok(vec![call.input(0)?.clone()]),
        "Dropout" => control::dropout(&call),
        "Reshape" => one(layout::reshape(&call)),
        "Flatten" => one(layout::flatten(&call)),
        "Squeeze" => one(layout::squeeze(&call)),
        "Unsqueeze" => one(layout::unsqueeze(&call)),
        "Transpose" => one(layout::transpose(&call)),
        "Concat" => one(layout::concat(&call)),
        "Split" => layout::split(&call),
        "Slice" => one(layout::slice(&call)),
        "Expand" => one(layout::expand(&call)),
        "Tile" => one(layout::tile(&call)),
        "Pad" => one(layout::pad(&call)),
        "DepthToSpace" => one(layout::depth_to_space(&call)),
        "SpaceToDepth" => one(layout::space_to_depth(&call)),
        "Trilu" => one(layout::triangle(&call)),
        "Resize" => one(resize::resize(&call)),
        "Gather" => one(index::gather(&call)),
        "GatherElements" => one(index::gather_elements(&call)),
        "GatherND" => one(index::gather_nd(&call)),
        "ScatterElements" => one(index::scatter_elements(&call)),
        "ScatterND" => one(index::scatter_nd(&call)),
        "GridSample" => one(sample::grid_sample(&call)),
        "Col2Im" => one(sample::col2im(&call)),
        "DFT" => one(signal::dft(&call)),
        "STFT" => one(signal::stft(&call)),
        "OneHot" => one(index::one_hot(&call)),
        "TopK" => index::top_k(&call),
        "NonZero" => one(index::non_zero(&call)),
        "Shape" => one(source::shape(&call)),
        "Size" => one(source::size(&call)),
        "Range" => one(source::range(&call)),
        "Constant" => one(source::constant(&call)),
        "ConstantOfShape" => one(source::constant_of_shape(&call)),
        "EyeLike" => one(source::eye_like(&call)),
        "Attention" => attention::attention(&call),
        "LSTM" | "GRU" | "RNN" => recurrent::recurrent(&call),
        _ => Err(call.unsupported("the reference evaluator does not know the operator")),
    }
}
