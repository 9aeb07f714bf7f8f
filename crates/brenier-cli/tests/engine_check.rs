//! The engine is held against the reference when a model is first used, and the verdict is kept.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use ndarray::Array4;

/// Explains two inputs of the model with cubic interpolation.
fn explain(folder: &Path, cache: &Path, more: &[&str]) -> Output {
    let inputs = folder.join("inputs.npy");
    let images = Array4::from_shape_fn((2, 3, 8, 8), |(n, c, h, w)| ((n + 3 * c + h * w) as f32).sin());
    ndarray_npy::write_npy(&inputs, &images).unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/engines/bicubic.script.onnx");
    let mut command = Command::new(env!("CARGO_BIN_EXE_brenier"));
    command.env("XDG_CACHE_HOME", cache).args(["explain", "--tolerance", "1e-3", "--format", "json", "-m"]);
    command.arg(model).arg(inputs).args(more).output().unwrap()
}

fn verdicts(cache: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(cache.join("brenier/engine-checks"));
    files.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn the_verdict_is_kept_and_the_check_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let first = explain(folder.path(), &cache, &[]);
    assert!(first.status.success(), "{}", String::from_utf8_lossy(&first.stderr));
    let kept = verdicts(&cache);
    assert_eq!(kept.len(), 1, "{kept:?}");
    let verdict: serde_json::Value = serde_json::from_slice(&std::fs::read(&kept[0]).unwrap()).unwrap();
    assert!(verdict["agree"].as_u64().unwrap() >= 8, "{verdict}");
    assert_eq!(verdict["left_out"].as_array().unwrap().len(), 0, "{verdict}");

    // What is kept is believed: a verdict with something left out is told, and nothing is compared anew.
    std::fs::write(&kept[0], r#"{"agree": 3, "left_out": ["'rnn' (RNN) (it is not known)"]}"#).unwrap();
    let second = explain(folder.path(), &cache, &[]);
    let told =
        "1 of 4 kinds of operators were not checked against the reference evaluator on RTen: 'rnn' (RNN)";
    assert!(String::from_utf8_lossy(&second.stderr).contains(told), "{second:?}");
    assert_eq!(first.stdout, second.stdout);

    let unchecked = folder.path().join("unchecked");
    let third = explain(folder.path(), &unchecked, &["--no-engine-check"]);
    assert_eq!(first.stdout, third.stdout);
    assert_eq!(verdicts(&unchecked).len(), 0);
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a file");
    std::fs::write(&file, "no folder").unwrap();
    let done = explain(folder.path(), &file, &[]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
