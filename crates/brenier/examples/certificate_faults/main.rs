//! Does the certificate tell good from bad? Faults put in on purpose, and how many explanations pass all the same.
//!
//!     cargo run --release --example certificate_faults -- FLOW DATA --classifier MODEL --other NAME=DATA \
//!         --badly-trained NAME=FLOW --inputs 40 --good 200
//!
//! FLOW is calibrated; DATA are held-out images like those that it was trained on; `--other` are images of another kind.
//! An input passes where its round trip closes, its trace is ordinary for the flow, and the flow itself is good. A flow that
//! was changed after its calibration is told by its fingerprint before any of this; what is printed for changed flows is what
//! would pass without that. The last two groups look at the accounting, and at whether flows are found good by a
//! calibration of their own. `set` says whether all inputs together are told.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod accounting;
mod bench;
mod flows;
mod images;

use std::path::PathBuf;

use brenier::calibration::Calibration;
use brenier::data::{Color, Dataset, OpenOptions, Part, Transform};
use brenier::flow::FlowMetadata;
use brenier::{OnnxPredictor, PredictorConfig};
use ndarray::Array2;
use onnx_grad::Model;

use self::bench::Bench;

/// What was typed.
#[derive(Default)]
struct Args {
    places: Vec<String>,
    classifier: Option<PathBuf>,
    others: Vec<(String, String)>,
    badly_trained: Vec<(String, String)>,
    inputs: Option<usize>,
    good: Option<usize>,
    /// Only groups whose names begin so.
    only: Option<String>,
}

fn typed() -> Args {
    let mut args = Args::default();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("{word} needs a value"));
        let named = |text: String| {
            let (name, path) = text.split_once('=').expect("NAME=PATH");
            (name.to_string(), path.to_string())
        };
        match word.as_str() {
            "--classifier" => args.classifier = Some(value().into()),
            "--other" => args.others.push(named(value())),
            "--badly-trained" => args.badly_trained.push(named(value())),
            "--inputs" => args.inputs = Some(value().parse().unwrap()),
            "--good" => args.good = Some(value().parse().unwrap()),
            "--only" => args.only = Some(value()),
            _ => args.places.push(word),
        }
    }
    args
}

/// Held-out rows that the calibration did not see: the last of the shuffled order.
fn rows(data: &Dataset, count: usize) -> (Array2<f64>, Vec<usize>) {
    let mut order = data.shuffled_order(0);
    order.reverse();
    order.truncate(count);
    let labels = data.labels().map_or_else(Vec::new, |all| order.iter().map(|&i| all[i]).collect());
    (data.rows_f64(&order).unwrap(), labels)
}

/// The test part, as images of this shape.
fn as_images(place: &str, shape: &[usize]) -> Dataset {
    let [channels, height, width] = shape[..] else { panic!("images have three sizes") };
    let options = OpenOptions { part: Part::Test, ..OpenOptions::default() };
    let data = Dataset::open(place, &options).unwrap();
    if data.shape() == shape {
        return data;
    }
    let color = if channels == 1 { Color::Gray } else { Color::Rgb };
    let transforms = vec![Transform::Resize { height, width }];
    Dataset::open(place, &OpenOptions { color, transforms, ..options }).unwrap()
}

fn main() {
    let args = typed();
    let wanted = |group: &str| args.only.as_ref().is_none_or(|only| group.starts_with(only.as_str()));
    let model = Model::load(&args.places[0]).unwrap();
    let metadata = FlowMetadata::of(&model).unwrap();
    let calibration: Calibration = metadata.calibration.clone().expect("the flow is calibrated");
    let shape = metadata.shape.clone().unwrap();
    let data = as_images(&args.places[1], &shape);
    let (inputs, labels) = rows(&data, args.inputs.unwrap_or(40));
    let bench = Bench::new(model, calibration, shape.clone(), inputs, labels);
    println!(
        "{} calibrated by {} rows, {:?}\n",
        args.places[0], bench.calibration.rows, bench.calibration.quality
    );
    let classifier =
        args.classifier.as_ref().map(|path| OnnxPredictor::load(path, &PredictorConfig::default()).unwrap());
    println!("| fault | pass | set |\n|---|---|---|");
    if wanted("good") {
        bench.good(&rows(&data, args.good.unwrap_or(200)).0);
    }
    if wanted("accounting")
        && let Some(path) = &args.classifier
    {
        accounting::faults(&bench, &Model::load(path).unwrap());
    }
    if wanted("flows") {
        flows::faults(&bench);
    }
    if wanted("stiff") {
        flows::stiff(&bench);
    }
    if wanted("inputs") {
        let others = args
            .others
            .iter()
            .map(|(name, place)| (name.clone(), rows(&as_images(place, &shape), bench.inputs.nrows()).0));
        images::faults(&bench, classifier.as_ref(), others.collect());
    }
    if wanted("trained") {
        flows::by_themselves(&bench, &data, &args.badly_trained);
    }
}
