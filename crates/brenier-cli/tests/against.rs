//! `brenier explain --against`, as typed: why this and not that.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;

fn brenier(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brenier")).args(args).output().unwrap()
}

fn stderr(done: &Output) -> String {
    String::from_utf8_lossy(&done.stderr).into_owned()
}

/// Numbers that look random and are the same everywhere.
fn noise(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// People with a class that their weight decides, a height that goes along with it, a column that never varies, and an
/// age that has nothing to do with it.
fn people(rows: usize, classes: &[&str], mut seed: u64) -> String {
    let mut text = "height,weight,legs,age,class\n".to_string();
    for i in 0..rows {
        let class = classes[i % classes.len()];
        let weight = if class == "heavy" { 95.0 } else { 60.0 } + 20.0 * noise(&mut seed);
        let height = 140.0 + 0.4 * weight + 20.0 * noise(&mut seed);
        writeln!(text, "{height:.1},{weight:.1},2,{:.0},{class}", 40.0 + 40.0 * noise(&mut seed)).unwrap();
    }
    text
}

struct World {
    _folder: tempfile::TempDir,
    at: PathBuf,
}

impl World {
    fn file(&self, name: &str) -> String {
        self.at.join(name).to_str().unwrap().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.at.join(name), text).unwrap();
        self.file(name)
    }

    /// Explains heavy people against something; flags after it.
    fn explain(&self, more: &[&str]) -> Output {
        let (model, inputs) = (self.file("model/classifier.onnx"), self.file("heavy.csv"));
        let mut args = vec!["explain", "-m", &model, &inputs, "--label", "class", "--format", "json"];
        args.extend(more);
        brenier(&args)
    }

    fn certificates(&self, more: &[&str]) -> Vec<Value> {
        let done = self.explain(more);
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        serde_json::from_slice::<Value>(&done.stdout).unwrap().as_array().unwrap().clone()
    }

    fn refusal(&self, more: &[&str]) -> String {
        let done = self.explain(more);
        assert_ne!(done.status.code(), Some(0), "{more:?}");
        let told = stderr(&done);
        assert!(told.contains("error: "), "{told}");
        told
    }
}

/// A classifier of such people, trained once for all tests.
fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let world = World { at: folder.path().to_path_buf(), _folder: folder };
        world.write("people.csv", &people(400, &["light", "heavy"], 1));
        // A network needs every column to vary.
        let varied = people(400, &["light", "heavy"], 2).replace(",2,4", ",1,4");
        let data = world.write("train.csv", &varied);
        world.write("heavy.csv", &people(3, &["heavy"], 7));
        world.write("light.csv", &people(200, &["light"], 8));
        let run = world.file("model");
        let words = ["--label", "class", "--objective", "classify", "--steps", "300", "-q"];
        let done = brenier(&[&["train", data.as_str(), "-o", run.as_str()], words.as_slice()].concat());
        assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
        world
    })
}

fn compared(certificate: &Value) -> &Value {
    &certificate["comparison"]
}

#[test]
fn a_class_a_file_and_the_others_are_what_an_input_can_be_compared_with() {
    let world = world();
    let data = world.file("people.csv");
    for (against, name) in [("light", "light"), ("Light", "light"), ("others", "others than heavy")] {
        for certificate in world.certificates(&["--background", &data, "--against", against]) {
            let found = compared(&certificate);
            assert_eq!((&found["against"], &found["among"]), (&name.into(), &"heavy".into()));
            assert_eq!(found["reference_class"], "light");
            assert_eq!(certificate["verdict"]["kind"], "pass", "{certificate}");
            assert!((found["covered"].as_f64().unwrap() - 1.0).abs() < 0.6, "{certificate}");
            assert_eq!(certificate["path"]["solver"], "closed form: a straight line");
        }
    }
    let light = world.file("light.csv");
    for certificate in world.certificates(&["--against", &light, "--among", &data]) {
        assert_eq!(compared(&certificate)["against"], light.as_str());
    }
    // A class of one population, rows of the other.
    let among = ["--background", &data, "--against", "light", "--among", "heavy"];
    assert_eq!(world.certificates(&among).len(), 3);
}

#[test]
fn credit_lies_on_what_tells_the_populations_apart_and_the_difference_of_two_scores_can_be_explained() {
    let world = world();
    let (data, out) = (world.file("people.csv"), world.file("out"));
    let plain = ["--background", &data, "--against", "light", "-o", &out, "--force"];
    let mut scores = Vec::new();
    for contrast in
        [&[][..], &["--contrast"], &["--contrast=light"], &["--contrast=1", "--method", "transport-line"]]
    {
        let certificates = world.certificates(&[&plain[..], contrast].concat());
        scores.push(certificates[0]["score"].as_f64().unwrap());
        let file = std::fs::File::open(Path::new(&out).join("explanations.npz")).unwrap();
        let mut npz = ndarray_npy::NpzReader::new(file).unwrap();
        let values: ndarray::Array2<f64> = npz.by_name("values").unwrap();
        let references: ndarray::Array2<f64> = npz.by_name("references").unwrap();
        let inputs: ndarray::Array2<f64> = npz.by_name("inputs").unwrap();
        for (i, row) in values.rows().into_iter().enumerate() {
            // Weight decides, the legs never vary, and age is no part of it.
            assert!(row[1] > 0.5 * row.iter().map(|v| v.abs()).sum::<f64>(), "{row}");
            assert!(row[2] == 0.0 && references[[i, 2]] == inputs[[i, 2]]);
            assert!(row[3].abs() < 0.25 * row[1], "{row}");
        }
        let page = std::fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
        assert!(page.contains("compared with"));
    }
    let classes = ["light", "heavy"];
    let of = |target: &str| {
        let all = world.certificates(&["--method", "gradient", "--target", target]);
        all[0]["score"].as_f64().unwrap()
    };
    let difference = of(classes[1]) - of(classes[0]);
    assert!((scores[0] - of("heavy")).abs() < 1e-5);
    assert!(scores[1..].iter().all(|score| (score - difference).abs() < 1e-4), "{scores:?} {difference}");
}

#[test]
fn the_nearest_rows_and_a_flow_are_other_ways_there() {
    let world = world();
    let data = world.file("people.csv");
    let against = ["--background", &data, "--against", "light"];
    let near = world.certificates(&[&against[..], &["--nearest", "5"]].concat());
    assert_eq!(near[0]["method"], "nearest-ig");
    let (run, train) = (world.file("flow"), world.file("train.csv"));
    let words =
        "--label class --from-class light --to-class heavy --steps 100 --group 128 --width 32 -q".split(' ');
    let args: Vec<&str> = ["train", train.as_str(), "-o", run.as_str()].into_iter().chain(words).collect();
    let done = brenier(&args);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let flow = format!("{run}/flow.onnx");
    let along = world.certificates(&[&against[..], &["-f", &flow]].concat());
    assert_eq!(compared(&along[0])["way"], "a flow");
    assert_eq!(compared(&along[0])["reference_class"], "light", "{}", along[0]);
    // One flow serves both ways: light people against heavy ones.
    let (model, light) = (world.file("model/classifier.onnx"), world.file("light.csv"));
    let back = [
        "explain",
        "-m",
        &model,
        &light,
        "--label",
        "class",
        "--limit",
        "2",
        "-f",
        &flow,
        "--background",
        &data,
        "--against",
        "heavy",
        "--format",
        "json",
    ];
    let done = brenier(&back);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    let back: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(compared(&back[0])["reference_class"], "heavy", "{}", back[0]);
    let wrong = world.refusal(&["--background", &data, "--against", "others", "-f", &flow]);
    assert!(wrong.contains("leads from 'light' to 'heavy'"), "{wrong}");
}

#[test]
fn mistakes_get_one_sentence_each() {
    let world = world();
    let data = world.file("people.csv");
    let told = |more: &[&str], words: &str| {
        let told = world.refusal(more);
        assert!(told.contains(words), "{more:?}\n{told}");
    };
    told(&["--background", &data, "--against", "lihgt"], "did you mean 'light'?");
    told(&["--against", "light"], "no labelled data in which it could be a class");
    told(&["--against", "others"], "needs data with classes");
    let light = world.file("light.csv");
    told(&["--against", &light], "3 inputs are too few to tell which population they belong to");
    let one = world.write("one.csv", &people(1, &["light"], 3));
    told(&["--against", &one, "--among", &data], "has 1 rows");
    let empty = world.write("empty.csv", "height,weight,legs,age,class\n");
    assert!(world.refusal(&["--against", &empty, "--among", &data]).contains("empty.csv"));
    let other = world.write("other.csv", "height,width,class\n1,2,light\n3,4,light\n5,6,light\n");
    assert!(world.refusal(&["--against", &other, "--among", &data]).contains("other.csv"));
    told(
        &["--background", &data, "--against", "light", "--method", "ig"],
        "--against makes no difference to ig",
    );
    told(&["--contrast"], "there is no --against to take it from");
    told(&["--contrast=middle"], "there is no class 'middle'");
    told(&["--background", &data, "--against", "light", "--nearest", "0"], "neighbours must be at least 1");
    told(&["--background", &data, "--against", "light", "--nearest", "900"], "200");
    // The same rows twice: no credit, and it is said.
    let done = world.explain(&["--against", &data, "--among", &data]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stderr(&done).contains("are the same rows: nothing differs"), "{}", stderr(&done));
    let same: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(same[0]["credit_sum"].as_f64(), Some(0.0));
    // More columns than rows, and a class that the model takes no row for.
    let few = world.write("few.csv", &people(3, &["light"], 5));
    assert_eq!(world.certificates(&["--against", &few, "--among", &data]).len(), 3);
    // An input that is a member itself is told, and the others go on.
    let itself = world.certificates(&["--background", &data, "--against", "heavy"]);
    let reasons = itself[0]["verdict"]["reasons"][0].as_str().unwrap();
    assert!(reasons.contains("itself for 'heavy'"), "{reasons}");
}

#[test]
fn a_row_of_zeros_is_said_to_mean_nothing_for_a_table() {
    let done = world().explain(&[]);
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    assert!(stderr(&done).contains("ig compares with a row of zeros"), "{}", stderr(&done));
    let given = world().explain(&["--background", &world().file("people.csv"), "--baseline", "mean"]);
    assert!(!stderr(&given).contains("row of zeros"), "{}", stderr(&given));
}

#[test]
fn one_flow_between_all_classes_serves_every_comparison_and_says_so_where_there_is_none() {
    let world = world();
    let (data, run) = (world.file("people.csv"), world.file("between"));
    let train = ["train", &world.file("train.csv"), "--label", "class", "--between-classes", "-o", &run];
    let small = ["--steps", "400", "--group", "128", "--width", "32", "-q"];
    let done = brenier(&[train.as_slice(), &small].concat());
    assert_eq!(done.status.code(), Some(0), "{}", stderr(&done));
    for certificate in world.certificates(&["-f", &run, "--background", &data, "--against", "light"]) {
        let found = compared(&certificate);
        assert_eq!((&found["against"], &found["among"]), (&"light".into(), &"heavy".into()));
        assert_eq!(found["way"], "a flow between classes");
        // The flow was followed, and to the right class: there the model sees a light person.
        assert_eq!(found["reference_class"], "light", "{found}");
    }
    let told = world.refusal(&["-f", &run]);
    assert!(told.contains("between 2 classes") && told.contains("heavy, light"), "{told}");
    let told = world.refusal(&["-f", &run, "--against", &world.file("light.csv"), "--among", &data]);
    assert!(told.contains("is none of them"), "{told}");
    let other =
        brenier(&["reflow", &run, &world.file("train.csv"), "--label", "class", "-o", &world.file("next")]);
    assert!(stderr(&other).contains("it leads between the classes"), "{}", stderr(&other));
    let both = brenier(&[train.as_slice(), &["--from-class", "light"]].concat());
    assert_eq!(both.status.code(), Some(2), "{}", stderr(&both));
}
