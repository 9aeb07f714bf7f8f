//! Attention where it is one operator (opset 23 and later): `softmax(scale Q K^T + mask) V`.
//!
//! Inputs are `[batch, heads, length, size]`, or `[batch, length, heads * size]` with the numbers of heads
//! as attributes. Keys and values may have fewer heads, which are then shared (grouped queries).

use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{Dim, Node};
use crate::tensor::{DType, TensorData};

/// Queries that share a head of keys; a copy is made for each.
const MAX_SHARED: i64 = 1024;

/// What hides a position: far below any score, and two of them are still a float32.
const LOWEST: f64 = f32::MIN as f64 / 4.0;

pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Value>> {
    let refuse = |reason: &str| Error::NotDifferentiable { node: node.label(), reason: reason.to_string() };
    if node.input(4).is_some() || node.input(5).is_some() || node.input(6).is_some() {
        return Err(refuse("a cache of past keys and values has no rule; export without it"));
    }
    if node.outputs.iter().skip(1).any(|o| !o.is_empty()) {
        return Err(refuse("only its first output has a rule"));
    }
    if ["left_window_size", "right_window_size"].iter().any(|side| node.int(side, -1) >= 0) {
        return Err(refuse("a window of positions has no rule; export with a mask"));
    }
    let name = |i: usize| node.input(i).ok_or_else(|| refuse("it needs queries, keys and values"));
    let (q, k, v) = (name(0)?, name(1)?, name(2)?);
    let flat = b.fact(q).rank() == Some(3);
    let heads = |b: &Builder, value: &str, attribute: &str| match flat {
        true => Some(node.int(attribute, 0)).filter(|&h| h > 0),
        false => b.shape(value).and_then(|s| s.get(1)).and_then(Dim::known),
    };
    let (Some(q_heads), Some(kv_heads)) = (heads(b, q, "q_num_heads"), heads(b, k, "kv_num_heads")) else {
        return Ok(None);
    };
    let split = |b: &mut Builder, value: &str, heads: i64| -> Option<Value> {
        if !flat {
            return Some(Value::named(value));
        }
        let width = b.shape(value)?.get(2)?.known().filter(|width| width % heads == 0)?;
        let apart = b.reshape(value, &[0, 0, heads, width / heads]);
        Some(b.transpose(&apart, &[0, 2, 1, 3]))
    };
    let parts = (split(b, q, q_heads), split(b, k, kv_heads), split(b, v, kv_heads));
    let (Some(q4), Some(mut k4), Some(mut v4)) = parts else { return Ok(None) };
    if q_heads != kv_heads {
        let times = q_heads.checked_div(kv_heads).unwrap_or(0);
        if times.checked_mul(kv_heads) != Some(q_heads) || !(1..=MAX_SHARED).contains(&times) {
            return Err(refuse(&format!("{q_heads} heads of queries cannot share {kv_heads} of keys")));
        }
        k4 = share_heads(b, &k4, times);
        v4 = share_heads(b, &v4, times);
    }
    let size = b.shape(&q4).and_then(|s| s.get(3)).and_then(Dim::known);
    let scale = match (node.float("scale", 0.0), size) {
        (given, _) if given != 0.0 => f64::from(given),
        (_, Some(size)) => 1.0 / (size as f64).sqrt(),
        _ => return Ok(None),
    };
    let k_transposed = b.transpose(&k4, &[0, 1, 3, 2]);
    let scores = b.matmul(&q4, &k_transposed);
    let mut scores = b.scale(&scores, scale);
    let softcap = f64::from(node.float("softcap", 0.0));
    let bias = mask(b, node, &scores)?;
    let capped_first = softcap != 0.0;
    if capped_first {
        let small = b.scale(&scores, 1.0 / softcap);
        let bent = b.op("Tanh", &[&small]);
        scores = b.scale(&bent, softcap);
    }
    let bias = bias.into_iter().reduce(|a, c| b.add(&a, &c));
    if let Some(bias) = &bias {
        scores = b.add(&scores, bias);
    }
    let mut weights = b.op_with("Softmax", &[&scores], &[("axis", (-1i64).into())]);
    if let Some(bias) = bias.filter(|_| node.input(3).is_some()) {
        // A query that may look at nothing gives zero.
        let hidden = b.scalar_like(&bias, LOWEST / 2.0);
        let visible = b.op("Greater", &[&bias, &hidden]);
        weights = b.keep_where(&visible, &weights);
    }
    let mut result = b.matmul(&weights, &v4);
    if flat {
        let Some(width) = b.shape(&v4).and_then(|s| s.get(3)).and_then(Dim::known) else { return Ok(None) };
        result = b.transpose(&result, &[0, 2, 1, 3]);
        let Some(hidden) = q_heads.checked_mul(width) else { return Ok(None) };
        result = b.reshape(&result, &[0, 0, hidden]);
    }
    Ok(Some(result))
}

/// Every head `times` times in a row.
fn share_heads(b: &mut Builder, value: &str, times: i64) -> Value {
    let apart = b.unsqueeze(value, &[2]);
    let copies: Vec<&str> = (0..times).map(|_| &*apart).collect();
    let wide = b.concat(&copies, 2);
    let attributes = [("start", 2i64.into()), ("end", 4i64.into())];
    let tail = b.op_with("Shape", &[value], &attributes);
    let front = b.ints(&[0, -1]);
    let shape = b.concat(&[&front, &tail], 0);
    b.op("Reshape", &[&wide, &shape])
}

/// What is added to the scores: the mask, and minus a lot above the diagonal.
fn mask(b: &mut Builder, node: &Node, scores: &str) -> Result<Vec<Value>> {
    let dtype = b.fact(scores).dtype.unwrap_or(DType::F32);
    let lowest = b.constant(TensorData::scalar(dtype, LOWEST));
    let zero = b.constant(TensorData::scalar(dtype, 0.0));
    let mut parts = Vec::new();
    if let Some(mask) = node.input(3) {
        parts.push(if b.fact(mask).dtype == Some(DType::Bool) {
            b.select(mask, &zero, &lowest)
        } else {
            // Minus infinity in a whole row would be no number after the softmax.
            b.op("Max", &[mask, &lowest])
        });
    }
    if node.int("is_causal", 0) != 0 {
        let attributes = [("start", (-2i64).into())];
        let shape = b.op_with("Shape", &[scores], &attributes);
        let square = b.op("Expand", &[&lowest, &shape]);
        let one = b.constant(TensorData::i64(&[], &[1]));
        parts.push(b.op_with("Trilu", &[&square, &one], &[("upper", 1i64.into())]));
    }
    Ok(parts)
}
