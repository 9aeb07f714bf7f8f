//! Pipelines of a data frame from the command line: rows of a CSV file bind to the inputs by name, for every verb.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::path::Path;

use serde_json::Value;

use self::place::{Place, linear};

/// Rows of the data frame with a column that the model does not take.
const ROWS: &str = "job,age,hours,sex,gain,city\nsmith,44,41.5,male,21,Oslo\nclerk,23,30,female,0,Lyon\n";

fn place() -> Place {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pipelines");
    for name in ["boosted", "lightgbm", "logistic", "mixing"] {
        std::fs::copy(fixtures.join(format!("tabular_{name}.onnx")), place.file(&format!("{name}.onnx")))
            .unwrap();
    }
    std::fs::copy(fixtures.join("tabular.csv"), place.file("train.csv")).unwrap();
    place.write("rows.csv", ROWS);
    let train = place.read("train.csv");
    let approved: Vec<&str> = train.lines().filter(|line| !line.ends_with("declined")).collect();
    place.write("approved.csv", &(approved.join("\n") + "\n"));
    place
}

fn said(place: &Place, line: &str) -> (String, String) {
    let done = place.run(line);
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{line}\n{err}");
    (out.into_owned(), err.into_owned())
}

fn scores(place: &Place, line: &str) -> Vec<f64> {
    let found = place.json(&format!("{line} --format json"));
    found.as_array().unwrap().iter().map(|one: &Value| one["score"].as_f64().unwrap()).collect()
}

#[test]
fn rows_bind_by_the_names_of_the_inputs() {
    let place = place();
    for model in ["boosted", "lightgbm", "logistic"] {
        let line =
            format!("explain -m {model}.onnx rows.csv --target 1 --background train.csv --baseline mean");
        let first = scores(&place, &line);
        let (_, notes) = said(&place, &line);
        assert!(
            notes.contains("does not take these columns of rows.csv, which are ignored: city"),
            "{notes}"
        );
        // Another order, one row alone, a number of a category's kind.
        place.write("other.csv", "age,sex,hours,job,gain\n23,female,30,clerk,0\n");
        assert_eq!(scores(&place, &line.replace("rows.csv", "other.csv")), [first[1]], "{model}");
        place.write("other.csv", "age,sex,hours,job\n23,female,30,clerk\n");
        assert!(place.refused(&line.replace("rows.csv", "other.csv")).contains("'gain'"), "{model}");
        place.write("other.csv", "age,sex,hours,job,gain\n23,female,30,baker,0\n");
        let message = place.refused(&line.replace("rows.csv", "other.csv"));
        assert!(message.contains("'baker' is none of the values clerk, nurse, smith"), "{message}");
        assert!(message.contains("line 2"), "{message}");
    }
}

#[test]
fn every_verb_takes_a_pipeline_of_a_data_frame() {
    let place = place();
    for model in ["boosted", "logistic"] {
        let (text, _) = said(
            &place,
            &format!(
                "explain -m {model}.onnx rows.csv --target 1 --against approved.csv --among train.csv --reasons 2 -o out-{model}"
            ),
        );
        assert!(text.contains("1. "), "{text}");
        let page = place.read(&format!("out-{model}/report.html"));
        assert!(page.contains("job") && page.contains("smith"), "{model}");
        let (text, _) = said(&place, &format!("shift train.csv rows.csv -m {model}.onnx --target 1"));
        for column in ["age", "hours", "gain", "job", "sex"] {
            assert!(text.contains(column), "{text}");
        }
        assert!(!text.contains("unused"), "{text}");
        let methods = if model == "boosted" { "ig,tree-shap" } else { "ig,gradient-input" };
        let (text, _) = said(
            &place,
            &format!(
                "evaluate -m {model}.onnx train.csv -n 4 --methods {methods} --background train.csv --baseline mean --target 1"
            ),
        );
        assert!(text.contains("relative-residual"), "{text}");
    }
}

#[test]
fn what_has_no_jumps_of_columns_is_told_with_its_node() {
    let place = place();
    let message = place.refused("explain -m mixing.onnx rows.csv --background train.csv --baseline mean");
    assert!(message.contains("computes with the columns 'hours' and 'gain' together"), "{message}");
    assert!(message.contains("hint: "), "{message}");
}

#[test]
fn a_column_whose_name_differs_in_punctuation_is_found_where_there_is_one() {
    let place = Place::new();
    let mut model = linear(&[1.0, 2.0], 1);
    model.metadata.insert("feature_names".into(), r#"["a_b","c"]"#.into());
    model.save(place.file("model.onnx")).unwrap();
    place.write("rows.csv", "c,a-b\n1,10\n");
    assert_eq!(scores(&place, "explain -m model.onnx rows.csv"), [12.0]);
    let (_, notes) = said(&place, "explain -m model.onnx rows.csv");
    assert!(!notes.contains("ignored"), "{notes}");
    place.write("rows.csv", "c,a-b,a b\n1,10,20\n");
    assert!(place.refused("explain -m model.onnx rows.csv").contains("'a_b'"));
}
