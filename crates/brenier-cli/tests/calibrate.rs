//! `brenier calibrate` and what certificates make of it, as typed.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Two numbers on a ring.
fn ring(path: &Path, rows: usize, size: f64) {
    let mut csv = String::from("x,y\n");
    for i in 0..rows {
        let (angle, wobble) = (i as f64 * 2.399963, (i as f64 * 0.754877).fract() - 0.5);
        let radius = size * (2.0 + 0.6 * wobble);
        writeln!(csv, "{:.4},{:.4}", radius * angle.cos(), radius * angle.sin()).unwrap();
    }
    std::fs::write(path, csv).unwrap();
}

fn verdicts(model: &Path, rows: &Path, flow: &Path) -> Vec<Value> {
    let done = brenier(&[
        "explain",
        "-m",
        text(model),
        text(rows),
        "-f",
        text(flow),
        "--method",
        "transport",
        "--target",
        "0",
        "--format",
        "json",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    serde_json::from_slice::<Vec<Value>>(&done.stdout).unwrap()
}

/// The part of the explanations that are unusual for the flow.
fn unusual(certificates: &[Value]) -> f64 {
    let rare = |c: &&Value| {
        let about = &c["path"]["ordinary"];
        assert_eq!(about["kind"], "calibrated", "{c}");
        about["standing"]["share"].as_f64().unwrap() <= 0.03
    };
    certificates.iter().filter(rare).count() as f64 / certificates.len() as f64
}

fn reasons(certificate: &Value) -> String {
    let reasons = certificate["checks"]["reference"]["reasons"].as_array().cloned().unwrap_or_default();
    reasons.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
}

/// A score that is larger the farther out: `x^2 + y^2`.
fn score(path: &Path) {
    let mut b = onnx_grad::Builder::new("score");
    let x = b.input("input", onnx_grad::DType::F32, &[onnx_grad::Dim::symbol("N"), onnx_grad::Dim::Known(2)]);
    let square = b.mul(&x, &x);
    let ones = b.constant(onnx_grad::TensorData::f32(&[2, 1], &[1.0, 1.0]));
    let sum = b.matmul(&square, &ones);
    b.output("score", &sum);
    let graph = b.finish().unwrap();
    let model = onnx_grad::Model { graph, opset: 18, ir_version: 8, ..onnx_grad::Model::default() };
    model.save(path).unwrap();
}

#[test]
fn a_flow_is_calibrated_at_the_end_of_training_or_by_hand_and_certificates_can_tell() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (data, few, far, model, run) =
        (at("ring.csv"), at("few.csv"), at("far.csv"), at("score.onnx"), at("run"));
    ring(&data, 1500, 1.0);
    ring(&few, 50, 1.0);
    ring(&far, 10, 3.0);
    score(&model);
    let train =
        ["train", text(&data), "-o", text(&run), "--width", "48", "--batch", "128", "--steps", "1200"];
    let done = brenier(&[&train[..], &["--calibration-rows", "0"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("calibrated                       no"), "{said}");
    // Nobody has looked at it: neither pass nor warn.
    let open = verdicts(&model, &few, &run);
    assert!(open.iter().all(|c| c["path"]["ordinary"]["kind"] == "not-calibrated"), "{}", open[0]);
    assert!(open.iter().any(|c| c["verdict"]["kind"] == "not-calibrated"), "{}", open[0]);
    assert!(open.iter().all(|c| c["verdict"]["kind"] != "pass"), "{}", open[0]);
    assert_eq!(open[0]["format"], 3);

    let done = brenier(&["calibrate", text(&run), text(&data), "--format", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let about: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&about["rows"], &about["objection"]), (&Value::from(150), &Value::Null), "{about}");
    assert!(about["quality"]["gain"].as_f64().unwrap() > 0.1, "{about}");
    let good = verdicts(&model, &few, &run);
    assert!(unusual(&good) <= 0.1, "{}", good[0]);
    assert!(good.iter().any(|c| c["verdict"]["kind"] == "pass"), "{}", good[0]);
    let bad = verdicts(&model, &far, &run);
    assert_eq!(unusual(&bad), 1.0, "{}", bad[0]);
    let said = reasons(&bad[0]);
    assert!(said.contains("unlike the flow's data: 0.7 of 100 held-out inputs"), "{said}");

    // Another flow, trained for a moment, is calibrated on its own and found to be no good.
    let moment = at("moment");
    let train =
        ["train", text(&data), "-o", text(&moment), "--width", "48", "--batch", "128", "--steps", "2"];
    let done = brenier(&train);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("good enough to explain with      no: the flow"), "{said}");
    let poor = verdicts(&model, &few, &moment);
    assert!(
        poor.iter().all(|c| reasons(c).contains("train it longer") && c["verdict"]["kind"] == "warn"),
        "{}",
        poor[0]
    );

    let hint = |args: &[&str]| {
        let done = brenier(args);
        assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
        stderr(&done)
    };
    let said = hint(&["calibrate", text(&run), text(&few), "--unseen"]);
    assert!(said.contains("50") && said.contains("at least 60 rows"), "{said}");
    let said = hint(&["calibrate", text(&at("nowhere")), text(&data)]);
    assert!(said.contains("there is no flow"), "{said}");
    let wide = at("wide.csv");
    std::fs::write(&wide, "a,b,c\n1,2,3\n4,5,6\n7,8,9\n").unwrap();
    let said = hint(&["calibrate", text(&run), text(&wide), "--unseen"]);
    assert!(said.contains("[3]") && said.contains("[2]"), "{said}");
}
