//! Tree ensembles from the command line: XGBoost's, LightGBM's and ONNX files, exact credit, one sentence for the rest.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::fs::File;
use std::path::PathBuf;

use ndarray::Array2;
use ndarray_npy::NpzReader;
use serde_json::Value;

use self::place::Place;

const HEADER: &str = "a,b,c,d,e,f\n";

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/trees")).join(name)
}

fn rows(npz: &str, name: &str) -> Array2<f64> {
    NpzReader::new(File::open(fixture(npz)).unwrap()).unwrap().by_name(name).unwrap()
}

fn csv(rows: &Array2<f64>) -> String {
    let line = |row: ndarray::ArrayView1<f64>| {
        row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n"
    };
    HEADER.to_string() + &rows.rows().into_iter().map(line).collect::<String>()
}

/// A folder with the models, rows to explain and rows to compare with.
fn place() -> Place {
    let place = Place::new();
    for name in ["xgb.json", "lgb.txt", "sk_boosted_binary.onnx"] {
        std::fs::copy(fixture(name), place.file(name)).unwrap();
    }
    place.write("rows.csv", &csv(&rows("xgb.npz", "rows")));
    place.write("background.csv", &csv(&rows("xgb.npz", "background")));
    place
}

/// Credit sums to the change. (A path between two rows of the same score is warned of, and rightly.)
fn all_balance(found: &Value) {
    for certificate in found.as_array().unwrap() {
        let change =
            certificate["score"].as_f64().unwrap() - certificate["reference_score"].as_f64().unwrap();
        assert!((certificate["credit_sum"].as_f64().unwrap() - change).abs() < 1e-12, "{certificate}");
    }
}

#[test]
fn every_file_of_trees_is_explained_exactly() {
    let place = place();
    for model in ["xgb.json", "lgb.txt", "sk_boosted_binary.onnx"] {
        for flags in [
            "--method ig --baseline mean",
            "--method nearest-ig --neighbours 3",
            "--method expected-gradients --samples 20",
            "--method tree-shap",
        ] {
            let line =
                format!("explain -m {model} rows.csv --background background.csv {flags} --format json");
            let found = place.json(&line);
            assert_eq!(found.as_array().unwrap().len(), 12, "{line}");
            all_balance(&found);
            assert_eq!(found[0]["engine"], format!("brenier-trees {}", env!("CARGO_PKG_VERSION")), "{line}");
        }
    }
    // The scores are those of the library.
    let expected: ndarray::Array1<f64> =
        NpzReader::new(File::open(fixture("xgb.npz")).unwrap()).unwrap().by_name("scores").unwrap();
    let found = place.json("explain -m xgb.json rows.csv --schema background.csv --format json");
    for (certificate, score) in found.as_array().unwrap().iter().zip(&expected) {
        assert!((certificate["score"].as_f64().unwrap() - score).abs() < 1e-5);
    }
}

#[test]
fn trees_are_compared_with_a_population_and_their_shift_is_explained() {
    let place = place();
    let all = rows("xgb.npz", "background");
    // Enough rows for populations: those there are, moved about a little.
    let many = |moved: f64| {
        Array2::from_shape_fn((60, 6), |(i, j)| {
            all[[i % 20, j]] + 0.01 * ((i * 7 + j) % 13) as f64 + moved * f64::from(j == 2)
        })
    };
    place.write("approved.csv", &csv(&many(1.0)));
    place.write("all.csv", &csv(&many(0.0)));
    let line = "explain -m xgb.json rows.csv --against approved.csv --among all.csv --format json";
    let found = place.json(line);
    for certificate in found.as_array().unwrap() {
        assert!(certificate["residual"].as_f64().unwrap() < 1e-12, "{certificate}");
        assert!(certificate["comparison"]["against"].is_string(), "{certificate}");
    }
    let found = place.json("shift all.csv approved.csv -m xgb.json --schema all.csv --format json");
    let text = found.to_string();
    assert!(found["result"]["residual"].as_f64().unwrap() < 1e-12, "{text}");
}

#[test]
fn what_cannot_work_says_so_in_one_sentence() {
    let place = place();
    let gradient = place.refused("explain -m xgb.json rows.csv --schema background.csv --method smoothgrad");
    assert!(
        gradient.contains("smoothgrad")
            && gradient.contains("the model is an ensemble of trees, which has no gradient"),
        "{gradient}"
    );
    assert!(gradient.contains("tree-shap"), "{gradient}");
    place.write("broken.json", "{\"learner\": {}}");
    let broken = place.refused("explain -m broken.json rows.csv");
    assert!(
        broken.contains("no model of XGBoost that can be read: it has no 'gradient_booster'"),
        "{broken}"
    );
    let counts = place
        .refused("explain -m sk_boosted_binary.onnx rows.csv --schema background.csv --method tree-shap");
    assert!(counts.contains("give rows to compare with (--background)"), "{counts}");
}
