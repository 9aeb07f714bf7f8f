//! Results belong to what they were made from: the program refuses to mix, and names what differs.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use ndarray::{Array2, Array3, arr2, s};
use place::{Place, linear};

/// Everything in a folder, by name.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn rows(place: &Place, name: &str, first: f32) {
    let rows = Array2::from_shape_fn((6, 3), |(i, j)| first + (i * 3 + j) as f32 / 7.0);
    ndarray_npy::write_npy(place.file(name), &rows).unwrap();
}

fn done(place: &Place, line: &str) -> String {
    let done = place.run(line);
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// A line that is refused with these words, and leaves the folder as it was.
fn refused(place: &Place, out: &str, line: &str, words: &str) {
    let before = contents(&place.file(out));
    let message = place.refused(line);
    assert!(message.contains(words), "{line}\n{message}");
    assert!(contents(&place.file(out)) == before, "{line} changed {out}");
}

#[test]
fn files_enter_results_by_what_they_hold() {
    let place = Place::new();
    linear(&[1.0, -2.0, 0.5], 2).save(place.file("model.onnx")).unwrap();
    rows(&place, "rows.npy", 0.0);
    rows(&place, "background.npy", 1.0);
    for name in ["baseline.npy", "same.npy"] {
        ndarray_npy::write_npy(place.file(name), &arr2(&[[0.1f32, 0.2, 0.3]])).unwrap();
    }
    let explain = "explain -m model.onnx rows.npy -o out --method ig,expected-gradients --samples 4 \
                   --background background.npy --baseline";
    let evaluate = "evaluate -m model.onnx rows.npy -o table --methods ig,expected-gradients --samples 4 \
                    --metrics completeness-residual --background background.npy --baseline";
    for (out, line) in [("out", explain), ("table", evaluate)] {
        done(&place, &format!("{line} baseline.npy"));
        // The same rows under another name are the same.
        done(&place, &format!("{line} same.npy"));
        ndarray_npy::write_npy(place.file("baseline.npy"), &arr2(&[[0.1f32, 0.2, 0.4]])).unwrap();
        refused(&place, out, &format!("{line} baseline.npy"), "the fingerprint of the baselines was");
        ndarray_npy::write_npy(place.file("baseline.npy"), &arr2(&[[0.1f32, 0.2, 0.3]])).unwrap();
        rows(&place, "background.npy", 2.0);
        refused(&place, out, &format!("{line} baseline.npy"), "the fingerprint of the background was");
        rows(&place, "background.npy", 1.0);
        place.write("model.toml", "[preprocessing]\nscale = 2\n");
        refused(&place, out, &format!("{line} baseline.npy"), "the preprocessing was");
        std::fs::remove_file(place.file("model.toml")).unwrap();
        linear(&[1.0, -2.0, 0.25], 2).save(place.file("model.onnx")).unwrap();
        refused(&place, out, &format!("{line} baseline.npy"), "the model's fingerprint was");
        linear(&[1.0, -2.0, 0.5], 2).save(place.file("model.onnx")).unwrap();
        done(&place, &format!("{line} baseline.npy"));
    }
}

#[test]
fn a_hash_covers_external_data_preprocessing_and_the_cut_of_the_softmax() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
    for name in ["mlp.external.onnx", "mlp.external.onnx.data"] {
        std::fs::copy(fixtures.join(name), place.file(name)).unwrap();
    }
    let shape = place.json("inspect mlp.external.onnx --format json")["inputs"][0]["shape"].clone();
    let features: usize =
        shape.as_array().unwrap().last().unwrap().to_string().trim_matches('"').parse().unwrap();
    ndarray_npy::write_npy(place.file("x.npy"), &Array2::<f32>::ones((1, features))).unwrap();
    let hash = |more: &str| {
        place.json(&format!("explain -m mlp.external.onnx x.npy --format json {more}"))[0]["model_hash"]
            .to_string()
    };
    let first = hash("");
    assert_eq!(hash(""), first);
    assert_ne!(hash("--keep-softmax"), first);
    assert_ne!(hash("--scale 2"), first);
    assert_eq!(hash("--workers 1"), first);
    let data = place.file("mlp.external.onnx.data");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    assert_ne!(hash(""), first);
}

#[test]
fn paths_and_traces_belong_to_their_inputs() {
    let place = Place::new();
    place.image_model("model.onnx");
    straight_flow::straight_flow([1, 8, 8]).save(place.file("flow.onnx")).unwrap();
    let image = |value: f32| Array3::from_shape_fn((1, 8, 8), |(_, i, j)| value + (i * 8 + j) as f32 / 64.0);
    for (name, value) in [("a.npy", 0.0), ("b.npy", 0.5)] {
        ndarray_npy::write_npy(place.file(name), &image(value)).unwrap();
    }
    done(&place, "explain -m model.onnx a.npy -f flow.onnx -o traced");
    done(&place, "explain -m model.onnx a.npy --traces traced/traces.npz -o again");
    let told = place.refused("explain -m model.onnx b.npy --traces traced/traces.npz");
    assert!(told.contains("the path of input 0 does not end at it: feature 0 is 0"), "{told}");
    assert!(told.contains("hint: give the inputs that the paths were made for"), "{told}");

    let mut points = ndarray::Array4::<f32>::zeros((3, 1, 8, 8));
    points.slice_mut(s![1, .., .., ..]).fill(0.1);
    points.slice_mut(s![2, .., .., ..]).assign(&image(0.0));
    ndarray_npy::write_npy(place.file("points.npy"), &points).unwrap();
    done(&place, "explain -m model.onnx a.npy --path points.npy -o along");
    let told = place.refused("explain -m model.onnx b.npy --path points.npy");
    assert!(told.contains("does not end at it"), "{told}");
    points.slice_mut(s![1, .., .., ..]).fill(0.2);
    ndarray_npy::write_npy(place.file("points.npy"), &points).unwrap();
    refused(
        &place,
        "along",
        "explain -m model.onnx a.npy --path points.npy -o along",
        "the fingerprint of the paths",
    );
}

#[path = "../../../tests/straight_flow.rs"]
mod straight_flow;

/// A table of two columns that belong together.
fn table(place: &Place, name: &str, slope: f64) {
    let mut csv = String::from("height,weight\n");
    for i in 0..300 {
        let angle = f64::from(i) * 2.4;
        let height = 170.0 + 8.0 * angle.sin();
        writeln!(csv, "{height:.3},{:.3}", slope * height + 5.0 * (1.7 * angle).cos()).unwrap();
    }
    place.write(name, &csv);
}

#[test]
fn a_run_is_gone_on_with_as_it_was_begun_or_not_at_all() {
    let place = Place::new();
    table(&place, "people.csv", 0.9);
    table(&place, "others.csv", 0.8);
    let train = "train people.csv -o run --width 16 --blocks 1 --batch 32 --steps 20 --calibration-rows 0";
    done(&place, train);
    let resume = format!("{train} --resume");
    done(&place, &format!("{resume} --workers 1 --checkpoint-every 5"));
    let with = |from: &str, to: &str| resume.replace(from, to);
    for (line, words) in [
        (with("people", "others"), "the fingerprint of the data was"),
        (with("--width 16", "--width 8"), "the network width was 16"),
        (with("--resume", "--resume --coupling ot"), "the coupling was"),
        (with("--resume", "--resume --learning-rate 0.1"), "the training learning rate was"),
        // Another seed also splits the data in another way.
        (with("--resume", "--resume --seed 1"), "the fingerprint of the data was"),
        (with("--resume", "--resume --train-fraction 0.8"), "the fingerprint of the data was"),
    ] {
        refused(&place, "run", &line, words);
    }

    done(&place, &train.replace("-o run", "-o other --seed 3"));
    let reflow = "reflow run people.csv -o second --generated 300 --inverted 300 --steps 5 --batch 32 --calibration-rows 0";
    done(&place, reflow);
    // As after a stop while pairs were made.
    std::fs::remove_file(place.file("second/checkpoint.npz")).unwrap();
    let resume = format!("{reflow} --resume");
    for (from, to, words) in [
        ("reflow run", "reflow other", "the fingerprint of the flow was"),
        ("people", "others", "the fingerprint of the data was"),
        ("--generated 300", "--generated 200", "the generated was 300, and now it is 200"),
        ("--inverted 300", "--inverted 200", "the inverted was 300, and now it is 200"),
        ("--resume", "--resume --solver-tolerance 1e-2", "the solver"),
    ] {
        refused(&place, "second", &resume.replace(from, to), words);
    }
    done(&place, &resume);
}

#[test]
fn a_flow_says_nothing_of_the_machine() {
    let place = Place::new();
    table(&place, "people.csv", 0.9);
    table(&place, "others.csv", 0.8);
    let here = place.file("others.csv");
    let line = |workers: usize| {
        format!(
            "train people.csv --reference {} -o run{workers} --width 16 --blocks 1 --batch 32 --steps 6 --workers {workers} \
             --group 32 --calibration-rows 0",
            here.display()
        )
    };
    for workers in [1, 2] {
        done(&place, &line(workers));
    }
    let [one, two] =
        ["run1/flow.onnx", "run2/flow.onnx"].map(|name| std::fs::read(place.file(name)).unwrap());
    assert!(one == two, "the number of workers is in the file");
    let folder = here.parent().unwrap().to_string_lossy().into_owned();
    assert!(!String::from_utf8_lossy(&one).contains(&folder), "{folder} is in the file");
    // Reflow asks for what it cannot find.
    let told = place.refused("reflow run1 people.csv -o second --reference gone.csv");
    assert!(told.contains("the reference 'gone.csv' is not here\nhint: "), "{told}");
}

#[test]
fn a_folder_holds_one_run() {
    let place = Place::new();
    place.image_model("model.onnx");
    for (name, count) in [("three.npy", 3), ("one.npy", 1)] {
        let images =
            ndarray::Array4::from_shape_fn((count, 1, 8, 8), |(n, _, i, j)| ((n + i * j) as f32).sin());
        ndarray_npy::write_npy(place.file(name), &images).unwrap();
    }
    let named = |folder: &str| {
        let mut names: Vec<String> = std::fs::read_dir(place.file(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    done(&place, "explain -m model.onnx three.npy -o out");
    assert_eq!(named("out/heatmaps").len(), 3);
    assert!(named("out").contains(&"stills.npz".to_string()));
    // Fewer inputs, and a method without a path.
    done(&place, "explain -m model.onnx one.npy --method gradient -o out --force");
    let [only] = &named("out/heatmaps")[..] else { panic!("{:?}", named("out/heatmaps")) };
    assert!(only.starts_with("0000-gradient-"), "{only}");
    assert!(!named("out").contains(&"stills.npz".to_string()));
    // Several methods have folders of their own.
    let several = "explain -m model.onnx one.npy --method gradient,gradient-input -o out";
    refused(&place, "out", several, "out holds the results of another run");
    done(&place, &format!("{several} --force"));
    let found = named("out");
    assert!(!found.iter().any(|name| name.starts_with("explanations.")), "{found:?}");
    done(&place, "explain -m model.onnx one.npy --method gradient -o out --force");
    let found = named("out");
    assert!(!found.iter().any(|name| name == "gradient" || name == "gradient-input"), "{found:?}");
    done(&place, "verify out");
}

#[test]
fn groups_and_truth_enter_by_content_and_are_told_briefly() {
    let place = Place::new();
    place.image_model("model.onnx");
    let images = ndarray::Array4::from_shape_fn((2, 1, 8, 8), |(n, _, i, j)| ((n + i * j) as f32).sin());
    ndarray_npy::write_npy(place.file("images.npy"), &images).unwrap();
    let groups =
        |first: i64| Array2::from_shape_fn((8, 8), |(i, j)| if i + j == 0 { first } else { (i / 2) as i64 });
    ndarray_npy::write_npy(place.file("groups.npy"), &groups(0)).unwrap();
    let line =
        "explain -m model.onnx images.npy --method kernel-shap --groups groups.npy --samples 60 -o out";
    done(&place, line);
    ndarray_npy::write_npy(place.file("groups.npy"), &groups(3)).unwrap();
    refused(&place, "out", line, "out holds another run");
    let told = place.refused(line);
    assert!(told.len() < 500, "{told}");
    let truth =
        |value: u8| ndarray::Array4::from_shape_fn((2, 1, 8, 8), |(_, _, i, j)| u8::from(i + j < 4) * value);
    ndarray_npy::write_npy(place.file("truth.npy"), &truth(1)).unwrap();
    let line = "evaluate -m model.onnx images.npy --truth truth.npy --methods gradient --metrics mass-accuracy -o table";
    done(&place, line);
    let mut other = truth(1);
    other[[0, 0, 7, 7]] = 1;
    ndarray_npy::write_npy(place.file("truth.npy"), &other).unwrap();
    refused(&place, "table", line, "table/parts holds another run");
}

/// A page shows explanations beside an evaluation: both must be of one model.
#[test]
fn explanations_and_an_evaluation_in_one_folder_are_of_one_model() {
    let place = Place::new();
    linear(&[1.0, 2.0, 3.0], 2).save(place.file("a.onnx")).unwrap();
    linear(&[1.0, -2.0, 3.0], 2).save(place.file("b.onnx")).unwrap();
    rows(&place, "rows.npy", 1.0);
    let evaluate = |model: &str, out: &str| {
        format!(
            "evaluate -m {model} rows.npy --methods ig,gradient-input --metrics deletion-zero -q -o {out}"
        )
    };
    done(&place, &evaluate("a.onnx", "first"));
    let words = "first/parts/run.json is of an evaluation with another model: the model's fingerprint was ";
    refused(&place, "first", "explain -m b.onnx rows.npy -q -o first", words);
    done(&place, "explain -m a.onnx rows.npy -q -o first");
    // The other way round, also where several methods have a folder each.
    for (methods, claim) in [("ig", "second"), ("ig,gradient-input", "third/gradient-input")] {
        let out = claim.split('/').next().unwrap();
        done(&place, &format!("explain -m a.onnx rows.npy --method {methods} -q -o {out}"));
        let words = format!(
            "{claim}/explanations.run.json is of explanations with another model: the model's fingerprint was "
        );
        refused(&place, out, &evaluate("b.onnx", out), &words);
        done(&place, &evaluate("a.onnx", out));
    }
}
