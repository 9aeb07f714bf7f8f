//! Sums and other reductions along axes.

use onnx_grad::{Attribute, TensorData};

use super::super::{Case, Maker};

pub(super) fn reduce(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 3);
    let x = match op {
        "ReduceLogSum" => m.within(&shape, 0.3, 2.0),
        _ => m.batched(&shape),
    };
    let keep = ("keepdims", Attribute::Int(m.rng.coin().into()));
    let rank = shape.len() as i64;
    let mut axes: Vec<i64> = (0..rank).collect();
    m.rng.shuffle(&mut axes);
    axes.truncate(m.rng.size(1, shape.len()));
    if op == "ReduceProd" && axes.contains(&0) {
        // The product rule wants the number of factors.
        let shape = shape.clone();
        m = Maker::new(seed);
        let x = m.fixed(&shape);
        let axes = m.b.ints(&axes);
        let y = m.op(op, &[&x, &axes], &[keep]);
        return m.finish(&y);
    }
    if m.rng.coin() {
        axes.iter_mut().for_each(|a| *a -= rank);
    }
    let axes = m.b.ints(&axes);
    let y = match m.rng.int(0, 5) {
        0 if op != "ReduceProd" => m.op(op, &[&x], &[keep]),
        _ => m.op(op, &[&x, &axes], &[keep]),
    };
    m.finish(&y)
}

pub(super) fn cumsum(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let x = m.batched(&shape);
    let axis = m.rng.int(0, shape.len() as i64 - 1);
    let axis = m.b.constant(TensorData::i64(&[], &[axis]));
    let attributes = [
        ("exclusive", Attribute::Int(m.rng.coin().into())),
        ("reverse", Attribute::Int(m.rng.coin().into())),
    ];
    let y = m.op("CumSum", &[&x, &axis], &attributes);
    m.finish(&y)
}
