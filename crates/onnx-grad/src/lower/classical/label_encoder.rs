//! `LabelEncoder` from numbers to numbers: each key has its value, all else a default. No gradient goes through it.

use super::{floats, malformed};
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;
use crate::tensor::{DType, TensorData};

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = node.input(0).ok_or_else(|| malformed(node, "it has no input"))?;
    if b.fact(x).rank().is_none() {
        return Ok(None);
    }
    let (whole, decimal) = (node.ints("keys_int64s").unwrap_or_default(), node.floats("keys_floats"));
    let (x, keys) = if whole.is_empty() {
        (b.cast(x, DType::F32), floats(b, &[decimal.len()], decimal))
    } else {
        (b.cast(x, DType::I64), b.constant(TensorData::i64(&[whole.len()], whole)))
    };
    let numbers = node.ints("values_int64s").unwrap_or_default();
    let (values, default, dtype): (Vec<f32>, f32, DType) = if numbers.is_empty() {
        (node.floats("values_floats").to_vec(), node.float("default_float", 0.0), DType::F32)
    } else {
        let values = numbers.iter().map(|&v| v as f32).collect();
        (values, node.int("default_int64", -1) as f32, DType::I64)
    };
    let count = whole.len().max(decimal.len());
    // Words, tensors for keys, and a search for "not a number" are left to engines.
    if count == 0 || values.len() != count || decimal.iter().any(|key| key.is_nan()) {
        return Ok(None);
    }
    let x = b.unsqueeze(&x, &[-1]);
    let equal = b.op("Equal", &[&x, &keys]);
    let found = b.cast(&equal, DType::F32);
    let steps: Vec<f32> = values.iter().map(|value| value - default).collect();
    let steps = floats(b, &[count], &steps);
    let chosen = b.mul(&found, &steps);
    let sum = b.reduce_sum(&chosen, &[-1], false);
    let value = b.shift(&sum, f64::from(default));
    Ok(Some(b.cast(&value, dtype)))
}
