//! A module imports only from modules to its left; see `ARCHITECTURE.md`.

#[path = "../../../tests/layers/mod.rs"]
mod layers;

use std::path::Path;

const ORDER: &[&str] = &[
    // Leaves: what went wrong, names, files.
    "error",
    "nearest",
    "registry",
    "ranking",
    "student",
    "fingerprint",
    "whole_file",
    "lock",
    "store",
    "npy",
    "npz",
    // The function explained, the velocity field.
    "score",
    // What is ordinary for a field that was learned.
    "calibration",
    "field",
    "data",
    "problems",
    "engine",
    "net",
    "train",
    "predictor",
    "classify",
    // Couplings of rows: flows are trained on them.
    "transport",
    "flow",
    "path",
    "attribute",
    "calibrate",
    // Why this and not that.
    "compare",
    // Explanations as files of their own.
    "export",
    "evaluate",
    "report",
    "runs",
];

#[test]
fn a_module_imports_only_from_modules_to_its_left() {
    let wrong = layers::back_edges(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")), ORDER);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
