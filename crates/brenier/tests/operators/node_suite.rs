//! ONNX's own node tests (`fixtures/onnx_node`), as samples with the outputs that ONNX expects.

use std::path::Path;

use onnx_grad::eval::Array;
use onnx_grad::proto::ModelProto;
use onnx_grad::{Model, NEWEST_OPSET, OLDEST_OPSET, TensorData};
use prost::Message;

use super::sample::Sample;

/// Read otherwise here than in the suite, as ONNX Runtime does (see `onnx-grad/tests/node_cases.rs`), or of opsets that are not
/// read (windows of attention, CRD).
const OTHERWISE: [&str; 7] = [
    "test_attention_3d_local_window",
    "test_attention_bidirectional_window",
    "test_attention_local_window",
    "test_attention_local_window_rank1_boolean_mask",
    "test_resize_downsample_scales_cubic_align_corners",
    "test_resize_downsample_scales_linear_align_corners",
    "test_spacetodepth_crd_mode_example",
];

/// Every test whose types are read, with its expected outputs.
pub(crate) fn samples() -> Vec<(Sample, Vec<Array>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/onnx_node");
    let mut folders: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("model.onnx").is_file())
        .filter(|path| !OTHERWISE.contains(&path.file_name().unwrap().to_str().unwrap()))
        .collect();
    folders.sort();
    folders.iter().filter_map(|folder| sample(folder)).collect()
}

fn sample(folder: &Path) -> Option<(Sample, Vec<Array>)> {
    let mut proto = ModelProto::decode(std::fs::read(folder.join("model.onnx")).unwrap().as_slice()).unwrap();
    for import in &mut proto.opset_import {
        if import.domain.as_deref().unwrap_or("").is_empty() {
            // A version below ours is that of the operator's present form, and no older dialect.
            import.version = import.version.map(|v| if v < OLDEST_OPSET { 18 } else { v.min(NEWEST_OPSET) });
        }
    }
    let names: Vec<String> =
        proto.graph.as_ref()?.input.iter().map(|v| v.name.clone().unwrap_or_default()).collect();
    let Model { graph, opset, .. } = Model::from_bytes(proto.encode_to_vec()).ok()?;
    let read = |name: String| {
        let bytes = std::fs::read(folder.join("test_data_set_0").join(name)).ok()?;
        Some(Array::from(&TensorData::decode(bytes).ok()?))
    };
    let given = names.into_iter().enumerate();
    let inputs = given.filter_map(|(i, name)| Some((name, read(format!("input_{i}.pb"))?))).collect();
    let truth: Option<Vec<Array>> =
        (0..graph.outputs.len()).map(|i| read(format!("output_{i}.pb"))).collect();
    let label = folder.file_name().unwrap().to_str().unwrap().to_string();
    Some((Sample { label, graph, inputs, opset }, truth?))
}
