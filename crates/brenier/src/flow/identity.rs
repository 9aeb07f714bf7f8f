//! Which flow a calibration speaks of.

use onnx_grad::Model;

/// The entries that change what a flow does; others are its history.
const PARTS: [&str; 4] = ["brenier.shape", "brenier.scaling", "brenier.objective", "brenier.reference"];

/// The fingerprint of a flow's graph, weights, scaling and kind of reference.
pub fn flow_identity(model: &Model) -> String {
    let mut bare = model.clone();
    bare.metadata.retain(|key, _| PARTS.contains(&key.as_str()));
    crate::fingerprint(&bare.to_bytes())
}
