//! Operators that pick and place values by index.

use onnx_grad::{Attribute, TensorData};

use super::super::{Case, Maker};

pub(super) fn gather(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = m.shape(1, 3, 4);
    let axis = m.rng.size(0, shape.len() - 1);
    let x = if axis == 0 { m.fixed(&shape) } else { m.batched(&shape) };
    let size = shape[axis] as i64;
    let index_shape = m.rng.pick(&[vec![], vec![1], vec![3], vec![2, 2]]);
    let indices: Vec<i64> = (0..index_shape.iter().product()).map(|_| m.rng.int(-size, size - 1)).collect();
    let indices = m.b.constant(TensorData::i64(&index_shape, &indices));
    let y = m.op("Gather", &[&x, &indices], &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

/// Indices of a shape into an axis of `size` elements.
fn indices(m: &mut Maker, shape: &[usize], size: usize) -> onnx_grad::Value {
    let size = size as i64;
    let values: Vec<i64> = (0..shape.iter().product()).map(|_| m.rng.int(-size, size - 1)).collect();
    m.b.constant(TensorData::i64(shape, &values))
}

pub(super) fn gather_elements(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(2, 3), m.rng.size(2, 4)];
    let axis = m.rng.size(0, 1);
    let x = m.fixed(&shape);
    let mut picked = shape;
    picked[axis] = m.rng.size(1, 4);
    let places = indices(&mut m, &picked, shape[axis]);
    let y = m.op("GatherElements", &[&x, &places], &[("axis", (axis as i64).into())]);
    m.finish(&y)
}

pub(super) fn gather_nd(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [2, 3, m.rng.size(1, 2)];
    let x = m.fixed(&shape);
    let y = if m.rng.coin() {
        let places = m.b.constant(TensorData::i64(&[3, 2], &[0, 2, 1, 0, 0, 2]));
        m.op("GatherND", &[&x, &places], &[])
    } else {
        let places = indices(&mut m, &[2, 1], 3);
        m.op("GatherND", &[&x, &places], &[("batch_dims", 1i64.into())])
    };
    m.finish(&y)
}

pub(super) fn scatter_elements(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [3, m.rng.size(3, 4)];
    let x = m.fixed(&shape);
    let updates = m.fixed(&[2, 2]);
    let add = m.rng.coin();
    // Places must differ, but where they are added.
    let places: &[i64] = if add { &[0, 1, 0, 1] } else { &[0, 1, 2, 0] };
    let places = m.b.constant(TensorData::i64(&[2, 2], places));
    let mut attributes = vec![("axis", Attribute::Int(0))];
    if add {
        attributes.push(("reduction", "add".into()));
    }
    let y = m.op("ScatterElements", &[&x, &places, &updates], &attributes);
    m.finish(&y)
}

pub(super) fn scatter_nd(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [4, m.rng.size(1, 3)];
    let x = m.fixed(&shape);
    let updates = m.fixed(&[2, shape[1]]);
    let add = m.rng.coin();
    let places: &[i64] = if add { &[1, 1] } else { &[3, 1] };
    let places = m.b.constant(TensorData::i64(&[2, 1], places));
    let attributes: &[(&str, Attribute)] =
        if add { &[("reduction", Attribute::String("add".into()))] } else { &[] };
    let y = m.op("ScatterND", &[&x, &places, &updates], attributes);
    m.finish(&y)
}

pub(super) fn top_k(seed: u64) -> Case {
    let mut m = Maker::new(seed);
    let shape = [m.rng.size(1, 3), m.rng.size(3, 5)];
    let x = m.batched(&shape);
    let k = m.b.ints(&[2]);
    let largest = ("largest", Attribute::Int(m.rng.coin().into()));
    let y = m.b.op_many("TopK", &[&x, &k], &[("axis", (-1i64).into()), largest], 2);
    m.finish(&y[0])
}
