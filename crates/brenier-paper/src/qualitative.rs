//! Figure 2 and appendix F.5: what every method says of the same images.
//!
//! A row for each image, a column for each method: red speaks for the predicted class, blue against it. Methods whose
//! credit sums to the score's change are drawn to one scale in a row, so that they can be compared; each of the others
//! has its own. Examples are drawn by the seed, not chosen.

use brenier::attribute::{Explanation, Method};
use brenier::evaluate::Channels;
use brenier::report::{PictureCell, picture_grid};
use brenier::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Scale as Size, Subject, Table, Tell};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QualitativeConfig {
    /// Images.
    pub examples: usize,
    /// The methods, by name. Those that need what the subject does not have are left out.
    pub methods: Vec<String>,
    /// The seed that draws images.
    pub seed: u64,
}

impl QualitativeConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> QualitativeConfig {
        let quick = ["smoothgrad", "guided-backprop", "gradient-shap", "ig", "ddim", "transport"];
        let more =
            ["gradient-input", "grad-cam", "expected-gradients", "blur-ig", "guided-ig", "occlusion", "rise"];
        let (examples, methods) = match scale {
            Size::Quick => (4, quick.to_vec()),
            Size::Full => (8, [&quick[..], &more[..]].concat()),
        };
        QualitativeConfig { examples, methods: methods.into_iter().map(str::to_string).collect(), seed: 0 }
    }
}

/// Explains the images by every method and draws the maps. The table has what each method's map holds: the share of
/// its absolute credit that is positive.
pub fn qualitative(
    subject: &Subject,
    config: &QualitativeConfig,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let [channels, height, width] = subject.model.shape()[..] else {
        return Err(Error::NotAnImage { what: "a heat map", shape: subject.model.shape().to_vec() });
    };
    let examples = subject.examples(config.examples, config.seed)?;
    let context = subject.context();
    let mut columns: Vec<(String, Vec<Explanation>)> = Vec::new();
    for name in &config.methods {
        let method: Method = name.parse()?;
        if !subject.has_network_for(&method) {
            tell(&format!("{name} is left out: there is no network for it to follow"));
            continue;
        }
        columns.push((
            name.clone(),
            method.explain(subject.model, examples.inputs.view(), &examples.targets, &context)?,
        ));
        tell(&format!("{name}: {} images explained", examples.targets.len()));
    }
    let mut cells = Vec::new();
    let mut names = Vec::new();
    for (i, row) in examples.rows.iter().enumerate() {
        let class = subject.held_out.classes().get(examples.targets[i]).cloned();
        names.push(format!("#{row}: {}", class.unwrap_or_else(|| examples.targets[i].to_string())));
        let maps: Vec<Vec<f64>> = columns
            .iter()
            .map(|(_, all)| Channels::SignedSum.map(all[i].values.view(), subject.model.shape()).to_vec())
            .collect();
        let largest = |map: &Vec<f64>| map.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
        let complete = |k: usize| columns[k].1[i].certificate.completeness.is_some();
        let shared = (0..maps.len()).filter(|&k| complete(k)).map(|k| largest(&maps[k])).fold(0.0, f64::max);
        cells.push(PictureCell::Image { channels, values: examples.inputs.row(i).to_vec() });
        for (k, map) in maps.into_iter().enumerate() {
            let scale = if complete(k) { shared } else { largest(&map) };
            cells.push(PictureCell::Signed { values: map, scale });
        }
    }
    let mut heads = vec!["input".to_string()];
    heads.extend(columns.iter().map(|(name, _)| name.clone()));
    let title = format!("{}: credit for the predicted class", subject.name);
    let svg = picture_grid(&title, &heads, &names, &cells, [height, width])?;
    let rows = columns.iter().map(|(name, all)| {
        let share = |e: &Explanation| {
            let total: f64 = e.values.iter().map(|v| v.abs()).sum();
            let positive: f64 = e.values.iter().filter(|v| **v > 0.0).sum();
            if total > 0.0 { positive / total } else { 0.0 }
        };
        Row::of(name, "positive share of absolute credit", &all.iter().map(share).collect::<Vec<_>>(), None)
    });
    let table = Table {
        name: "qualitative".into(),
        scale: format!("{}, {} images, seed {}", subject.name, examples.targets.len(), config.seed),
        rows: rows.collect(),
    };
    Ok((table, vec![Figure { file: "qualitative.svg".into(), svg }]))
}
