//! Arithmetic of 8-bit integers that stand for floats: `x = scale (q - zero)`.

use super::Array;
use super::call::Call;
use super::elementwise::{highest, lowest};
use super::{conv, matmul};
use crate::error::Result;
use crate::tensor::DType;

/// The data less its zero point, which lies along `axis` where it has several elements.
fn centred(call: &Call, data: usize, zero: usize, axis: usize) -> Result<Array> {
    let x = call.input(data)?;
    let Some(zero) = call.optional(zero) else {
        return Ok(Array { dtype: DType::I32, data: x.data.clone() });
    };
    let zeros = along(call, x, zero, axis)?;
    Ok(Array { dtype: DType::I32, data: &x.data - &zeros })
}

/// A scalar, a vector along `axis`, or a tensor that broadcasts, in the shape of `x`.
fn along(call: &Call, x: &Array, values: &Array, axis: usize) -> Result<ndarray::ArrayD<f64>> {
    let shape = match values.shape() {
        [n] if *n > 1 && axis < x.shape().len() => {
            let mut shape = vec![1; x.shape().len()];
            shape[axis] = *n;
            shape
        }
        [_] => Vec::new(),
        other => other.to_vec(),
    };
    let shaped = values.data.to_shape(shape).ok();
    let spread = shaped.and_then(|s| Some(s.broadcast(x.data.raw_dim())?.to_owned()));
    spread.ok_or_else(|| {
        call.malformed(format!("{:?} does not go along axis {axis} of {:?}", values.shape(), x.shape()))
    })
}

/// Convolution of the centred data; padding is zero after centring.
pub(super) fn conv_integer(call: &Call) -> Result<Array> {
    let (x, w) = (centred(call, 0, 2, usize::MAX)?, centred(call, 1, 3, 0)?);
    conv::conv(&call.with_inputs(&[Some(&x), Some(&w)]))
}

/// Product of the centred matrices: a zero point for each row of the left, for each column of the right.
pub(super) fn matmul_integer(call: &Call) -> Result<Array> {
    let rank = |i: usize| call.input(i).map(|a| a.shape().len());
    let (rows, columns) = (rank(0)?.saturating_sub(2), rank(1)?.saturating_sub(1));
    let (a, b) = (centred(call, 0, 2, rows)?, centred(call, 1, 3, columns)?);
    matmul::matmul(&call.with_inputs(&[Some(&a), Some(&b)]))
}

/// The axis that scales and zero points lie along.
fn quantised_axis(call: &Call, x: &Array) -> Result<usize> {
    if call.node.int("block_size", 0) != 0 {
        return Err(call.unsupported("blocks of scales are not implemented"));
    }
    if call.optional(1).is_some_and(|scale| scale.data.len() == 1) {
        return Ok(usize::MAX);
    }
    call.axis(call.node.int("axis", 1), x.shape().len())
}

/// `q = saturate(round(x / scale) + zero)`, the division in float32 as in engines.
pub(super) fn quantize(call: &Call) -> Result<Array> {
    let (x, scale) = (call.input(0)?, call.input(1)?);
    let zero = call.optional(2);
    let declared = call.node.int("output_dtype", 0) as i32;
    let dtype = zero.map(|z| z.dtype).or_else(|| DType::from_code(declared)).unwrap_or(DType::U8);
    if !matches!(dtype, DType::U8 | DType::I8 | DType::U16 | DType::I16) {
        return Err(call.unsupported(format!("quantising to {dtype} is not implemented")));
    }
    let axis = quantised_axis(call, x)?;
    let mut data = x.data.clone();
    data.zip_mut_with(&along(call, x, scale, axis)?, |v, &s| *v = f64::from(*v as f32 / s as f32));
    data.mapv_inplace(f64::round_ties_even);
    if let Some(zero) = zero {
        data += &along(call, x, zero, axis)?;
    }
    data.mapv_inplace(|v| v.clamp(lowest(dtype), highest(dtype)));
    Ok(Array { dtype, data })
}

/// `x = scale (q - zero)`
pub(super) fn dequantize(call: &Call) -> Result<Array> {
    let (q, scale) = (call.input(0)?, call.input(1)?);
    let axis = quantised_axis(call, q)?;
    let data = centred(call, 0, 2, axis)?.data * along(call, q, scale, axis)?;
    Ok(Array { dtype: scale.dtype, data })
}

/// To uint8, with the scale and zero point that just cover the data and 0.
pub(super) fn dynamic_quantize(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let low = x.data.iter().fold(0.0f32, |m, &v| m.min(v as f32));
    let high = x.data.iter().fold(0.0f32, |m, &v| m.max(v as f32));
    let scale = if low == high { 1.0 } else { (high - low) / 255.0 };
    let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
    let data = x.data.mapv(|v| f64::from(((v as f32 / scale).round_ties_even() + zero).clamp(0.0, 255.0)));
    Ok(vec![
        Array { dtype: DType::U8, data },
        Array::scalar(DType::F32, f64::from(scale)),
        Array::scalar(DType::U8, f64::from(zero)),
    ])
}
