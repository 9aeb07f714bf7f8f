//! `brenier explain --shard` and `brenier merge`: what one run gives, to the bit, and what is said where something is missing.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;
mod shared;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ndarray::{Array2, Array4};
use place::{Place, linear};

fn vgg() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch/vgg.script.onnx");
    path.to_str().unwrap().to_string()
}

/// Every file of a folder but those of shards, by its path there.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_string();
            if path.is_dir() && name != "shards" {
                folders.push(path);
            } else if path.is_file() {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn expect_same(one: &Path, merged: &Path) {
    let (one, merged) = (files(one), files(merged));
    assert_eq!(one.keys().collect::<Vec<_>>(), merged.keys().collect::<Vec<_>>());
    for (name, bytes) in &one {
        assert!(*bytes == merged[name], "{name} differs");
    }
}

/// A place with a table of three columns and its model.
fn table(rows: usize) -> Place {
    let place = Place::new();
    linear(&[1.0, -2.0, 0.5], 2).save(place.file("model.onnx")).unwrap();
    let rows = Array2::from_shape_fn((rows, 3), |(i, j)| ((i * 7 + j * 3) as f32).sin());
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    place
}

#[test]
fn killed_shards_in_any_order_give_the_files_of_one_run() {
    let place = Place::new();
    let rows = Array4::from_shape_fn((60, 3, 16, 16), |(n, c, h, w)| ((n + 3 * c + h * w) as f32).sin());
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    let flow = shared::halving_flow(place.file("").as_path());
    let command = |out: &str, more: &str| {
        format!(
            "explain -m {} rows.npy -f {} -q -o {out} --method transport,smoothgrad --samples 40 --targets top2{more}",
            vgg(),
            flow.display()
        )
    };
    // The record of the run has its folder in it: both are made under one name.
    assert!(place.run(&command("out", "")).status.success());
    std::fs::rename(place.file("out"), place.file("one")).unwrap();
    // Of several numbers of shards, in no order, the second of them killed on the way.
    for (k, shard) in ["4/4", "1/2", "3/4"].into_iter().enumerate() {
        let line = command("out", &format!(" --shard {shard}"));
        if k == 1 {
            let mut child = Command::new(env!("CARGO_BIN_EXE_brenier"))
                .args(line.split_whitespace())
                .current_dir(place.file(""))
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let parts = place.file("out/shards/unfinished-1-of-2/transport/explanations.parts");
            while !parts.exists() && child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(2));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(!place.file("out/shards/1-of-2").exists());
            let missing = place.refused("merge out");
            assert!(missing.contains("inputs 0 to 44 are in none of the shards"), "{missing}");
        }
        assert!(place.run(&line).status.success());
    }
    let merged = place.run("merge out --report");
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    expect_same(&place.file("one"), &place.file("out"));
    // What was merged can be verified as if it were one run, and a finished shard computes nothing again.
    assert!(place.run("verify out --format json").status.success());
    let before = files(&place.file("out/shards/4-of-4"));
    assert!(place.run(&command("out", " --shard 4/4")).status.success());
    assert!(before == files(&place.file("out/shards/4-of-4")));
}

#[test]
fn more_shards_than_inputs_and_shards_of_other_data() {
    let place = table(5);
    let explain = |out: &str, more: &str| format!("explain -m model.onnx rows.npy -q -o {out} {more}");
    assert!(place.run(&explain("one", "")).status.success());
    for i in [7, 3, 1, 2, 5, 6, 4] {
        assert!(place.run(&explain("out", &format!("--shard {i}/7"))).status.success(), "{i}");
    }
    assert!(place.run("merge out").status.success());
    for file in ["explanations.npz", "explanations.jsonl", "explanations.run.json"] {
        assert!(
            std::fs::read(place.file("one").join(file)).unwrap()
                == std::fs::read(place.file("out").join(file)).unwrap(),
            "{file}"
        );
    }
    // Other data of the same size, and another method.
    let rows = Array2::from_shape_fn((5, 3), |(i, j)| (i + j) as f32);
    ndarray_npy::write_npy(place.file("other.npy"), &rows).unwrap();
    for (data, more, differs) in [
        ("other.npy", "", "the fingerprint of some of all inputs"),
        ("rows.npy", "--method gradient", "the method"),
    ] {
        let line = format!("explain -m model.onnx {data} -q -o other --shard 2/2 --force {more}");
        assert!(place.run(&line).status.success());
        assert!(place.run(&explain("other", "--shard 1/2 --force")).status.success());
        let message = place.refused("merge other");
        assert!(message.contains(differs), "{message}");
    }
    for (line, words) in [
        ("merge model.onnx", "there is no folder model.onnx"),
        ("merge one -o all", "no record"),
        ("explain -m model.onnx rows.npy --shard 1/2", "--output"),
        ("explain -m model.onnx rows.npy -o x --shard 3/2", "such as 2/8"),
    ] {
        let message = place.refused(line);
        assert!(message.contains(words), "{line}: {message}");
    }
}

#[test]
fn parquet_of_shards_is_that_of_one_run_to_the_bit() {
    let place = table(57);
    let command = |out: &str, more: &str| {
        format!(
            "explain -m model.onnx rows.npy -q -o {out} --method ig,kernel-shap --samples 40 --targets all \
             --output-format parquet{more}"
        )
    };
    assert!(place.run(&command("out", "")).status.success());
    std::fs::rename(place.file("out"), place.file("one")).unwrap();
    assert!(
        !place.file("one/ig/explanations.npz").exists() && !place.file("one/ig/explanations.jsonl").exists()
    );
    for shard in ["5/5", "3/5", "1/5", "2/5", "4/5"] {
        assert!(place.run(&command("out", &format!(" --shard {shard}"))).status.success());
    }
    assert!(place.run("merge out --report").status.success());
    expect_same(&place.file("one"), &place.file("out"));
    assert!(place.run("verify out").status.success());
    let before = files(&place.file("out/shards/5-of-5"));
    assert!(place.run(&command("out", " --shard 5/5")).status.success());
    assert!(before == files(&place.file("out/shards/5-of-5")), "a finished shard computes nothing again");

    // The same results as arrays do not take its place unasked, and arrays of one shard become Parquet with the others.
    let arrays = "explain -m model.onnx rows.npy -q -o small --shard";
    assert!(place.run(&format!("{arrays} 1/2")).status.success());
    let message = place.refused(&format!("{arrays} 1/2 --output-format parquet"));
    assert!(message.contains("explanations.npz exists already"), "{message}");
    assert!(place.run(&format!("{arrays} 2/2 --output-format parquet")).status.success());
    assert!(place.run("merge small").status.success());
    assert!(place.run("explain -m model.onnx rows.npy -q -o whole --output-format parquet").status.success());
    for file in ["explanations.parquet", "explanations.run.json"] {
        let bytes = |folder: &str| std::fs::read(place.file(folder).join(file)).unwrap();
        assert!(bytes("small") == bytes("whole"), "{file}");
    }
    let message = place.refused("explain -m model.onnx rows.npy --output-format parquet");
    assert!(message.contains("--output <DIR>"), "{message}");
}

#[test]
fn shards_of_an_evaluation_make_the_table_of_one_run() {
    let place = table(43);
    let command = |out: &str, more: &str| {
        format!(
            "evaluate -m model.onnx rows.npy -q -o {out} --methods ig,kernel-shap --samples 30 --metrics deletion-zero,gps {more}"
        )
    };
    let whole = place.run(&command("one", ""));
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    for shard in ["3/3", "1/4", "2/4"] {
        assert!(place.run(&command("out", &format!("--shard {shard}"))).status.success());
    }
    let missing = place.refused("merge out");
    assert!(missing.contains("inputs 24 to 31 are in none of the shards"), "{missing}");
    assert!(place.run(&command("out", "--shard 2/3")).status.success());
    let merged = place.run("merge out");
    assert_eq!(String::from_utf8_lossy(&merged.stdout), String::from_utf8_lossy(&whole.stdout));
    for file in ["evaluation.json", "evaluation.csv", "evaluation.tex", "report.html"] {
        let bytes = |folder: &str| std::fs::read(place.file(folder).join(file)).unwrap();
        assert!(bytes("out") == bytes("one"), "{file}");
    }
    // Again it computes nothing; another metric is another evaluation; without a folder there is nowhere to go.
    assert!(place.run(&command("out", "--shard 2/3")).status.success());
    for (line, words) in [
        (command("out", "--shard 2/3 --seed 5"), "the list of me"),
        ("evaluate -m model.onnx rows.npy --shard 1/2".to_string(), "--output"),
        ("merge out --report".to_string(), "--report makes no difference"),
        (command("out", "--shard 9/3"), "such as 2/8"),
    ] {
        let message = place.refused(&line);
        assert!(message.contains(words), "{line}: {message}");
    }
}

#[test]
fn a_row_that_cannot_be_read_is_left_out_and_listed() {
    let place = table(40);
    let mut rows: Array2<f32> = ndarray_npy::read_npy(place.file("rows.npy")).unwrap();
    assert!(place.run("explain -m model.onnx rows.npy -q -o good").status.success());
    rows[[13, 1]] = f32::NAN;
    rows[[27, 0]] = f32::INFINITY;
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    let stops = place.refused("explain -m model.onnx rows.npy -o stopped");
    assert!(stops.contains("row 13"), "{stops}");
    let done = place.run("explain -m model.onnx rows.npy -o one --keep-going");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("failed: input 13 (rows.npy#13)") && said.contains("failed: input 27"), "{said}");
    assert!(said.contains("2 inputs could not be explained; all others are"), "{said}");
    let lines = place.read("one/explanations.jsonl");
    let examples: Vec<usize> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["example"].as_u64().unwrap() as usize
        })
        .collect();
    assert_eq!(examples, (0..40).filter(|i| ![13, 27].contains(i)).collect::<Vec<_>>());
    // Those that are left are as they would be without the others.
    for line in lines.lines() {
        assert!(place.read("good/explanations.jsonl").lines().any(|other| other == line), "{line}");
    }
    // Shards do the same, and the missing one is told of.
    for i in [3, 1] {
        let code =
            place.run(&format!("explain -m model.onnx rows.npy -o out --keep-going --shard {i}/3 -q")).status;
        assert_eq!(code.code(), Some(if i == 3 { 3 } else { 0 }));
    }
    let some = place.run("merge out --keep-going");
    let said = String::from_utf8_lossy(&some.stderr).into_owned();
    assert_eq!(some.status.code(), Some(3));
    assert!(said.contains("missing: inputs 13 to 25") && said.contains("failed: input 27"), "{said}");
    assert_eq!(
        place.run("explain -m model.onnx rows.npy -o out --keep-going --shard 2/3 -q").status.code(),
        Some(3)
    );
    assert_eq!(place.run("merge out").status.code(), Some(3));
    for file in ["explanations.npz", "explanations.jsonl", "explanations.run.json", "failures.jsonl"] {
        assert!(
            std::fs::read(place.file("one").join(file)).unwrap()
                == std::fs::read(place.file("out").join(file)).unwrap(),
            "{file}"
        );
    }
    // Where nothing can be explained, that is an error.
    rows.fill(f32::NAN);
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    let message = place.refused("explain -m model.onnx rows.npy -o none --keep-going");
    assert!(message.contains("none of 40 inputs could be explained"), "{message}");
}
