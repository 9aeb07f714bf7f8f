//! What a new user meets in the first hour, row by row, each with the real program.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use ndarray::{Array1, Array2, Array4, ArrayD, Axis, s};
use ndarray_npy::{NpzReader, write_npy};
use onnx_grad::{Attribute, Builder, DType, Dim, Model, TensorData};
use place::{Place, linear};

/// A place with a linear model of two columns and six rows.
fn simple() -> Place {
    let place = Place::new();
    linear(&[1.0, 2.0], 2).save(place.file("model.onnx")).unwrap();
    let rows = Array2::from_shape_fn((6, 2), |(i, j)| 1.0 + (i + 2 * j) as f32);
    write_npy(place.file("rows.npy"), &rows).unwrap();
    place
}

/// Numbers between -1 and 1 that look random.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// A network of 20 features, 400 hidden units of this kind, and one score.
fn network(place: &Place, name: &str, activation: &str) {
    let mut b = Builder::new("net");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(20)]);
    let w = b.parameter("w", TensorData::f32(&[20, 400], &noise(8000, 1)));
    let bias = b.parameter("b", TensorData::f32(&[400], &noise(400, 2)));
    let v = b.parameter("v", TensorData::f32(&[400, 1], &noise(400, 3)));
    let hidden = b.matmul(&x, &w);
    let hidden = b.add(&hidden, &bias);
    let hidden = b.op(activation, &[&hidden]);
    let y = b.matmul(&hidden, &v);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file(name)).unwrap();
    let rows = Array2::from_shape_vec((20, 20), noise(400, 4)).unwrap();
    write_npy(place.file("wide.npy"), &rows).unwrap();
}

/// The credit that a command wrote to `out`.
fn values(place: &Place, line: &str) -> ArrayD<f64> {
    let done = place.run(&format!("{line} -o out --force"));
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    let file = std::fs::File::open(place.file("out/explanations.npz")).unwrap();
    let mut npz = NpzReader::new(file).unwrap();
    npz.by_name("values").or_else(|_| npz.by_name("values.npy")).unwrap()
}

fn said(place: &Place, line: &str) -> String {
    let done = place.run(line);
    assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stderr).into_owned()
}

#[test]
fn the_first_of_equal_pixels_under_a_max_pool_has_the_gradient() {
    let place = Place::new();
    let mut b = Builder::new("pool");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(1), Dim::Known(2), Dim::Known(2)]);
    let pooled = b.op_with("MaxPool", &[&x], &[("kernel_shape", Attribute::Ints(vec![2, 2]))]);
    let y = b.reshape(&pooled, &[-1, 1]);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file("pool.onnx")).unwrap();
    write_npy(place.file("black.npy"), &Array4::<f32>::zeros((1, 1, 2, 2))).unwrap();
    for engine in ["rten", "ort"] {
        let line = format!("explain -m pool.onnx black.npy --method gradient --engine {engine}");
        assert_eq!(values(&place, &line).into_raw_vec_and_offset().0, [1.0, 0.0, 0.0, 0.0], "{engine}");
    }
}

#[test]
fn numbers_below_zero_are_answered_with_what_is_allowed() {
    let place = simple();
    for (line, answer) in [
        ("--steps -3", "it is a whole number from 1 on"),
        ("--steps 0", "an integral needs at least one"),
        ("--method smoothgrad --samples -3", "it is a whole number from 1 on"),
        ("--limit -1", "it is a whole number from 1 on"),
        ("--limit 0", "no rows would be left"),
        ("--max-gradients -1", "it is a whole number from 1 on"),
        ("--tolerance -1", "it must be positive and finite"),
        ("--map-tolerance -1", "it must be positive and finite"),
        ("--target -1", "-1"),
    ] {
        let told = place.refused(&format!("explain -m model.onnx rows.npy {line}"));
        assert!(told.contains(answer), "{line}\n{told}");
        assert!(!told.contains("use '-- "), "{line}\n{told}");
    }
}

#[test]
fn a_number_is_a_constant_baseline_and_other_words_list_the_choices() {
    let place = simple();
    write_npy(place.file("half.npy"), &Array2::from_elem((1, 2), 0.5f32)).unwrap();
    let line = |baseline: &str| format!("explain -m model.onnx rows.npy --baseline {baseline}");
    assert_eq!(values(&place, &line("0.5")), values(&place, &line("half.npy")));
    assert_ne!(values(&place, &line("-0.5")), values(&place, &line("0.5")));
    let told = place.refused(&line("median"));
    assert!(
        told.contains("there is no baseline 'median'\nhint: say zero, a number such as 0.5, mean"),
        "{told}"
    );
    // What was made from a number can be verified.
    said(&place, &format!("{} -o out --force", line("0.5")));
    said(&place, "verify out");
}

#[test]
fn long_names_find_their_method() {
    let place = simple();
    for name in ["integrated-gradients", "IntegratedGradients", "Saliency", "InputXGradient"] {
        said(&place, &format!("explain -m model.onnx rows.npy --method {name}"));
    }
}

#[test]
fn inputs_in_other_units_than_the_background_are_told() {
    let place = Place::new();
    place.image_model("images.onnx");
    let images = Array4::from_shape_vec((4, 1, 8, 8), noise(256, 5)).unwrap().mapv(f32::abs);
    write_npy(place.file("train.npy"), &images).unwrap();
    write_npy(place.file("bytes.npy"), &(&images * 255.0)).unwrap();
    let line = |inputs| format!("explain -m images.onnx {inputs} --background train.npy --baseline mean");
    assert!(said(&place, &line("bytes.npy")).contains("notice: the inputs do not look like the background"));
    assert!(!said(&place, &line("train.npy")).contains("do not look like"));
}

#[test]
fn methods_that_promise_nothing_have_no_pass() {
    let place = simple();
    for method in ["gradient", "gradient-input"] {
        let found = place.json(&format!("explain -m model.onnx rows.npy --method {method} --format json"));
        assert_eq!(found[0]["verdict"]["kind"], "no-check");
    }
}

#[test]
fn the_map_has_an_error_of_its_own_that_is_estimated_well() {
    let place = Place::new();
    for activation in ["Relu", "Tanh"] {
        network(&place, "net.onnx", activation);
        let run = |flags: &str| values(&place, &format!("explain -m net.onnx wide.npy --target 0 {flags}"));
        let converged = run("--rule midpoint --steps 4000");
        let norm = |a: &ArrayD<f64>, i| {
            let row: Array1<f64> = a.slice(s![i, ..]).to_owned();
            row.dot(&row).sqrt()
        };
        for flags in ["--tolerance 1e-2", "--tolerance 1e-3", "--map-tolerance 5e-3"] {
            let found = run(flags);
            let certificates = place.read("out/explanations.jsonl");
            let (mut claimed, mut true_squares) = (0.0, 0.0);
            for (i, line) in certificates.lines().enumerate() {
                let certificate: serde_json::Value = serde_json::from_str(line).unwrap();
                let error = certificate["path"]["relative_map_error"].as_f64().unwrap();
                assert_eq!(certificate["format"], 3);
                if flags.starts_with("--map") {
                    assert!(error <= 5e-3 && certificate["verdict"]["kind"] == "pass", "{line}");
                }
                claimed += error * error;
                true_squares += (norm(&(&found - &converged), i) / norm(&converged, i)).powi(2);
            }
            assert_eq!(found.len_of(Axis(0)), 20);
            // Over 20 rows the root mean squares agree on kinks; on smooth models the estimate is a bound.
            let ratio = (claimed / true_squares).sqrt();
            let most = if activation == "Relu" { 1.6 } else { f64::INFINITY };
            assert!((0.6..most).contains(&ratio), "{activation} {flags}: {ratio}");
        }
    }
    // Where gradients run out, the number has digits, and the flag exists.
    network(&place, "net.onnx", "Relu");
    let line = "explain -m net.onnx wide.npy --limit 1 --target 0 --map-tolerance 1e-6 --max-gradients 100";
    let done = place.run(line);
    let table = String::from_utf8_lossy(&done.stdout);
    assert!(table.contains("the map is about") && table.contains("1.0e-4 %"), "{table}");
    assert!(table.contains("--max-gradients"), "{table}");
    let reasons = place.json(&format!("{line} --format json"))[0]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("allow more gradients") && !reasons.contains("--"), "{reasons}");
}

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

/// A training that takes no time.
const SMALL: &str = "--width 8 --blocks 1 --batch 16 --calibration-rows 0";

fn table() -> Place {
    let place = Place::new();
    let x = noise(400, 6);
    let rows: String = x.chunks(2).map(|r| format!("{},{}\n", r[0], r[0] * r[1])).collect();
    place.write("data.csv", &format!("a,b\n{rows}"));
    place
}

#[test]
fn a_finished_run_is_trained_further_and_what_differs_is_named() {
    let place = table();
    said(&place, &format!("train data.csv -o run --steps 5 {SMALL}"));
    let told = place.refused(&format!("train data.csv -o run --resume --steps 4 {SMALL}"));
    assert!(told.contains("steps"), "{told}");
    said(&place, &format!("train data.csv -o run --resume --steps 9 {SMALL}"));
    let run: serde_json::Value = serde_json::from_str(&place.read("run/run.json")).unwrap();
    assert_eq!(run["training"]["steps"], 9);
    let last = place.read("run/metrics.jsonl").lines().last().unwrap().to_string();
    assert!(last.contains("\"step\":9"), "{last}");
    let told =
        place.refused(&format!("train data.csv -o run --resume --steps 12 --learning-rate 0.1 {SMALL}"));
    assert!(told.contains("learning rate"), "{told}");
}

#[test]
fn training_is_given_minutes() {
    let place = table();
    let told = said(&place, &format!("train data.csv -o run --minutes 0.02 {SMALL}"));
    assert!(told.contains(" steps fit into 0.02 minutes"), "{told}");
    assert!(place.file("run/flow.onnx").exists() && !place.file("run/measuring").exists());
    let told = place.refused(&format!("train data.csv -o other --minutes -1 {SMALL}"));
    assert!(told.contains("it is a number of minutes above 0"), "{told}");
}

#[test]
fn inspect_judges_the_output_that_explain_takes() {
    let place = Place::new();
    let mut b = Builder::new("two");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3)]);
    let label = b.op_with("ArgMax", &[&x], &[("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))]);
    let score = b.op("Tanh", &[&x]);
    let stepped = b.op("Floor", &[&x]);
    b.output("label", &label);
    b.output("score", &score);
    b.output("stepped", &stepped);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file("two.onnx")).unwrap();
    let text = |line: &str| String::from_utf8_lossy(&place.run(line).stdout).into_owned();
    let found = text("inspect two.onnx");
    assert!(found.contains("gradient      yes, of the output 'score'"), "{found}");
    let found = text("inspect two.onnx --output-name stepped");
    assert!(found.contains(", of the output 'stepped'"), "{found}");
    let told = place.refused("inspect two.onnx --output-name logits");
    assert!(told.contains("no output 'logits'"), "{told}");
}
