//! Models with several inputs, given by name.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use ndarray::{ArrayD, Axis};
use ndarray_npy::NpzReader;

use self::place::Place;

/// Two inputs by name, from an array and from columns of a table: credit of each, and of both the sum.
#[test]
fn several_inputs_are_given_by_name() {
    let place = Place::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/inputs");
    let mut npz = NpzReader::new(std::fs::File::open(format!("{fixtures}/two_inputs.npz")).unwrap()).unwrap();
    let (image, table): (ArrayD<f32>, ArrayD<f32>) =
        (npz.by_name("image").unwrap(), npz.by_name("table").unwrap());
    ndarray_npy::write_npy(place.file("image.npy"), &image).unwrap();
    let rows: Vec<String> =
        table.outer_iter().map(|row| row.iter().map(f32::to_string).collect::<Vec<_>>().join(",")).collect();
    place.write("people.csv", &format!("age,height,weight\n{}\n", rows.join("\n")));
    let model = format!("{fixtures}/two_inputs-dynamo.onnx");

    let both = format!("explain -m {model} --input image=image.npy --input table=people.csv --target 1");
    let found = place.json(&format!("{both} -o out --format json"));
    assert_eq!(found.as_array().unwrap().len(), 3);
    assert_eq!(found[0]["verdict"]["kind"], "pass");
    let read = |file: &str, name: &str| -> ArrayD<f64> {
        NpzReader::new(std::fs::File::open(place.file(file)).unwrap()).unwrap().by_name(name).unwrap()
    };
    let (image, table) = (read("out/by_input.npz", "image"), read("out/by_input.npz", "table"));
    assert_eq!((image.shape(), table.shape()), (&[3, 1, 4, 4][..], &[3, 3][..]));
    for (i, one) in found.as_array().unwrap().iter().enumerate() {
        let change = one["score"].as_f64().unwrap() - one["reference_score"].as_f64().unwrap();
        let sum = image.index_axis(Axis(0), i).sum() + table.index_axis(Axis(0), i).sum();
        assert!((sum - change).abs() < 1e-3 * change.abs(), "{sum} {change}");
    }
    let page = place.read("out/report.html");
    assert!(
        page.contains("\"name\":\"image\"") && page.contains("\"role\":\"explained\""),
        "inputs in the page"
    );
    assert!(place.run("verify out").status.success());

    let text = |line: &str| String::from_utf8(place.run(line).stdout).unwrap();
    assert!(text(&format!("{both} --hold table")).contains("table held"));
    assert!(
        text(&format!("inspect {fixtures}/tokens-dynamo.onnx --values"))
            .contains("value         embedding float32 [")
    );
    assert!(place.run(&format!("{both} --at tanh")).status.success());

    for (more, says) in [
        ("--input other=image.npy", "the model has no input 'other'; it has image, table\nhint: "),
        ("--input image=image.npy", "input 'image' is given twice\nhint: "),
        ("image.npy", "image.npy has no name, and other inputs have one\nhint: "),
        ("--explain age", "the model has no input 'age'; it has image, table\nhint: "),
        ("--at tahn", "the nearest name is 'tanh'\nhint: "),
        ("--against 1", "--against is for a model with one input\nhint: "),
        ("--baseline image.npy", "image.npy is one array\nhint: "),
        ("--explain image --hold image", "input 'image' cannot be explained and held\nhint: "),
        ("--resize 4x4", "a resize or crop has no meaning for people.csv, which holds a table\nhint: "),
    ] {
        let said = place.refused(&format!("{both} {more}"));
        assert!(said.contains(says), "{more}: {said}");
    }
    for (line, says) in [
        (
            "--input image=image.npy",
            "there is no array for input 'table'; the model takes image, table\nhint: ",
        ),
        (
            "image.npy",
            "the model has 2 inputs (image, table)\nhint: give each by its name: --input NAME=FILE",
        ),
        (
            "--input image=image.npy --input table=people.csv:old",
            "has no column 'old'\nhint: it has age, height, weight",
        ),
        (
            "--input image=image.npy --input table=people.csv:age",
            "'table' takes examples of [3], but those given have [1]\nhint: ",
        ),
        (
            "--input image=gone.npy --input table=people.csv",
            "there is no gone.npy, which input 'image' was to come from\nhint: ",
        ),
    ] {
        let said = place.refused(&format!("explain -m {model} {line}"));
        assert!(said.contains(says), "{line}: {said}");
    }
}
