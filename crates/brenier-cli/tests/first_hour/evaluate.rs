//! `evaluate`.

use ndarray::Array4;
use ndarray_npy::write_npy;

use crate::{noise, said, simple};

#[test]
fn evaluate_takes_a_table_and_any_methods_with_its_defaults() {
    let place = simple();
    let rows: String = (0..12).map(|i| format!("{i},{}\n", (i * 7) % 5)).collect();
    place.write("rows.csv", &format!("a,b\n{rows}"));
    for methods in ["occlusion", "gradient", "ig,kernel-shap"] {
        let told = said(&place, &format!("evaluate -m model.onnx rows.csv --methods {methods} -n 50"));
        assert!(told.contains("the data have no test split, so all rows are used"), "{told}");
        assert!(told.contains("-n asks for 50 examples, but there are 12"), "{told}");
    }
    place.image_model("images.onnx");
    let images = Array4::from_shape_vec((4, 1, 8, 8), noise(256, 5)).unwrap();
    write_npy(place.file("images.npy"), &images).unwrap();
    let done = place.run("evaluate -m images.onnx images.npy --methods occlusion");
    let table = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(table.contains("deletion-blur") && table.contains("insertion-blur"), "{table}");
    assert!(table.contains("gps: left out, the method has no path"), "{table}");
}

#[test]
fn what_is_equal_or_a_matter_of_scale_has_no_star() {
    let place = simple();
    // From zero both give the same credit to a linear model.
    let rows: String = (0..12).map(|i| format!("{i},{}\n", (i * 7) % 5)).collect();
    place.write("rows.csv", &format!("a,b\n{rows}"));
    let table = place.json("evaluate -m model.onnx rows.csv --methods ig,gradient-input --format json");
    assert!(table["rows"].as_array().unwrap().iter().all(|row| row["best"] != true), "{table}");
    place.image_model("images.onnx");
    let images = Array4::from_shape_vec((8, 1, 8, 8), noise(512, 5)).unwrap();
    write_npy(place.file("images.npy"), &images).unwrap();
    // A gradient has other units than what occlusion takes away.
    let line = "evaluate -m images.onnx images.npy --methods gradient,occlusion --metrics satv --format json";
    let table = place.json(line);
    assert!(table["rows"].as_array().unwrap().iter().all(|row| row["best"] != true), "{table}");
    assert!(table["leads"].to_string().contains("none"), "{table}");
}
