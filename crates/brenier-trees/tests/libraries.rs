//! Models as XGBoost and LightGBM save them, held against the libraries, shap and treeig; see `fixtures/trees`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs::{File, read, read_to_string};
use std::path::PathBuf;

use brenier_trees::Ensemble;
use ndarray::ArrayD;
use ndarray_npy::NpzReader;

fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/trees")).join(name)
}

fn model(name: &str) -> Ensemble {
    if name.ends_with(".txt") {
        return Ensemble::from_lightgbm(&read_to_string(file(name)).unwrap()).unwrap();
    }
    Ensemble::from_xgboost(&read(file(name)).unwrap()).unwrap()
}

/// What is known of a model, by name.
struct Truth(NpzReader<File>);

impl Truth {
    fn of(name: &str) -> Truth {
        let stem = name.split('.').next().unwrap();
        Truth(NpzReader::new(File::open(file(&format!("{stem}.npz"))).unwrap()).unwrap())
    }

    fn get(&mut self, name: &str) -> Option<Vec<f64>> {
        let array: ArrayD<f64> = self.0.by_name(name).ok()?;
        Some(array.iter().copied().collect())
    }
}

fn gap(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f64::max)
}

const FILES: [&str; 11] = [
    "xgb.json",
    "xgb_binary.ubj",
    "xgb_classes.json",
    "xgb_categories.json",
    "xgb_outputs.json",
    "xgb_dart.json",
    "lgb.txt",
    "lgb_classes.txt",
    "lgb_categories.txt",
    "lgb_zeros.txt",
    "lgb_forest.txt",
];

#[test]
fn scores_are_those_of_the_libraries() {
    for name in FILES {
        let (model, mut truth) = (model(name), Truth::of(name));
        let rows = truth.get("rows").unwrap();
        let found = model.predictions(&rows).unwrap();
        let scores = truth.get("scores").unwrap();
        assert!(gap(&found, &scores) < 1e-6, "{name} {}\n{found:?}\n{scores:?}", gap(&found, &scores));
        assert!(scores.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 0.01), "{name} is too tame");
        if let Some(margins) = truth.get("margins") {
            assert!(gap(&model.scores(&rows).unwrap(), &margins) < 2e-6, "{name}");
        }
    }
}

#[test]
fn credit_of_straight_lines_is_treeigs() {
    let mut compared = 0;
    for name in FILES {
        let (model, mut truth) = (model(name), Truth::of(name));
        let Some(line) = truth.get("line") else { continue };
        let (rows, background) = (truth.get("rows").unwrap(), truth.get("background").unwrap());
        let count = rows.len() / model.features();
        let from = background[..model.features()].repeat(count);
        let found = model.line_credit(&from, &rows, &vec![0; count]).unwrap();
        assert!(gap(&found, &line) < 1e-6, "{name}: {}", gap(&found, &line));
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[test]
fn shapley_values_are_those_of_shap_and_of_the_libraries() {
    let (mut with_background, mut conditional) = (0, 0);
    for name in FILES {
        let (model, mut truth) = (model(name), Truth::of(name));
        let (rows, background) = (truth.get("rows").unwrap(), truth.get("background").unwrap());
        let count = rows.len() / model.features();
        if let Some(values) = truth.get("interventional") {
            let outputs = vec![model.outputs() - 1; count];
            let found = model.shapley_values(&rows, &background, &outputs).unwrap();
            assert!(gap(&found, &values) < 2e-6, "{name}: {}", gap(&found, &values));
            with_background += 1;
        }
        if let Some(values) = truth.get("conditional") {
            let found = model.conditional_shapley_values(&rows, &vec![0; count]).unwrap();
            assert!(gap(&found, &values) < 5e-6, "{name}: {}", gap(&found, &values));
            conditional += 1;
        }
    }
    assert_eq!((with_background, conditional), (4, 4));
}

#[test]
fn files_that_are_cut_or_changed_are_refused_and_never_a_panic() {
    for name in ["xgb_binary.ubj", "xgb_categories.json", "lgb_categories.txt"] {
        let bytes = read(file(name)).unwrap();
        for k in 0..200 {
            let mut cut = bytes[..k * bytes.len() / 200].to_vec();
            let text = String::from_utf8_lossy(&cut).into_owned();
            assert!(name.ends_with(".txt") || Ensemble::from_xgboost(&cut).is_err(), "{name} {k}");
            let _ = Ensemble::from_lightgbm(&text);
            // A changed byte may make another model, but no panic.
            cut = bytes.clone();
            cut[k * bytes.len() / 200] ^= 0x15;
            let _ = Ensemble::from_xgboost(&cut);
            let _ = Ensemble::from_lightgbm(&String::from_utf8_lossy(&cut));
        }
    }
    let message = Ensemble::from_xgboost(b"{\"learner\": {\"gradient_booster\": {\"name\": \"gblinear\"}}}");
    let message = message.unwrap_err().to_string();
    assert_eq!(
        message,
        "the booster 'gblinear' of XGBoost cannot be read as trees: only gbtree and dart are ensembles of trees"
    );
}
