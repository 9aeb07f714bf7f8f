//! `brenier evaluate`, as typed.
#![allow(clippy::unwrap_used)]

mod shared;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ndarray::{Array2, Array4};

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn stdout(done: &Output) -> String {
    assert_eq!(done.status.code(), Some(0), "{}", stderr(done));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn vgg() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch/vgg.script.onnx");
    text(&path).to_string()
}

/// A folder with `inputs.npy` for the small VGG, and its path as text.
fn inputs(rows: usize) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inputs.npy");
    let inputs =
        Array4::from_shape_fn((rows, 3, 16, 16), |(n, c, h, w)| ((7 * n + 3 * c + h * w) as f32).sin());
    ndarray_npy::write_npy(&file, &inputs).unwrap();
    let typed = text(&file).to_string();
    (folder, typed)
}

fn flow(folder: &Path) -> String {
    text(&shared::halving_flow(folder)).to_string()
}

#[test]
fn a_table_in_every_form() {
    let (folder, inputs) = inputs(12);
    let (model, flow) = (vgg(), flow(folder.path()));
    let out = folder.path().join("out");
    let metrics = "fce,gps,deletion-zero,relative-residual";
    let common = ["evaluate", "-m", &model, "-f", &flow, &inputs, "-n", "9", "--metrics", metrics];
    let with =
        |more: &[&str]| brenier(&[&common[..], &["--methods", "ig,gradient,transport"], more].concat());
    let json = stdout(&with(&["-o", text(&out), "--format", "json"]));
    let table: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((table["examples"].as_u64(), table["rows"].as_array().unwrap().len()), (Some(9), 12));
    let row = |method: &str, metric: &str| {
        let rows = table["rows"].as_array().unwrap();
        rows.iter().find(|r| r["method"] == method && r["metric"] == metric).unwrap().clone()
    };
    // The flow's own trace follows it and is straight; a line to black does not follow it.
    assert!(row("transport", "fce")["mean"].as_f64().unwrap() < 1e-4);
    assert!(row("ig", "fce")["mean"].as_f64().unwrap() > 1.0);
    assert!((row("transport", "gps")["mean"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(row("gradient", "gps")["absent"], "the method has no path");
    let cell = row("ig", "deletion-zero");
    let (mean, sem) = (cell["mean"].as_f64().unwrap(), cell["sem"].as_f64().unwrap());
    assert!((cell["low"].as_f64().unwrap() - (mean - 1.96 * sem)).abs() < 1e-12);
    for file in ["evaluation.json", "evaluation.csv", "evaluation.tex", "report.html", "parts/run.json"] {
        assert!(out.join(file).exists(), "{file}");
    }
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("deletion-zero ↓"));
    // Everything is there already, whatever the form.
    let again = with(&["-o", text(&out), "--format", "latex"]);
    assert!(stdout(&again).contains("\\toprule"));
    assert!(!stderr(&again).contains("evaluating"), "{}", stderr(&again));
    let plain = stdout(&with(&["--format", "text", "--quiet"]));
    assert!(plain.lines().any(|line| line.starts_with("transport ")), "{plain}");
    let lines = stdout(&with(&["--format", "csv"]));
    assert_eq!(lines.lines().count(), 13);
}

/// Killed again and again with SIGKILL, an evaluation goes on from what it had, and ends with the same bytes.
#[test]
fn a_killed_evaluation_ends_with_the_same_table() {
    let (folder, inputs) = inputs(32);
    let model = vgg();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let args = |out: &Path| -> Vec<String> {
        [
            "evaluate",
            "-m",
            &model,
            &inputs,
            "--methods",
            "smoothgrad,ig,kernel-shap",
            "--groups",
            "patches:4x4",
        ]
        .into_iter()
        .chain([
            "--samples",
            "80",
            "--metrics",
            "deletion-blur,infidelity",
            "--metric-samples",
            "20",
            "-q",
            "-o",
            text(out),
        ])
        .map(str::to_string)
        .collect()
    };
    let parts = || std::fs::read_dir(broken.join("parts")).map_or(0, |dir| dir.count());
    let run = |out: &Path| brenier(&args(out).iter().map(String::as_str).collect::<Vec<_>>());
    let mut kills = 0;
    while kills < 3 {
        let before = parts();
        let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
            .args(args(&broken))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while parts() < before + 2 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills >= 2, "the run was too short to be killed");
    assert!(!broken.join("evaluation.json").exists() || kills < 3, "it was finished before it was killed");
    assert_eq!(stdout(&run(&broken)), stdout(&run(&whole)));
    for file in ["evaluation.json", "evaluation.csv", "evaluation.tex"] {
        let read = |out: &Path| std::fs::read(out.join(file)).unwrap();
        assert_eq!(read(&broken), read(&whole), "{file}");
    }
}

#[test]
fn mistakes_are_named() {
    let (folder, inputs) = inputs(4);
    let model = vgg();
    let refused = |more: &[&str], code: i32, expected: &str| {
        let done = brenier(&[&["evaluate", "-m", &model, &inputs], more].concat());
        assert_eq!(done.status.code(), Some(code), "{more:?} {}", stderr(&done));
        assert!(stderr(&done).contains(expected), "{more:?}: {}", stderr(&done));
        assert!(done.stdout.is_empty());
    };
    refused(&["--methods", "smoothgard"], 1, "did you mean 'smoothgrad'?");
    refused(&["--metrics", "deletion"], 1, "did you mean 'deletion-zero'?");
    refused(&["--metrics", "gps,gps"], 1, "the metric 'gps' is given twice");
    refused(&["--methods", "ig,ig"], 1, "the method 'ig' is given twice");
    refused(&["--methods", "transport"], 1, "there is no flow to follow");
    refused(&["--methods", "gradient", "--metrics", "gps"], 1, "the method has no path");
    refused(&["--metrics", "mass-accuracy"], 1, "there is no planted truth");
    refused(&["-n", "0"], 1, "-n is 0");
    refused(&["-n", "some"], 2, "invalid value");
    refused(&["--target", "0,1"], 1, "2 targets are given for 4 examples");
    let truth = folder.path().join("truth.npy");
    ndarray_npy::write_npy(&truth, &Array2::from_elem((4, 7), true)).unwrap();
    refused(&["--truth", text(&truth)], 1, "there are 4 examples of 768 features");
    let flow = flow(folder.path());
    let only = ["--methods", "ig", "-f", &flow];
    refused(&[&only[..], &["--metrics", "deletion-zero"]].concat(), 1, "--flow makes no difference");
    // A folder is for one evaluation.
    let out = folder.path().join("out");
    let kept = ["--methods", "ig", "--metrics", "deletion-zero", "-o", text(&out)];
    stdout(&brenier(&[&["evaluate", "-m", &model, &inputs], &kept[..]].concat()));
    refused(&[&kept[..], &["--target", "1"]].concat(), 1, "holds another run: the fingerprint of inputs");
    refused(&[&kept[..], &["-n", "3"]].concat(), 1, "the count of examples was 4, and now it is 3");
    refused(&[&kept[..], &["--keep-softmax"]].concat(), 1, "the explained output was the first");
    let anew = ["evaluate", "-m", &model, &inputs, "-n", "3", "--force", "--format", "json"];
    let table: serde_json::Value =
        serde_json::from_str(&stdout(&brenier(&[&anew[..], &kept[..]].concat()))).unwrap();
    assert_eq!(table["examples"], 3);
}
