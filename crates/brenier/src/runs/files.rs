//! The files of a run that are made at its end.

use std::io::{BufRead, BufReader};
use std::path::Path;

use ndarray::ArrayView2;
use onnx_grad::Model;
use serde::Serialize;
use serde_json::Value;

use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::report::{Chart, Mark, Scale, Series, image_grid};
use crate::train::Progress;
use crate::whole_file::write_whole;

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Error::Write { path: path.to_owned(), source: e.into() })?;
    write_whole(path, format!("{text}\n").as_bytes())
}

/// Writes what a run was asked for to `run.json`. Refuses a folder with a run to go on with that was asked for something else,
/// and names it; what trainings compare themselves is left to them.
pub(super) fn claim(folder: &Path, run: &impl Serialize) -> Result<()> {
    let path = folder.join("run.json");
    let asked =
        serde_json::to_value(run).map_err(|e| Error::Write { path: path.clone(), source: e.into() })?;
    let kept = std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    if let (true, Some(Value::Object(kept)), Value::Object(asked)) =
        (folder.join("checkpoint.npz").exists(), &kept, &asked)
    {
        let differs =
            |name: &&String| !["training", "half_weights", "calibration_rows"].contains(&name.as_str());
        for name in asked.keys().filter(differs) {
            let (was, is) = (kept.get(name).unwrap_or(&Value::Null), &asked[name]);
            if was != is {
                return Err(Error::OtherParts {
                    folder: folder.to_owned(),
                    what: format!("the {}", name.replace('_', " ")),
                    kept: was.to_string(),
                    asked: is.to_string(),
                });
            }
        }
    }
    write_json(&path, &asked)
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
    for line in BufReader::new(std::fs::File::open(&path).map_err(unreadable)?).lines() {
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
