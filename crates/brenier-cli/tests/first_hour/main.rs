//! What a new user meets in the first hour, row by row, each with the real program. A file for each part; here is what
//! they share.
#![allow(clippy::unwrap_used)]

#[path = "../shared/place.rs"]
mod place;

mod equal_values;
mod evaluate;
mod flags;
mod pages;
mod training;
mod verdicts;

use ndarray::{Array2, ArrayD};
use ndarray_npy::{NpzReader, write_npy};
use onnx_grad::{Builder, DType, Dim, Model, TensorData};
use place::{Place, linear};

/// A place with a linear model of two columns and six rows.
pub(crate) fn simple() -> Place {
    let place = Place::new();
    linear(&[1.0, 2.0], 2).save(place.file("model.onnx")).unwrap();
    let rows = Array2::from_shape_fn((6, 2), |(i, j)| 1.0 + (i + 2 * j) as f32);
    write_npy(place.file("rows.npy"), &rows).unwrap();
    place
}

/// Numbers between -1 and 1 that look random.
pub(crate) fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A network of 20 features, 400 hidden units of this kind, and one score.
pub(crate) fn network(place: &Place, name: &str, activation: &str) {
    let mut b = Builder::new("net");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(20)]);
    let w = b.parameter("w", TensorData::f32(&[20, 400], &noise(8000, 1)));
    let bias = b.parameter("b", TensorData::f32(&[400], &noise(400, 2)));
    let v = b.parameter("v", TensorData::f32(&[400, 1], &noise(400, 3)));
    let hidden = b.matmul(&x, &w);
    let hidden = b.add(&hidden, &bias);
    let hidden = b.op(activation, &[&hidden]);
    let y = b.matmul(&hidden, &v);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file(name)).unwrap();
    let rows = Array2::from_shape_vec((20, 20), noise(400, 4)).unwrap();
    write_npy(place.file("wide.npy"), &rows).unwrap();
}

/// The credit that a command wrote to `out`.
pub(crate) fn values(place: &Place, line: &str) -> ArrayD<f64> {
    let done = place.run(&format!("{line} -o out --force"));
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    let file = std::fs::File::open(place.file("out/explanations.npz")).unwrap();
    let mut npz = NpzReader::new(file).unwrap();
    npz.by_name("values").or_else(|_| npz.by_name("values.npy")).unwrap()
}

pub(crate) fn said(place: &Place, line: &str) -> String {
    let done = place.run(line);
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// A flow of two features that moves every point by `by` between time 0 and 1.
pub(crate) fn flow(place: &Place, name: &str, by: f32) {
    let mut b = Builder::new("flow");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(2)]);
    let t = b.input("t", DType::F32, &[Dim::symbol("N")]);
    let (zero, by) = (b.parameter("zero", TensorData::f32(&[1], &[0.0])), TensorData::f32(&[2], &[by, by]));
    let by = b.parameter("by", by);
    let still = b.mul(&x, &zero);
    let time = b.reshape(&t, &[-1, 1]);
    let time = b.mul(&time, &zero);
    let v = b.add(&still, &time);
    let v = b.add(&v, &by);
    b.output("v", &v);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file(name)).unwrap();
}
