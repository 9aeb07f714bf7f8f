//! Activation functions.

use super::Array;
use super::call::Call;
use super::elementwise::{larger, map, zip};
use super::walk::along;
use crate::error::Result;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// log(1 + e^x), without overflow for large x.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn relu(x: f64) -> f64 {
    // Not `max`, which would turn NaN into zero.
    if x < 0.0 { 0.0 } else { x }
}

pub(super) fn pointwise(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let alpha = |default: f32| f64::from(call.node.float("alpha", default));
    Ok(match call.node.op.as_str() {
        "Tanh" => map(x, f64::tanh),
        "Sigmoid" => map(x, sigmoid),
        "Softplus" => map(x, softplus),
        "Softsign" => map(x, |v| v / (1.0 + v.abs())),
        "Relu" => map(x, relu),
        "LeakyRelu" => {
            let a = alpha(0.01);
            map(x, |v| if v < 0.0 { a * v } else { v })
        }
        "Elu" => {
            let a = alpha(1.0);
            map(x, |v| if v < 0.0 { a * v.exp_m1() } else { v })
        }
        "Selu" => {
            let (a, gamma) = (alpha(1.673_263_2), f64::from(call.node.float("gamma", 1.050_701)));
            map(x, |v| gamma * if v <= 0.0 { a * v.exp_m1() } else { v })
        }
        "Celu" => {
            let a = alpha(1.0);
            map(x, |v| if v < 0.0 { a * (v / a).exp_m1() } else { v })
        }
        "HardSigmoid" => {
            let (a, b) = (alpha(0.2), f64::from(call.node.float("beta", 0.5)));
            map(x, |v| (a * v + b).clamp(0.0, 1.0))
        }
        "HardSwish" => map(x, |v| v * (v / 6.0 + 0.5).clamp(0.0, 1.0)),
        "ThresholdedRelu" => {
            let a = alpha(1.0);
            map(x, |v| if v > a { v } else { 0.0 })
        }
        "Gelu" => match call.node.string("approximate", "none") {
            "none" => map(x, |v| 0.5 * v * (1.0 + libm::erf(v * std::f64::consts::FRAC_1_SQRT_2))),
            "tanh" => {
                let c = (2.0 / std::f64::consts::PI).sqrt();
                map(x, |v| 0.5 * v * (1.0 + (c * (v + 0.044715 * v.powi(3))).tanh()))
            }
            other => return Err(call.malformed(format!("approximate is '{other}', not none or tanh"))),
        },
        "Mish" => map(x, |v| v * softplus(v).tanh()),
        "Swish" => {
            let a = alpha(1.0);
            map(x, |v| v * sigmoid(a * v))
        }
        "Shrink" => {
            let (bias, lambda) =
                (f64::from(call.node.float("bias", 0.0)), f64::from(call.node.float("lambd", 0.5)));
            map(x, |v| match v {
                v if v < -lambda => v + bias,
                v if v > lambda => v - bias,
                _ => 0.0,
            })
        }
        _ => return Err(call.unsupported("it is no activation function")),
    })
}

pub(super) fn prelu(call: &Call) -> Result<Array> {
    zip(call, call.input(0)?.dtype, |x, slope| if x < 0.0 { slope * x } else { x })
}

/// `Softmax`, its logarithm, and its hard form, along one axis.
pub(super) fn softmax(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let axis = call.axis(call.node.int("axis", -1), x.shape().len())?;
    let values = match call.node.op.as_str() {
        "Softmax" => along(x, axis, softmax_of),
        "LogSoftmax" => along(x, axis, |lane| {
            let top = lane.iter().copied().fold(f64::NEG_INFINITY, larger);
            let log_sum = lane.iter().map(|v| (v - top).exp()).sum::<f64>().ln();
            lane.iter().map(|v| v - top - log_sum).collect()
        }),
        _ => along(x, axis, |lane| {
            let top = lane.iter().copied().fold(f64::NEG_INFINITY, larger);
            let first = lane.iter().position(|&v| v == top);
            (0..lane.len()).map(|i| f64::from(Some(i) == first)).collect()
        }),
    };
    call.array(x.dtype, x.shape(), values)
}

/// e^(x - max x) / sum e^(x - max x)
pub(super) fn softmax_of(lane: &[f64]) -> Vec<f64> {
    let top = lane.iter().copied().fold(f64::NEG_INFINITY, larger);
    let exp: Vec<f64> = lane.iter().map(|v| (v - top).exp()).collect();
    let sum: f64 = exp.iter().sum();
    exp.into_iter().map(|e| e / sum).collect()
}
