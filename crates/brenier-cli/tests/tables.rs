//! Tables as they come: columns by name, categories by what the model knows, and fifty hostile files.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use onnx_grad::Model;
use serde_json::Value;

use self::place::{Place, linear};

/// Features of the model: age, city=Lyon, city=Oslo, city=Pisa, debt.
const WEIGHTS: [f32; 5] = [1.0, 10.0, 20.0, 30.0, -2.0];

const TRAIN: &str = "age,city,debt,loan\n20,Oslo,1.5,yes\n30,Lyon,2.5,no\n40,Pisa,3.5,yes\n50,Oslo,4.5,no\n";

/// Age 33, Oslo, debt 4: 33 + 20 - 8.
const SCORE: f64 = 45.0;

fn place() -> Place {
    let place = Place::new();
    linear(&WEIGHTS, 1).save(place.file("model.onnx")).unwrap();
    place.write("train.csv", TRAIN);
    place
}

/// What one row scores, and what was said on the way.
fn score(place: &Place, line: &str) -> (Vec<f64>, String) {
    let done = place.run(&format!("{line} --format json"));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{line}\n{said}");
    let found: Value = serde_json::from_slice(&done.stdout).unwrap();
    (found.as_array().unwrap().iter().map(|c| c["score"].as_f64().unwrap()).collect(), said)
}

/// Every way in which the columns of the model can be known.
const SOURCES: [&str; 5] = ["background", "schema", "metadata", "beside", "names"];

/// The flags that go with a source, after its files are there.
fn known_by(place: &Place, source: &str) -> &'static str {
    let with = |key: &str, value: &str| {
        let mut model: Model = linear(&WEIGHTS, 1);
        model.metadata.insert(key.into(), value.into());
        model.save(place.file("model.onnx")).unwrap();
    };
    match source {
        "background" => "--label loan --baseline mean --background train.csv",
        "schema" => "--label loan --schema train.csv",
        "metadata" => {
            let city = r#"{"name":"city","kind":{"kind":"categorical","values":["Lyon","Oslo","Pisa"]}}"#;
            let number = |name: &str| format!(r#"{{"name":"{name}","kind":{{"kind":"numeric"}}}}"#);
            with("brenier.columns", &format!("[{},{city},{}]", number("age"), number("debt")));
            ""
        }
        "names" => {
            with("feature_names", r#"["age","city=Lyon","city=Oslo","city=Pisa","debt"]"#);
            ""
        }
        _ => {
            let text = "columns = [\"age\", { name = \"city\", values = [\"Lyon\", \"Oslo\", \"Pisa\"] }, \"debt\"]\n";
            place.write("model.toml", text);
            ""
        }
    }
}

#[test]
fn rows_are_bound_by_name_whoever_knows_the_columns() {
    for source in SOURCES {
        let place = place();
        let flags = known_by(&place, source);
        let explain = |text: &str, more: &str| {
            place.write("rows.csv", text);
            score(&place, &format!("explain -m model.onnx rows.csv {flags} {more}"))
        };
        let refused = |text: &str| {
            place.write("rows.csv", text);
            place.refused(&format!("explain -m model.onnx rows.csv {flags}"))
        };
        // One row alone, in the order of the model and in another; with and without the label.
        let (right, said) = explain("age,city,debt\n33,Oslo,4\n", "");
        assert_eq!(right, [SCORE], "{source}");
        assert_eq!(
            said.matches("notice").count(),
            said.matches("a row of zeros").count(),
            "{source}: {said}"
        );
        assert_eq!(explain("debt,age,city\n4,33,Oslo\n", "").0, [SCORE], "{source}");
        let (same, said) = explain("loan,debt,shoes,city,age\nyes,4,44,Oslo,33\n", "--drop loan");
        assert_eq!(same, [SCORE], "{source}");
        assert!(
            said.contains(
                "notice: the model does not take these columns of rows.csv, which are ignored: shoes\n"
            ),
            "{said}"
        );
        // Rows in which categories happen not to occur.
        let two = "age,city,debt\n33,Oslo,4\n33,Oslo,4\n33,Lyon,4\n";
        assert_eq!(explain(two, "--limit 2").0, [SCORE, SCORE], "{source}");
        let message = refused("age,city\n33,Oslo\n");
        assert!(
            message.contains("rows.csv has no column 'debt'; its columns are age, city\nhint: "),
            "{message}"
        );
        let message = refused("age,city,debt\n33,Oslo,4\n33,Bonn,4\n");
        let told = "rows.csv, line 3, column 'city': 'Bonn' is none of the values Lyon, Oslo, Pisa\nhint: ";
        assert!(message.contains(told), "{message}");
        let message = refused("age,city,debt\n33,Oslo,4\nold,Oslo,4\n");
        assert!(
            message.contains("rows.csv, line 3, column 'age': 'old' is text in a column of numbers\nhint: "),
            "{message}"
        );
        let message = refused("age,city,debt\n33,,4\n");
        assert!(message.contains("line 2, column 'city': the cell is empty\nhint: "), "{message}");
    }
}

#[test]
fn two_tables_are_explained_by_the_columns_of_the_first() {
    let place = place();
    linear(&[1.0, -2.0], 1).save(place.file("model.onnx")).unwrap();
    place.write("a.csv", "age,debt\n33,4\n");
    place.write("b.csv", "debt,age\n4,33\n");
    let (found, said) = score(&place, "explain -m model.onnx a.csv b.csv");
    assert_eq!(found, [25.0, 25.0]);
    // Nobody confirms the names: said in one line, once.
    let told = "notice: nothing says which columns the model takes, so those of a.csv are taken in their order (age, debt); \
                --schema TABLE binds them by name\n";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert_eq!(said.replace("notice: ig compares", "").matches("notice").count(), 1, "{said}");
}

#[test]
fn columns_that_do_not_make_the_model_are_told() {
    let place = place();
    place.write("rows.csv", "age,city,debt\n33,Oslo,4\n");
    // The label is a column like any other unless it is named.
    let message = place.refused("explain -m model.onnx rows.csv --schema train.csv");
    assert!(
        message.contains("the columns of train.csv are 7 features, but the model takes 5\nhint: "),
        "{message}"
    );
    ndarray_npy::write_npy(place.file("train.npy"), &ndarray::Array2::<f32>::zeros((3, 5))).unwrap();
    let message = place.refused("explain -m model.onnx rows.csv --schema train.npy");
    assert!(message.contains("train.npy is no table with names of columns\nhint: "), "{message}");
    // Arrays have no names, and a model that has some takes them as they are.
    known_by(&place, "metadata");
    ndarray_npy::write_npy(place.file("rows.npy"), &ndarray::array![[33.0_f32, 0.0, 1.0, 0.0, 4.0]]).unwrap();
    assert_eq!(score(&place, "explain -m model.onnx rows.npy").0, [SCORE]);
    assert_eq!(
        score(&place, "explain -m model.onnx rows.npy --baseline mean --background train.npy").0,
        [SCORE]
    );
    // `evaluate` and `shift` bind in the same way.
    let rows: String = (0..30).map(|i| format!("{}.5,{},Oslo\n", i % 7, 20 + i)).collect();
    place.write("many.csv", &format!("debt,age,city\n{rows}"));
    let (many, _) = score(&place, "explain -m model.onnx many.csv --limit 1");
    assert_eq!(many, [20.0 + 20.0 - 1.0]);
    let moved: String = (0..30).map(|i| format!("{},{}.5,Oslo\n", 21 + i, i % 7)).collect();
    place.write("moved.csv", &format!("age,debt,city\n{moved}"));
    let found = place.json("shift many.csv moved.csv -m model.onnx --format json");
    assert!((found["result"]["change"]["value"].as_f64().unwrap() - 1.0).abs() < 1e-5, "{found}");
    assert_eq!(found["columns"][1]["kind"]["values"][2], "Pisa");
    let done = place
        .run("evaluate -m model.onnx many.csv --methods gradient,ig --metrics completeness-residual -n 4 -q");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_category_is_one_column_in_the_text_and_in_the_report() {
    let place = place();
    place.write("rows.csv", "debt,age,city\n4,33,Oslo\n2,50,Pisa\n");
    let done = place.run("explain -m model.onnx rows.csv --label loan --schema train.csv -o out");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(
        text.contains("      0  ig: age = 33 +33.0000, city = Oslo +20.0000, debt = 4 -8.0000\n"),
        "{text}"
    );
    assert!(
        text.contains("      1  ig: age = 50 +50.0000, city = Pisa +30.0000, debt = 2 -4.0000\n"),
        "{text}"
    );
    let report: Value = serde_json::from_str(&place.read("out/report.json")).unwrap();
    assert_eq!(report["columns"][1]["name"], "city");
    assert_eq!(report["columns"][1]["kind"]["values"], serde_json::json!(["Lyon", "Oslo", "Pisa"]));
    let page = place.read("out/report.html");
    assert!(page.contains(r#""features":["age","city","debt"]"#), "the page has features, not columns");
    assert!(
        page.contains(r#""levels":[null,"Oslo",null]"#) && page.contains(r#""levels":[null,"Pisa",null]"#)
    );
    // Made anew from the folder it says the same.
    assert!(place.run("report out -o again.html").status.success());
    assert!(place.read("again.html").contains(r#""levels":[null,"Oslo",null]"#));
    // Without a folder the same lines.
    let again = place.run("explain -m model.onnx rows.csv --label loan --schema train.csv");
    assert!(String::from_utf8_lossy(&again.stdout).contains("city = Oslo +20.0000"));
}

/// No flags but the model and the table: the split, the methods and the metrics are found, and what is left out is told.
#[test]
fn evaluate_works_on_a_table_with_its_defaults() {
    let place = place();
    let rows: String = (0..20).map(|i| format!("{},Oslo,{}.5,yes\n", 20 + i, i % 7)).collect();
    place.write("rows.csv", &format!("age,city,debt,loan\n{rows}"));
    let done = place.run("evaluate -m model.onnx rows.csv --label loan --schema train.csv");
    let (said, text) = (String::from_utf8_lossy(&done.stderr), String::from_utf8_lossy(&done.stdout));
    assert!(done.status.success(), "{said}");
    assert!(said.contains("the data have no test split, so all rows are used"), "{said}");
    assert!(text.contains("deletion-zero") && text.contains("20 examples"), "{text}");
    // Methods without a path or an account: the metrics of these are left out with a line each.
    let line = "evaluate -m model.onnx rows.csv --label loan --schema train.csv --methods gradient,occlusion";
    let done = place.run(line);
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("gps: left out, the method has no path"), "{text}");
    // A metric that was asked for by name is refused still.
    let done = place.run(&format!("{line} --metrics gps"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains("the method has no path"), "{said}");
}

/// The right scores, or a part of the one sentence that is said.
enum Ends {
    Scores(&'static [f64]),
    Told(&'static str),
}

/// Files against the schema `age, city, debt` of the model's metadata.
#[test]
fn hostile_tables_are_read_right_or_refused_in_a_sentence() {
    use Ends::{Scores, Told};
    let place = place();
    known_by(&place, "metadata");
    let long = "x".repeat(100_000);
    let one = || Scores(&[SCORE]);
    let two = || Scores(&[SCORE, 39.0]);
    let cases: Vec<(&str, Vec<u8>, Ends)> = vec![
        ("plain", b"age,city,debt\n33,Oslo,4\n".to_vec(), one()),
        ("a byte order mark", b"\xef\xbb\xbfage,city,debt\n33,Oslo,4\n".to_vec(), one()),
        ("no last line break", b"age,city,debt\n33,Oslo,4".to_vec(), one()),
        ("carriage returns", b"age,city,debt\r\n33,Oslo,4\r\n".to_vec(), one()),
        ("old Macintosh lines", b"age,city,debt\r33,Oslo,4\r".to_vec(), one()),
        ("semicolons", b"age;city;debt\n33;Oslo;4\n".to_vec(), one()),
        ("tabs", b"age\tcity\tdebt\n33\tOslo\t4\n".to_vec(), one()),
        ("bars", b"age|city|debt\n33|Oslo|4\n".to_vec(), one()),
        ("spaces around cells", b" age , city , debt \n 33 , Oslo , 4 \n".to_vec(), one()),
        ("quotes", b"\"age\",\"city\",\"debt\"\n\"33\",\"Oslo\",\"4\"\n".to_vec(), one()),
        ("a delimiter in quotes", b"age,city,debt,note\n33,Oslo,4,\"a, b\"\n".to_vec(), one()),
        ("a line break in quotes", b"age,city,debt,note\n33,Oslo,4,\"a\nb\"\n17,Pisa,4,c\n".to_vec(), two()),
        ("doubled quotes", b"age,city,debt,note\n33,Oslo,4,\"say \"\"hi\"\"\"\n".to_vec(), one()),
        ("blank lines", b"\n\nage,city,debt\n\n33,Oslo,4\n\n\n17,Pisa,4\n\n".to_vec(), two()),
        ("exponents", b"age,city,debt\n3.3e1,Oslo,4E0\n".to_vec(), one()),
        ("plus signs", b"age,city,debt\n+33,Oslo,+4\n".to_vec(), one()),
        ("leading zeros", b"age,city,debt\n0033,Oslo,04.0\n".to_vec(), one()),
        ("another order", b"debt,city,age\n4,Oslo,33\n".to_vec(), one()),
        ("an index column", b",age,city,debt\n0,33,Oslo,4\n1,17,Pisa,4\n".to_vec(), two()),
        ("a date beside", b"age,city,debt,day\n33,Oslo,4,2026-11-18\n".to_vec(), one()),
        ("free text beside", format!("age,city,debt,note\n33,Oslo,4,{long}\n").into_bytes(), one()),
        ("Unicode beside", "age,city,debt,größe\n33,Oslo,4,ß→∞\n".as_bytes().to_vec(), one()),
        ("a name twice, but not one of ours", b"age,city,debt,x,x\n33,Oslo,4,1,2\n".to_vec(), Told("'x'")),
        ("one of our names twice", b"age,city,debt,age\n33,Oslo,4,44\n".to_vec(), Told("column 'age'")),
        (
            "decimal commas",
            b"age;city;debt\n33,5;Oslo;4,5\n".to_vec(),
            Told("'33,5' is text in a column of numbers"),
        ),
        (
            "thousands",
            b"age,city,debt\n33,Oslo,\"4,000\"\n".to_vec(),
            Told("'4,000' is text in a column of numbers"),
        ),
        ("a currency", b"age,city,debt\n33,Oslo,$4\n".to_vec(), Told("line 2, column 'debt': '$4' is text")),
        (
            "a percentage",
            b"age,city,debt\n33,Oslo,4%\n".to_vec(),
            Told("'4%' is text in a column of numbers"),
        ),
        ("a date for a number", b"age,city,debt\n1993-01-01,Oslo,4\n".to_vec(), Told("'1993-01-01' is text")),
        (
            "a word among numbers",
            b"age,city,debt\n33,Oslo,4\nn.a.,Oslo,4\n".to_vec(),
            Told("line 3, column 'age': 'n.a.' is text"),
        ),
        (
            "an empty number",
            b"age,city,debt\n,Oslo,4\n".to_vec(),
            Told("line 2, column 'age': the cell is empty"),
        ),
        ("NA", b"age,city,debt\nNA,Oslo,4\n".to_vec(), Told("line 2, column 'age': the cell is empty")),
        ("infinite", b"age,city,debt\ninf,Oslo,4\n".to_vec(), Told("'inf' is not a finite number")),
        ("beyond float32", b"age,city,debt\n1e300,Oslo,4\n".to_vec(), Told("'1e300' is not a finite number")),
        ("an empty category", b"age,city,debt\n33,,4\n".to_vec(), Told("column 'city': the cell is empty")),
        ("another case", b"age,city,debt\n33,oslo,4\n".to_vec(), Told("'oslo' is none of the values")),
        ("a number for a category", b"age,city,debt\n33,7,4\n".to_vec(), Told("'7' is none of the values")),
        (
            "a very long category",
            format!("age,city,debt\n33,{long},4\n").into_bytes(),
            Told("is none of the values"),
        ),
        ("a missing column", b"age,city\n33,Oslo\n".to_vec(), Told("has no column 'debt'")),
        ("another spelling", b"Age,city,debt\n33,Oslo,4\n".to_vec(), Told("has no column 'age'")),
        ("no names", b"33,1,4\n17,2,4\n".to_vec(), Told("has no column 'age'; its columns are 0, 1, 2")),
        ("only names", b"age,city,debt\n".to_vec(), Told("has no examples")),
        ("nothing", b"".to_vec(), Told("has no examples")),
        ("only a line break", b"\n".to_vec(), Told("has no examples")),
        (
            "a cell too many",
            b"age,city,debt\n33,Oslo,4,5\n".to_vec(),
            Told("line 2: 4 cells, but the first line has 3"),
        ),
        (
            "a cell too few",
            b"age,city,debt\n33,Oslo\n".to_vec(),
            Told("line 2: 2 cells, but the first line has 3"),
        ),
        ("an open quote", b"age,city,debt\n\"33,Oslo,4\n17,Pisa,4\n".to_vec(), Told("error: ")),
        ("UTF-16", b"\xff\xfea\0g\0e\0,\0".to_vec(), Told("UTF-16")),
        (
            "Latin-1 in a category",
            b"age,city,debt\n33,K\xf6ln,4\n".to_vec(),
            Told("line 2 is not text in UTF-8"),
        ),
        ("zeros", vec![0; 4000], Told("error: ")),
        (
            "a picture",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0".to_vec(),
            Told("error: "),
        ),
    ];
    assert!(cases.len() >= 50, "{}", cases.len());
    for (name, bytes, ends) in &cases {
        std::fs::write(place.file("rows.csv"), bytes).unwrap();
        let line = "explain -m model.onnx rows.csv";
        match ends {
            Scores(expected) => {
                let (found, _) = score(&place, line);
                assert_eq!(found, *expected, "{name}");
            }
            Told(told) => {
                let message = place.refused(line);
                assert!(message.contains(told), "{name}: {}", message.chars().take(600).collect::<String>());
                assert_eq!(message.matches("error: ").count(), 1, "{name}");
                assert!(message.contains("rows.csv"), "{name}: the file is not named");
                assert!(message.len() < 2000, "{name}: {} bytes are no sentence", message.len());
            }
        }
    }
    wide(&place);
}

/// A hundred thousand columns, three of which are the model's.
fn wide(place: &Place) {
    let names: String = (0..100_000).map(|i| format!(",c{i}")).collect();
    let cells = ",1".repeat(100_000);
    place.write("wide.csv", &format!("debt,age,city{names}\n4,33,Oslo{cells}\n"));
    let start = std::time::Instant::now();
    let (found, said) = score(place, "explain -m model.onnx wide.csv");
    assert_eq!(found, [SCORE]);
    assert!(said.contains("c0, c1, c2, c3, c4, c5 and 99994 more"), "{said}");
    place.write("wide.csv", &format!("debt,age,town{names}\n4,33,Oslo{cells}\n"));
    let message = place.refused("explain -m model.onnx wide.csv");
    assert!(message.contains("has no column 'city'") && message.len() < 2000, "{}", message.len());
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// Reasons of one row beside the mean of the training data: debt -3, age -2, city nothing.
const ROW: &str = "age,city,debt\n33,Oslo,4.5\n";
const MEAN: &str = "--label loan --baseline mean --background train.csv";

#[test]
fn reasons_are_the_columns_that_moved_the_score_with_both_values() {
    let place = place();
    place.write("row.csv", ROW);
    let line = format!("explain row.csv -m model.onnx {MEAN} --reasons 4");
    let found = place.json(&format!("{line} --format json"));
    assert!(found["caveat"].as_str().unwrap().contains("association, not a cause"));
    let row = &found["rows"][0];
    assert_eq!((&row["score"], &row["counterpart_score"]), (&Value::from(44.0), &Value::from(49.0)));
    assert_eq!(row["side"], "against");
    let reasons: Vec<(&str, &str, &str, i64)> = row["reasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| {
            let text = |key: &str| r[key].as_str().unwrap();
            (text("column"), text("value"), text("counterpart"), r["credit"].as_f64().unwrap().round() as i64)
        })
        .collect();
    assert_eq!(
        reasons,
        [("debt", "4.5", "3", -3), ("age", "33", "35", -2)],
        "a column without credit is no reason"
    );
    let done = place.run(&format!("{line} --sentence {{column}}:{{value}}/{{counterpart}}"));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(said.contains("1. debt:4.5/3\n") && said.contains("2. age:33/35\n"), "{said}");
    // What raises the score: nothing does.
    let found = place.json(&format!("{line} --speaking for --format json"));
    assert_eq!(found["rows"][0]["reasons"].as_array().unwrap().len(), 0);
    assert!(found["rows"][0]["remarks"][0].as_str().unwrap().contains("no column speaks"), "{found}");
}

#[test]
fn reasons_are_written_beside_the_explanations_for_every_method() {
    let place = place();
    place.write("rows.csv", "age,city,debt\n33,Oslo,4\n50,Pisa,1\n");
    let line = format!("explain rows.csv -m model.onnx {MEAN} --reasons 1 --method ig,occlusion -o out");
    let done = place.run(&line);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    for folder in ["out/ig", "out/occlusion"] {
        let table = place.read(&format!("{folder}/reasons.csv"));
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3, "{table}");
        // Age and debt have -2 each: one of them is listed, and the tie is told.
        let credit = |line: &str, before: &str| {
            let (_, credit) = line.split_once(before).unwrap_or_else(|| panic!("{table}"));
            credit.split(',').next().unwrap().parse::<f64>().unwrap()
        };
        assert!((credit(lines[1], ",against,1,age,33,35,") + 2.0).abs() < 1e-9, "{table}");
        assert!(lines[1].contains(",yes,"), "{table}");
        assert!((credit(lines[2], ",for,1,age,50,35,") - 15.0).abs() < 1e-9, "{table}");
        let all: Value = serde_json::from_str(&place.read(&format!("{folder}/reasons.json"))).unwrap();
        let remark = all["rows"][0]["remarks"][0].as_str().unwrap();
        assert_eq!(remark, "debt, which is not listed, could as well stand in the place of age");
        assert!(place.read(&format!("{folder}/reasons.txt")).contains("tied with the next"));
    }
}

#[test]
fn reasons_of_pipelines_and_of_trees() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let place = Place::new();
    place.write("rows.csv", "a,b,c,d\n0.5,3,-1,0.25\n1.5,2,0,1\n-1,4,-2,0\n");
    place.write("wide.csv", "a,b,c,d,e,f\n0.5,3,-1,0.25,1,0\n1.5,2,0,1,0,1\n-1,4,-2,0,2,-1\n");
    for (model, rows) in [("pipelines/standard_logistic.onnx", "rows"), ("trees/xgb.json", "wide")] {
        let line = format!(
            "explain {rows}.csv -m {fixtures}/{model} --schema {rows}.csv --baseline mean --background {rows}.csv \
             --method ig --reasons 2 --format json"
        );
        let found = place.json(&line);
        let mut seen = 0;
        for row in found["rows"].as_array().unwrap() {
            let change = row["score"].as_f64().unwrap() - row["counterpart_score"].as_f64().unwrap();
            let reasons = row["reasons"].as_array().unwrap();
            // Between thresholds a score of trees does not change, and then there is no reason.
            assert!((1..=2).contains(&reasons.len()) || change == 0.0, "{row}");
            seen += reasons.len();
            for reason in reasons {
                assert!(reason["credit"].as_f64().unwrap() * change > 0.0, "{row}");
                assert!(reason["counterpart"].is_string(), "{row}");
            }
        }
        assert!(seen >= 2, "{found}");
    }
    let found = place.json(&format!(
        "explain rows.csv -m {fixtures}/pipelines/standard_logistic.onnx --schema rows.csv --reasons 1 --format json"
    ));
    let target = found["rows"][0]["target"].as_str().unwrap();
    assert!(["approved", "declined"].contains(&target), "{found}");
}

#[test]
fn reasons_that_cannot_be_given_are_refused_in_one_sentence() {
    let place = place();
    place.write("row.csv", ROW);
    let line = format!("explain row.csv -m model.onnx {MEAN}");
    let cases = [
        ("--reasons 0", "--reasons is 0"),
        ("--reasons 2 --sentence {name}", "no name for the braces of a sentence 'name'"),
        ("--speaking against", "--reasons"),
    ];
    for (flags, told) in cases {
        let said = place.refused(&format!("{line} {flags}"));
        assert!(said.contains(told), "{said}");
    }
    place.image_model("image.onnx");
    let said = place.refused("explain -m image.onnx row.npy --reasons 2");
    assert!(!said.is_empty());
}

#[test]
fn a_table_at_a_glance_has_means_over_all_rows_and_cohorts() {
    let place = place();
    let rows: String =
        (0..20).map(|i| format!("{},{},{}\n", 20 + i, ["Oslo", "Pisa"][i % 2], i % 4)).collect();
    place.write("rows.csv", &format!("age,city,debt\n{rows}"));
    let done = place.run(&format!("explain rows.csv -m model.onnx {MEAN} --by city -o out"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: Value = serde_json::from_str(&place.read("out/glance.json")).unwrap();
    assert_eq!((&found["rows"], &found["by"]), (&Value::from(20), &Value::from("city")));
    // Credit of age is age - 35: from -15 to 4, and its mean size 106 / 20.
    let of = |name: &str| {
        let columns = found["columns"].as_array().unwrap();
        columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    let near = |value: &Value, truth: f64| (value.as_f64().unwrap() - truth).abs() < 1e-4;
    assert!(near(&of("age")["weight"]["mean"], (120.0 + 10.0) / 20.0), "{}", of("age"));
    assert!(near(&of("age")["lean"]["mean"], (-120.0 + 10.0) / 20.0), "{}", of("age"));
    let cohorts = found["cohorts"].as_array().unwrap();
    assert_eq!(cohorts.iter().map(|c| c["level"].as_str().unwrap()).collect::<Vec<_>>(), ["Oslo", "Pisa"]);
    let page = place.read("out/glance.html");
    assert!(page.contains("Content-Security-Policy") && page.len() < 60_000, "{}", page.len());
    let said = place.refused(&format!("explain rows.csv -m model.onnx {MEAN} --by age -o other"));
    assert!(said.contains("is age, but cohorts need one of at most 12 values"), "{said}");
}
