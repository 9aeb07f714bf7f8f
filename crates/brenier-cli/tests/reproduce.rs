//! The real binary: what goes to stdout, what to stderr, and how it ends.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

#[test]
fn additive_prints_one_json_table_and_writes_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new/additive");
    let done = brenier(&["reproduce", "additive", "--format", "json", "-o", target.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    let table: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(table["name"], "additive");
    let left = &table["rows"][1];
    assert_eq!(
        (left["method"].as_str(), left["metric"].as_str()),
        (Some("left"), Some("slope of log error over log K"))
    );
    assert!((left["mean"].as_f64().unwrap() + 1.0).abs() < 0.05);
    assert!(left["paper"].is_null() && left["n"] == 100);
    assert_eq!(left.as_object().unwrap().len(), 6);
    for file in ["additive.json", "additive-scatter.svg", "additive-convergence.svg"] {
        assert!(target.join(file).exists(), "{file}");
        assert!(String::from_utf8_lossy(&done.stderr).contains(file));
    }
    let again = brenier(&["reproduce", "additive", "--format", "json"]);
    assert_eq!(again.stdout, done.stdout, "same seed, same bytes");
    let other = brenier(&["reproduce", "additive", "--format", "json", "--seed", "1"]);
    assert_ne!(other.stdout, done.stdout);
}

#[test]
fn wrong_usage_is_2_and_failure_is_1() {
    assert_eq!(brenier(&["reproduce", "nonsense"]).status.code(), Some(2));
    assert_eq!(brenier(&["unheard-of"]).status.code(), Some(2));
    assert_eq!(brenier(&["--version"]).status.code(), Some(0));
    let file = tempfile::NamedTempFile::new().unwrap();
    let failed = brenier(&["reproduce", "additive", "-o", file.path().to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(failed.stdout.is_empty());
    assert!(String::from_utf8_lossy(&failed.stderr).starts_with("error: cannot create the folder"));
}
