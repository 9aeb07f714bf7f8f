//! `brenier verify`: saved explanations are computed again from what their record names.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;
#[path = "../../../tests/straight_flow.rs"]
mod straight_flow;

use brenier::report::{load_explanations, save_explanations};
use ndarray::{Array2, Array4};
use place::{Place, linear};
use serde_json::Value;

/// A place with a model of images, a flow and four inputs.
fn images() -> Place {
    let place = Place::new();
    place.image_model("model.onnx");
    straight_flow::straight_flow([1, 8, 8]).save(place.file("flow.onnx")).unwrap();
    let images = Array4::from_shape_fn((4, 1, 8, 8), |(n, _, i, j)| ((n + i * j) as f32 / 5.0).sin());
    ndarray_npy::write_npy(place.file("images.npy"), &images).unwrap();
    let folder = place.file("elsewhere");
    std::fs::create_dir(folder).unwrap();
    place
}

fn done(place: &Place, line: &str) -> String {
    let done = place.run(line);
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// What verify says where something differs.
fn differs(place: &Place, line: &str) -> Value {
    let done = place.run(&format!("{line} --format json"));
    assert_eq!(done.status.code(), Some(1), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(found["verified"], false, "{found}");
    found["results"].as_array().unwrap().iter().find(|one| !is_verified(one)).unwrap().clone()
}

fn is_verified(one: &Value) -> bool {
    one["changed"].as_array().unwrap().is_empty() && one["difference"].is_null()
}

#[test]
fn what_was_saved_is_computed_again_to_the_bit() {
    let place = images();
    done(&place, "explain -m model.onnx images.npy -o one");
    assert!(done(&place, "verify one").contains("one: verified\n  ig: 4 explanations, the same to the bit"));
    done(&place, "verify one/explanations.npz");
    // Several methods, targets, draws, and a flow.
    let several = "explain -m model.onnx images.npy -f flow.onnx --method ig,transport,smoothgrad --targets all \
                   --samples 5 --seed 7 -o several";
    done(&place, several);
    let found = place.json("verify several --format json");
    assert_eq!(found["verified"], true);
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|one| one["explanations"] == 8 && one["tolerance"].is_null()), "{found}");
    // One of them by itself, from another folder.
    let alone = place.json("verify several/smoothgrad --format json");
    assert_eq!(alone["results"].as_array().unwrap().len(), 1);
    // Along traces, and against a population.
    done(&place, "explain -m model.onnx images.npy --traces several/transport/traces.npz -o traced");
    done(&place, "verify traced");
    let flags = "model = \"model.onnx\"\nmethod = [\"gradient\"]\n";
    place.write("flags.toml", flags);
    done(&place, "explain --config flags.toml images.npy -o flags");
    std::fs::remove_file(place.file("flags.toml")).unwrap();
    assert!(done(&place, "verify flags").contains("gradient: 4 explanations"));
}

/// The page says what the program says.
#[test]
fn the_example_of_the_page_is_true() {
    let place = images();
    let page = include_str!("../../../docs/certificates.md");
    let (_, section) = page.split_once("## Verifying an explanation").unwrap();
    let block = section.split("```").nth(1).unwrap().strip_prefix("text\n").unwrap();
    let [_, commands @ ..] = &block.split("$ brenier ").collect::<Vec<_>>()[..] else { panic!("{block}") };
    for command in commands {
        let (line, says) = command.split_once('\n').unwrap();
        let found = done(&place, line);
        assert!(says.is_empty() || found == says, "{line}\n{found}");
    }
    assert_eq!(commands.len(), 2);
}

#[test]
fn what_was_changed_is_found() {
    let place = images();
    done(&place, "explain -m model.onnx images.npy -o out");
    let out = place.file("out");
    let saved = load_explanations(&out).unwrap();
    let mut changed = saved.clone();
    changed[2].values[17] += 1e-12;
    save_explanations(&out, &changed).unwrap();
    let difference = differs(&place, "verify out")["difference"].clone();
    assert_eq!((&difference["example"], &difference["feature"]), (&2.into(), &17.into()), "{difference}");
    assert_eq!(difference["what"], "credit");
    assert!((difference["by"].as_f64().unwrap() - 1e-12).abs() < 1e-15, "{difference}");
    let told = place.run("verify out");
    let told = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(told.contains("input 2 (images.npy#2), target 1: the credit of feature 17 was"), "{told}");
    // A certificate that claims more than was found.
    let mut claims = saved.clone();
    claims[1].certificate.gradient_evaluations += 1;
    save_explanations(&out, &claims).unwrap();
    let difference = differs(&place, "verify out")["difference"].clone();
    assert_eq!((&difference["example"], &difference["what"]), (&1.into(), &"gradient_evaluations".into()));
    save_explanations(&out, &saved[..3]).unwrap();
    assert_eq!(differs(&place, "verify out")["changed"][0]["what"], "the number of explanations");
    save_explanations(&out, &saved).unwrap();
    done(&place, "verify out");
    // Other inputs, and another model.
    let kept = std::fs::read(place.file("images.npy")).unwrap();
    ndarray_npy::write_npy(place.file("images.npy"), &Array4::<f32>::ones((4, 1, 8, 8))).unwrap();
    assert_eq!(differs(&place, "verify out")["changed"][0]["what"], "the fingerprint of the inputs");
    std::fs::write(place.file("images.npy"), kept).unwrap();
    place.write("model.toml", "[preprocessing]\nscale = 2\n");
    assert_eq!(differs(&place, "verify out")["changed"][0]["what"], "the preprocessing");
    std::fs::remove_file(place.file("model.toml")).unwrap();
    done(&place, "verify out");
}

#[test]
fn files_that_have_moved_are_asked_for() {
    let place = images();
    done(&place, "explain -m model.onnx images.npy -f flow.onnx -o out");
    for name in ["model.onnx", "images.npy", "flow.onnx"] {
        std::fs::rename(place.file(name), place.file("elsewhere").join(name)).unwrap();
    }
    let told = place.refused("verify out");
    for (name, flag) in [("model.onnx", "--model"), ("images.npy", "--data"), ("flow.onnx", "--flow")] {
        assert!(told.contains(&format!("{name} (give it with {flag})")), "{told}");
    }
    let given = "--model elsewhere/model.onnx --data elsewhere/images.npy --flow elsewhere/flow.onnx";
    done(&place, &format!("verify out {given}"));
    linear(&[1.0; 64], 2).save(place.file("other.onnx")).unwrap();
    let told = place.refused("verify elsewhere");
    assert!(told.contains("does not say which command it comes from") && told.contains("\nhint: "), "{told}");
    assert!(place.refused("verify nowhere").contains("there is no nowhere\nhint: "));
}

#[test]
fn another_engine_is_held_to_a_tolerance() {
    if std::env::var_os("ORT_DYLIB_PATH").is_none() {
        eprintln!("skipped: there is no ONNX Runtime");
        return;
    }
    let place = Place::new();
    let fixture =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch/mlp.script.onnx");
    std::fs::copy(fixture, place.file("model.onnx")).unwrap();
    let shape = place.json("inspect model.onnx --format json")["inputs"][0]["shape"].clone();
    let features: usize =
        shape.as_array().unwrap().last().unwrap().to_string().trim_matches('"').parse().unwrap();
    let rows = Array2::from_shape_fn((3, features), |(i, j)| ((i * 5 + j) as f32).cos());
    ndarray_npy::write_npy(place.file("rows.npy"), &rows).unwrap();
    done(&place, "explain -m model.onnx rows.npy --steps 20 -o out");
    let found = place.json("verify out --engine ort --format json");
    let one = &found["results"][0];
    assert_eq!((&found["verified"], &one["tolerance"]), (&true.into(), &1e-3.into()), "{found}");
    assert_eq!(one["because"][0]["what"], "the engine");
    let largest = one["largest_difference"].as_f64().unwrap();
    assert!(largest < 1e-4, "{found}");
    if largest > 0.0 {
        let strict = differs(&place, "verify out --engine ort --tolerance 0");
        assert_eq!(strict["difference"]["what"], "credit", "{strict}");
    }
}
