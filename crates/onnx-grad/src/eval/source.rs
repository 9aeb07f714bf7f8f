//! Ops that make values from shapes and attributes.

use super::Array;
use super::call::Call;
use super::elementwise::fit;
use crate::error::Result;
use crate::graph::Attribute;
use crate::tensor::DType;

pub(super) fn shape(call: &Call) -> Result<Array> {
    let shape = call.input(0)?.shape();
    let rank = shape.len() as i64;
    let bound = |name: &str, default: i64| {
        let at = call.node.int(name, default);
        (if at < 0 { at.saturating_add(rank) } else { at }).clamp(0, rank) as usize
    };
    let (start, end) = (bound("start", 0), bound("end", rank));
    Ok(Array::ints(shape[start..end.max(start)].iter().map(|&d| d as i64)))
}

pub(super) fn size(call: &Call) -> Result<Array> {
    Ok(Array::scalar(DType::I64, call.input(0)?.data.len() as f64))
}

pub(super) fn range(call: &Call) -> Result<Array> {
    let (start, limit, delta) = (call.scalar(0)?, call.scalar(1)?, call.scalar(2)?);
    let count = ((limit - start) / delta).ceil().max(0.0);
    if delta == 0.0 || !count.is_finite() {
        return Err(call.malformed(format!("it counts from {start} to {limit} by {delta}")));
    }
    let count = call.room(&[count as usize])?;
    let values = (0..count).map(|i| start + i as f64 * delta).collect();
    call.array(call.input(0)?.dtype, &[count], values)
}

pub(super) fn constant(call: &Call) -> Result<Array> {
    let attribute = |name: &str| call.node.attributes.get(name);
    if let Some(Attribute::Tensor(tensor)) = attribute("value") {
        call.room(tensor.shape())?;
        return Ok(Array::from(tensor));
    }
    let floats = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    match (
        attribute("value_float"),
        attribute("value_floats"),
        attribute("value_int"),
        attribute("value_ints"),
    ) {
        (Some(Attribute::Float(v)), ..) => Ok(Array::scalar(DType::F32, f64::from(*v))),
        (_, Some(Attribute::Floats(v)), ..) => Ok(Array::new(DType::F32, &[v.len()], floats(v))),
        (_, _, Some(Attribute::Int(v)), _) => Ok(Array::scalar(DType::I64, *v as f64)),
        (.., Some(Attribute::Ints(v))) => Ok(Array::ints(v.iter().copied())),
        _ => Err(call.unsupported("it has no tensor, numbers or list of numbers as its value")),
    }
}

pub(super) fn constant_of_shape(call: &Call) -> Result<Array> {
    let shape = call.sizes(&call.ints(0)?)?;
    let count = call.room(&shape)?;
    let (dtype, value) = match call.node.attributes.get("value") {
        Some(Attribute::Tensor(t)) if t.len() == 1 => (t.dtype(), t.to_f64()[0]),
        Some(_) => return Err(call.malformed("its value is not one number")),
        None => (DType::F32, 0.0),
    };
    call.array(dtype, &shape, vec![value; count])
}

pub(super) fn eye_like(call: &Call) -> Result<Array> {
    let x = call.input(0)?;
    let &[rows, columns] = x.shape() else {
        return Err(call.malformed(format!("its input has shape {:?}, not two axes", x.shape())));
    };
    let dtype = match call.node.attributes.get("dtype") {
        Some(Attribute::Int(code)) => i32::try_from(*code)
            .ok()
            .and_then(DType::from_code)
            .ok_or_else(|| call.unsupported(format!("element type code {code} is not read")))?,
        _ => x.dtype,
    };
    let k = call.node.int("k", 0);
    let on = |i: usize| (i % columns) as i64 - (i / columns) as i64 == k;
    call.array(dtype, x.shape(), (0..rows * columns).map(|i| fit(dtype, f64::from(on(i)))).collect())
}
