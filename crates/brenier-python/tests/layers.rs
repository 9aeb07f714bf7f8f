//! A module imports only from modules to its left; see `ARCHITECTURE.md`.

#[path = "../../../tests/layers/mod.rs"]
mod layers;

use std::path::Path;

const ORDER: &[&str] = &[
    "wording", "errors", "watch", "arrays", "function", "model", "flow", "methods", "text", "explain",
    "export", "evaluate", "saved", "shift", "train",
];

#[test]
fn a_module_imports_only_from_modules_to_its_left() {
    let wrong = layers::back_edges(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")), ORDER);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
