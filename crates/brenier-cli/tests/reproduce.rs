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
    let keys: Vec<&str> = left.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["half_width", "mean", "method", "metric", "n", "paper", "std"]);
    for file in ["additive.json", "additive-scatter.svg", "additive-convergence.svg"] {
        assert!(target.join(file).exists(), "{file}");
        assert!(String::from_utf8_lossy(&done.stderr).contains(file));
    }
    let again = brenier(&["reproduce", "additive", "--format", "json"]);
    assert_eq!(again.stdout, done.stdout, "same seed, same bytes");
    let other = brenier(&["reproduce", "additive", "--format", "json", "--seed", "1"]);
    assert_ne!(other.stdout, done.stdout);
}

/// Runs an experiment at quick scale into a folder: its table, and what was said on the way.
fn quick(name: &str, folder: &std::path::Path) -> (serde_json::Value, String) {
    let folder = folder.to_str().unwrap();
    let args = [
        "reproduce",
        name,
        "--scale",
        "quick",
        "--seeds",
        "1",
        "--seed",
        "3",
        "--format",
        "json",
        "-o",
        folder,
    ];
    let done = brenier(&args);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
    (serde_json::from_slice(&done.stdout).unwrap(), said)
}

fn mean(table: &serde_json::Value, method: &str, metric: &str) -> f64 {
    let rows = table["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["method"] == method && row["metric"] == metric);
    row.unwrap_or_else(|| panic!("no {method}, {metric}"))["mean"].as_f64().unwrap()
}

#[test]
fn gaussian_goes_on_from_the_seeds_that_are_finished() {
    let folder = tempfile::tempdir().unwrap();
    let (table, said) = quick("gaussian", folder.path());
    assert!(said.contains("seed 3, 2-RF: action gap"), "{said}");
    assert_eq!(table["rows"][0]["paper"], 27.8976);
    let error = |method| mean(&table, method, "relative field error");
    assert!(error("2-RF") < 0.5 * error("1-RF"));
    for file in ["gaussian.json", "gaussian-plane.svg", "parts/gaussian-3.json", "parts/gaussian-plane.json"]
    {
        assert!(folder.path().join(file).exists(), "{file}");
    }
    let (again, said) = quick("gaussian", folder.path());
    assert_eq!(again, table);
    assert!(!said.contains("seed 3"), "nothing is trained twice: {said}");
}

#[test]
fn field_mismatch_gives_a_correlation_and_its_figure() {
    let folder = tempfile::tempdir().unwrap();
    let (table, _) = quick("field-mismatch", folder.path());
    assert!(mean(&table, "all flows but the oracle", "Pearson correlation of RAE and RFE") > 0.7);
    assert!(folder.path().join("field-mismatch.svg").exists());
}

#[test]
fn rotated_gaussian_tells_straight_from_optimal() {
    let folder = tempfile::tempdir().unwrap();
    let (table, _) = quick("rotated-gaussian", folder.path());
    let gap = |method: &str| mean(&table, &format!("2-D: {method}"), "action gap");
    assert!((gap("exact Reflow of exact 1-RF") - 0.6507).abs() < 1e-3);
    assert!(gap("2-RF") > 2.0 * gap("OT-coupled 2-RF").abs());
    for file in ["rotated-gaussian-plane.svg", "rotated-gaussian-groups.svg"] {
        assert!(folder.path().join(file).exists(), "{file}");
    }
}

#[test]
fn wrong_usage_is_2_and_failure_is_1() {
    assert_eq!(brenier(&["reproduce", "gaussian", "--seeds", "0"]).status.code(), Some(2));
    assert_eq!(brenier(&["reproduce", "nonsense"]).status.code(), Some(2));
    assert_eq!(brenier(&["unheard-of"]).status.code(), Some(2));
    assert_eq!(brenier(&["--version"]).status.code(), Some(0));
    let file = tempfile::NamedTempFile::new().unwrap();
    let failed = brenier(&["reproduce", "additive", "-o", file.path().to_str().unwrap()]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(failed.stdout.is_empty());
    assert!(String::from_utf8_lossy(&failed.stderr).starts_with("error: cannot create the folder"));
}

#[test]
fn experiments_on_images_say_what_they_miss() {
    let done = brenier(&["reproduce", "completeness"]);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("needs images") && said.contains("hint: name CIFAR-10's folder"), "{said}");
    let done = brenier(&["reproduce", "stability", "--data", "no-such-folder"]);
    assert!(String::from_utf8_lossy(&done.stderr).contains("there is no such file or folder"));
    assert_eq!(brenier(&["reproduce", "action", "-n", "0"]).status.code(), Some(2));
}
