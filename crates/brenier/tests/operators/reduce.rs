//! Reductions, running sums, extremes and norms.

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, DType};

use super::sample::{Sample, ints, numbers, sample};

pub(crate) fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for dtype in [DType::F32, DType::I32, DType::I64, DType::U8, DType::I8] {
        reductions(&mut all, dtype);
        places(&mut all, dtype);
    }
    norms(&mut all);
    all
}

fn reductions(all: &mut Vec<Sample>, dtype: DType) {
    for op in [
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceSumSquare",
    ] {
        let mut x = numbers(dtype, &[2, 3, 5], 1);
        if op == "ReduceLogSum" {
            x.data.mapv_inplace(|v| v.abs() + 1.0);
        }
        for keepdims in [0i64, 1] {
            for axes in [
                None,
                Some(&[0i64][..]),
                Some(&[1]),
                Some(&[-1]),
                Some(&[0, 2]),
                Some(&[-2, -3]),
                Some(&[0, 1, 2]),
            ] {
                let attributes = [("keepdims", keepdims.into())];
                let inputs = [Some(x.clone()), axes.map(ints)];
                let given = if axes.is_some() { 2 } else { 1 };
                all.push(sample(op, &attributes, &inputs[..given], &[dtype]));
            }
            for noop in [0i64, 1] {
                let attributes = [("keepdims", keepdims.into()), ("noop_with_empty_axes", noop.into())];
                all.push(sample(op, &attributes, &[Some(x.clone())], &[dtype]));
                all.push(sample(op, &attributes, &[Some(x.clone()), Some(ints(&[]))], &[dtype]));
            }
        }
        if dtype == DType::F32 {
            let mut large = numbers(dtype, &[2, 40], 2);
            large.data.mapv_inplace(|v| 60.0 * v.abs() + 1.0);
            all.push(sample(op, &[], &[Some(large), Some(ints(&[1]))], &[dtype]));
            let scalar = Some(Array::scalar(dtype, 2.5));
            all.push(sample(op, &[], &[scalar], &[dtype]));
        }
    }
}

/// Numbers that all differ: which of equal ones is taken is tested where ties are.
fn distinct(dtype: DType, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|i| ((i * 7) % count) as f64 - if dtype == DType::U8 { 0.0 } else { 5.0 });
    Array::new(dtype, shape, values.collect())
}

fn places(all: &mut Vec<Sample>, dtype: DType) {
    let x = || Some(distinct(dtype, &[2, 3, 5]));
    for op in ["ArgMax", "ArgMin"] {
        for keepdims in [0i64, 1] {
            for axis in [0i64, 1, 2, -1, -2] {
                for last in [0i64, 1] {
                    let attributes = [
                        ("axis", axis.into()),
                        ("keepdims", keepdims.into()),
                        ("select_last_index", last.into()),
                    ];
                    all.push(sample(op, &attributes, &[x()], &[DType::I64]));
                }
            }
        }
    }
    for exclusive in [0i64, 1] {
        for reverse in [0i64, 1] {
            for axis in [0i64, 1, -1] {
                let attributes = [("exclusive", exclusive.into()), ("reverse", reverse.into())];
                let axis = Some(Array::scalar(DType::I64, axis as f64));
                all.push(sample("CumSum", &attributes, &[x(), axis], &[dtype]));
            }
        }
    }
    for largest in [0i64, 1] {
        for axis in [0i64, 1, -1] {
            for k in [0i64, 1, 2] {
                let attributes =
                    [("axis", axis.into()), ("largest", largest.into()), ("sorted", 1i64.into())];
                all.push(sample("TopK", &attributes, &[x(), Some(ints(&[k]))], &[dtype, DType::I64]));
            }
        }
    }
}

fn norms(all: &mut Vec<Sample>) {
    let f32s = |shape: &[usize], seed| Some(numbers(DType::F32, shape, seed));
    let positive = |shape: &[usize], seed| {
        let mut x = numbers(DType::F32, shape, seed);
        x.data.mapv_inplace(|v| v.abs() + 0.1);
        Some(x)
    };
    for epsilon in [None, Some(1e-2f32)] {
        let with = |more: &[(&'static str, Attribute)]| -> Vec<(&'static str, Attribute)> {
            let epsilon = epsilon.iter().map(|&e| ("epsilon", e.into()));
            more.iter().cloned().chain(epsilon).collect()
        };
        for axis in [-1i64, 1, 2, -2, 0] {
            let shape: &[usize] = &[2, 3, 4];
            let first = if axis < 0 { axis + 3 } else { axis } as usize;
            let tail = &shape[first..];
            let attributes = with(&[("axis", axis.into())]);
            let inputs = [f32s(shape, 1), f32s(tail, 2), f32s(tail, 3)];
            for given in [2, 3] {
                all.push(sample("LayerNormalization", &attributes, &inputs[..given], &[DType::F32]));
            }
            let three = [DType::F32; 3];
            all.push(sample("LayerNormalization", &attributes, &inputs, &three));
            let mut rms = sample("RMSNormalization", &attributes, &inputs[..2], &[DType::F32]);
            rms.opset = 24;
            all.push(rms);
        }
        for shape in [&[2usize, 4, 5][..], &[2, 4, 3, 3], &[1, 4, 2, 2, 3]] {
            let inputs = [f32s(shape, 4), f32s(&[4], 5), f32s(&[4], 6), f32s(&[4], 7), positive(&[4], 8)];
            all.push(sample("InstanceNormalization", &with(&[]), &inputs[..3], &[DType::F32]));
            all.push(sample("BatchNormalization", &with(&[]), &inputs, &[DType::F32]));
            let group = with(&[("num_groups", 2i64.into())]);
            let mut group = sample("GroupNormalization", &group, &inputs[..3], &[DType::F32]);
            group.opset = 21;
            all.push(group);
        }
        let flat = [f32s(&[3, 4], 4), f32s(&[4], 5), f32s(&[4], 6), f32s(&[4], 7), positive(&[4], 8)];
        all.push(sample("BatchNormalization", &with(&[]), &flat, &[DType::F32]));
    }
    for p in [1i64, 2] {
        for axis in [0i64, 1, -1] {
            let attributes = [("p", p.into()), ("axis", axis.into())];
            all.push(sample("LpNormalization", &attributes, &[f32s(&[2, 3, 4], 1)], &[DType::F32]));
        }
    }
    all.push(sample("LpNormalization", &[], &[f32s(&[2, 3, 4], 1)], &[DType::F32]));
    for size in [1i64, 2, 3, 4, 9] {
        let attributes = [
            ("size", size.into()),
            ("alpha", 0.02f32.into()),
            ("beta", 0.6f32.into()),
            ("bias", 1.3f32.into()),
        ];
        for shape in [&[2usize, 6, 3, 3][..], &[1, 5, 4]] {
            all.push(sample("LRN", &attributes, &[f32s(shape, 1)], &[DType::F32]));
            all.push(sample("LRN", &attributes[..1], &[f32s(shape, 1)], &[DType::F32]));
        }
    }
    for axes in [None, Some(vec![0i64, 2, 3]), Some(vec![1]), Some(vec![-1, -2])] {
        let attributes: Vec<(&str, Attribute)> = axes.into_iter().map(|a| ("axes", a.into())).collect();
        all.push(sample("MeanVarianceNormalization", &attributes, &[f32s(&[2, 3, 4, 2], 1)], &[DType::F32]));
    }
}
