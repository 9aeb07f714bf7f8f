//! Verdicts, and how far a map is from the converged one.

use std::collections::BTreeSet;

use ndarray::{Array1, ArrayD, Axis, s};

use crate::place::Place;
use crate::{flow, network, said, simple, values};

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
fn a_reference_that_the_model_likes_better_is_told() {
    let place = simple();
    // The model is a sum with positive weights, and the flow comes from above.
    flow(&place, "down.onnx", -3.0);
    let line = "explain -m model.onnx rows.npy -f down.onnx";
    let found = place.json(&format!("{line} --format json"));
    let reasons = found[0]["verdict"]["reasons"].to_string();
    assert!(reasons.contains("the model scores the reference higher than the input"), "{reasons}");
    said(&place, &format!("{line} -o out"));
    assert!(place.read("out/report.html").contains("the model scores the reference higher than the input"));
    flow(&place, "up.onnx", 3.0);
    let found = place.json("explain -m model.onnx rows.npy -f up.onnx --format json");
    assert!(!found[0]["verdict"].to_string().contains("higher than the input"), "{}", found[0]["verdict"]);
}

#[test]
fn small_limits_have_digits_and_the_advice_does_not_exclude_itself() {
    let place = Place::new();
    network(&place, "net.onnx", "Relu");
    let line = "explain -m net.onnx wide.npy --limit 1 --target 0 --tolerance 1e-6 --max-gradients 50";
    let reasons = String::from_utf8_lossy(&place.run(line).stdout).into_owned();
    assert!(reasons.contains("above the limit of 1.0e-4 %"), "{reasons}");
    assert!(reasons.contains("--max-gradients") && !reasons.contains("take more steps"), "{reasons}");
}

/// On kinks the adaptive rule is as near to the converged map as Captum's default with as many gradients. On smooth models it
/// is within its tolerance; Gauss-Legendre is nearer there.
#[test]
fn the_map_is_as_near_as_gauss_legendres_with_as_many_gradients() {
    let place = Place::new();
    for activation in ["Relu", "Tanh"] {
        network(&place, "net.onnx", activation);
        let run = |flags: &str| values(&place, &format!("explain -m net.onnx wide.npy --target 0 {flags}"));
        let converged = run("--rule midpoint --steps 4000");
        let ours = run("");
        let counts: Vec<u64> = place.read("out/explanations.jsonl").lines().map(gradients).collect();
        let mut theirs = ours.clone();
        for count in counts.iter().collect::<BTreeSet<_>>() {
            let maps = run(&format!("--rule gauss-legendre --steps {count}"));
            for row in (0..counts.len()).filter(|&row| counts[row] == *count) {
                theirs.slice_mut(s![row, ..]).assign(&maps.slice(s![row, ..]));
            }
        }
        let error = |maps: &ArrayD<f64>| -> f64 {
            let rows = maps.axis_iter(Axis(0)).zip(converged.axis_iter(Axis(0)));
            let sizes = rows.map(|(a, b)| ((&a - &b).mapv(|v| v * v).sum() / b.mapv(|v| v * v).sum()).sqrt());
            sizes.sum::<f64>() / counts.len() as f64
        };
        let (ours, theirs) = (error(&ours), error(&theirs));
        let most = if activation == "Relu" { theirs } else { 1e-3 };
        assert!(ours <= most, "{activation}: {ours:e}, Gauss-Legendre {theirs:e}");
    }
}

fn gradients(certificate: &str) -> u64 {
    let certificate: serde_json::Value = serde_json::from_str(certificate).unwrap();
    certificate["gradient_evaluations"].as_u64().unwrap()
}
