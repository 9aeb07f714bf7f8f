//! Training.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use ndarray::Array4;
use ndarray_npy::write_npy;

use crate::place::Place;
use crate::{noise, said};

/// A training that takes no time.
const SMALL: &str = "--width 8 --blocks 1 --batch 16 --calibration-rows 0";

fn table() -> Place {
    let place = Place::new();
    let x = noise(400, 6);
    let rows: String = x.chunks(2).map(|r| format!("{},{}\n", r[0], r[0] * r[1])).collect();
    place.write("data.csv", &format!("a,b\n{rows}"));
    place
}

#[test]
fn a_finished_run_is_trained_further_and_what_differs_is_named() {
    let place = table();
    said(&place, &format!("train data.csv -o run --steps 5 {SMALL}"));
    let told = place.refused(&format!("train data.csv -o run --resume --steps 4 {SMALL}"));
    assert!(told.contains("steps"), "{told}");
    said(&place, &format!("train data.csv -o run --resume --steps 9 {SMALL}"));
    let run: serde_json::Value = serde_json::from_str(&place.read("run/run.json")).unwrap();
    assert_eq!(run["training"]["steps"], 9);
    let last = place.read("run/metrics.jsonl").lines().last().unwrap().to_string();
    assert!(last.contains("\"step\":9"), "{last}");
    let told =
        place.refused(&format!("train data.csv -o run --resume --steps 12 --learning-rate 0.1 {SMALL}"));
    assert!(told.contains("learning rate"), "{told}");
}

#[test]
fn training_is_given_minutes() {
    let place = table();
    let told = said(&place, &format!("train data.csv -o run --minutes 0.02 {SMALL}"));
    assert!(told.contains(" steps fit into 0.02 minutes"), "{told}");
    assert!(place.file("run/flow.onnx").exists() && !place.file("run/measuring").exists());
    let told = place.refused(&format!("train data.csv -o other --minutes -1 {SMALL}"));
    assert!(told.contains("it is a number of minutes above 0"), "{told}");
}

/// The default suits images of 28x28, its time is told after a few steps, and Ctrl-C is a failure to whoever waits for the end.
#[test]
fn training_says_how_long_it_takes() {
    let place = Place::new();
    let images = Array4::from_shape_vec((64, 1, 28, 28), noise(64 * 784, 5)).unwrap();
    write_npy(place.file("images.npy"), &images).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
        .args(["train", "images.npy", "-o", "run"])
        .current_dir(place.file("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told = lines.find(|line| line.contains("of training left on this machine"));
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(told.is_some_and(|line| line.starts_with("4000 steps: about ") && line.contains("--minutes")));
    let run: serde_json::Value = serde_json::from_str(&place.read("run/run.json")).unwrap();
    assert_eq!(run["training"]["batch"], 32);
    assert_eq!(
        (&run["network"]["patch"], run["network"]["multipliers"].to_string()),
        (&2.into(), "[1,2]".into())
    );
}

#[test]
fn the_quality_says_in_words_whether_the_flow_will_do() {
    let place = Place::new();
    let rows: String = noise(1400, 6).chunks(2).map(|r| format!("{},{}\n", r[0], r[0] * r[1])).collect();
    place.write("data.csv", &format!("a,b\n{rows}"));
    let done =
        place.run("train data.csv -o run --steps 5 --width 8 --blocks 1 --batch 16 --calibration-rows 60");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let words = text.lines().find(|line| line.contains("good enough to explain with")).unwrap_or(&text);
    assert!(words.contains("no: ") && words.contains("train it longer"), "{text}");
}
