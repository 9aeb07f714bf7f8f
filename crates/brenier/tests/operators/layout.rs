//! Operators that move, cut, join or make tensors.

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, DType};

use super::sample::{Sample, constant, ints, numbers, sample};

const TYPES: [DType; 6] = [DType::F32, DType::I32, DType::I64, DType::U8, DType::I8, DType::Bool];

pub(crate) fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for dtype in TYPES {
        shapes(&mut all, dtype);
        parts(&mut all, dtype);
        pads(&mut all, dtype);
        made(&mut all, dtype);
    }
    blocks(&mut all);
    all
}

fn axis(axis: i64) -> [(&'static str, Attribute); 1] {
    [("axis", axis.into())]
}

fn shapes(all: &mut Vec<Sample>, dtype: DType) {
    let x = || Some(numbers(dtype, &[2, 3, 4], 1));
    for to in [&[2i64, 12][..], &[-1], &[0, -1], &[4, 0, 2], &[0, 0, -1], &[1, 2, 3, 4]] {
        all.push(sample("Reshape", &[], &[x(), Some(ints(to))], &[dtype]));
    }
    let empty = Some(numbers(dtype, &[0, 3], 1));
    all.push(sample("Reshape", &[("allowzero", 1i64.into())], &[empty, Some(ints(&[3, 0]))], &[dtype]));
    for a in [-3i64, -1, 0, 1, 2, 3] {
        all.push(sample("Flatten", &axis(a), &[x()], &[dtype]));
    }
    all.push(sample("Flatten", &[], &[x()], &[dtype]));
    let ones = || Some(numbers(dtype, &[1, 3, 1, 2], 1));
    for axes in [None, Some(&[0i64][..]), Some(&[2]), Some(&[0, 2]), Some(&[-2]), Some(&[-4, 2])] {
        all.push(sample("Squeeze", &[], &[ones(), axes.map(ints)], &[dtype]));
    }
    for axes in [&[0i64][..], &[1], &[-1], &[0, 2], &[-1, 0], &[3, 1]] {
        all.push(sample("Unsqueeze", &[], &[x(), Some(ints(axes))], &[dtype]));
    }
    for perm in [None, Some(vec![0i64, 2, 1]), Some(vec![1, 2, 0]), Some(vec![2, 0, 1]), Some(vec![0, 1, 2])]
    {
        let attributes: Vec<(&str, Attribute)> = perm.into_iter().map(|p| ("perm", p.into())).collect();
        all.push(sample("Transpose", &attributes, &[x()], &[dtype]));
    }
    for to in [&[2i64, 3, 4][..], &[5, 2, 3, 4], &[1], &[1, 1, 1]] {
        all.push(sample("Expand", &[], &[x(), Some(ints(to))], &[dtype]));
    }
    all.push(sample("Expand", &[], &[Some(numbers(dtype, &[3, 1], 2)), Some(ints(&[2, 1, 6]))], &[dtype]));
    for repeats in [&[1i64, 1, 1][..], &[2, 1, 3], &[1, 2, 1], &[0, 1, 1]] {
        all.push(sample("Tile", &[], &[x(), Some(ints(repeats))], &[dtype]));
    }
    for (start, end) in [
        (None, None),
        (Some(1i64), None),
        (None, Some(2i64)),
        (Some(-2), Some(-1)),
        (Some(-9), Some(9)),
        (Some(2), Some(1)),
    ] {
        let mut attributes: Vec<(&str, Attribute)> = Vec::new();
        attributes.extend(start.map(|s| ("start", s.into())));
        attributes.extend(end.map(|e| ("end", e.into())));
        all.push(sample("Shape", &attributes, &[x()], &[DType::I64]));
    }
    all.push(sample("Size", &[], &[x()], &[DType::I64]));
}

fn parts(all: &mut Vec<Sample>, dtype: DType) {
    for a in [0i64, 1, -1, -2] {
        let inputs = [1, 2, 3].map(|seed| Some(numbers(dtype, &[2, 3], seed)));
        all.push(sample("Concat", &axis(a), &inputs, &[dtype]));
        all.push(sample("Concat", &axis(a), &inputs[..1], &[dtype]));
    }
    let x = || Some(numbers(dtype, &[4, 7], 4));
    for (a, sizes) in [(1i64, &[3i64, 4][..]), (-1, &[1, 6]), (0, &[1, 3]), (1, &[0, 7])] {
        all.push(sample("Split", &axis(a), &[x(), Some(ints(sizes))], &[dtype, dtype]));
    }
    for (a, count) in [(0i64, 2i64), (1, 2), (-1, 3)] {
        let attributes = [("axis", a.into()), ("num_outputs", count.into())];
        all.push(sample("Split", &attributes, &[x()], &vec![dtype; count as usize]));
    }
    let max = i64::MAX;
    for (starts, ends, axes, steps) in [
        (&[1i64][..], &[3i64][..], None, None),
        (&[0, 2], &[4, 7], None, None),
        (&[2], &[6], Some(&[1i64][..]), Some(&[2i64][..])),
        (&[-3], &[max], Some(&[-1]), None),
        (&[6], &[0], Some(&[1]), Some(&[-1])),
        (&[-1], &[-8], Some(&[1]), Some(&[-2])),
        (&[-1], &[i64::MIN], Some(&[1]), Some(&[-1])),
        (&[5], &[2], Some(&[1]), None),
        (&[-100], &[100], Some(&[0]), None),
        (&[3, 1], &[0, 6], Some(&[0, 1]), Some(&[-1, 3])),
    ] {
        let inputs = [x(), Some(ints(starts)), Some(ints(ends)), axes.map(ints), steps.map(ints)];
        all.push(sample("Slice", &[], &inputs, &[dtype]));
    }
    for a in [0i64, 1, -1] {
        for indices in [
            ints(&[0, 2, 1]),
            ints(&[-1, -2]),
            Array::scalar(DType::I64, 1.0),
            Array::new(DType::I32, &[2, 2], vec![0.0, 1.0, 3.0, 2.0]),
        ] {
            all.push(sample("Gather", &axis(a), &[x(), Some(indices)], &[dtype]));
        }
        let shape: &[usize] = if a == 0 { &[2, 7] } else { &[4, 3] };
        let count: usize = shape.iter().product();
        let at: Vec<f64> =
            (0..count).map(|i| ((i * 5) % 4) as f64 - if i % 3 == 0 { 4.0 } else { 0.0 }).collect();
        let indices = Array::new(DType::I64, shape, at);
        all.push(sample("GatherElements", &axis(a), &[x(), Some(indices)], &[dtype]));
    }
    let data = || Some(numbers(dtype, &[2, 3, 4], 5));
    for (batch_dims, shape, at) in [
        (0i64, &[2usize, 2][..], vec![0.0, 1.0, 1.0, 2.0]),
        (0, &[1, 3], vec![1.0, 2.0, 3.0]),
        (0, &[2, 1, 1], vec![-1.0, 0.0]),
        (1, &[2, 1], vec![2.0, -3.0]),
        (1, &[2, 2, 2], vec![0.0, 1.0, 2.0, 3.0, 1.0, 1.0, -1.0, -1.0]),
        (2, &[2, 3, 1], vec![0.0, 1.0, 2.0, 3.0, -1.0, -4.0]),
    ] {
        let indices = Array::new(DType::I64, shape, at);
        let attributes = [("batch_dims", batch_dims.into())];
        all.push(sample("GatherND", &attributes, &[data(), Some(indices)], &[dtype]));
    }
    scatters(all, dtype);
}

fn scatters(all: &mut Vec<Sample>, dtype: DType) {
    for reduction in ["none", "add", "mul", "min", "max"] {
        if dtype == DType::Bool && reduction != "none" {
            continue;
        }
        for a in [0i64, 1, -1] {
            let x = Some(numbers(dtype, &[3, 4], 6));
            // Without a reduction no place is written twice: which of two writes stays is not defined.
            let at = match (reduction, a) {
                ("none", 0) => vec![0.0, 1.0, 2.0, -1.0, 1.0, 2.0, 0.0, 1.0],
                ("none", _) => vec![0.0, 1.0, -1.0, 3.0, 2.0, -4.0],
                (_, 0) => vec![0.0, 1.0, 2.0, -1.0, 0.0, 1.0, 2.0, 2.0],
                _ => vec![0.0, 0.0, -1.0, 3.0, 2.0, -2.0],
            };
            let shape: &[usize] = if a == 0 { &[2, 4] } else { &[3, 2] };
            let attributes = [("axis", a.into()), ("reduction", reduction.to_string().into())];
            let updates = Some(numbers(dtype, shape, 7));
            let indices = Some(Array::new(DType::I64, shape, at));
            all.push(sample("ScatterElements", &attributes, &[x, indices, updates], &[dtype]));
        }
        let attributes = [("reduction", Attribute::String(reduction.to_string()))];
        let whole = [if reduction == "none" { 0.0 } else { 1.0 }, -2.0];
        let x = || Some(numbers(dtype, &[3, 4], 8));
        let rows = Some(Array::new(DType::I64, &[2, 1], whole.to_vec()));
        all.push(sample("ScatterND", &attributes, &[x(), rows, Some(numbers(dtype, &[2, 4], 9))], &[dtype]));
        let cells = Some(Array::new(DType::I64, &[3, 2], vec![0.0, 1.0, 2.0, -1.0, 1.0, 1.0]));
        all.push(sample("ScatterND", &attributes, &[x(), cells, Some(numbers(dtype, &[3], 9))], &[dtype]));
    }
}

fn pads(all: &mut Vec<Sample>, dtype: DType) {
    for mode in ["constant", "reflect", "edge", "wrap"] {
        let attributes = [("mode", Attribute::String(mode.to_string()))];
        for shape in [&[3usize, 4][..], &[2, 2, 3, 4]] {
            let x = || Some(numbers(dtype, shape, 1));
            let rank = shape.len();
            let with = |pairs: &[(usize, i64, i64)]| {
                let mut pads = vec![0i64; 2 * rank];
                pairs.iter().for_each(|&(axis, begin, end)| (pads[axis], pads[rank + axis]) = (begin, end));
                Some(ints(&pads))
            };
            let (h, w) = (rank - 2, rank - 1);
            for pairs in [
                &[(w, 1, 2)][..],
                &[(h, 2, 1)],
                &[(h, 1, 1), (w, 2, 2)],
                &[(w, -1, 2)],
                &[(h, -1, -1)],
                &[(w, -2, 0)],
                &[(0, 1, 0)],
            ] {
                all.push(sample("Pad", &attributes, &[x(), with(pairs)], &[dtype]));
            }
            if dtype != DType::Bool {
                let value = Some(Array::scalar(dtype, 3.0));
                all.push(sample("Pad", &attributes, &[x(), with(&[(w, 1, 1)]), value], &[dtype]));
            }
            for axes in [&[-1i64][..], &[rank as i64 - 1], &[-1, -2]] {
                let amounts: Vec<i64> = (0..2 * axes.len() as i64).map(|i| 1 + i % 2).collect();
                let inputs = [x(), Some(ints(&amounts)), None, Some(ints(axes))];
                all.push(sample("Pad", &attributes, &inputs, &[dtype]));
            }
        }
    }
}

fn made(all: &mut Vec<Sample>, dtype: DType) {
    let one = |v: f64| Array::scalar(dtype, v);
    if matches!(dtype, DType::F32 | DType::I32 | DType::I64) {
        for (from, to, step) in
            [(0.0, 5.0, 1.0), (1.0, 9.0, 3.0), (7.0, 0.0, -2.0), (3.0, 3.0, 1.0), (5.0, 1.0, 1.0)]
        {
            all.push(sample("Range", &[], &[Some(one(from)), Some(one(to)), Some(one(step))], &[dtype]));
        }
    }
    let value = Array::new(dtype, &[1], vec![1.0]);
    let filled = [("value", Attribute::Tensor(constant(&value)))];
    for shape in [&[2i64, 3][..], &[4], &[0, 2], &[]] {
        all.push(sample("ConstantOfShape", &filled, &[Some(ints(shape))], &[dtype]));
    }
    for k in [0i64, 1, -1, 5] {
        let attributes = [("k", k.into()), ("dtype", i64::from(dtype.code()).into())];
        all.push(sample("EyeLike", &attributes, &[Some(numbers(DType::F32, &[3, 4], 1))], &[dtype]));
        for upper in [0i64, 1] {
            let x = Some(numbers(dtype, &[2, 3, 4], 1));
            let offset = Some(Array::scalar(DType::I64, k as f64));
            all.push(sample("Trilu", &[("upper", upper.into())], &[x.clone(), offset], &[dtype]));
            all.push(sample("Trilu", &[("upper", upper.into())], &[x], &[dtype]));
        }
    }
    if dtype != DType::Bool {
        for a in [-1i64, 0, 1] {
            let values = Some(Array::new(dtype, &[2], vec![2.0, 5.0]));
            let depth = Some(Array::scalar(DType::I64, 4.0));
            for indices in [ints(&[0, 3, 2]), ints(&[-1, -4, 1]), ints(&[4, 0, -5])] {
                let inputs = [Some(indices), depth.clone(), values.clone()];
                all.push(sample("OneHot", &axis(a), &inputs, &[dtype]));
            }
        }
    }
    all.push(sample("NonZero", &[], &[Some(numbers(dtype, &[3, 4], 3))], &[DType::I64]));
    let mut some = numbers(dtype, &[3, 4], 3);
    some.data.iter_mut().step_by(3).for_each(|v| *v = 0.0);
    all.push(sample("NonZero", &[], &[Some(some)], &[DType::I64]));
    for (batch, time) in [(0i64, 1i64), (1, 0)] {
        let attributes = [("batch_axis", batch.into()), ("time_axis", time.into())];
        let lengths = Some(ints(&[1, 3, 2]));
        let shape: &[usize] = if batch == 0 { &[3, 4, 2] } else { &[4, 3, 2] };
        all.push(sample(
            "ReverseSequence",
            &attributes,
            &[Some(numbers(dtype, shape, 1)), lengths],
            &[dtype],
        ));
    }
}

fn blocks(all: &mut Vec<Sample>) {
    let x = || Some(numbers(DType::F32, &[2, 8, 2, 4], 1));
    for mode in ["DCR", "CRD"] {
        let attributes = [("mode", Attribute::String(mode.to_string())), ("blocksize", 2i64.into())];
        all.push(sample("DepthToSpace", &attributes, &[x()], &[DType::F32]));
    }
    all.push(sample("DepthToSpace", &[("blocksize", 2i64.into())], &[x()], &[DType::F32]));
    all.push(sample("SpaceToDepth", &[("blocksize", 2i64.into())], &[x()], &[DType::F32]));
}
