//! A model of the fixtures, changed in its structure as the bytes say. Run as `read` is.
#![no_main]

#[path = "../../crates/onnx-grad/tests/fuzz_body/mod.rs"]
mod fuzz_body;

use std::path::Path;
use std::sync::OnceLock;

static MODELS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let models = MODELS
        .get_or_init(|| fuzz_body::fixtures(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures")));
    let [high, low, choices @ ..] = bytes else { return };
    let model = &models[usize::from(u16::from_be_bytes([*high, *low])) % models.len()];
    fuzz_body::exercise(&fuzz_body::mutated(model, choices));
});
