//! What several tests of the program need.

use std::path::{Path, PathBuf};

use onnx_grad::{Builder, DType, Dim, Model};

/// The flow v(x, t) = -x / (2 - t), which halves every point on a straight path, as a file.
pub(crate) fn halving_flow(folder: &Path) -> PathBuf {
    let mut b = Builder::new("flow");
    let n = Dim::symbol("N");
    let x = b.input("x", DType::F32, &[n.clone(), Dim::Known(3), Dim::Known(16), Dim::Known(16)]);
    let t = b.input("t", DType::F32, &[n]);
    let below = b.rsub(2.0, &t);
    let below = b.unsqueeze(&below, &[1, 2, 3]);
    let v = b.div(&x, &below);
    let v = b.neg(&v);
    b.output("v", &v);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    let file = folder.join("flow.onnx");
    model.save(&file).unwrap();
    file
}
