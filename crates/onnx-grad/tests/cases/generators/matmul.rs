//! Products of matrices.

use onnx_grad::{Attribute, TensorData};

use super::super::{Case, Maker};

pub(super) fn matmul(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (r, k, c) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 3));
    let (batch, other) = (m.rng.size(1, 3), m.rng.size(1, 2));
    let (a, b): (Vec<usize>, Vec<usize>) = match m.rng.int(0, 7) {
        0 => (vec![r, k], vec![k, c]),
        1 => (vec![k], vec![k, c]),
        2 => (vec![r, k], vec![k]),
        3 => (vec![k], vec![k]),
        4 => (vec![batch, r, k], vec![k, c]),
        5 => (vec![batch, other, r, k], vec![batch, other, k, c]),
        6 => (vec![batch, 1, r, k], vec![other, k, c]),
        _ => (vec![batch, r, k], vec![batch, k, 1]),
    };
    let x = if a.len() > 1 { m.batched(&a) } else { m.fixed(&a) };
    let w = m.parameter(&b, -1.7, 1.6);
    let y = m.op("MatMul", &[&x, &w], &[]);
    m.finish(&y)
}

pub(super) fn gemm(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (r, k, c) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 3));
    let (ta, tb) = (m.rng.coin(), m.rng.coin());
    let x = if ta { m.fixed(&[k, r]) } else { m.batched(&[r, k]) };
    let w = m.parameter(&if tb { [c, k] } else { [k, c] }, -1.2, 1.3);
    let attributes = [
        ("transA", Attribute::Int(ta.into())),
        ("transB", Attribute::Int(tb.into())),
        ("alpha", Attribute::Float(0.7)),
        ("beta", Attribute::Float(1.3)),
    ];
    let shape = m.rng.pick(&[vec![c], vec![1, c], vec![r, c], vec![1]]);
    let bias = m.parameter(&shape, -1.0, 1.0);
    let y = if m.rng.coin() {
        m.op("Gemm", &[&x, &w, &bias], &attributes)
    } else {
        // The bias must be used, or it has no gradient.
        let product = m.op("Gemm", &[&x, &w], &attributes);
        m.op("Add", &[&product, &bias], &[])
    };
    m.finish(&y)
}

pub(super) fn einsum(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let forms = [
        "ij,jk->ik",
        "bij,bjk->bik",
        "bhqd,bhkd->bhqk",
        "bhqk,bhkd->bhqd",
        "i,j->ij",
        "ij->ji",
        "ij->i",
        "ij->",
        "bij,ij->b",
        "...ij,...jk->...ik",
        "ij,jk",
        "bi,bj,ij->b",
    ];
    let equation = m.rng.pick(&forms);
    let sizes: Vec<usize> = (0..26).map(|_| m.rng.size(1, 3)).collect();
    let leading = m.rng.size(1, 2);
    let size = |c: char| if c.is_ascii_lowercase() { sizes[(c as u8 - b'a') as usize] } else { leading };
    let inputs = equation.split("->").next().unwrap();
    let mut operands = Vec::new();
    for (i, term) in inputs.split(',').enumerate() {
        let shape: Vec<usize> = term.replace("...", "E").chars().map(size).collect();
        operands.push(if i == 1 { m.parameter(&shape, -1.1, 1.3) } else { m.fixed(&shape) });
    }
    let operands: Vec<&str> = operands.iter().map(|o| &**o).collect();
    let y = m.op("Einsum", &operands, &[("equation", equation.into())]);
    m.finish(&y)
}

pub(super) fn attention(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, q_len, k_len, size) = (m.rng.size(1, 2), m.rng.size(1, 3), m.rng.size(2, 3), 2);
    let kv_heads = m.rng.size(1, 2);
    let q_heads = kv_heads * m.rng.size(1, 2);
    let flat = m.rng.coin();
    let shape = |heads: usize, len: usize| {
        if flat { vec![n, len, heads * size] } else { vec![n, heads, len, size] }
    };
    let q = m.fixed(&shape(q_heads, q_len));
    let k = m.fixed(&shape(kv_heads, k_len));
    let v = m.fixed(&shape(kv_heads, k_len));
    let mut attributes = vec![("is_causal", Attribute::Int(i64::from(q_len == k_len && m.rng.coin())))];
    if flat {
        attributes.push(("q_num_heads", (q_heads as i64).into()));
        attributes.push(("kv_num_heads", (kv_heads as i64).into()));
    }
    if m.rng.coin() {
        attributes.push(("scale", Attribute::Float(0.8)));
    }
    let y = match m.rng.int(0, 2) {
        0 => m.op("Attention", &[&q, &k, &v], &attributes),
        1 => {
            let mask = m.fixed(&[q_len, k_len]);
            m.op("Attention", &[&q, &k, &v, &mask], &attributes)
        }
        _ => {
            let mut mask: Vec<bool> = (0..q_len * k_len).map(|_| m.rng.coin()).collect();
            (0..q_len).for_each(|row| mask[row * k_len] = true);
            let mask = m.b.constant(TensorData::bool(&[q_len, k_len], &mask));
            m.op("Attention", &[&q, &k, &v, &mask], &attributes)
        }
    };
    m.finish(&y)
}
