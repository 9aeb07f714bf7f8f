//! Operators that look at one position at a time, over element types and special values.

use onnx_grad::eval::Array;
use onnx_grad::{Attribute, DType};

use super::sample::{Sample, ints, numbers, sample};

const TYPES: [DType; 6] = [DType::F32, DType::I32, DType::I64, DType::U8, DType::I8, DType::Bool];

/// Where implementations differ: zeros of both signs, halves, infinities, numbers that overflow something.
fn special(dtype: DType) -> Array {
    let values: &[f64] = match dtype {
        DType::F32 => &[
            0.0,
            -0.0,
            0.5,
            -0.5,
            1.5,
            2.5,
            -1.5,
            -2.5,
            1.0,
            -1.0,
            3.0,
            -3.0,
            88.0,
            -88.0,
            120.0,
            -120.0,
            1e-20,
            -1e-20,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            16_777_216.0,
            0.1_f32 as f64,
            7.25,
        ],
        DType::U8 => &[0.0, 1.0, 2.0, 127.0, 128.0, 200.0, 255.0],
        DType::I8 => &[0.0, 1.0, -1.0, 2.0, 127.0, -127.0, -128.0],
        DType::Bool => &[0.0, 1.0, 1.0, 0.0, 1.0],
        _ => &[0.0, 1.0, -1.0, 2.0, -2.0, 7.0, -7.0, 46_341.0, 2_147_483_647.0, -2_147_483_648.0],
    };
    Array::new(dtype, &[values.len()], values.to_vec())
}

fn without_zeros(mut array: Array) -> Array {
    array.data.mapv_inplace(|v| if v == 0.0 { 3.0 } else { v });
    array
}

pub(crate) fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    unary(&mut all);
    activations(&mut all);
    binary(&mut all);
    casts(&mut all);
    choices(&mut all);
    all
}

fn unary(all: &mut Vec<Sample>) {
    for op in ["Neg", "Abs", "Sign", "Relu"] {
        for dtype in TYPES {
            let mut x = special(dtype);
            if matches!(op, "Sign" | "Relu") {
                // RTen's ReLU makes 0 of NaN, and so do we of its sign.
                x.data.mapv_inplace(|v| if v.is_nan() { 5.0 } else { v });
            }
            all.push(sample(op, &[], &[Some(x)], &[dtype]));
        }
    }
    for op in [
        "Sqrt",
        "Exp",
        "Log",
        "Reciprocal",
        "Erf",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Acosh",
        "Atanh",
        "Floor",
        "Ceil",
        "Round",
        "Tanh",
        "Sigmoid",
        "Softplus",
        "Softsign",
        "HardSwish",
        "Mish",
    ] {
        all.push(sample(op, &[], &[Some(special(DType::F32))], &[DType::F32]));
    }
    for op in ["Sin", "Cos", "Tan"] {
        let angles: Vec<f64> = (-40..40).map(|i| f64::from(i as f32 * 0.77)).collect();
        all.push(sample(op, &[], &[Some(Array::new(DType::F32, &[80], angles))], &[DType::F32]));
    }
    all.push(sample("IsNaN", &[], &[Some(special(DType::F32))], &[DType::Bool]));
    for (negative, positive) in [(0i64, 1i64), (1, 0), (1, 1), (0, 0)] {
        let flags = [("detect_negative", negative.into()), ("detect_positive", positive.into())];
        all.push(sample("IsInf", &flags, &[Some(special(DType::F32))], &[DType::Bool]));
    }
    all.push(sample("Not", &[], &[Some(special(DType::Bool))], &[DType::Bool]));
    for dtype in TYPES {
        all.push(sample("Identity", &[], &[Some(special(dtype))], &[dtype]));
    }
}

fn activations(all: &mut Vec<Sample>) {
    let x = || vec![Some(numbers(DType::F32, &[3, 7], 1)), None];
    let wide = || vec![Some(special(DType::F32))];
    for op in ["LeakyRelu", "Elu", "Celu", "ThresholdedRelu", "Selu", "Swish", "HardSigmoid", "Shrink"] {
        for values in [None, Some((0.3f32, 0.2f32)), Some((1.7, -0.4))] {
            let names: &[&str] = match op {
                "Selu" => &["alpha", "gamma"],
                "HardSigmoid" => &["alpha", "beta"],
                "Shrink" => &["lambd", "bias"],
                _ => &["alpha"],
            };
            let attributes: Vec<(&str, Attribute)> = values
                .iter()
                .flat_map(|(a, b)| names.iter().copied().zip([(*a).into(), (*b).into()]))
                .collect();
            let mut s = sample(op, &attributes, &x()[..1], &[DType::F32]);
            s.opset = 24;
            all.push(s);
        }
    }
    for approximate in [None, Some("none"), Some("tanh")] {
        let attributes: Vec<(&str, Attribute)> =
            approximate.iter().map(|a| ("approximate", Attribute::String(a.to_string()))).collect();
        all.push(sample("Gelu", &attributes, &x()[..1], &[DType::F32]));
        all.push(sample("Gelu", &attributes, &wide(), &[DType::F32]));
    }
    for slope in [&[1][..], &[4], &[2, 3, 4], &[3, 1], &[3, 4]] {
        let x = Some(numbers(DType::F32, &[2, 3, 4], 2));
        all.push(sample("PRelu", &[], &[x, Some(numbers(DType::F32, slope, 3))], &[DType::F32]));
    }
    for op in ["Softmax", "LogSoftmax", "Hardmax"] {
        for axis in [None, Some(0i64), Some(1), Some(2), Some(-1), Some(-3)] {
            let attributes: Vec<(&str, Attribute)> = axis.iter().map(|&a| ("axis", a.into())).collect();
            for size in [&[2usize, 3, 5][..], &[4, 1, 37]] {
                let x = Some(numbers(DType::F32, size, 4));
                all.push(sample(op, &attributes, &[x], &[DType::F32]));
            }
        }
        let mut large = numbers(DType::F32, &[2, 6], 5);
        large.data.mapv_inplace(|v| 100.0 * v);
        all.push(sample(op, &[], &[Some(large)], &[DType::F32]));
        let mut masked = numbers(DType::F32, &[2, 6], 5);
        masked.data.iter_mut().step_by(2).for_each(|v| *v = f64::NEG_INFINITY);
        all.push(sample(op, &[], &[Some(masked)], &[DType::F32]));
    }
}

fn binary(all: &mut Vec<Sample>) {
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[3]),
        (&[2, 1], &[1, 3]),
        (&[], &[4]),
        (&[3], &[2, 2, 3]),
        (&[0, 3], &[3]),
    ];
    for dtype in TYPES {
        for (a, b) in shapes {
            let (x, y) = (numbers(dtype, a, 6), numbers(dtype, b, 7));
            let inputs = [Some(x.clone()), Some(y.clone())];
            for op in ["Add", "Sub", "Mul", "Min", "Max", "Sum", "Mean"] {
                if dtype != DType::Bool {
                    all.push(sample(op, &[], &inputs, &[dtype]));
                }
            }
            for op in ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"] {
                all.push(sample(op, &[], &inputs, &[DType::Bool]));
            }
            if dtype == DType::Bool {
                for op in ["And", "Or", "Xor"] {
                    all.push(sample(op, &[], &inputs, &[dtype]));
                }
                continue;
            }
            let inputs = [Some(x), Some(without_zeros(y))];
            all.push(sample("Div", &[], &inputs, &[dtype]));
            for fmod in [0i64, 1] {
                if fmod == 1 || !dtype.is_float() {
                    all.push(sample("Mod", &[("fmod", fmod.into())], &inputs, &[dtype]));
                }
            }
        }
        if dtype != DType::Bool {
            let x = special(dtype);
            for op in ["Min", "Max", "Sum", "Mean"] {
                all.push(sample(op, &[], &[Some(x.clone())], &[dtype]));
                let three = [2, 3, 4].map(|seed| Some(numbers(dtype, &[2, 3], seed)));
                all.push(sample(op, &[], &three, &[dtype]));
            }
            let other = Array::new(dtype, x.shape(), x.values().iter().rev().copied().collect());
            for op in ["Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "Greater", "LessOrEqual"] {
                let result = if matches!(op, "Equal" | "Less" | "Greater" | "LessOrEqual") {
                    DType::Bool
                } else {
                    dtype
                };
                all.push(sample(op, &[], &[Some(x.clone()), Some(other.clone())], &[result]));
            }
            all.push(sample("Div", &[], &[Some(x.clone()), Some(without_zeros(other))], &[dtype]));
        }
    }
    powers(all);
}

fn powers(all: &mut Vec<Sample>) {
    let base = || numbers(DType::F32, &[2, 3], 8);
    for exponent in [2.0, 3.0, 0.5, 0.0, 1.0, -1.0, -2.0, 1.5] {
        all.push(sample(
            "Pow",
            &[],
            &[Some(base()), Some(Array::scalar(DType::F32, exponent))],
            &[DType::F32],
        ));
    }
    for dtype in [DType::I32, DType::I64] {
        for exponent in [0.0, 1.0, 2.0, 3.0, -1.0] {
            let exponent = Array::scalar(dtype, exponent);
            all.push(sample("Pow", &[], &[Some(base()), Some(exponent.clone())], &[DType::F32]));
            if exponent.values()[0] >= 0.0 {
                let whole = numbers(dtype, &[2, 3], 9);
                all.push(sample("Pow", &[], &[Some(whole.clone()), Some(exponent)], &[dtype]));
                let float = Array::scalar(DType::F32, 2.0);
                all.push(sample("Pow", &[], &[Some(whole), Some(float)], &[dtype]));
            }
        }
        let exponents = Array::new(dtype, &[3], vec![2.0, 0.0, 3.0]);
        all.push(sample("Pow", &[], &[Some(base()), Some(exponents)], &[DType::F32]));
    }
    let tensor = [Some(base()), Some(numbers(DType::F32, &[3], 2))];
    all.push(sample("Pow", &[], &tensor, &[DType::F32]));
}

fn casts(all: &mut Vec<Sample>) {
    for from in TYPES {
        for to in TYPES {
            let mut x = special(from);
            if from == DType::F32 && to != DType::Bool {
                // What is beyond the type has no defined result.
                let (low, high) = match to {
                    DType::U8 => (0.0, 255.0),
                    DType::I8 => (-128.0, 127.0),
                    DType::F32 => (f64::NEG_INFINITY, f64::INFINITY),
                    _ => (-2e9, 2e9),
                };
                let kept = x.values().iter().copied().filter(|v| *v >= low && *v <= high).collect::<Vec<_>>();
                x = Array::new(from, &[kept.len()], kept);
            }
            let code = i64::from(to.code());
            all.push(sample("Cast", &[("to", code.into())], &[Some(x.clone())], &[to]));
            all.push(sample("CastLike", &[], &[Some(x), Some(numbers(to, &[2], 1))], &[to]));
        }
    }
}

fn choices(all: &mut Vec<Sample>) {
    for dtype in TYPES {
        for shapes in [[&[2usize, 3][..], &[2, 3], &[2, 3]], [&[2, 1], &[3], &[]], [&[3], &[2, 3], &[2, 1]]] {
            let condition = numbers(DType::Bool, shapes[0], 3);
            let (x, y) = (numbers(dtype, shapes[1], 4), numbers(dtype, shapes[2], 5));
            all.push(sample("Where", &[], &[Some(condition), Some(x), Some(y)], &[dtype]));
        }
        if dtype == DType::Bool {
            continue;
        }
        let bound = |v: f64| Some(Array::scalar(dtype, v));
        for (low, high) in [
            (bound(1.0), bound(5.0)),
            (None, bound(5.0)),
            (bound(1.0), None),
            (None, None),
            (bound(5.0), bound(1.0)),
        ] {
            all.push(sample("Clip", &[], &[Some(numbers(dtype, &[3, 4], 6)), low, high], &[dtype]));
        }
    }
    // A mask made by a cast is 0 or 1, whatever it was cast from.
    let mut through = sample(
        "Where",
        &[],
        &[Some(ints(&[0, 1, 2, -1])), Some(ints(&[5])), Some(ints(&[7]))],
        &[DType::I64],
    );
    let to = i64::from(DType::Bool.code());
    through.graph.nodes[0].inputs[0] = "mask".to_string();
    through.graph.nodes.insert(0, onnx_grad::Node::new("Cast", &["x0"], &["mask"]).with("to", to));
    all.push(through);
}
