//! Operators that move values about.

use onnx_grad::{Attribute, DType, TensorData};

use super::super::{Case, Maker};

pub(super) fn reshape(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c, h) = (m.rng.size(1, 3), m.rng.size(1, 3), m.rng.size(1, 3));
    let x = m.batched(&[n, c, h]);
    let (c, h) = (c as i64, h as i64);
    let target = m.rng.pick(&[vec![0, c * h], vec![-1, h], vec![0, h, c], vec![0, -1, 1], vec![-1]]);
    let y = m.b.reshape(&x, &target);
    m.finish(&y)
}

pub(super) fn flatten(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 4, 3);
    let x = m.batched(&shape);
    let axis = m.rng.int(0, shape.len() as i64);
    let y = m.op("Flatten", &[&x], &[("axis", axis.into())]);
    m.finish(&y)
}

pub(super) fn squeeze(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(2, 3);
    let x = m.batched(&[n, 1, 3, 1]);
    let axes = m.rng.pick(&[vec![1i64], vec![3], vec![1, 3], vec![-1]]);
    let y = m.b.squeeze(&x, &axes);
    m.finish(&y)
}

pub(super) fn unsqueeze(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(1, 3);
    let x = m.batched(&[n, 3]);
    let axes = m.rng.pick(&[vec![0i64], vec![2], vec![0, 3], vec![-1]]);
    let y = m.b.unsqueeze(&x, &axes);
    m.finish(&y)
}

pub(super) fn transpose(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 4, 3);
    let x = m.batched(&shape);
    let mut perm: Vec<i64> = (0..shape.len() as i64).collect();
    m.rng.shuffle(&mut perm);
    let y = if m.rng.int(0, 3) == 0 {
        m.op("Transpose", &[&x], &[])
    } else {
        m.op("Transpose", &[&x], &[("perm", perm.into())])
    };
    m.finish(&y)
}

pub(super) fn concat(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 3);
    let axis = m.rng.size(0, shape.len() - 1);
    let mut parts = Vec::new();
    for i in 0..m.rng.size(1, 3) {
        let mut part = shape.clone();
        part[axis] = m.rng.size(1, 3);
        parts.push(if i == 1 || axis == 0 { m.fixed(&part) } else { m.batched(&part) });
    }
    if m.rng.coin() {
        // The same value twice.
        parts.push(parts[0].clone());
    }
    let parts: Vec<&str> = parts.iter().map(|p| &**p).collect();
    let y = m.op("Concat", &parts, &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

pub(super) fn split(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let mut shape = m.shape(2, 3, 3);
    let axis = m.rng.size(1, shape.len() - 1);
    let even = m.rng.coin();
    let sizes: Vec<i64> = if even { vec![2, 2, 2] } else { vec![1, 3, 2] };
    shape[axis] = 6;
    let x = m.batched(&shape);
    let axis = ("axis", Attribute::Int(axis as i64));
    let parts = if even && m.rng.coin() {
        m.b.op_many("Split", &[&x], &[axis, ("num_outputs", 3i64.into())], 3)
    } else {
        let sizes = m.b.ints(&sizes);
        m.b.op_many("Split", &[&x, &sizes], &[axis], 3)
    };
    // The middle part gets no gradient.
    let (first, last) = (m.op("Exp", &[&parts[0]], &[]), m.op("Sin", &[&parts[2]], &[]));
    let [first, last] = [first, last].map(|v| m.op("ReduceSum", &[&v], &[]));
    let y = m.op("Add", &[&first, &last], &[]);
    m.finish(&y)
}

pub(super) fn slice(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let rank = m.rng.size(1, 3);
    let shape: Vec<usize> = (0..rank).map(|_| m.rng.size(3, 6)).collect();
    let x = m.batched(&shape);
    let mut axes: Vec<i64> = (0..rank as i64).collect();
    m.rng.shuffle(&mut axes);
    axes.truncate(m.rng.size(1, rank));
    let (mut from, mut to, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for _ in &axes {
        let step = m.rng.pick(&[1i64, 1, 2, 3, -1, -2]);
        let (a, b) = m.rng.pick(&[(0, 2), (1, 1000), (1, -1), (-2, 1000), (0, 3)]);
        from.push(if step > 0 { a } else { m.rng.pick(&[-1, 2]) });
        to.push(if step > 0 { b } else { m.rng.pick(&[-1000, 0]) });
        steps.push(step);
    }
    let [from, to, axes, steps] = [from, to, axes, steps].map(|v| m.b.ints(&v));
    let y = m.op("Slice", &[&x, &from, &to, &axes, &steps], &[]);
    m.finish(&y)
}

pub(super) fn expand(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (n, c) = (m.rng.size(1, 3), m.rng.size(1, 3));
    let (shape, target) =
        m.rng.pick(&[(vec![n, 1], vec![1, 4]), (vec![n, c], vec![2, 1, 1]), (vec![n, 1, c], vec![1, 3, 1])]);
    let x = m.batched(&shape);
    let target = m.b.ints(&target);
    let y = m.op("Expand", &[&x, &target], &[]);
    m.finish(&y)
}

pub(super) fn tile(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    let repeats: Vec<i64> = shape.iter().map(|_| m.rng.int(1, 3)).collect();
    let repeats = m.b.ints(&repeats);
    let y = m.op("Tile", &[&x, &repeats], &[]);
    m.finish(&y)
}

pub(super) fn pad(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let mode = m.rng.pick(&["constant", "reflect", "edge", "wrap"]);
    let shape = [m.rng.size(1, 2), m.rng.size(3, 4), m.rng.size(3, 4)];
    let x = m.batched(&shape);
    let most = if mode == "constant" { 3 } else { 2 };
    let least = if mode == "constant" && seed.is_multiple_of(3) { -1 } else { 0 };
    let pads: Vec<i64> = (0..4).map(|_| m.rng.int(least, most)).collect();
    // RTen has neither negative padding nor wrapping.
    m.reference_only = mode == "wrap" || pads.iter().any(|&p| p < 0);
    let attribute = [("mode", mode.into())];
    let y = if m.rng.coin() {
        let pads = m.b.ints(&[&[0], &pads[..2], &[0], &pads[2..]].concat());
        m.op("Pad", &[&x, &pads], &attribute)
    } else {
        m.reference_only = true;
        let (pads, axes) = (m.b.ints(&pads), m.b.ints(&[1, -1]));
        m.op("Pad", &[&x, &pads, "", &axes], &attribute)
    };
    m.finish(&y)
}

pub(super) fn resize(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let (h, w) = (m.rng.size(2, 4), m.rng.size(2, 4));
    let mode = m.rng.pick(&["nearest", "nearest", "linear", "cubic"]);
    let coordinates = m.rng.pick(&[
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric",
    ]);
    let nearest = m.rng.pick(&["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"]);
    let x = m.batched(&[2, 2, h, w]);
    let attributes = [
        ("mode", mode.into()),
        ("coordinate_transformation_mode", coordinates.into()),
        ("nearest_mode", nearest.into()),
    ];
    // RTen has the common combinations only.
    m.reference_only = mode == "cubic" || coordinates == "half_pixel_symmetric";
    let y = if m.rng.coin() {
        let scales = m.rng.pick(&[[1.0f32, 1.0, 2.0, 2.0], [1.0, 1.0, 1.5, 2.0], [1.0, 1.0, 0.5, 3.0]]);
        let scales = m.b.constant(TensorData::f32(&[4], &scales));
        m.op("Resize", &[&x, "", &scales], &attributes)
    } else {
        m.reference_only = true;
        let (a, b) = (m.rng.int(1, 6), m.rng.int(1, 6));
        let sizes = m.b.ints(&[a, b]);
        let mut attributes = attributes.to_vec();
        attributes.push(("axes", vec![2i64, 3].into()));
        m.op("Resize", &[&x, "", "", &sizes], &attributes)
    };
    m.finish(&y)
}

pub(super) fn blocks(seed: u64, op: &str) -> Case {
    let mut m = Maker::new(seed);
    let n = m.rng.size(1, 2);
    let (c, h, w) = (m.rng.size(1, 2), m.rng.size(1, 2), m.rng.size(1, 2));
    let y = if op == "DepthToSpace" {
        let x = m.batched(&[n, 4 * c, h, w]);
        let mode = m.rng.pick(&["DCR", "CRD"]);
        m.op(op, &[&x], &[("blocksize", 2i64.into()), ("mode", mode.into())])
    } else {
        let x = m.batched(&[n, c, 2 * h, 2 * w]);
        m.op(op, &[&x], &[("blocksize", 2i64.into())])
    };
    m.finish(&y)
}

pub(super) fn cast(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    // Through float64 and back; RTen has float32 only.
    m.reference_only = true;
    let wide = m.b.cast(&x, DType::F64);
    let bent = m.op("Sin", &[&wide], &[]);
    let y = m.b.cast(&bent, DType::F32);
    m.finish(&y)
}

pub(super) fn cast_like(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 3);
    let x = m.batched(&shape);
    m.reference_only = true;
    let like = m.b.constant(TensorData::scalar(DType::F64, 0.0));
    let wide = m.op("CastLike", &[&x, &like], &[]);
    let bent = m.op("Sin", &[&wide], &[]);
    let y = m.b.cast(&bent, DType::F32);
    m.finish(&y)
}

pub(super) fn trilu(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(2, 3, 4);
    let x = m.batched(&shape);
    let upper = ("upper", Attribute::Int(m.rng.coin().into()));
    let k = m.rng.int(-2, 2);
    let k = m.b.constant(TensorData::i64(&[], &[k]));
    let y = if m.rng.coin() { m.op("Trilu", &[&x], &[upper]) } else { m.op("Trilu", &[&x, &k], &[upper]) };
    m.finish(&y)
}
