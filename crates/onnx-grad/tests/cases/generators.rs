//! One generator for every operator (or for a few that share their attributes).

mod elementwise;
mod index;
mod layout;
mod matmul;
mod norm;
mod recurrent;
mod reduce;
mod sample;
mod windows;

use self::elementwise::{
    along_axis, binary, clip, gated, gelu, modulo, pow, prelu, select, unary, variadic, with_float,
};
use self::index::{gather, gather_elements, gather_nd, scatter_elements, scatter_nd, top_k};
use self::layout::{
    blocks, cast, cast_like, concat, expand, flatten, pad, reshape, resize, slice, split, squeeze, tile,
    transpose, trilu, unsqueeze,
};
use self::matmul::{attention, einsum, gemm, matmul};
use self::norm::{
    batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, lp_norm, mean_variance_norm,
};
use self::recurrent::recurrent;
use self::reduce::{cumsum, reduce};
use self::sample::{col2im, dft, grid_sample, repeated, scanned, standardised, stft};
use self::windows::{conv, conv_transpose, global_pool, pool};
use super::Case;

type Generator = fn(u64) -> Case;

/// The operator a case is about, and its generator.
pub(crate) const GENERATORS: &[(&str, Generator)] = &[
    ("Add", |s| binary(s, "Add")),
    ("Sub", |s| binary(s, "Sub")),
    ("Mul", |s| binary(s, "Mul")),
    ("Mul-by-Sigmoid", gated),
    ("Div", |s| binary(s, "Div")),
    ("Max", |s| binary(s, "Max")),
    ("Min", |s| binary(s, "Min")),
    ("Mod", modulo),
    ("Sum", |s| variadic(s, "Sum")),
    ("Mean", |s| variadic(s, "Mean")),
    ("Pow", pow),
    ("Where", select),
    ("Clip", clip),
    ("Neg", |s| unary(s, "Neg", -2.0, 2.0)),
    ("Sqrt", |s| unary(s, "Sqrt", 0.2, 3.0)),
    ("Exp", |s| unary(s, "Exp", -2.0, 2.0)),
    ("Log", |s| unary(s, "Log", 0.2, 3.0)),
    ("Abs", |s| unary(s, "Abs", -2.0, 2.0)),
    ("Reciprocal", |s| unary(s, "Reciprocal", 0.3, 3.0)),
    ("Erf", |s| unary(s, "Erf", -2.0, 2.0)),
    ("Sin", |s| unary(s, "Sin", -3.0, 3.0)),
    ("Cos", |s| unary(s, "Cos", -3.0, 3.0)),
    ("Tan", |s| unary(s, "Tan", -1.0, 1.0)),
    ("Asin", |s| unary(s, "Asin", -0.9, 0.9)),
    ("Acos", |s| unary(s, "Acos", -0.9, 0.9)),
    ("Atan", |s| unary(s, "Atan", -2.0, 2.0)),
    ("Sinh", |s| unary(s, "Sinh", -2.0, 2.0)),
    ("Cosh", |s| unary(s, "Cosh", -2.0, 2.0)),
    ("Asinh", |s| unary(s, "Asinh", -2.0, 2.0)),
    ("Acosh", |s| unary(s, "Acosh", 1.2, 3.0)),
    ("Atanh", |s| unary(s, "Atanh", -0.8, 0.8)),
    ("Tanh", |s| unary(s, "Tanh", -2.0, 2.0)),
    ("Sigmoid", |s| unary(s, "Sigmoid", -3.0, 3.0)),
    ("Softplus", |s| unary(s, "Softplus", -3.0, 3.0)),
    ("Softsign", |s| unary(s, "Softsign", -3.0, 3.0)),
    ("Relu", |s| unary(s, "Relu", -2.0, 2.0)),
    ("HardSwish", |s| unary(s, "HardSwish", -5.0, 5.0)),
    ("Mish", |s| unary(s, "Mish", -3.0, 3.0)),
    ("Identity", |s| unary(s, "Identity", -3.0, 3.0)),
    ("LeakyRelu", |s| with_float(s, "LeakyRelu", &["alpha"])),
    ("Elu", |s| with_float(s, "Elu", &["alpha"])),
    ("Celu", |s| with_float(s, "Celu", &["alpha"])),
    ("Selu", |s| with_float(s, "Selu", &["alpha", "gamma"])),
    ("Swish", |s| with_float(s, "Swish", &["alpha"])),
    ("ThresholdedRelu", |s| with_float(s, "ThresholdedRelu", &["alpha"])),
    ("HardSigmoid", |s| with_float(s, "HardSigmoid", &["alpha", "beta"])),
    ("GridSample", grid_sample),
    ("Col2Im", col2im),
    ("DFT", dft),
    ("STFT", stft),
    ("Loop", repeated),
    ("Scan", scanned),
    ("BatchNormalization-of-weights", standardised),
    ("PRelu", prelu),
    ("Gelu", gelu),
    ("Softmax", |s| along_axis(s, "Softmax")),
    ("LogSoftmax", |s| along_axis(s, "LogSoftmax")),
    ("MatMul", matmul),
    ("Gemm", gemm),
    ("Einsum", einsum),
    ("Conv", conv),
    ("ConvTranspose", conv_transpose),
    ("MaxPool", |s| pool(s, "MaxPool")),
    ("AveragePool", |s| pool(s, "AveragePool")),
    ("GlobalAveragePool", |s| global_pool(s, "GlobalAveragePool")),
    ("GlobalMaxPool", |s| global_pool(s, "GlobalMaxPool")),
    ("BatchNormalization", batch_norm),
    ("InstanceNormalization", instance_norm),
    ("LayerNormalization", |s| layer_norm(s, "LayerNormalization")),
    ("RMSNormalization", |s| layer_norm(s, "RMSNormalization")),
    ("GroupNormalization", group_norm),
    ("LpNormalization", lp_norm),
    ("LRN", local_response_norm),
    ("MeanVarianceNormalization", mean_variance_norm),
    ("ReduceSum", |s| reduce(s, "ReduceSum")),
    ("ReduceMean", |s| reduce(s, "ReduceMean")),
    ("ReduceMax", |s| reduce(s, "ReduceMax")),
    ("ReduceMin", |s| reduce(s, "ReduceMin")),
    ("ReduceProd", |s| reduce(s, "ReduceProd")),
    ("ReduceL1", |s| reduce(s, "ReduceL1")),
    ("ReduceL2", |s| reduce(s, "ReduceL2")),
    ("ReduceLogSum", |s| reduce(s, "ReduceLogSum")),
    ("ReduceLogSumExp", |s| reduce(s, "ReduceLogSumExp")),
    ("ReduceSumSquare", |s| reduce(s, "ReduceSumSquare")),
    ("Reshape", reshape),
    ("Flatten", flatten),
    ("Squeeze", squeeze),
    ("Unsqueeze", unsqueeze),
    ("Transpose", transpose),
    ("Concat", concat),
    ("Split", split),
    ("Slice", slice),
    ("Expand", expand),
    ("Tile", tile),
    ("Pad", pad),
    ("Resize", resize),
    ("DepthToSpace", |s| blocks(s, "DepthToSpace")),
    ("SpaceToDepth", |s| blocks(s, "SpaceToDepth")),
    ("Cast", cast),
    ("CastLike", cast_like),
    ("CumSum", cumsum),
    ("Trilu", trilu),
    ("Gather", gather),
    ("GatherElements", gather_elements),
    ("GatherND", gather_nd),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
    ("TopK", top_k),
    ("Attention", attention),
    ("LSTM", |s| recurrent(s, "LSTM")),
    ("GRU", |s| recurrent(s, "GRU")),
    ("RNN", |s| recurrent(s, "RNN")),
    ("Dropout", |s| unary(s, "Dropout", -2.0, 2.0)),
];
