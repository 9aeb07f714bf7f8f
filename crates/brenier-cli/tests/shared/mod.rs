//! What several tests of the program need.

#[path = "../../../../tests/straight_flow.rs"]
mod straight_flow;

use std::path::{Path, PathBuf};

/// The flow that halves every point on a straight path, as a file for images of 3x16x16.
pub(crate) fn halving_flow(folder: &Path) -> PathBuf {
    let file = folder.join("flow.onnx");
    straight_flow::straight_flow([3, 16, 16]).save(&file).unwrap();
    file
}
