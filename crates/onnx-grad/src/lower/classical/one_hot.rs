//! `OneHotEncoder` of numbers: a new last axis with 1 at the place of the category. No gradient goes through it.
//!
//! A category that the encoder does not know is a row of zeros where the file says so (`zeros`). Otherwise ONNX Runtime stops;
//! here the row is not a number, so that the run stops as well and nothing is explained that the model has no score for.

use super::malformed;
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::Node;
use crate::tensor::{DType, TensorData};

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let x = node.input(0).ok_or_else(|| malformed(node, "it has no input"))?;
    let Some(categories) = node.ints("cats_int64s").filter(|ints| !ints.is_empty()) else { return Ok(None) };
    if b.fact(x).rank().is_none() {
        return Ok(None);
    }
    let whole = b.cast(x, DType::I64);
    let whole = b.unsqueeze(&whole, &[-1]);
    let known = b.constant(TensorData::i64(&[categories.len()], categories));
    let equal = b.op("Equal", &[&whole, &known]);
    let coded = b.cast(&equal, DType::F32);
    if node.int("zeros", 1) != 0 {
        return Ok(Some(coded));
    }
    let sum = b.reduce_sum(&coded, &[-1], true);
    let zero = b.scalar_like(&sum, 0.0);
    let unknown = b.op("Equal", &[&sum, &zero]);
    let nothing = b.scalar_like(&sum, f64::NAN);
    Ok(Some(b.select(&unknown, &nothing, &coded)))
}
