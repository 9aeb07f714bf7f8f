//! `brenier train` and `brenier reflow`, as typed.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A table with two numbers that belong together, a name, and a label.
fn table(folder: &Path, rows: usize) -> String {
    let mut csv = String::from("height,weight,city,class\n");
    for i in 0..rows {
        let angle = i as f64 * 2.4;
        let height = 170.0 + 8.0 * angle.sin() + 3.0 * (3.1 * angle).cos();
        let weight = 0.9 * height - 90.0 + 5.0 * (1.7 * angle).sin();
        let city = ["Lyon", "Oslo", "Pisa"][i % 3];
        writeln!(csv, "{height:.3},{weight:.3},{city},{}", if weight > 63.0 { "heavy" } else { "light" })
            .unwrap();
    }
    let path = folder.join("people.csv");
    std::fs::write(&path, csv).unwrap();
    text(&path).to_string()
}

const SMALL: [&str; 8] = ["--label", "class", "--width", "16", "--blocks", "1", "--batch", "32"];

fn train(data: &str, run: &Path, more: &[&str]) -> Output {
    brenier(&[&["train", data, "-o", text(run)], SMALL.as_slice(), more].concat())
}

#[test]
fn a_flow_is_trained_straightened_and_explained_with() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 300);
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let done = train(&data, &first, &["--steps", "300", "--keep-every", "100", "--format", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let outcome: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let quality = &outcome["quality"];
    assert!(outcome["loss"].as_f64().unwrap() < 1.5, "{outcome}");
    assert!(quality["held_out_loss"].as_f64().unwrap() < 1.6, "{outcome}");
    assert!(quality["worst_relative_round_trip_error"].as_f64().unwrap() < 1e-2, "{outcome}");
    for file in
        ["flow.onnx", "loss.svg", "samples.csv", "metrics.jsonl", "quality.json", "kept/step-000200.onnx"]
    {
        assert!(first.join(file).exists(), "{file}");
    }
    let samples = std::fs::read_to_string(first.join("samples.csv")).unwrap();
    assert!(samples.starts_with("height,weight,city=Lyon,city=Oslo,city=Pisa\n"), "{samples}");
    // The file says where it comes from.
    let model = onnx_grad::Model::load(first.join("flow.onnx")).unwrap();
    let metadata = brenier::flow::FlowMetadata::of(&model).unwrap();
    assert_eq!((metadata.shape, metadata.level, metadata.seed), (Some(vec![5]), Some(1), Some(0)));
    assert_eq!(metadata.reference.as_deref(), Some("standard-normal"));
    assert_eq!(metadata.data.unwrap().len(), 64);

    let done = brenier(&[
        "reflow",
        text(&first),
        &data,
        "-o",
        text(&second),
        "--label",
        "class",
        "--batch",
        "32",
        "--steps",
        "200",
        "--generated",
        "200",
        "--inverted",
        "200",
        "--half-weights",
        "--format",
        "json",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let again: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    let straightness = |o: &serde_json::Value| o["quality"]["straightness"].as_f64().unwrap() - 1.0;
    assert!(straightness(&again) < 0.5 * straightness(&outcome), "{again} {outcome}");
    // Pairs of one flow's ends leave far less to guess than independent ones, also those of rows it has not seen.
    let held_out = |o: &serde_json::Value| o["quality"]["held_out_loss"].as_f64().unwrap();
    assert!(held_out(&again) < 0.5 * held_out(&outcome), "{again} {outcome}");
    let model = onnx_grad::Model::load(second.join("flow.onnx")).unwrap();
    assert_eq!(brenier::flow::FlowMetadata::of(&model).unwrap().level, Some(2));
    // References are ordinary where the flow starts, whatever the units of the table.
    let flow = brenier::flow::OnnxFlow::new(model, &brenier::engine::EngineConfig::default()).unwrap();
    let row = ndarray::arr2(&[[172.0, 64.0, 0.0, 1.0, 0.0]]);
    let traced = brenier::trace(&flow, row.view(), &brenier::TraceConfig::default()).unwrap();
    let deviation = brenier::Path::evidence(&traced[0]).reference_deviation.unwrap();
    assert!(deviation.abs() < 4.0, "{deviation}");
    let size = |run: &Path| std::fs::metadata(run.join("flow.onnx")).unwrap().len();
    assert!(size(&second) < size(&first), "{} {}", size(&second), size(&first));
}

#[test]
fn killed_again_and_again_a_run_ends_with_the_same_bits() {
    killed_again_and_again(&["--steps", "1500", "--checkpoint-every", "7"]);
}

#[test]
fn killed_amid_groups_larger_than_the_batch_a_run_ends_with_the_same_bits() {
    // A group of 150 serves four batches and a part of the next.
    let groups = ["--coupling", "ot", "--group", "150"];
    let classes = ["--from-class", "light", "--to-class", "heavy"];
    let steps = ["--steps", "900", "--checkpoint-every", "7"];
    killed_again_and_again(&[&groups[..], &classes, &steps].concat());
}

fn killed_again_and_again(settings: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 200);
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let done = train(&data, &whole, settings);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let mut killed = 0;
    for round in 0..200u64 {
        let resume: &[&str] = if broken.join("run.json").exists() { &["--resume"] } else { &[] };
        let arguments = [&["train", &data, "-o", text(&broken)], SMALL.as_slice(), settings, resume].concat();
        let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(60 + 37 * (round % 8) + 5 * round));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success());
                break;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                killed += 1;
            }
        }
    }
    assert!(killed > 2, "killed {killed} times");
    for file in ["flow.onnx", "checkpoint.npz", "metrics.jsonl", "samples.csv"] {
        let (a, b) = (std::fs::read(whole.join(file)).unwrap(), std::fs::read(broken.join(file)).unwrap());
        assert!(a == b, "{file} differs after {killed} kills");
    }
}

#[test]
fn a_classifier_is_trained_and_can_be_explained() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 300);
    let run = folder.path().join("model");
    let done = train(&data, &run, &["--objective", "classify", "--steps", "200", "--format", "json"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let outcome: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(outcome["accuracy"].as_f64().unwrap() > 0.8, "{outcome}");
    let shown = brenier(&["inspect", text(&run.join("classifier.onnx"))]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("logits float32 [N, 2]") && shown.contains("gradient      yes"), "{shown}");
}

#[test]
fn a_diffusion_model_is_trained_and_is_no_flow() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 300);
    let run = folder.path().join("diffusion");
    let done = train(&data, &run, &["--objective", "ddpm", "--steps", "200"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let model = folder.path().join("model");
    let done = train(&data, &model, &["--objective", "classify", "--steps", "50"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let inputs = folder.path().join("inputs.npy");
    let row = ndarray::arr2(&[[170.0f32, 60.0, 1.0, 0.0, 0.0]]);
    ndarray_npy::write_npy(&inputs, &row).unwrap();
    let (network, diffusion) = (model.join("classifier.onnx"), run.join("ddpm.onnx"));
    let explain =
        ["explain", "-m", text(&network), text(&inputs), "-f", text(&diffusion), "--format", "json"];
    let done = brenier(&[explain.as_slice(), &["--method", "ddim"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(certificates.to_string().contains("DDIM, 50 steps"), "{certificates}");
    // Rows of the table itself, with their names.
    let table =
        ["explain", "-m", text(&network), &data, "--label", "class", "--limit", "1", "--format", "json"];
    let done = brenier(&table);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(certificates[0]["name"].as_str().unwrap().ends_with("people.csv#0"), "{certificates}");
    let done = brenier(&[explain.as_slice(), &["--method", "transport"]].concat());
    assert!(stderr(&done).contains("explain with --method ddim"), "{}", stderr(&done));
    let done =
        brenier(&["reflow", text(&run.join("ddpm.onnx")), &data, "-o", text(&folder.path().join("no"))]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("it predicts noise"), "{}", stderr(&done));
}

/// The first line of the error, and whether there is a hint.
fn refused(data: &str, more: &[&str]) -> String {
    let run = tempfile::tempdir().unwrap();
    let done = brenier(&[&["train", data, "-o", text(&run.path().join("run"))], more].concat());
    assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
    let message = stderr(&done);
    assert!(message.contains("hint: "), "{message}");
    message
}

#[test]
fn bad_data_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = |name: &str, content: &str| {
        std::fs::write(at(name), content).unwrap();
        text(&at(name)).to_string()
    };
    std::fs::create_dir(at("empty")).unwrap();
    let message = refused(text(&at("empty")), &[]);
    assert!(message.contains("empty has no examples"), "{message}");

    std::fs::create_dir_all(at("images/a")).unwrap();
    image(&at("images/a/one.pgm"), 4, 4);
    image(&at("images/a/two.pgm"), 5, 4);
    let message = refused(text(&at("images")), &[]);
    assert!(message.contains("two.pgm"), "{message}");
    std::fs::write(at("images/a/two.pgm"), "no image").unwrap();
    let message = refused(text(&at("images")), &[]);
    assert!(message.contains("two.pgm"), "{message}");

    let rows: String = (0..40).map(|i| format!("{},{}\n", i, i * i)).collect();
    let missing = file("nan.csv", &format!("a,b\n{rows}7,NaN\n"));
    let message = refused(&missing, &[]);
    assert!(message.contains("nan.csv") && message.contains("'b'"), "{message}");
    let constant: String = (0..40).map(|i| format!("{i},5\n")).collect();
    let constant = file("constant.csv", &format!("a,b\n{constant}"));
    let message = refused(&constant, &[]);
    assert!(message.contains("'b'") && message.contains('5'), "{message}");
    let good = file("good.csv", &format!("a,b\n{rows}"));
    let message = refused(&good, &["--objective", "classify"]);
    assert!(message.contains("label"), "{message}");
    let message = refused(&good, &["--batch", "100"]);
    assert!(message.contains("36 rows") && message.contains("100"), "{message}");
    let message = refused(&good, &["--batch", "8", "--steps", "2000", "--learning-rate", "1000"]);
    assert!(message.contains("diverged") && message.contains("lower the learning rate"), "{message}");
    let message = refused(&good, &["--network", "transformer"]);
    assert!(message.contains("there is no network 'transformer'"), "{message}");
    let message = refused(&good, &["--batch", "10", "--group", "4"]);
    assert!(message.contains("the group is 4, but independent pairs have no groups"), "{message}");
    let labelled: String =
        (0..40).map(|i| format!("{},{},{}\n", i, i * i, ["low", "high"][i / 20])).collect();
    let labelled = file("labelled.csv", &format!("a,b,class\n{labelled}"));
    let classes = |from: &'static str, to: &'static str| {
        refused(&labelled, &["--label", "class", "--batch", "8", "--from-class", from, "--to-class", to])
    };
    let message = classes("low", "hihg");
    assert!(message.contains("no class 'hihg'") && message.contains("did you mean 'high'?"), "{message}");
    let message = classes("low", "low");
    assert!(message.contains("both the class to start from"), "{message}");
    let message = refused(&labelled, &["--objective", "classify", "--to-class", "low"]);
    assert!(message.contains("a classifier has no reference") && message.contains("--to-class"), "{message}");
    let message = refused(&good, &["--from-class", "a", "--to-class", "b"]);
    assert!(message.contains("label"), "{message}");
    let message = refused(text(&at("absent.csv")), &[]);
    assert!(message.contains("absent.csv"), "{message}");
}

fn image(path: &Path, height: usize, width: usize) {
    let mut bytes = format!("P5 {width} {height} 255\n").into_bytes();
    bytes.extend((0..height * width).map(|i| (i * 7 % 256) as u8));
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn one_data_set_is_carried_to_another_and_a_foreign_network_can_be_trained() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |name: &str, shift: f64| {
        let rows: String = (0..120)
            .map(|i| format!("{},{}\n", shift + (i as f64 * 0.7).sin(), (i as f64 * 1.3).cos()))
            .collect();
        let path = folder.path().join(name);
        std::fs::write(&path, format!("a,b\n{rows}")).unwrap();
        text(&path).to_string()
    };
    let (this, last) = (rows("this.csv", 4.0), rows("last.csv", 0.0));
    let run = folder.path().join("run");
    let settings = ["--batch", "16", "--steps", "200", "--width", "16", "--blocks", "1", "--format", "json"];
    let done =
        brenier(&[&["train", &this, "--reference", &last, "-o", text(&run)], settings.as_slice()].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let model = onnx_grad::Model::load(run.join("flow.onnx")).unwrap();
    let metadata = brenier::flow::FlowMetadata::of(&model).unwrap();
    assert!(metadata.reference.clone().unwrap().ends_with("last.csv"));
    assert_eq!(metadata.reference_data.as_ref().unwrap().len(), 64);
    assert_ne!(metadata.reference_data, metadata.data);
    // Where both ends are data, large groups are the default.
    assert_eq!(metadata.coupling.as_deref(), Some("optimal transport within 1024"));
    let flow =
        brenier::flow::OnnxFlow::new(model.clone(), &brenier::engine::EngineConfig::default()).unwrap();
    let row = ndarray::arr2(&[[4.0, 0.5]]);
    assert!(brenier::VelocityField::normal_coordinates(&flow, row.view()).is_none());

    // The same file without anything that says it is ours, as somebody else's network.
    let mut foreign = model;
    foreign.metadata.clear();
    let file = folder.path().join("theirs.onnx");
    foreign.save(&file).unwrap();
    let second = folder.path().join("second");
    let network = ["--network", text(&file), "--batch", "16", "--steps", "50"];
    let done = brenier(&[&["train", &this, "-o", text(&second)], network.as_slice()].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(second.join("flow.onnx").exists());
}

#[test]
fn one_class_is_carried_to_another_and_the_flow_remembers_which() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 300);
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let done = train(&data, &first, &["--from-class", "light", "--to-class", "heavy", "--steps", "150"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let read = |run: &Path| {
        let model = onnx_grad::Model::load(run.join("flow.onnx")).unwrap();
        brenier::flow::FlowMetadata::of(&model).unwrap()
    };
    let metadata = read(&first);
    assert_eq!(
        (metadata.from_class.as_deref(), metadata.to_class.as_deref()),
        (Some("light"), Some("heavy"))
    );
    assert_eq!(metadata.coupling.as_deref(), Some("optimal transport within 1024"));
    // The next level starts from the same class without being told.
    let done = brenier(&[
        "reflow",
        text(&first),
        &data,
        "-o",
        text(&second),
        "--label",
        "class",
        "--batch",
        "32",
        "--steps",
        "50",
        "--generated",
        "60",
        "--inverted",
        "60",
    ]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let next = read(&second);
    assert_eq!(
        (next.level, next.from_class, next.reference_data),
        (Some(2), metadata.from_class, metadata.reference_data)
    );
    // Nothing is claimed about a reference that is data: no standard deviations in the certificate.
    let model = folder.path().join("model");
    let done = train(&data, &model, &["--objective", "classify", "--steps", "50"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let (network, flow) = (model.join("classifier.onnx"), second.join("flow.onnx"));
    let explain =
        ["explain", "-m", text(&network), &data, "--label", "class", "--limit", "1", "-f", text(&flow)];
    let done = brenier(&[&explain[..], &["--method", "transport", "--format", "json"]].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let certificates: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(certificates[0]["path"]["reference_deviation"].is_null(), "{certificates}");
    assert!(certificates[0]["path"]["kind"] == "trace", "{certificates}");
}

#[test]
fn going_on_with_something_else_is_refused_by_name_and_a_run_is_taken_for_its_flow() {
    let folder = tempfile::tempdir().unwrap();
    let data = table(folder.path(), 80);
    let run = folder.path().join("run");
    let small = ["--steps", "20"];
    let done = train(&data, &run, &small);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let more = [&small[..], &["--resume", "--coupling", "ot", "--group", "16"]].concat();
    let refused = train(&data, &run, &more);
    let told = stderr(&refused);
    assert!(refused.status.code() != Some(0) && told.contains("the coupling was"), "{told}");
    let model = folder.path().join("model");
    let done = train(&data, &model, &["--objective", "classify", "--steps", "20"]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let classifier = model.join("classifier.onnx");
    let explained = brenier(&[
        "explain",
        "-m",
        text(&classifier),
        "-f",
        text(&run),
        &data,
        "--label",
        "class",
        "--limit",
        "1",
    ]);
    assert_eq!(explained.status.code(), Some(0), "{}", stderr(&explained));
}
