//! `brenier shift`, as typed.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::fmt::Write;

use ndarray::Array4;
use serde_json::Value;

use self::place::{Place, linear};

/// Numbers that look drawn: normal, from a count.
fn normal(i: usize) -> f64 {
    let uniform = |k: usize| {
        let mut x = (k as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    (-2.0 * uniform(2 * i).max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * uniform(2 * i + 1)).cos()
}

/// Rows of three dependent normal columns; income is moved.
fn rows(count: usize, seed: usize, moved: f64) -> Vec<[f32; 3]> {
    let row = |i: usize| {
        let z = |k: usize| normal(seed * 1_000_000 + 3 * i + k);
        let (income, debt) = (z(0), 0.6 * z(0) + 0.8 * z(1));
        [(income + moved) as f32, debt as f32, z(2) as f32]
    };
    (0..count).map(row).collect()
}

fn csv(header: &str, rows: &[[f32; 3]], order: [usize; 3]) -> String {
    let line = |row: &[f32; 3]| format!("{},{},{}\n", row[order[0]], row[order[1]], row[order[2]]);
    format!("{header}\n{}", rows.iter().map(line).collect::<String>())
}

fn mean(rows: &[[f32; 3]], column: usize) -> f64 {
    rows.iter().map(|row| f64::from(row[column])).sum::<f64>() / rows.len() as f64
}

/// A place with `model.onnx`, the linear score `2 income - debt + 0.5 age`, and last year's and this year's rows.
fn two_years() -> (Place, [f64; 3]) {
    let place = Place::new();
    linear(&[2.0, -1.0, 0.5], 1).save(place.file("model.onnx")).unwrap();
    let (a, b) = (rows(400, 1, 0.0), rows(330, 2, 0.7));
    place.write("last.csv", &csv("income,debt,age", &a, [0, 1, 2]));
    // Another order of columns: bound by name.
    place.write("this.csv", &csv("age,income,debt", &b, [2, 0, 1]));
    let weights = [2.0, -1.0, 0.5];
    (place, [0, 1, 2].map(|j| weights[j] * (mean(&b, j) - mean(&a, j))))
}

fn credit(columns: &Value, name: &str) -> f64 {
    let column = columns.as_array().unwrap().iter().find(|column| column["name"] == name);
    column.unwrap_or_else(|| panic!("no {name} in {columns}"))["credit"]["value"].as_f64().unwrap()
}

#[test]
fn a_linear_score_between_normal_populations_has_the_exact_answer() {
    let (place, exact) = two_years();
    let found = place.json("shift last.csv this.csv -m model.onnx --format json");
    let shift = &found["result"];
    for (name, exact) in ["income", "debt", "age"].into_iter().zip(exact) {
        let found = credit(&shift["columns"], name);
        assert!((found - exact).abs() < 1e-6, "{name}: {found} {exact}");
    }
    let change = shift["change"]["value"].as_f64().unwrap();
    assert!((change - exact.iter().sum::<f64>()).abs() < 1e-6, "{change}");
    assert!(shift["residual"].as_f64().unwrap() < 1e-6);
    assert_eq!(found["columns"][0]["name"], "income");
    assert!(found["caveat"].as_str().unwrap().contains("not what caused"));
    // The same bytes again, and with one worker.
    let line = "shift last.csv this.csv -m model.onnx --format json";
    let [first, again] =
        [line.to_string(), format!("{line} --workers 1")].map(|line| place.run(&line).stdout);
    assert!(!first.is_empty() && first == again);
    // Another seed cuts other batches: other intervals, the same credit.
    let other = place.json(&format!("{line} --seed 5"));
    assert_ne!(
        other["result"]["columns"][0]["credit"]["interval"],
        shift["columns"][0]["credit"]["interval"]
    );
    assert!((credit(&other["result"]["columns"], "income") - exact[0]).abs() < 1e-6);
}

#[test]
fn what_is_printed_and_written() {
    let (place, _) = two_years();
    place.check("shift", "shift last.csv this.csv -m model.onnx -o out");
    let json: Value = serde_json::from_str(&place.read("out/shift.json")).unwrap();
    assert_eq!(json["result"]["kind"], "whole");
    let table = place.read("out/shift.csv");
    assert_eq!(table.lines().count(), 4, "{table}");
    let income: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
    assert_eq!((income[0], income[1], income[6]), ("all", "income", "true"));
    assert!((income[2].parse::<f64>().unwrap() - credit(&json["result"]["columns"], "income")).abs() < 1e-12);
    let chart = place.read("out/shift.svg");
    assert!(chart.starts_with("<svg") && chart.contains(">income *<") && chart.contains("moved"), "{chart}");
    // What is there is not replaced unasked.
    let message = place.refused("shift last.csv this.csv -m model.onnx -o out");
    assert!(message.contains("shift.json exists already\nhint: "), "{message}");
    assert!(place.run("shift last.csv this.csv -m model.onnx -o out --force -q").status.success());
    // Two classes of one labelled file.
    let (a, b) = (rows(60, 1, 0.0), rows(60, 2, 3.0));
    let mut both = String::from("income,debt,age,approved\n");
    for (rows, class) in [(&a, "no"), (&b, "yes")] {
        rows.iter().for_each(|r| writeln!(both, "{},{},{},{class}", r[0], r[1], r[2]).unwrap());
    }
    place.write("both.csv", &both);
    let line = "shift both.csv --label approved --from-class no --to-class yes -m model.onnx --format json";
    let found = place.json(line);
    assert_eq!(found["result"]["from"]["name"], "no");
    let exact = 2.0 * (mean(&b, 0) - mean(&a, 0));
    assert!((credit(&found["result"]["columns"], "income") - exact).abs() < 1e-6);
    let few = place.json(&format!("{line} --limit 30"));
    assert_eq!((&few["result"]["from"]["rows"], &few["result"]["to"]["rows"]), (&30.into(), &30.into()));
    place.check("shift-same", "shift last.csv last.csv -m model.onnx");
}

/// `f = 2 x + 3 [red]`: groups have other scores, and their sizes change.
#[test]
fn subgroups_and_their_sizes_sum_to_the_change() {
    let place = Place::new();
    linear(&[2.0, 3.0, 0.0], 1).save(place.file("model.onnx")).unwrap();
    let table = |count: usize, red: usize, moved: f64, seed: usize| {
        let mut text = String::from("x,colour,shop\n");
        for i in 0..count {
            let colour = if i % 10 < red { "red" } else { "blue" };
            let x = normal(seed * 100_000 + i) + if colour == "red" { moved } else { 0.0 };
            writeln!(text, "{},{colour},{}", x as f32, if i % 2 == 0 { "north" } else { "south" }).unwrap();
        }
        text
    };
    place.write("a.csv", &table(300, 2, 0.0, 1));
    place.write("b.csv", &table(300, 5, 1.0, 2));
    // The features are x, colour=blue, colour=red: the weights in this order.
    linear(&[2.0, 0.0, 3.0], 1).save(place.file("model.onnx")).unwrap();
    place.check("shift-by", "shift a.csv b.csv -m model.onnx --drop shop --by colour");
    let found = place.json("shift a.csv b.csv -m model.onnx --drop shop --by colour --format json");
    let result = &found["result"];
    let number = |value: &Value| value["value"].as_f64().unwrap();
    let (change, within, sizes) =
        (number(&result["whole"]["change"]), number(&result["within"]), number(&result["sizes"]));
    assert!((change - within - sizes).abs() < 1e-9, "{change} {within} {sizes}");
    let columns = &result["whole"]["columns"];
    let credit_sum: f64 = ["x", "colour"].map(|name| credit(columns, name)).iter().sum();
    assert!((credit_sum + sizes - change).abs() < 1e-5, "{credit_sum} {sizes} {change}");
    // Within a group nobody changes colour.
    assert_eq!(credit(columns, "colour"), 0.0);
    let groups = result["groups"].as_array().unwrap();
    let of_groups: f64 = groups.iter().map(|group| number(&group["within"]) + number(&group["sizes"])).sum();
    assert!((of_groups - change).abs() < 1e-9);
    let red = groups.iter().find(|group| group["name"] == "red").unwrap();
    assert!((red["share_from"].as_f64().unwrap() - 0.2).abs() < 1e-12 && red["share_to"] == 0.5);
    let own = credit(&red["shift"]["columns"], "x");
    assert!((own - 2.0).abs() < 0.8 && (own - number(&red["shift"]["change"])).abs() < 1e-5, "{own}");
    // By a column that the model does not see.
    let found = place.json("shift a.csv b.csv -m model.onnx --drop shop --by shop --format json");
    let names: Vec<&Value> =
        found["result"]["groups"].as_array().unwrap().iter().map(|g| &g["name"]).collect();
    assert_eq!(names, ["north", "south"]);
    // Numbers are no groups, and a column that is not there is named.
    let message = place.refused("shift a.csv b.csv -m model.onnx --drop shop --by x");
    assert!(message.contains("'x'") && message.contains("holds numbers"), "{message}");
    let message = place.refused("shift a.csv b.csv -m model.onnx --drop shop --by size");
    assert!(message.contains("no column 'size'"), "{message}");
}

#[test]
fn images_have_a_mean_map_and_their_strongest_pairs() {
    let place = Place::new();
    place.image_model("model.onnx");
    for (name, bright) in [("a.npy", 0.2), ("b.npy", 0.6)] {
        let images = Array4::from_shape_fn((40, 1, 8, 8), |(n, _, h, w)| {
            let noise = 0.1 * (normal(1000 * n + 8 * h + w + (bright * 1e6) as usize)) as f32;
            if h < 4 { bright + noise } else { 0.3 + noise }
        });
        ndarray_npy::write_npy(place.file(name), &images).unwrap();
    }
    let done = place.run("shift a.npy b.npy -m model.onnx --target 1 -o out");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let json: Value = serde_json::from_str(&place.read("out/shift.json")).unwrap();
    let columns = json["result"]["columns"].as_array().unwrap();
    assert_eq!(columns.len(), 64);
    let part = |top: bool| -> f64 {
        let half = if top { &columns[..32] } else { &columns[32..] };
        half.iter().map(|column| column["credit"]["value"].as_f64().unwrap()).sum()
    };
    assert!(part(true) > 20.0 * part(false).abs(), "{} {}", part(true), part(false));
    let map = std::fs::read(place.file("out/mean-map.png")).unwrap();
    assert!(map.starts_with(b"\x89PNG"));
    let pairs = place.read("out/examples.svg");
    assert_eq!(pairs.matches("change +").count() + pairs.matches("change -").count(), 8, "eight pairs");
    assert_eq!(json["result"]["examples"].as_array().unwrap().len(), 8);
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let (place, _) = two_years();
    place.write("empty.csv", "income,debt,age\n");
    place.write("one.csv", "income,debt,age\n1,2,3\n");
    place.write("two.csv", "income,debt\n1,2\n3,4\n");
    place.write("other.csv", "income,debt,height\n1,2,3\n3,4,5\n");
    place.write("words.csv", "income,debt,age\n1,2,3\n4,old,5\n3,4,5\n");
    let labelled: String = (0..40).map(|i| format!("{i},{},{},yes\n", i % 7, i % 5)).collect();
    place.write("labelled.csv", &format!("income,debt,age,approved\n{labelled}"));
    linear(&[2.0, -1.0, 0.5], 3).save(place.file("three.onnx")).unwrap();
    let classes = "--label approved --from-class yes --to-class";
    for (line, told) in [
        ("shift last.csv empty.csv -m model.onnx".to_string(), "empty.csv has no examples"),
        ("shift last.csv one.csv -m model.onnx".to_string(), "population 'one.csv' has 1 rows"),
        (
            "shift last.csv two.csv -m model.onnx".to_string(),
            "column 'age' of population 'last.csv' is not there in 'two.csv'",
        ),
        (
            "shift last.csv other.csv -m model.onnx".to_string(),
            "column 'age' of population 'last.csv' is not there in 'other.csv'",
        ),
        (
            "shift last.csv words.csv -m model.onnx".to_string(),
            "line 3, column 'debt': 'old' is text in a column of numbers",
        ),
        ("shift last.csv nowhere.csv -m model.onnx".to_string(), "there is no nowhere.csv"),
        ("shift last.csv -m model.onnx".to_string(), "one population is given, and two are compared"),
        (format!("shift last.csv this.csv {classes} no -m model.onnx"), "divide one file, and 2 are given"),
        (format!("shift labelled.csv {classes} no -m model.onnx"), "has no class 'no'"),
        (
            "shift last.csv this.csv --drop age -m model.onnx".to_string(),
            "has examples of shape [2], but the model takes [3]",
        ),
        ("shift last.csv this.csv -m three.onnx".to_string(), "the model has 3 outputs"),
        ("shift last.csv this.csv -m three.onnx --target 3".to_string(), "target 3 is out of range"),
        (
            "shift last.csv this.csv -m three.onnx --classes a,b,c --target d".to_string(),
            "there is no class 'd'",
        ),
        ("shift last.csv this.csv -m model.onnx --tolerance 0".to_string(), "the tolerance 0 is not above 0"),
        (
            "shift last.csv this.csv -m model.onnx --batches 1".to_string(),
            "there must be two batches at the least",
        ),
        ("shift last.csv this.csv -m model.onnx --confidence 95".to_string(), "a confidence between 0 and 1"),
        ("shift last.csv this.csv -m argmax.onnx".to_string(), "has no gradient"),
    ] {
        if line.contains("argmax") {
            let argmax = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/broken/argmax_path.onnx");
            std::fs::copy(argmax, place.file("argmax.onnx")).unwrap();
        }
        let message = place.refused(&line);
        assert!(message.contains(told), "{line}\n{message}");
        assert!(message.contains("hint: "), "{line}\n{message}");
        assert_eq!(message.matches("error: ").count(), 1, "{message}");
    }
    let asked = place.refused("shift last.csv this.csv -m three.onnx --classes low,middle,high");
    assert!(asked.contains("--target: low, middle, high"), "{asked}");
}

#[test]
fn what_must_be_known_before_the_numbers_is_said() {
    let place = Place::new();
    linear(&[2.0, -1.0, 0.5], 1).save(place.file("model.onnx")).unwrap();
    let said = |a: &[[f32; 3]], b: &[[f32; 3]]| -> String {
        place.write("a.csv", &csv("income,debt,age", a, [0, 1, 2]));
        place.write("b.csv", &csv("income,debt,age", b, [0, 1, 2]));
        let done = place.run("shift a.csv b.csv -m model.onnx -q");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let text = said(&rows(60, 1, 0.0), &rows(60, 2, 20.0));
    assert!(text.contains("do not overlap in column 'income'"), "{text}");
    assert!(text.contains("60 rows are few"), "{text}");
    let still = |rows: Vec<[f32; 3]>| rows.into_iter().map(|[a, b, _]| [a, b, 7.0]).collect::<Vec<_>>();
    let text = said(&still(rows(60, 1, 0.0)), &still(rows(60, 2, 1.0)));
    assert!(text.contains("no row differs from another in 'age'"), "{text}");
    let text = said(&rows(2, 1, 0.0), &rows(2, 2, 1.0));
    assert!(text.contains("2 rows are too few for intervals, which need 20"), "{text}");
    assert!(text.contains("more features (3) than rows (2)"), "{text}");
    let text = said(&rows(60, 1, 0.0), &rows(60, 1, 0.0));
    assert!(text.contains("the same rows: nothing moved"), "{text}");
    let text = said(&rows(400, 1, 0.0), &rows(400, 2, 0.0));
    assert!(text.contains("may not have moved at all"), "{text}");
}
