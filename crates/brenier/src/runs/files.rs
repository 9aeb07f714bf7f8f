//! The files of a run that are made at its end.

use std::io::{BufRead, BufReader};
use std::path::Path;

use ndarray::ArrayView2;
use onnx_grad::Model;
use serde::Serialize;
use serde_json::{Value, json};

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::lock::Lock;
use crate::report::{Chart, Mark, Scale, Series, image_grid};
use crate::train::Progress;
use crate::whole_file::{Failure, make_folder, write_whole};

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::Write { path: path.to_owned(), source: e.into() })?;
    write_whole(path, format!("{text}\n").as_bytes())
}

/// What a run may change when it goes on.
const FREE: [&str; 6] =
    ["half_weights", "calibration_rows", "checkpoint_every", "keep_every", "workers", "library"];
/// What a run was made from, in `run.json`.
const MADE_FROM: &str = "made_from";

/// Writes what a run was asked for, and what it is made from, to `run.json`, and keeps other processes out. Where there is
/// a run already, it must have been asked for the same: otherwise the first thing that differs is named, and nothing is
/// changed.
pub(super) fn claim(folder: &Path, run: &impl Serialize, made_from: &[(&str, String)]) -> Result<Lock> {
    let path = folder.join("run.json");
    let mut asked =
        serde_json::to_value(run).map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
    asked[MADE_FROM] = made_from.iter().map(|(name, hash)| (name.to_string(), json!(hash))).collect();
    if !path.exists() {
        make_folder(folder)?;
        write_json(&path, &asked)?;
        return Lock::on(&path, folder);
    }
    let unreadable = |source: Failure| Error::Read { path: path.clone(), source };
    let bytes = crate::readable::read(&path).map_err(|e| unreadable(e.into()))?;
    let kept: Value = serde_json::from_slice(&bytes).map_err(|e| unreadable(e.into()))?;
    // A run may be trained further than it was meant to be.
    let further = steps(&asked) > steps(&kept);
    let mut like = kept.clone();
    if further {
        for name in ["steps", "warmup_steps"] {
            like["training"][name] = asked["training"][name].clone();
        }
    }
    if let Some((what, was, is)) = difference("", &like, &asked) {
        let (folder, what) = (folder.to_owned(), format!("the {what}"));
        return Err(Error::OtherParts { folder, what, kept: was.to_string(), asked: is.to_string() });
    }
    let lock = Lock::on(&path, folder)?;
    if further {
        write_json(&path, &asked)?;
    }
    Ok(lock)
}

/// The steps that a run is meant to have.
fn steps(run: &Value) -> Option<u64> {
    run["training"]["steps"].as_u64()
}

/// The first entry in which two runs differ, with both values. What they are made from comes first: it changes the rest.
fn difference(name: &str, kept: &Value, asked: &Value) -> Option<(String, Value, Value)> {
    // Choices are told whole, settings one by one.
    let inside = ["", "training", "training engine", "network"].contains(&name);
    let (Value::Object(before), Value::Object(now), true) = (kept, asked, inside) else {
        return (kept != asked).then(|| (name.to_string(), kept.clone(), asked.clone()));
    };
    let mut keys: Vec<&String> = before.keys().chain(now.keys()).collect();
    keys.sort_by_key(|key| (key.as_str() != MADE_FROM, key.to_string()));
    keys.dedup();
    keys.into_iter().filter(|key| !FREE.contains(&key.as_str())).find_map(|key| {
        let (was, is) = (before.get(key).unwrap_or(&Value::Null), now.get(key).unwrap_or(&Value::Null));
        let own = if key == MADE_FROM { String::new() } else { key.replace('_', " ") };
        difference(format!("{name} {own}").trim(), was, is)
    })
}

/// Writes into a model how the columns of a table were coded, so that other rows can be coded alike.
pub(super) fn write_columns(model: &mut Model, data: &Dataset) {
    if let (false, Ok(text)) = (data.columns().is_empty(), serde_json::to_string(data.columns())) {
        model.metadata.insert("brenier.columns".to_string(), text);
    }
}

/// Saves a network, its weights in 16 bits where asked for, and gives back what a reader of the file gets.
pub(super) fn save_network(mut model: Model, half: bool, path: &Path) -> Result<Model> {
    if half {
        model.halve_weights();
    }
    write_whole(path, &model.to_bytes())?;
    Ok(Model::load(path)?)
}

/// Draws `loss.svg` from `metrics.jsonl`.
pub(super) fn draw_loss(folder: &Path, what: &str) -> Result<()> {
    let path = folder.join("metrics.jsonl");
    let unreadable = |e: std::io::Error| Error::Read { path: path.clone(), source: e.into() };
    let mut points = Vec::new();
    for line in BufReader::new(crate::readable::open(&path).map_err(unreadable)?).lines() {
        let line = line.map_err(unreadable)?;
        if let Ok(progress) = serde_json::from_str::<Progress>(&line) {
            points.push((progress.step as f64, progress.loss));
        }
    }
    let chart = Chart {
        title: format!("Training loss: {what}"),
        x: ("step".into(), Scale::Linear),
        y: ("mean loss".into(), Scale::Log),
        series: vec![Series { name: "loss".into(), points, mark: Mark::Line, colour: 0 }],
    };
    write_whole(&folder.join("loss.svg"), chart.svg().as_bytes())
}

/// Samples in the user's space: `samples.png` for images, `samples.csv` for tables.
pub(super) fn save_samples(folder: &Path, samples: ArrayView2<f64>, like: &Dataset) -> Result<()> {
    if let (&[channels, height, width], true) = (like.shape(), like.is_images()) {
        let png = image_grid(samples, [channels, height, width], 8)?;
        return write_whole(&folder.join("samples.png"), &png);
    }
    let path = folder.join("samples.csv");
    let unwritable =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Write { path: path.clone(), source };
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(like.feature_names()).map_err(|e| unwritable(e.into()))?;
    for row in samples.rows() {
        table.write_record(row.iter().map(ToString::to_string)).map_err(|e| unwritable(e.into()))?;
    }
    let bytes = table.into_inner().map_err(|e| unwritable(e.to_string().into()))?;
    write_whole(&path, &bytes)
}
