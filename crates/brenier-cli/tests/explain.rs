//! `brenier explain` and `brenier inspect`, as typed.
#![allow(clippy::unwrap_used)]

mod shared;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use brenier::{FieldFn, TraceConfig, load_traces, save_traces, trace};
use ndarray::{Array2, Array4, ArrayD};

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

fn fixture(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    path.to_str().unwrap().to_string()
}

/// A folder with `inputs.npy` for the small VGG, and its path as text.
fn inputs(rows: usize) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inputs.npy");
    let inputs = Array4::from_shape_fn((rows, 3, 16, 16), |(n, c, h, w)| ((n + 3 * c + h * w) as f32).sin());
    ndarray_npy::write_npy(&file, &inputs).unwrap();
    let text = file.to_str().unwrap().to_string();
    (folder, text)
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn credit_sums_to_the_change_of_the_score() {
    let (folder, inputs) = inputs(3);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let model = fixture("torch/vgg.script.onnx");
    let done =
        brenier(&["explain", "-m", &model, &inputs, "--tolerance", "1e-3", "-o", out, "--format", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let certificates = certificates.as_array().unwrap();
    assert_eq!(certificates.len(), 3);
    for certificate in certificates {
        assert!(certificate["relative_residual"].as_f64().unwrap() <= 1e-3, "{certificate}");
        assert_eq!(certificate["verdict"]["kind"], "pass");
        assert!(certificate["engine"].as_str().unwrap().starts_with("RTen"));
        assert_eq!(certificate["model_hash"].as_str().unwrap().len(), 64);
        assert_eq!(certificate["input_hash"].as_str().unwrap().len(), 64);
    }
    let file = std::fs::File::open(Path::new(out).join("explanations.npz")).unwrap();
    let mut npz = ndarray_npy::NpzReader::new(file).unwrap();
    let values: ArrayD<f64> = npz.by_name("values").unwrap();
    assert_eq!(values.shape(), [3, 3, 16, 16]);
    let lines = std::fs::read_to_string(Path::new(out).join("explanations.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3);

    // The same once more is there already; something else is refused before any work.
    let again = brenier(&["explain", "-m", &model, &inputs, "-o", out]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert!(stderr(&again).contains("3 of 3 inputs were explained by an earlier run"), "{}", stderr(&again));
    let other = brenier(&["explain", "-m", &model, &inputs, "-o", out, "--target", "1"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(stderr(&other).contains("holds another run: the targets was"), "{}", stderr(&other));
    let forced = brenier(&["explain", "-m", &model, &inputs, "-o", out, "--target", "1", "--force"]);
    assert_eq!(forced.status.code(), Some(0), "{}", stderr(&forced));
    // Results whose origin is not known are not replaced either.
    std::fs::remove_file(Path::new(out).join("explanations.run.json")).unwrap();
    let unknown = brenier(&["explain", "-m", &model, &inputs, "-o", out]);
    assert!(stderr(&unknown).contains("exists already\nhint: "), "{}", stderr(&unknown));
}

/// Killed at any moment and started again, a run ends with the files of one that was left alone.
#[test]
fn a_killed_run_goes_on_and_ends_with_the_same_files() {
    let (folder, inputs) = inputs(96);
    let model = fixture("torch/vgg.script.onnx");
    let flow = shared::halving_flow(folder.path());
    let flow = flow.to_str().unwrap().to_string();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let args = |out: &Path| -> Vec<String> {
        let methods = ["--method", "transport,smoothgrad,gradient", "--samples", "100", "--targets", "top2"];
        let first = ["explain", "-m", &model, &inputs, "-f", &flow, "-q", "-o", out.to_str().unwrap()];
        first.into_iter().chain(methods).map(str::to_string).collect()
    };
    let finished = || {
        let parts = ["transport", "smoothgrad", "gradient"].map(|name| {
            std::fs::read_dir(broken.join(name).join("explanations.parts")).map_or(0, |dir| {
                dir.filter_map(std::result::Result::ok)
                    .filter(|entry| entry.file_name().to_string_lossy().starts_with("0"))
                    .count()
            })
        });
        parts.iter().sum::<usize>()
    };
    let mut kills = 0;
    for _ in 0..4 {
        let before = finished();
        let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
            .args(args(&broken))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while finished() <= before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_some() {
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        // What is finished can be read while the run is not.
        let parts = std::fs::read_dir(broken.join("transport").join("explanations.parts"));
        let part = parts.ok().and_then(|mut dir| {
            dir.find_map(|entry| {
                Some(entry.ok()?.path()).filter(|path| path.join("explanations.npz").exists())
            })
        });
        if let Some(part) = part {
            assert!(!brenier::report::load_explanations(&part).unwrap().is_empty());
        }
    }
    assert!(kills >= 2, "the run was too short to be killed");
    for out in [&broken, &whole] {
        let done = brenier(&args(out).iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    }
    for method in ["transport", "smoothgrad", "gradient"] {
        for file in
            ["explanations.npz", "explanations.jsonl", "explanations.run.json", "stills.npz", "traces.npz"]
        {
            let read = |out: &Path| std::fs::read(out.join(method).join(file)).ok();
            assert!(read(&broken) == read(&whole), "{method}/{file}");
        }
        assert!(!broken.join(method).join("explanations.parts").exists());
    }
    assert!(whole.join("transport/traces.npz").exists() && whole.join("transport/stills.npz").exists());
}

/// The paper's estimator to the letter takes one gradient a step.
#[test]
fn the_left_rule_takes_its_steps() {
    let (_folder, inputs) = inputs(1);
    let model = fixture("torch/vgg.script.onnx");
    let done = brenier(&[
        "explain", "-m", &model, &inputs, "--rule", "left", "--steps", "50", "--target", "2", "--format",
        "json",
    ]);
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(certificates[0]["gradient_evaluations"], 50);
    assert_eq!(certificates[0]["target"], 2);
    assert_eq!(certificates[0]["path"]["rule"]["rule"], "left");
}

/// A trace is made once and used for several models: the path does not depend on the predictor.
#[test]
fn saved_traces_serve_any_model() {
    let (folder, inputs) = inputs(2);
    let rows: Array4<f32> = ndarray_npy::read_npy(&inputs).unwrap();
    let rows: Array2<f64> = rows.mapv(f64::from).into_shape_with_order((2, 768)).unwrap();
    // The optimal transport from a wide Gaussian to one of half its width.
    let flow = FieldFn::new(&[3, 16, 16], |x, t| &x * (-0.5 / (1.0 - 0.5 * t)));
    let traces = trace(&flow, rows.view(), &TraceConfig::default()).unwrap();
    let file = folder.path().join("traces.npz");
    save_traces(&file, &traces).unwrap();
    let file = file.to_str().unwrap();
    for model in ["torch/vgg.script.onnx", "torch/vit.dynamo.onnx"] {
        let done =
            brenier(&["explain", "-m", &fixture(model), &inputs, "--traces", file, "--format", "json"]);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert!(certificates[1]["relative_residual"].as_f64().unwrap() <= 1e-3);
        assert!(certificates[1]["path"]["round_trip_error"].as_f64().unwrap() < 1e-3);
    }
}

/// A flow is an ONNX file like any other: here one that halves every Gaussian.
#[test]
fn a_flow_is_followed_backward() {
    let (folder, inputs) = inputs(2);
    let flow = shared::halving_flow(folder.path());
    let out = folder.path().join("out");
    let done = brenier(&[
        "explain",
        "-m",
        &fixture("torch/vgg.script.onnx"),
        "-f",
        flow.to_str().unwrap(),
        &inputs,
        "-o",
        out.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(certificates[0]["path"]["relative_round_trip_error"].as_f64().unwrap() < 1e-3);
    assert_eq!(load_traces(&out.join("traces.npz")).unwrap().len(), 2);

    // A coarser solver takes fewer steps, and misses by more.
    let model = fixture("torch/vgg.script.onnx");
    let flow_file = flow.to_str().unwrap();
    let coarse = ["--solver-tolerance", "1e-2", "--format", "json"];
    let done = brenier(&[&["explain", "-m", &model, "-f", flow_file, &inputs][..], &coarse].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let coarse: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let of = |certificates: &serde_json::Value, what: &str| certificates[0]["path"][what].as_f64().unwrap();
    assert!(of(&coarse, "velocity_evaluations") < of(&certificates, "velocity_evaluations"));
    assert!(of(&coarse, "round_trip_error") > of(&certificates, "round_trip_error"));

    let mut npz =
        ndarray_npy::NpzReader::new(std::fs::File::open(out.join("explanations.npz")).unwrap()).unwrap();
    let (ends, starts): (ArrayD<f64>, ArrayD<f64>) =
        (npz.by_name("inputs").unwrap(), npz.by_name("references").unwrap());
    assert!((starts - 2.0 * ends).iter().all(|d| d.abs() < 1e-3));

    // Twice the same flow: its own mean, without a spread.
    let flow = flow.to_str().unwrap();
    let both = folder.path().join("both");
    let model = fixture("torch/vgg.script.onnx");
    let arguments = ["explain", "-m", &model, "-f", flow, "-f", flow, &inputs, "-o", both.to_str().unwrap()];
    let done = brenier(&arguments);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let mut twice =
        ndarray_npy::NpzReader::new(std::fs::File::open(both.join("explanations.npz")).unwrap()).unwrap();
    let (once, mean): (ArrayD<f64>, ArrayD<f64>) =
        (npz.by_name("values").unwrap(), twice.by_name("values").unwrap());
    assert!((once - mean).iter().all(|d| d.abs() < 1e-12));
    let errors: ArrayD<f64> = twice.by_name("standard_errors").unwrap();
    assert!(errors.iter().all(|e| *e < 1e-12));
}

/// Several methods at once: a folder each, and the method's name on every line.
#[test]
fn several_methods_write_a_folder_each() {
    let (folder, inputs) = inputs(2);
    let background = folder.path().join("background.npy");
    let rows = Array4::from_shape_fn((9, 3, 16, 16), |(n, c, h, w)| ((2 * n + c + h + w) as f32).cos());
    ndarray_npy::write_npy(&background, &rows).unwrap();
    let (background, out) = (background.to_str().unwrap(), folder.path().join("out"));
    let names = "ig,smoothgrad,guided-backprop,grad-cam,expected-gradients,geodesic-ig,ig+idgi";
    let model = fixture("torch/vgg.script.onnx");
    let run = |extra: &[&str]| {
        let common = ["explain", "-m", &model, &inputs, "--method", names, "--background", background];
        let rest =
            ["--samples", "8", "--baseline", "mean", "--seed", "4", "--rule", "midpoint", "--steps", "20"];
        brenier(&[&common[..], &rest, extra].concat())
    };
    let done = run(&["-o", out.to_str().unwrap()]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(text.lines().count(), 1 + 2 * 7, "{text}");
    assert!(text.starts_with("method "), "{text}");
    for (i, name) in names.split(',').enumerate() {
        assert!(text.lines().nth(1 + 2 * i).unwrap().starts_with(&format!("{name} ")), "{text}");
        let file = std::fs::File::open(out.join(name).join("explanations.npz")).unwrap();
        let mut npz = ndarray_npy::NpzReader::new(file).unwrap();
        let values: ArrayD<f64> = npz.by_name("values").unwrap();
        assert_eq!(values.shape(), [2, 3, 16, 16]);
        assert!(values.iter().any(|v| *v != 0.0));
        let drawn = ["smoothgrad", "expected-gradients"].contains(&name);
        assert_eq!(npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::IxDyn>("standard_errors").is_ok(), drawn);
        let compared = ["ig", "geodesic-ig", "ig+idgi"].contains(&name);
        assert_eq!(npz.by_name::<ndarray::OwnedRepr<f64>, ndarray::IxDyn>("references").is_ok(), compared);
    }
    let json = |done: &Output| serde_json::from_slice::<serde_json::Value>(&done.stdout).unwrap();
    let (first, second) =
        (json(&run(&["--format", "json"])), json(&run(&["--format", "json", "--workers", "1"])));
    assert_eq!(first, second);
    assert_eq!(first[2]["method"], "smoothgrad");
    assert_eq!(first[2]["sampling"]["seed"], 4);
    assert_eq!(first[2]["sampling"]["samples"], 8);
    assert!(first[2].get("residual").is_none() && first[0].get("residual").is_some());
    assert_eq!(first[0]["path"]["rule"]["steps"], 20);
    let again = run(&["-o", out.to_str().unwrap()]);
    assert!(stderr(&again).contains("2 of 2 inputs were explained by an earlier run"), "{}", stderr(&again));
}

/// The method's name is in every certificate, and one method's table stays as it is.
#[test]
fn the_default_method_is_integrated_gradients() {
    let (_folder, inputs) = inputs(1);
    let model = fixture("torch/vgg.script.onnx");
    let (default, named) = (
        brenier(&["explain", "-m", &model, &inputs]),
        brenier(&["explain", "-m", &model, &inputs, "--method", "ig"]),
    );
    assert_eq!(default.stdout, named.stdout);
    assert!(default.stdout.starts_with(b"example  target        score    reference       credit   residual"));
    let json = brenier(&["explain", "-m", &model, &inputs, "--format", "json"]);
    let certificates: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(certificates[0]["method"], "ig");
    let gradient = brenier(&["explain", "-m", &model, &inputs, "--method", "gradient"]);
    let text = String::from_utf8_lossy(&gradient.stdout).into_owned();
    let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(words[3..], ["-", "-", "-", "1", "0", "no", "check", "applies"], "{text}");
}

/// Every mistake gets one sentence and a hint; nothing panics.
#[test]
fn mistakes_are_told() {
    let (folder, inputs) = inputs(2);
    let model = fixture("torch/vgg.script.onnx");
    let write = |name: &str, array: &ArrayD<f32>| {
        let path = folder.path().join(name);
        ndarray_npy::write_npy(&path, array).unwrap();
        path.to_str().unwrap().to_string()
    };
    let flat = write("flat.npy", &ArrayD::zeros(vec![2, 768]));
    let mut holes = ArrayD::zeros(vec![2, 3, 16, 16]);
    holes[[1, 0, 0, 5]] = f32::NAN;
    let holes = write("holes.npy", &holes);
    let cases: &[(&[&str], i32, &str)] = &[
        (&[&flat], 1, "has examples of shape [768], but the model takes [3, 16, 16]\nhint: "),
        (&[&holes], 1, "holes.npy is NaN at feature 5\nhint: "),
        (&["nowhere.npy"], 1, "there is no nowhere.npy\nhint: "),
        (&[&inputs, "--target", "7"], 1, "target 7 is out of range: the model has 5 outputs"),
        (&[&inputs, "--target", "0,1,2"], 1, "3 targets are given for 2 inputs\nhint: "),
        (&[&inputs, "--rule", "best"], 1, "there is no rule 'best'\nhint: "),
        (&[&inputs, "--tolerance", "0"], 1, "the tolerance is 0"),
        (&[&inputs, "--steps", "0"], 1, "the number of steps is 0"),
        (&[&inputs, "--engine", "tensorflow"], 2, "there is no engine 'tensorflow'; choose one of rten, ort"),
        (&[&inputs, "--output-name", "z"], 1, "no output 'z'"),
        (
            &[&inputs, "--method", "smothgrad"],
            1,
            "there is no method 'smothgrad'\nhint: did you mean 'smoothgrad'?",
        ),
        (&[&inputs, "--method", "ig,ig"], 1, "the method 'ig' is given twice"),
        (&[&inputs, "--method", "transport"], 1, "there is no flow to follow\nhint: "),
        (
            &[&inputs, "--method", "expected-gradients"],
            1,
            "it needs rows of data, and none are given\nhint: ",
        ),
        (&[&inputs, "--baseline", "mean"], 1, "it needs rows of data, and none are given\nhint: "),
        (&[&inputs, "--samples", "5"], 1, "--samples makes no difference to ig\nhint: "),
        (&[&inputs, "--inversion-steps", "5"], 1, "--inversion-steps makes no difference to ig\nhint: "),
        (&[&inputs, "--lrp-rule", "epsilon"], 1, "--lrp-rule makes no difference to ig\nhint: "),
        (
            &[&inputs, "--traces", "traces.npz", "--solver-tolerance", "1e-3"],
            1,
            "--solver-tolerance makes no difference to saved traces\nhint: ",
        ),
        (
            &[&inputs, "--method", "gradient", "--baseline", "zero"],
            1,
            "--baseline makes no difference to gradient",
        ),
        (
            &[&inputs, "--method", "grad-cam", "--layer", "conv9"],
            1,
            "there is no layer 'conv9'; convolutions are ",
        ),
    ];
    for (arguments, code, expected) in cases {
        let all: Vec<&str> = ["explain", "-m", &model].iter().chain(*arguments).copied().collect();
        let done = brenier(&all);
        assert_eq!(done.status.code(), Some(*code), "{arguments:?}: {}", stderr(&done));
        assert!(stderr(&done).contains(expected), "{arguments:?}: {}", stderr(&done));
        assert!(done.stdout.is_empty());
    }
    let done = brenier(&["explain", "-m", &fixture("broken/argmax_path.onnx"), &inputs]);
    assert!(stderr(&done).contains("node 'pick' (ArgMax) stops it"), "{}", stderr(&done));
}

#[test]
fn inspect_tells_what_a_model_is() {
    let done = brenier(&["inspect", &fixture("torch/resnet.script.onnx")]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    for part in
        ["input         x float32 [batch, 3, 16, 16]", "gradient      yes", "kFLOP per input", "Conv "]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    let done = brenier(&["inspect", &fixture("broken/quantised.onnx"), "--format", "json"]);
    assert_eq!(done.status.code(), Some(0));
    let json: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["differentiable"], false);
    assert_eq!(json["blocked"].as_array().unwrap().len(), 3);
    assert!(json["blocked"][0]["reason"].as_str().unwrap().contains("quantised"));
    let done = brenier(&["inspect", &fixture("broken/truncated.onnx")]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).starts_with("error: not an ONNX model"));
}

#[test]
fn methods_without_gradients_take_groups_windows_and_seeds() {
    let (folder, inputs) = inputs(2);
    let out = folder.path().join("out");
    let model = fixture("torch/vgg.script.onnx");
    let kernel = |extra: &[&str]| {
        let mut args = vec!["explain", "-m", &model, &inputs, "--method", "kernel-shap,occlusion"];
        args.extend(["--groups", "patches:4", "--samples", "60", "--window", "3,8,8", "--stride", "3,8,8"]);
        args.extend(extra);
        brenier(&args)
    };
    let out = out.to_str().unwrap();
    let done = kernel(&["--seed", "3", "--format", "json", "-o", out]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(certificates[0]["method"], "kernel-shap");
    assert_eq!(certificates[0]["sampling"]["seed"], 3);
    assert!(certificates[0]["sampling"]["mean_standard_error"].as_f64().unwrap() > 0.0);
    assert!(certificates[0]["relative_residual"].as_f64().unwrap() < 1e-6);
    assert_eq!(certificates[0]["gradient_evaluations"], 0);
    assert_eq!(certificates[2]["method"], "occlusion");
    assert_eq!(certificates[2]["score_evaluations"], 5);
    let file = std::fs::File::open(Path::new(out).join("kernel-shap/explanations.npz")).unwrap();
    let values: ArrayD<f64> = ndarray_npy::NpzReader::new(file).unwrap().by_name("values").unwrap();
    assert_eq!(values.shape(), [2, 3, 16, 16]);
    // A patch's credit is spread evenly.
    assert_eq!(values[[0, 0, 0, 0]], values[[0, 2, 3, 3]]);
    assert_ne!(values[[0, 0, 0, 0]], values[[0, 0, 0, 4]]);
    let text = kernel(&[]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("occlusion"));
}

#[test]
fn trees_are_explained_over_a_background() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let rows = |count: usize| Array2::from_shape_fn((count, 5), |(i, j)| ((3 * i + 5 * j) as f32).sin());
    ndarray_npy::write_npy(file("rows.npy"), &rows(3)).unwrap();
    ndarray_npy::write_npy(file("data.npy"), &rows(9)).unwrap();
    let (model, rows, data) = (fixture("perturbation/forest.onnx"), file("rows.npy"), file("data.npy"));
    let explain = |extra: &[&str]| {
        let mut args = vec!["explain", "-m", &model, &rows];
        args.extend(extra);
        brenier(&args)
    };
    let shapley = ["--method", "shapley-values", "--background", &data, "--format", "json"];
    // Trees need no ONNX Runtime, and have the same values by the definition and by their own method.
    let own = explain(&shapley);
    assert_eq!(own.status.code(), Some(0), "{}", stderr(&own));
    let own: serde_json::Value = serde_json::from_slice(&own.stdout).unwrap();
    assert_eq!(own[0]["score_evaluations"], 288);
    let trees = explain(&["--method", "tree-shap", "--background", &data, "--format", "json"]);
    let trees: serde_json::Value = serde_json::from_slice(&trees.stdout).unwrap();
    let sum = |found: &serde_json::Value| found[0]["credit_sum"].as_f64().unwrap();
    assert!((sum(&own) - sum(&trees)).abs() < 1e-12, "{} {}", sum(&own), sum(&trees));
    if std::env::var_os("BRENIER_TEST_WITHOUT_ORT").is_some() {
        return;
    }
    let done = explain(&[&shapley[..], &["--engine", "ort"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(
        stderr(&done)
            .contains("notice: the model is run as it is, and its scores are its output 'probabilities'")
    );
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    // 2^5 subsets of 9 rows.
    assert_eq!(certificates[0]["score_evaluations"], 288);
    assert!(certificates[0]["residual"].as_f64().unwrap() < 1e-9);
    // Gradients are not to be had.
    let gradient = explain(&["--method", "ig", "--engine", "ort"]);
    assert_eq!(gradient.status.code(), Some(1));
}

#[test]
fn options_that_no_method_takes_are_told() {
    let (_folder, inputs) = inputs(1);
    let model = fixture("torch/vgg.script.onnx");
    for (options, told) in [
        (&["--method", "ig", "--groups", "each"][..], "--groups makes no difference to ig"),
        (&["--method", "ig", "--baseline", "background"], "--baseline background makes no difference to ig"),
        (&["--method", "lime", "--window", "1,2,2"], "--window makes no difference to lime"),
        (&["--method", "lime", "--groups", "squares"], "there are no groups 'squares'"),
        (&["--method", "shapley-values"], "exact Shapley values of 737 groups"),
        (&["--method", "lime", "--baseline", "background"], "it needs rows of data, and none are given"),
    ] {
        let done = brenier(&[&["explain", "-m", &model, &inputs], options].concat());
        assert_eq!(done.status.code(), Some(1), "{options:?}");
        assert!(stderr(&done).contains(told), "{options:?}: {}", stderr(&done));
    }
}

/// Recurrent networks as PyTorch exports them, whose initial state is made of the input's shape.
#[test]
fn a_recurrent_network_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("inputs.npy");
    let inputs = ndarray::Array3::from_shape_fn((2, 7, 4), |(n, t, c)| ((n + 3 * c + t * t) as f32).sin());
    ndarray_npy::write_npy(&file, &inputs).unwrap();
    for model in ["lstm.script", "lstm.dynamo", "gru_bidirectional.script", "gru_stacked.dynamo"] {
        let model = fixture(&format!("recurrent/{model}.onnx"));
        let done =
            brenier(&["explain", "-m", &model, file.to_str().unwrap(), "--method", "ig", "--format", "json"]);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        for certificate in certificates.as_array().unwrap() {
            assert_eq!(certificate["verdict"]["kind"], "pass", "{certificate}");
        }
    }
}
