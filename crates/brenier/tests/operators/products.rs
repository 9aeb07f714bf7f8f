//! Products of matrices, quantised arithmetic, recurrent networks, and parts that engines fuse.

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, DType};

use super::sample::{Sample, numbers, sample};

const BYTES: [DType; 2] = [DType::U8, DType::I8];

pub(crate) fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    matrices(&mut all);
    quantised_products(&mut all);
    quantised(&mut all);
    recurrent(&mut all);
    rotary(&mut all);
    all
}

fn of(dtype: DType, shape: &[usize], seed: u64) -> Option<Array> {
    Some(numbers(dtype, shape, seed))
}

fn matrices(all: &mut Vec<Sample>) {
    let shapes: [(&[usize], &[usize]); 12] = [
        (&[1, 2, 4, 3], &[3]),
        (&[2, 4, 3], &[3]),
        (&[4], &[2, 4, 5]),
        (&[3, 4], &[4, 5]),
        (&[4], &[4, 5]),
        (&[3, 4], &[4]),
        (&[4], &[4]),
        (&[2, 3, 4], &[4, 5]),
        (&[2, 3, 4], &[2, 4, 5]),
        (&[3, 4], &[2, 4, 5]),
        (&[2, 1, 3, 4], &[3, 4, 5]),
        (&[1, 70], &[70, 33]),
    ];
    for (a, b) in shapes {
        for dtype in [DType::F32, DType::I32, DType::I64] {
            all.push(sample("MatMul", &[], &[of(dtype, a, 1), of(dtype, b, 2)], &[dtype]));
        }
    }
    for (ta, tb) in [(0i64, 0i64), (0, 1), (1, 0), (1, 1)] {
        for (alpha, beta) in [(1.0f32, 1.0f32), (0.5, 2.0), (2.0, 0.0)] {
            for c in [None, Some(&[][..]), Some(&[5usize][..]), Some(&[3, 1]), Some(&[3, 5]), Some(&[1, 5])] {
                let attributes = [
                    ("transA", ta.into()),
                    ("transB", tb.into()),
                    ("alpha", alpha.into()),
                    ("beta", beta.into()),
                ];
                let a = if ta == 1 { [4, 3] } else { [3, 4] };
                let b = if tb == 1 { [5, 4] } else { [4, 5] };
                let inputs =
                    [of(DType::F32, &a, 1), of(DType::F32, &b, 2), c.and_then(|c| of(DType::F32, c, 3))];
                let given = if c.is_some() { 3 } else { 2 };
                all.push(sample("Gemm", &attributes, &inputs[..given], &[DType::F32]));
            }
        }
    }
    for (equation, shapes) in [
        ("ij,jk->ik", &[&[2usize, 3][..], &[3, 4]][..]),
        ("bij,bjk->bik", &[&[2, 2, 3], &[2, 3, 4]]),
        ("bhqd,bhkd->bhqk", &[&[1, 2, 3, 4], &[1, 2, 5, 4]]),
        ("ij->ji", &[&[2, 3]]),
        ("ij->", &[&[2, 3]]),
        ("ij->i", &[&[2, 3]]),
        ("ii->i", &[&[3, 3]]),
        ("i,j->ij", &[&[2], &[3]]),
        ("...ij,...jk->...ik", &[&[2, 2, 3], &[2, 3, 4]]),
        ("ij,jk,kl->il", &[&[2, 3], &[3, 4], &[4, 2]]),
        ("ij,ij", &[&[2, 3], &[2, 3]]),
        ("bnd,de->bne", &[&[2, 3, 4], &[4, 5]]),
        ("ij,kj->ik", &[&[2, 3], &[4, 3]]),
        ("abc,cd->dab", &[&[2, 3, 4], &[4, 2]]),
    ] {
        let inputs: Vec<_> = shapes.iter().enumerate().map(|(i, s)| of(DType::F32, s, i as u64)).collect();
        let attributes = [("equation", Attribute::String(equation.to_string()))];
        all.push(sample("Einsum", &attributes, &inputs, &[DType::F32]));
    }
}

fn quantised_products(all: &mut Vec<Sample>) {
    for a in BYTES {
        for b in BYTES {
            let zero = |dtype: DType, v: f64| Some(Array::scalar(dtype, v));
            let middle = |dtype: DType| zero(dtype, if dtype == DType::U8 { 128.0 } else { -3.0 });
            for (x, w) in [([3usize, 4], [4usize, 5]), ([1, 70], [70, 33]), ([5, 130], [130, 17])] {
                let columns = Some(Array::new(b, &[w[1]], (0..w[1]).map(|i| (i % 7) as f64).collect()));
                for zeros in [
                    vec![],
                    vec![middle(a)],
                    vec![middle(a), middle(b)],
                    vec![None, middle(b)],
                    vec![middle(a), columns],
                ] {
                    let mut inputs = vec![of(a, &x, 1), of(b, &w, 2)];
                    inputs.extend(zeros);
                    all.push(sample("MatMulInteger", &[], &inputs, &[DType::I32]));
                }
            }
            let batched = [of(a, &[2, 3, 9], 1), of(b, &[9, 5], 2), middle(a), middle(b)];
            all.push(sample("MatMulInteger", &[], &batched, &[DType::I32]));
            for (kernel, groups) in [(1usize, 1i64), (3, 1), (3, 4), (2, 2)] {
                let x = of(a, &[2, 4, 6, 5], 3);
                let w = of(b, &[4, 4 / groups as usize, kernel, kernel], 4);
                for zeros in [vec![], vec![middle(a)], vec![middle(a), middle(b)], vec![None, middle(b)]] {
                    for pads in [0i64, 1] {
                        for stride in [1i64, 2] {
                            let attributes = [
                                ("group", groups.into()),
                                ("pads", vec![pads; 4].into()),
                                ("strides", vec![stride; 2].into()),
                                ("kernel_shape", vec![kernel as i64; 2].into()),
                            ];
                            let mut inputs = vec![x.clone(), w.clone()];
                            inputs.extend(zeros.clone());
                            all.push(sample("ConvInteger", &attributes, &inputs, &[DType::I32]));
                        }
                    }
                }
            }
            let line = [of(a, &[2, 3, 9], 1), of(b, &[4, 3, 3], 2), middle(a)];
            all.push(sample("ConvInteger", &[("pads", vec![1i64, 1].into())], &line, &[DType::I32]));
        }
    }
}

fn quantised(all: &mut Vec<Sample>) {
    for dtype in BYTES {
        for axis in [None, Some(0i64), Some(1), Some(-1)] {
            let attributes: Vec<(&str, Attribute)> = axis.iter().map(|&a| ("axis", a.into())).collect();
            for shape in [&[3usize, 4, 2][..], &[3, 4]] {
                let length = shape[axis.map_or(1, |a| if a < 0 { shape.len() - 1 } else { a as usize })];
                for channels in [None, Some(length)] {
                    let size: &[usize] = &channels.map_or(vec![], |n| vec![n]);
                    let count: usize = size.iter().product();
                    let scale = Array::new(
                        DType::F32,
                        size,
                        (0..count).map(|i| f64::from(0.02 + 0.013 * i as f32)).collect(),
                    );
                    let low = if dtype == DType::U8 { 100.0 } else { -7.0 };
                    let zero = Array::new(dtype, size, (0..count).map(|i| low + i as f64).collect());
                    let x = of(DType::F32, shape, 1);
                    let q = of(dtype, shape, 2);
                    let scale = Some(scale);
                    all.push(sample(
                        "QuantizeLinear",
                        &attributes,
                        &[x.clone(), scale.clone(), Some(zero.clone())],
                        &[dtype],
                    ));
                    if dtype == DType::U8 {
                        all.push(sample("QuantizeLinear", &attributes, &[x, scale.clone()], &[dtype]));
                    }
                    all.push(sample(
                        "DequantizeLinear",
                        &attributes,
                        &[q.clone(), scale.clone(), Some(zero)],
                        &[DType::F32],
                    ));
                    all.push(sample("DequantizeLinear", &attributes, &[q, scale], &[DType::F32]));
                }
            }
        }
    }
    let halves = Array::new(DType::F32, &[8], vec![0.5, 1.5, 2.5, -0.5, -1.5, 300.0, -300.0, 0.49]);
    for dtype in BYTES {
        let inputs =
            [Some(halves.clone()), Some(Array::scalar(DType::F32, 1.0)), Some(Array::scalar(dtype, 5.0))];
        all.push(sample("QuantizeLinear", &[], &inputs, &[dtype]));
    }
    let whole = Some(numbers(DType::I32, &[2, 3], 1));
    all.push(sample("DequantizeLinear", &[], &[whole, Some(Array::scalar(DType::F32, 0.25))], &[DType::F32]));
    for (low, high) in [(-1.0, 1.0), (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0)] {
        let mut x = numbers(DType::F32, &[3, 4], 1);
        x.data.mapv_inplace(|v| f64::from((low + (high - low) * (v + 2.0) / 4.0) as f32));
        all.push(sample("DynamicQuantizeLinear", &[], &[Some(x)], &[DType::U8, DType::F32, DType::U8]));
    }
}

fn recurrent(all: &mut Vec<Sample>) {
    let (steps, batch, width, hidden) = (4usize, 3usize, 5usize, 2usize);
    for (op, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
        for direction in ["forward", "reverse", "bidirectional"] {
            let d = if direction == "bidirectional" { 2 } else { 1 };
            let base = vec![
                ("hidden_size", Attribute::from(hidden as i64)),
                ("direction", Attribute::String(direction.to_string())),
            ];
            let x = of(DType::F32, &[steps, batch, width], 1);
            let w = of(DType::F32, &[d, gates * hidden, width], 2);
            let r = of(DType::F32, &[d, gates * hidden, hidden], 3);
            let bias = of(DType::F32, &[d, 2 * gates * hidden], 4);
            let state = of(DType::F32, &[d, batch, hidden], 5);
            let cell = of(DType::F32, &[d, batch, hidden], 6);
            let peepholes = of(DType::F32, &[d, 3 * hidden], 7);
            let lengths = Some(Array::new(DType::I32, &[batch], vec![4.0, 2.0, 3.0]));
            let outputs: &[DType] = if op == "LSTM" { &[DType::F32; 3] } else { &[DType::F32; 2] };
            let mut forms = vec![
                vec![x.clone(), w.clone(), r.clone()],
                vec![x.clone(), w.clone(), r.clone(), bias.clone()],
                vec![x.clone(), w.clone(), r.clone(), bias.clone(), None, state.clone()],
                vec![x.clone(), w.clone(), r.clone(), bias.clone(), lengths, state.clone()],
            ];
            if op == "LSTM" {
                forms.push(vec![
                    x.clone(),
                    w.clone(),
                    r.clone(),
                    bias.clone(),
                    None,
                    state.clone(),
                    cell.clone(),
                ]);
                forms.push(vec![
                    x.clone(),
                    w.clone(),
                    r.clone(),
                    bias.clone(),
                    None,
                    state.clone(),
                    cell,
                    peepholes,
                ]);
            }
            for form in forms {
                let mut variants = vec![base.clone()];
                if op == "GRU" {
                    variants.push([&base[..], &[("linear_before_reset", 1i64.into())]].concat());
                }
                variants.push([&base[..], &[("clip", 0.3f32.into())]].concat());
                variants.push([&base[..], &[("layout", 1i64.into())]].concat());
                for attributes in variants {
                    all.push(sample(op, &attributes, &form, outputs));
                }
            }
        }
    }
}

fn rotary(all: &mut Vec<Sample>) {
    for interleaved in [0i64, 1] {
        for dim in [0i64, 4] {
            let half = if dim == 0 { 4 } else { 2 };
            let mut s = sample(
                "RotaryEmbedding",
                &[("interleaved", interleaved.into()), ("rotary_embedding_dim", dim.into())],
                &[
                    of(DType::F32, &[2, 3, 5, 8], 1),
                    of(DType::F32, &[2, 5, half], 2),
                    of(DType::F32, &[2, 5, half], 3),
                ],
                &[DType::F32],
            );
            s.opset = 23;
            all.push(s);
        }
    }
}
