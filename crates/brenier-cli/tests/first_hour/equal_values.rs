//! Equal values, on both engines: what PyTorch gives. `crates/brenier/tests/ties.rs` holds all operators against it.

use ndarray::Array4;
use ndarray_npy::write_npy;
use onnx_grad::{Attribute, Builder, DType, Dim, Model};

use crate::place::Place;
use crate::values;

#[test]
fn the_first_of_equal_pixels_under_a_max_pool_has_the_gradient() {
    let place = Place::new();
    let mut b = Builder::new("pool");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(1), Dim::Known(2), Dim::Known(2)]);
    let pooled = b.op_with("MaxPool", &[&x], &[("kernel_shape", Attribute::Ints(vec![2, 2]))]);
    let y = b.reshape(&pooled, &[-1, 1]);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file("pool.onnx")).unwrap();
    write_npy(place.file("black.npy"), &Array4::<f32>::zeros((1, 1, 2, 2))).unwrap();
    for engine in ["rten", "ort"] {
        let line = format!("explain -m pool.onnx black.npy --method gradient --engine {engine}");
        assert_eq!(values(&place, &line).into_raw_vec_and_offset().0, [1.0, 0.0, 0.0, 0.0], "{engine}");
    }
}
