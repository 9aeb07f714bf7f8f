//! `Attention`: softmax(scale Q Kᵀ + mask) V, as in opsets 23 and 24.

use super::Array;
use super::activation::softmax_of;
use super::call::Call;
use super::matmul::product;
use super::walk::spread;
use crate::error::Result;
use crate::tensor::DType;

/// Queries, keys or values by batch, head, position and feature.
struct Heads {
    batch: usize,
    heads: usize,
    length: usize,
    width: usize,
    values: Vec<f64>,
}

impl Heads {
    /// The matrix (positions by features) of one head.
    fn head(&self, batch: usize, head: usize) -> &[f64] {
        let size = self.length * self.width;
        let start = (batch * self.heads + head) * size;
        &self.values[start..start + size]
    }

    fn shape(&self) -> [usize; 4] {
        [self.batch, self.heads, self.length, self.width]
    }

    /// The `i`-th input. With three axes, the last holds all heads.
    fn read(call: &Call, i: usize, heads: &str) -> Result<Heads> {
        let array = call.input(i)?;
        match *array.shape() {
            [batch, heads, length, width] => {
                Ok(Heads { batch, heads, length, width, values: array.values().into_owned() })
            }
            [batch, length, hidden] => {
                let count = call.node.int(heads, 0);
                let heads = usize::try_from(count)
                    .ok()
                    .filter(|&n| n > 0 && hidden % n == 0)
                    .ok_or_else(|| call.malformed(format!("{heads} is {count} for a width of {hidden}")))?;
                let width = hidden / heads;
                let source = array.values();
                let mut values = Vec::with_capacity(source.len());
                for b in 0..batch {
                    for h in 0..heads {
                        for t in 0..length {
                            let at = (b * length + t) * hidden + h * width;
                            values.extend_from_slice(&source[at..at + width]);
                        }
                    }
                }
                Ok(Heads { batch, heads, length, width, values })
            }
            _ => Err(call.malformed(format!("input {i} has shape {:?}, not 3 or 4 axes", array.shape()))),
        }
    }

    /// These after those of an earlier call.
    fn after(self, call: &Call, i: usize) -> Result<Heads> {
        let Some(array) = call.optional(i) else {
            return Ok(self);
        };
        let past = match *array.shape() {
            [batch, heads, length, width]
                if (batch, heads, width) == (self.batch, self.heads, self.width) =>
            {
                Heads { batch, heads, length, width, values: array.values().into_owned() }
            }
            _ => {
                return Err(call.malformed(format!(
                    "a past of shape {:?} before {:?}",
                    array.shape(),
                    self.shape()
                )));
            }
        };
        let mut values = Vec::with_capacity(past.values.len() + self.values.len());
        for b in 0..self.batch {
            for h in 0..self.heads {
                values.extend_from_slice(past.head(b, h));
                values.extend_from_slice(self.head(b, h));
            }
        }
        Ok(Heads { length: past.length + self.length, values, ..self })
    }
}

/// What is added to the scores: 0 or the mask's value, minus infinity where a query must not look.
fn bias(call: &Call, q: &Heads, k: &Heads) -> Result<Vec<f64>> {
    let shape = [q.batch, q.heads, q.length, k.length];
    let mut bias = match call.optional(3) {
        Some(mask) => {
            let added: Vec<f64> = match mask.dtype {
                DType::Bool => {
                    mask.data.iter().map(|&v| if v != 0.0 { 0.0 } else { f64::NEG_INFINITY }).collect()
                }
                _ => mask.values().into_owned(),
            };
            // A mask may be shorter than the keys: what it does not speak of is hidden.
            let mut mask_shape = mask.shape().to_vec();
            let width = mask_shape.last().copied().unwrap_or(1);
            let mut padded = added;
            if width > 1 && width < k.length {
                padded = padded
                    .chunks_exact(width)
                    .flat_map(|row| {
                        let hidden = std::iter::repeat_n(f64::NEG_INFINITY, k.length - width);
                        row.iter().copied().chain(hidden).collect::<Vec<_>>()
                    })
                    .collect();
                if let Some(last) = mask_shape.last_mut() {
                    *last = k.length;
                }
            }
            spread(call, &call.array(mask.dtype, &mask_shape, padded)?, &shape)?
        }
        None => vec![0.0; call.room(&shape)?],
    };
    let causal = call.node.int("is_causal", 0) != 0;
    let valid = call.optional_ints(6);
    if valid.as_ref().is_some_and(|v| v.len() != q.batch) {
        return Err(call.malformed("nonpad_kv_seqlen has not one length per sample"));
    }
    let past = call.optional(4).and_then(|p| p.shape().get(2).copied());
    let (left, right) = (call.node.int("left_window_size", -1), call.node.int("right_window_size", -1));
    for (at, value) in bias.iter_mut().enumerate() {
        let key = (at % k.length) as i64;
        let query = (at / k.length % q.length) as i64;
        let length = valid.as_ref().map(|v| v[at / (k.length * q.length * q.heads)]);
        // Queries are the last positions of what is known.
        let before = match (past, length) {
            (Some(past), _) => past as i64,
            (None, Some(length)) => length.saturating_sub(q.length as i64),
            (None, None) => 0,
        };
        let ahead = key - query.saturating_add(before);
        let hidden = causal && ahead > 0
            || length.is_some_and(|length| key >= length)
            || left >= 0 && -ahead > left
            || right >= 0 && ahead > right;
        if hidden {
            *value = f64::NEG_INFINITY;
        }
    }
    Ok(bias)
}

pub(super) fn attention(call: &Call) -> Result<Vec<Array>> {
    let x = call.input(0)?;
    let q = Heads::read(call, 0, "q_num_heads")?;
    let k = Heads::read(call, 1, "kv_num_heads")?.after(call, 4)?;
    let v = Heads::read(call, 2, "kv_num_heads")?.after(call, 5)?;
    let fits = q.batch == k.batch
        && k.batch == v.batch
        && q.width == k.width
        && k.heads == v.heads
        && k.length == v.length
        && k.heads > 0
        && q.heads % k.heads == 0;
    if !fits {
        let shapes = format!("{:?}, {:?} and {:?}", q.shape(), k.shape(), v.shape());
        return Err(call.malformed(format!("queries, keys and values of shapes {shapes} do not fit")));
    }
    let scores_shape = [q.batch, q.heads, q.length, k.length];
    call.work(&[call.room(&scores_shape)?, q.width.max(v.width)])?;
    call.room(&[q.batch, q.heads, q.length, v.width])?;
    let bias = bias(call, &q, &k)?;
    let scale = match call.node.attributes.contains_key("scale") {
        true => f64::from(call.node.float("scale", 1.0)),
        false => 1.0 / (q.width as f64).sqrt(),
    };
    let softcap = f64::from(call.node.float("softcap", 0.0));
    let mode = call.node.int("qk_matmul_output_mode", 0);
    let mut shown = Vec::with_capacity(bias.len());
    let mut out = Vec::with_capacity(q.batch * q.heads * q.length * v.width);
    for b in 0..q.batch {
        for h in 0..q.heads {
            let shared = h / (q.heads / k.heads);
            let (queries, keys) = (q.head(b, h), k.head(b, shared));
            for t in 0..q.length {
                let query = &queries[t * q.width..(t + 1) * q.width];
                let start = ((b * q.heads + h) * q.length + t) * k.length;
                let bias = &bias[start..start + k.length];
                let raw: Vec<f64> = (0..k.length)
                    .map(|s| {
                        let key = &keys[s * k.width..(s + 1) * k.width];
                        scale * query.iter().zip(key).map(|(a, b)| a * b).sum::<f64>()
                    })
                    .collect();
                let cap = |v: &f64| if softcap > 0.0 { softcap * (v / softcap).tanh() } else { *v };
                let capped: Vec<f64> = raw.iter().map(cap).collect();
                let masked: Vec<f64> = capped.iter().zip(bias).map(|(a, b)| a + b).collect();
                // A query that may look at nothing gives zero, not NaN.
                let weights = match bias.iter().all(|&b| b == f64::NEG_INFINITY) {
                    true => vec![0.0; k.length],
                    false => softmax_of(&masked),
                };
                product(&weights, v.head(b, shared), 1, k.length, v.width, &mut out);
                shown.extend(match mode {
                    0 => raw,
                    1 => capped,
                    2 => masked,
                    _ => weights,
                });
            }
        }
    }
    let output = Array::new(x.dtype, &[q.batch, q.heads, q.length, v.width], out);
    let output = if x.shape().len() == 3 {
        let values = output.data.view().permuted_axes(vec![0, 2, 1, 3]).iter().copied().collect();
        call.array(x.dtype, &[q.batch, q.length, q.heads * v.width], values)?
    } else {
        output
    };
    Ok(vec![
        output,
        call.array(x.dtype, &k.shape(), k.values.clone())?,
        call.array(x.dtype, &v.shape(), v.values.clone())?,
        call.array(x.dtype, &scores_shape, shown)?,
    ])
}
