//! Scores that are not one number of a vector, from the command line.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use ndarray::{ArrayD, Axis, s};
use ndarray_npy::NpzReader;

use self::place::Place;

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/nets/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn array(name: &str) -> ArrayD<f32> {
    let mut npz = NpzReader::new(std::fs::File::open(fixture("segments.npz")).unwrap()).unwrap();
    npz.by_name(name).unwrap()
}

#[test]
fn places_regions_and_differences() {
    let place = Place::new();
    ndarray_npy::write_npy(place.file("x.npy"), &array("x")).unwrap();
    ndarray_npy::write_npy(place.file("inside.npy"), &array("inside")).unwrap();
    let model = fixture("segments.dynamo.onnx");
    let explain = format!("explain -m {model} x.npy --format json");
    let y = array("y");
    let score = |more: &str| -> Vec<f64> {
        let found = place.json(&format!("{explain} {more}"));
        found.as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect()
    };
    let near = |found: &[f64], expected: &[f32]| {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).all(|(a, b)| (a - f64::from(*b)).abs() < 1e-5 * (1.0 + b.abs() as f64))
    };
    let pixel = y.slice(s![.., .., 5, 2]).to_owned();
    assert!(near(&score("--target 3,5,2"), &pixel.column(3).to_vec()));
    let difference = &pixel.column(3) - &pixel.column(0);
    assert!(near(&score("--target d,5,2 --minus a,5,2 --classes a,b,c,d"), &difference.to_vec()));
    let map = y.index_axis(Axis(1), 2);
    let mean: Vec<f32> = map.outer_iter().map(|row| row.mean().unwrap()).collect();
    assert!(near(&score("--target 2,:,: --reduce mean"), &mean));
    let best: Vec<f32> = pixel.outer_iter().map(|row| row.iter().copied().fold(f32::MIN, f32::max)).collect();
    assert!(near(&score("--target predicted,5,2"), &best));
    let margins = score("--target predicted,5,2 --minus highest-other");
    assert!(margins.iter().all(|margin| *margin > 0.0), "{margins:?}");

    let asked = "--target 2,:,: --reduce mean --within inside.npy -o out";
    assert!(near(&score(asked), array("score_segment").as_slice().unwrap()));
    assert!(place.run("verify out").status.success());
    assert!(place.read("out/report.html").contains("mean of 2,:,:"), "the page names the score");
    // Other weights are other scores.
    ndarray_npy::write_npy(place.file("inside.npy"), &array("inside").mapv(|v| v + 1.0)).unwrap();
    assert!(!place.run("verify out").status.success());

    for (more, says) in [
        (
            "--target 5",
            "output 'y' has 3 axes behind the batch, [4, 8, 8], but the target 5 speaks of 1\nhint: ",
        ),
        ("--target 1,:,:", "names more than one number\nhint: say how they become one score: --reduce mean"),
        ("--target 1,2,3 --reduce mean", "names single numbers: nothing is put together\nhint: name a range"),
        ("--target 1,9,0", "'9' is not within axis 2"),
        ("--target cat,0,0", "'cat' is no place along an axis\nhint: "),
        ("--target 2,:,: --reduce mean --within x.npy", "but the target's ranges have [8, 8]\nhint: "),
        ("--target 2,:,: --reduce mean --minus highest-other", "is one score"),
    ] {
        let said = place.refused(&format!("{explain} {more}"));
        assert!(said.contains(says), "{more}: {said}");
    }
}

/// The difference of two outputs of a vector, and its margin.
#[test]
fn differences_of_a_vector() {
    let place = Place::new();
    let mut npz = NpzReader::new(std::fs::File::open(fixture("nfnet.npz")).unwrap()).unwrap();
    let (x, y): (ArrayD<f32>, ArrayD<f32>) = (npz.by_name("x").unwrap(), npz.by_name("y").unwrap());
    ndarray_npy::write_npy(place.file("x.npy"), &x).unwrap();
    let explain = format!("explain -m {} x.npy --classes a,b,c --format json", fixture("nfnet.script.onnx"));
    let found = place.json(&format!("{explain} --target c --minus a"));
    for (one, row) in found.as_array().unwrap().iter().zip(y.outer_iter()) {
        assert!((one["score"].as_f64().unwrap() - f64::from(row[2] - row[0])).abs() < 1e-5);
    }
    let margins = place.json(&format!("{explain} --minus highest-other"));
    assert!(margins.as_array().unwrap().iter().all(|one| one["score"].as_f64().unwrap() > 0.0));
    let said = place.refused(&format!("{explain} --target c --minus d"));
    assert!(said.contains("there is no class 'd'"), "{said}");
}
