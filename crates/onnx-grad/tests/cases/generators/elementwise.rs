//! Operators on values one by one.

use onnx_grad::{Attribute, DType, TensorData};

use super::super::{Case, Maker};

pub(super) fn unary(seed: u64, op: &str, low: f64, high: f64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.within(&shape, low, high);
    let y = m.op(op, &[&x], &[]);
    m.finish(&y)
}

pub(super) fn with_float(seed: u64, op: &str, names: &[&str]) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.within(&shape, -4.0, 4.0);
    let mut attributes = Vec::new();
    for name in names.iter().filter(|_| true) {
        if m.rng.coin() {
            attributes.push((*name, Attribute::Float(m.rng.apart(1, 0.3, 1.7)[0] as f32)));
        }
    }
    let y = m.op(op, &[&x], &attributes);
    m.finish(&y)
}

/// Two shapes that broadcast against each other.
fn broadcasting(m: &mut Maker) -> (Vec<usize>, Vec<usize>) {
    let full = m.shape(1, 4, 3);
    let shrink = |m: &mut Maker| {
        let cut = m.rng.size(0, full.len());
        let mut shape = full[cut..].to_vec();
        for size in &mut shape {
            if m.rng.int(0, 2) == 0 {
                *size = 1;
            }
        }
        shape
    };
    (shrink(m), if m.rng.coin() { full.clone() } else { shrink(m) })
}

pub(super) fn binary(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let whole = a.len() == b.len() && a.first() == b.first();
    let x = if whole { m.batched(&a) } else { m.fixed(&a) };
    let y = match (op, m.rng.int(0, 2)) {
        ("Div", _) => m.parameter(&b, 0.4, 2.0),
        (_, 0) => m.parameter(&b, -1.9, 2.1),
        _ if whole => m.batched(&b),
        _ => m.fixed(&b),
    };
    // RTen multiplies by the reciprocal of a single number, and loses the axes of that number.
    m.reference_only = op == "Div" && b.len() > a.len() && b.iter().all(|&n| n == 1);
    let (first, second) = if op != "Div" && m.rng.coin() { (y.clone(), x.clone()) } else { (x, y) };
    let z = m.op(op, &[&first, &second], &[]);
    m.finish(&z)
}

/// A value times the sigmoid of itself (SiLU) or of another, in either order; the sigmoid may be used once more.
pub(super) fn gated(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    let gated = if m.rng.coin() { x.clone() } else { m.batched(&shape) };
    let gate = m.op("Sigmoid", &[&gated], &[]);
    let (first, second) = if m.rng.coin() { (&x, &gate) } else { (&gate, &x) };
    let mut y = m.op("Mul", &[first, second], &[]);
    if m.rng.coin() {
        y = m.op("Add", &[&y, &gate], &[]);
    }
    m.finish(&y)
}

pub(super) fn modulo(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    let by = m.constant(&[], 0.71, 0.72);
    let y = m.op("Mod", &[&x, &by], &[("fmod", 1i64.into())]);
    m.finish(&y)
}

pub(super) fn variadic(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let (x, y) = (m.fixed(&a), m.fixed(&b));
    let z = if m.rng.coin() { m.op(op, &[&x, &y], &[]) } else { m.op(op, &[&x, &y, &x], &[]) };
    m.finish(&z)
}

pub(super) fn pow(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let y = match m.rng.int(0, 3) {
        0 => {
            let x = m.batched(&shape);
            let exponent = m.rng.pick(&[2.0, 3.0]);
            let exponent = m.b.constant(TensorData::scalar(DType::F32, exponent));
            m.op("Pow", &[&x, &exponent], &[])
        }
        1 => {
            let x = m.within(&shape, 0.3, 2.0);
            let exponent = m.rng.pick(&[-1.0, 0.5, 1.0, 0.0]);
            let exponent = m.b.constant(TensorData::scalar(DType::F32, exponent));
            m.op("Pow", &[&x, &exponent], &[])
        }
        _ => {
            let x = m.within(&shape, 0.3, 2.0);
            let last = shape[shape.len() - 1];
            let exponent = m.parameter(&[last], 0.5, 2.5);
            m.op("Pow", &[&x, &exponent], &[])
        }
    };
    m.finish(&y)
}

pub(super) fn select(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (a, b) = broadcasting(&mut m);
    let (x, y) = (m.fixed(&a), m.fixed(&b));
    let condition: Vec<bool> = (0..b.iter().product()).map(|_| m.rng.coin()).collect();
    let condition = m.b.constant(TensorData::bool(&b, &condition));
    // RTen makes a vector of a choice between two scalars.
    m.reference_only = a.is_empty() && b.is_empty();
    let z = m.op("Where", &[&condition, &x, &y], &[]);
    m.finish(&z)
}

pub(super) fn clip(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let (low, high) = (m.constant(&[], -1.11, -1.1), m.constant(&[], 0.8, 0.81));
    let inputs: Vec<&str> = match m.rng.int(0, 2) {
        0 => vec![&x, &low, &high],
        1 => vec![&x, &low],
        _ => vec![&x, "", &high],
    };
    let y = m.op("Clip", &inputs, &[]);
    m.finish(&y)
}

pub(super) fn prelu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c, h) = (m.rng.size(1, 3), m.rng.size(1, 4), m.rng.size(1, 4));
    let x = m.batched(&[n, c, h]);
    let shape = m.rng.pick(&[vec![c, 1], vec![1], vec![c, h]]);
    let slope = m.parameter(&shape, -0.5, 0.7);
    let y = m.op("PRelu", &[&x, &slope], &[]);
    m.finish(&y)
}

pub(super) fn gelu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let mode = m.rng.pick(&["none", "tanh"]);
    let y = m.op("Gelu", &[&x], &[("approximate", mode.into())]);
    m.finish(&y)
}

pub(super) fn along_axis(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 4);
    let x = m.batched(&shape);
    let axis = m.rng.int(-(shape.len() as i64), shape.len() as i64 - 1);
    let y = m.op(op, &[&x], &[("axis", axis.into())]);
    m.finish(&y)
}
