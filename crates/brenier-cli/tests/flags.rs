//! Flags that do nothing are refused; those that say something of arrays of floats work.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use ndarray::{Array2, Array4};
use place::{Place, linear};

fn simple() -> Place {
    let place = Place::new();
    linear(&[1.0, 2.0], 2).save(place.file("model.onnx")).unwrap();
    let rows = Array2::from_shape_fn((6, 2), |(i, j)| (i + 2 * j) as f32);
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    place
}

#[test]
fn arrays_of_floats_are_limited_scaled_folded_and_resized() {
    let place = simple();
    let scores = |line: &str| -> Vec<f64> {
        let found = place.json(&format!("explain {line} --target 0 --format json"));
        found.as_array().unwrap().iter().map(|one| one["score"].as_f64().unwrap()).collect()
    };
    assert_eq!(scores("-m model.onnx rows.npy --limit 2"), [4.0, 7.0]);
    assert_eq!(scores("-m model.onnx rows.npy --limit 2 --maximum 2"), [2.0, 3.5]);
    let told = place.refused("explain -m model.onnx rows.npy --limit 7");
    assert!(told.contains("rows.npy has 6 rows, but --limit asks for 7\nhint: "), "{told}");
    assert!(place.refused("explain -m model.onnx rows.npy --limit 0").contains("--limit"));
    // 64 columns that are an image, and an image of another size.
    place.image_model("images.onnx");
    let flat = Array2::from_shape_fn((2, 64), |(n, i)| (n + i) as f32 / 64.0);
    ndarray_npy::write_npy(place.file("flat.npy"), &flat).unwrap();
    ndarray_npy::write_npy(place.file("folded.npy"), &flat.to_shape((2, 1, 8, 8)).unwrap()).unwrap();
    assert_eq!(scores("-m images.onnx flat.npy --shape 1,8,8"), scores("-m images.onnx folded.npy"));
    // Constant images stay what they are when they are resized.
    for (name, side) in [("small.npy", 4), ("large.npy", 20), ("same.npy", 8)] {
        ndarray_npy::write_npy(place.file(name), &Array4::from_elem((1, 1, side, side), 0.25f32)).unwrap();
    }
    let same = scores("-m images.onnx same.npy")[0];
    for name in ["small.npy", "large.npy"] {
        let found = scores(&format!("-m images.onnx {name} --resize 8x8"))[0];
        assert!((found - same).abs() < 1e-6, "{name}: {found} {same}");
    }
    let told = place.refused("explain -m model.onnx rows.npy --resize 8x8");
    assert!(told.contains("rows of shape [2] cannot be resized\nhint: "), "{told}");
}

#[test]
fn flags_that_say_nothing_are_refused() {
    let place = simple();
    for flag in ["--part test", "--label y", "--drop a", "--color gray", "--categorical a", "--square"] {
        let told = place.refused(&format!("explain -m model.onnx rows.npy {flag}"));
        let name = flag.split(' ').next().unwrap();
        assert!(
            told.contains(&format!("{name} makes no difference to rows.npy, an array of floats")),
            "{told}"
        );
        place.refused(&format!("evaluate -m model.onnx rows.npy {flag}"));
    }
    for (flag, name) in [
        ("--background rows.npy", "--background"),
        ("--rule left", "--rule"),
        ("--steps 5", "--steps"),
        ("--tolerance 1e-3", "--tolerance"),
    ] {
        for verb in ["explain -m model.onnx rows.npy --method", "evaluate -m model.onnx rows.npy --methods"] {
            let told = place.refused(&format!("{verb} gradient {flag} "));
            assert!(told.contains(&format!("{name} makes no difference to gradient\nhint: ")), "{told}");
        }
    }
    // Where one of several methods uses it, it stands.
    assert!(place.run("explain -m model.onnx rows.npy --method gradient,ig --steps 5").status.success());
    let done = place.run("evaluate -m model.onnx rows.npy --methods ig --metrics deletion-zero -n 50");
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("-n asks for 50 examples, but there are 6: all are taken"), "{told}");
}
