//! What the program prints, word for word: every verb, and the mistakes that people make.
//!
//! Each case is kept in `snapshots/NAME.txt` as it looks in a terminal: the command, what went to stdout and to
//! stderr, and the exit code unless it is 0. Temporary paths and numbers with decimals are replaced, because they
//! differ between machines. `BLESS=1 cargo test -p brenier-cli --test snapshots` writes the files anew; look at what
//! changed.
#![allow(clippy::unwrap_used)]

#[path = "shared/place.rs"]
mod place;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ndarray::{Array2, Array4};
use onnx_grad::{Builder, DType, Dim, Model};

use self::place::{same, shown};

/// A folder for one test, with what its commands need.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = Place { folder: tempfile::tempdir().unwrap() };
        let images = Array4::from_shape_fn((2, 3, 16, 16), |(n, c, h, w)| {
            0.5 + 0.5 * ((n + 2 * c + 3 * h + 5 * w) as f32).sin()
        });
        ndarray_npy::write_npy(place.file("images.npy"), &images).unwrap();
        let torch = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/torch");
        std::fs::copy(torch.join("vgg.script.onnx"), place.file("model.onnx")).unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brenier"));
        command.args(line.split_whitespace()).current_dir(self.folder.path()).env("NO_COLOR", "1");
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs a command and compares all that it says with what is kept.
    fn check(&self, name: &str, line: &str) {
        same(name, &shown(line, &self.run(line), self.folder.path()));
    }
}

/// `v = -x`, with the scaling of data from 0 to 1 in its metadata.
fn flow(shape: &[usize]) -> Model {
    let mut b = Builder::new("flow");
    let n = Dim::symbol("N");
    let dims: Vec<Dim> = std::iter::once(n.clone()).chain(shape.iter().map(|&s| s.into())).collect();
    let x = b.input("x", DType::F32, &dims);
    let t = b.input("t", DType::F32, &[n]);
    let zero = b.scale(&t, 0.0);
    let axes: Vec<i64> = (1..=shape.len() as i64).collect();
    let zero = b.unsqueeze(&zero, &axes);
    let v = b.sub(&zero, &x);
    b.output("v", &v);
    Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() }
}

#[test]
fn every_verb() {
    let place = Place::new();
    place.check("inspect", "inspect model.onnx");
    place.check("explain", "explain -m model.onnx images.npy --steps 20");
    let several = "explain -m model.onnx images.npy --method ig,gradient --steps 20 --targets top2 --classes a,b,c,d,e -o out";
    place.check("explain-several", several);
    for file in ["ig/explanations.npz", "gradient/explanations.jsonl", "report.json", "report.html"] {
        assert!(place.file("out").join(file).exists(), "{file}");
    }
    assert_eq!(std::fs::read_dir(place.file("out/heatmaps")).unwrap().count(), 8);
    place.check("report", "report out -o again.html");
    let (first, again) = (place.file("out/report.html"), place.file("again.html"));
    let [first, again] = [first, again].map(|file| std::fs::metadata(file).unwrap().len());
    assert!(first.abs_diff(again) < first / 10, "the page made anew is another: {first} {again}");
    place.check(
        "evaluate",
        "evaluate -m model.onnx images.npy --methods ig,gradient --metrics eas,deletion-zero --steps 20 -q",
    );
    place.check("quiet", "explain -m model.onnx images.npy --steps 20 -o quiet --quiet");
    place.check("reproduce", "reproduce additive -q");
    std::fs::write(place.file("table.csv"), table()).unwrap();
    let train = "train table.csv --label class -o run --steps 20 --width 8 --blocks 1 --batch 16 -q";
    place.check("train", train);
    place.check("train-again", train);
    place.check(
        "reflow",
        "reflow run table.csv --label class -o run2 --steps 20 --batch 16 --generated 20 --inverted 20 -q",
    );
    place.check("reflow-no-flow", "reflow nowhere table.csv -o run3");
}

fn table() -> String {
    let row = |i: usize| {
        let (a, b) = ((i as f64 * 0.7).sin(), (i as f64 * 1.3).cos());
        format!("{a:.4},{b:.4},{}\n", if a + b > 0.0 { "yes" } else { "no" })
    };
    format!("a,b,class\n{}", (0..80).map(row).collect::<String>())
}

#[test]
fn files_that_are_not_there() {
    let place = Place::new();
    place.check("missing-input", "explain -m model.onnx nowhere.npy");
    place.check("missing-image", "explain -m model.onnx nowhere.png");
    place.check("missing-model", "explain -m nowhere.onnx images.npy");
    place.check("missing-flow", "explain -m model.onnx -f nowhere.onnx images.npy");
    place.check("missing-data", "train nowhere.csv -o run");
    place.check("missing-config", "explain -m model.onnx images.npy --config nowhere.toml");
    place.check("no-input", "explain -m model.onnx");
}

#[test]
fn inputs_that_do_not_fit() {
    let place = Place::new();
    ndarray_npy::write_npy(place.file("last.npy"), &Array4::<f32>::zeros((2, 16, 16, 3))).unwrap();
    ndarray_npy::write_npy(place.file("large.npy"), &Array4::<f32>::zeros((2, 3, 32, 32))).unwrap();
    ndarray_npy::write_npy(place.file("flat.npy"), &Array2::<f32>::zeros((2, 768))).unwrap();
    place.check("wrong-layout-of-data", "explain -m model.onnx last.npy");
    place.check("wrong-size", "explain -m model.onnx large.npy");
    place.check("wrong-shape", "explain -m model.onnx flat.npy");
    // A model with its channels last.
    let mut b = Builder::new("last");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(16), Dim::Known(16), Dim::Known(3)]);
    let y = b.reduce_sum(&x, &[1, 2], false);
    b.output("y", &y);
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(place.file("last.onnx")).unwrap();
    place.check("wrong-layout-of-model", "explain -m last.onnx images.npy");
    place.check("right-layout", "explain -m last.onnx images.npy --layout nhwc --method gradient-input");
}

#[test]
fn words_that_mean_nothing() {
    let place = Place::new();
    place.check("unknown-method", "explain -m model.onnx images.npy --method smothgrad");
    place.check(
        "unknown-class",
        "explain -m model.onnx images.npy --target caot --classes coat,shirt,boot,bag,hat",
    );
    place.check("no-class-names", "explain -m model.onnx images.npy --target coat");
    place.check("class-out-of-range", "explain -m model.onnx images.npy --target 5");
    place.check("too-few-class-names", "explain -m model.onnx images.npy --classes coat,shirt");
    place.check("unknown-flag", "explain -m model.onnx images.npy --methods ig");
    std::fs::write(place.file("wrong.toml"), "[explain]\nmetod = \"ig\"\n").unwrap();
    place.check("unknown-key", "explain -m model.onnx images.npy --config wrong.toml");
    std::fs::write(place.file("broken.toml"), "seed = 3\nmethod = [\n").unwrap();
    place.check("broken-config", "explain -m model.onnx images.npy --config broken.toml");
    std::fs::write(place.file("model.toml"), "[preprocessing]\nmaen = 3\n").unwrap();
    place.check("unknown-sidecar-key", "explain -m model.onnx images.npy");
}

#[test]
fn flows_that_do_not_fit() {
    let place = Place::new();
    place.check("no-flow", "explain -m model.onnx images.npy --method transport");
    flow(&[3, 8, 8]).save(place.file("small.onnx")).unwrap();
    place.check("flow-of-another-shape", "explain -m model.onnx -f small.onnx images.npy");
    // Trained on images of 0 to 1, given images of 0 to 255.
    let mut trained = flow(&[3, 16, 16]);
    let scaling = r#"{"shape":[3,16,16],"shift":[0.5,0.5,0.5],"scale":[0.5,0.5,0.5]}"#;
    trained.metadata.insert("brenier.scaling".into(), scaling.into());
    trained.save(place.file("flow.onnx")).unwrap();
    let bright = Array4::from_shape_fn((1, 3, 16, 16), |(_, c, h, w)| ((c + 7 * h + 3 * w) % 256) as f32);
    ndarray_npy::write_npy(place.file("bright.npy"), &(bright * 2.0)).unwrap();
    place.check("flow-of-another-scale", "explain -m model.onnx -f flow.onnx bright.npy");
    place.check("model-as-flow", "explain -m model.onnx -f model.onnx images.npy");
}

#[test]
fn results_that_cannot_be_written() {
    let place = Place::new();
    let explain = "explain -m model.onnx images.npy --steps 20 -q -o";
    assert!(place.run(&format!("{explain} out")).status.success());
    assert!(place.run(&format!("{explain} out")).status.success(), "the same once more is there already");
    place.check("exists-already", &format!("{explain} out --target 1"));
    assert!(place.run(&format!("{explain} out --force")).status.success());
    std::fs::write(place.file("a-file"), "").unwrap();
    place.check("folder-below-a-file", &format!("{explain} a-file/out"));
    std::fs::create_dir(place.file("empty")).unwrap();
    place.check("report-without-explanations", "report empty");
    #[cfg(target_os = "linux")]
    {
        let line = "explain -m model.onnx images.npy --steps 20 -q";
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let done = place.command(line).stdout(full).stderr(Stdio::piped()).output().unwrap();
        same("stdout-full", &shown(&format!("{line} > /dev/full"), &done, place.folder.path()));
        full_and_read_only_disks(&place);
    }
}

/// A disk of a few kilobytes, and one that cannot be written to. Who may not mount does without.
#[cfg(target_os = "linux")]
fn full_and_read_only_disks(place: &Place) {
    for (name, options) in [("disk-full", "size=8k"), ("read-only-folder", "ro")] {
        let disk = place.file(name);
        std::fs::create_dir(&disk).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(&disk)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            eprintln!("{name} is not tested: mounting is not allowed here");
            continue;
        }
        let line = format!("explain -m model.onnx images.npy --steps 20 -q -o {name}/out");
        let done = place.run(&line);
        let left = disk.join("out/explanations.npz").exists();
        Command::new("umount").arg(&disk).status().unwrap();
        same(name, &shown(&line, &done, place.folder.path()));
        assert!(!left, "{name}: a part of a file stands under its name");
    }
}

/// What is generated from the same description as `--help`.
#[test]
fn help_completions_and_man_pages_know_every_verb() {
    let place = Place::new();
    let text = |line: &str| String::from_utf8(place.run(line).stdout).unwrap();
    let help = text("--help");
    assert!(!help.contains('\u{1b}'), "colours in a pipe");
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_whitespace().next().filter(|_| line.starts_with("  ") && !line.starts_with("   "))
        })
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.contains(&"explain") && verbs.contains(&"report"), "{verbs:?}");
    assert!(place.run("man pages").status.success());
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&format!("completions {shell}"));
        assert!(verbs.iter().all(|verb| script.contains(verb)), "{shell}");
        assert!(script.contains("model-size"), "{shell}");
    }
    for verb in verbs {
        let page = std::fs::read_to_string(place.file("pages").join(format!("brenier-{verb}.1"))).unwrap();
        assert!(page.starts_with(".ie") || page.contains(".TH"), "{verb}");
        assert!(text(&format!("{verb} --help")).contains("Examples:"), "{verb} --help has no examples");
    }
    assert!(text("man").contains(".SH SYNOPSIS"));
}

/// A file says what flags say; what is typed wins.
#[test]
fn flags_from_a_file() {
    let place = Place::new();
    let config = "seed = 4\n[explain]\nmodel = \"model.onnx\"\ninputs = [\"images.npy\"]\nmethod = [\"smoothgrad\", \"ig\"]\n\
                  samples = 5\ntolerance = 0.01\nformat = \"json\"\nkeep-softmax = true\n[train]\nwidth = 3\n";
    std::fs::write(place.file("run.toml"), config).unwrap();
    let json = |line: &str| -> serde_json::Value {
        let done = place.run(line);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    };
    let found = json("explain --config run.toml");
    assert_eq!((&found[0]["method"], &found[2]["method"]), (&"smoothgrad".into(), &"ig".into()));
    assert_eq!((&found[0]["sampling"]["seed"], &found[0]["sampling"]["samples"]), (&4.into(), &5.into()));
    assert_eq!(found[2]["path"]["rule"]["tolerance"], 0.01);
    // --steps does not go together with the file's tolerance, and wins, too.
    let typed =
        json("explain --config run.toml --method smoothgrad,ig --seed 5 --samples 7 --steps 9 images.npy");
    assert_eq!((&typed[0]["sampling"]["seed"], &typed[0]["sampling"]["samples"]), (&5.into(), &7.into()));
    assert_eq!(typed[2]["path"]["rule"]["nodes"], 9);
}

/// The same credit whether the preprocessing is in the flags, in the file beside the model or in the data.
#[test]
fn preprocessing_by_flags_and_beside_the_model() {
    let place = Place::new();
    let images: Array4<f32> = ndarray_npy::read_npy(place.file("images.npy")).unwrap();
    ndarray_npy::write_npy(place.file("raw.npy"), &(255.0 * &images)).unwrap();
    let credit = |line: &str, out: &str| -> Array4<f64> {
        let done = place.run(&format!("{line} --target 1 --steps 20 -q -o {out}"));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let file = std::fs::File::open(place.file(out).join("explanations.npz")).unwrap();
        ndarray_npy::NpzReader::new(file).unwrap().by_name("values").unwrap()
    };
    let close = |a: &Array4<f64>, b: &Array4<f64>| (a - b).iter().all(|d| d.abs() < 1e-5);
    let plain = credit("explain -m model.onnx images.npy", "plain");
    let flags = credit("explain -m model.onnx raw.npy --scale 255", "flags");
    assert!(close(&plain, &flags));
    // Bytes of pixels are read as 0 to 1.
    ndarray_npy::write_npy(place.file("bytes.npy"), &images.mapv(|v| (255.0 * v).round() as u8)).unwrap();
    let bytes = credit("explain -m model.onnx bytes.npy", "bytes");
    assert!((&plain - &bytes).iter().all(|d| d.abs() < 1e-2));
    std::fs::write(
        place.file("model.toml"),
        "classes = [\"a\", \"b\", \"c\", \"d\", \"e\"]\n[preprocessing]\nscale = 255\n",
    )
    .unwrap();
    assert!(close(&plain, &credit("explain -m model.onnx raw.npy", "beside")));
    let done = place.run("explain -m model.onnx raw.npy --target e");
    assert!(String::from_utf8_lossy(&done.stdout).contains("      e  "), "{done:?}");
    // Images of any size, resized inside the model: credit belongs to the image as it is.
    let large = Array4::from_shape_fn((1, 3, 20, 30), |(_, c, h, w)| images[[0, c, h / 2, w / 2]]);
    ndarray_npy::write_npy(place.file("large.npy"), &large).unwrap();
    let resized = credit("explain -m model.onnx large.npy --scale 1 --model-size 16x16", "resized");
    assert_eq!(resized.shape(), [1, 3, 20, 30]);
}
