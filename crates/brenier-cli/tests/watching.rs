//! A long explanation of one input: it shows how far it is, and it can be stopped.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

#[path = "shared/place.rs"]
mod place;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use ndarray::Array2;
use place::{Place, linear};

/// What `line` says until a line has these words; then it is interrupted, and this is how it ends.
fn interrupted(place: &Place, line: &str, words: &str) -> (String, String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
        .args(line.split_whitespace())
        .current_dir(place.file("."))
        .env("NO_COLOR", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let shown = told.by_ref().find(|line| line.contains(words)).unwrap_or_default();
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success(), "{line}");
    let rest: Vec<String> = told.collect();
    (shown, rest.join("\n"), child.wait().unwrap().code())
}

#[test]
fn one_long_input_shows_how_far_it_is_and_can_be_stopped() {
    let place = Place::new();
    linear(&[1.0; 12], 12).save(place.file("model.onnx")).unwrap();
    ndarray_npy::write_npy(place.file("row.npy"), &Array2::<f32>::ones((1, 12))).unwrap();
    // A method that knows what it will ask, and one that finds out on the way: a tolerance that no float can meet.
    let known = "explain -m model.onnx row.npy --method lime --samples 90000000";
    let (shown, end, code) = interrupted(&place, known, "explaining 0/1, lime, ");
    assert!(shown.contains(" rows of 90000000 an input, ") && shown.ends_with(" left"), "{shown}");
    assert!(end.contains("stopped before all inputs were explained, and nothing is kept"), "{end}");
    assert_eq!(code, Some(130), "{end}");
    // What is finished before the input that was stopped stays, and the same command goes on.
    let kept = format!("{known} -o out");
    let (_, end, code) = interrupted(&place, &kept, "explaining 0/1, lime, ");
    assert!(end.contains("the same command goes on"), "{end}");
    assert_eq!((code, place.file("out/explanations.npz").exists()), (Some(130), false), "{end}");
}
