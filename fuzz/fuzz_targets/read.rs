//! Arbitrary bytes as a model.
//!
//! ```text
//! cargo install cargo-fuzz
//! python fuzz/seed.py          # fuzz/corpus/read from fixtures/
//! RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none read -- -rss_limit_mb=2048 -timeout=10
//! ```
#![no_main]

#[path = "../../crates/onnx-grad/tests/fuzz_body/mod.rs"]
mod fuzz_body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    fuzz_body::exercise(bytes);
});
