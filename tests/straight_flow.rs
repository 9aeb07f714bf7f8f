//! A flow that is known in closed form, as a network; the tests of the program use it, too.

use onnx_grad::{Builder, DType, Dim, Model};

/// The flow v(x, t) = -x / (2 - t) on images: its paths are the straight lines from 2 x to x.
pub(crate) fn straight_flow(shape: [usize; 3]) -> Model {
    let mut b = Builder::new("flow");
    let n = Dim::symbol("N");
    let sizes: Vec<Dim> = std::iter::once(n.clone()).chain(shape.map(Dim::from)).collect();
    let x = b.input("x", DType::F32, &sizes);
    let t = b.input("t", DType::F32, &[n]);
    let below = b.rsub(2.0, &t);
    let below = b.unsqueeze(&below, &[1, 2, 3]);
    let v = b.div(&x, &below);
    let v = b.neg(&v);
    b.output("v", &v);
    Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() }
}
