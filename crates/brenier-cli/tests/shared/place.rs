//! A folder for one test, and what its commands say, word for word.
// Shared by tests that do not all use all of it.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use onnx_grad::{Builder, DType, Dim, Model, TensorData};
use serde_json::Value;

/// A folder for one test.
pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// Runs a command, its words with spaces between.
    pub(crate) fn run(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brenier"));
        command.args(line.split_whitespace()).current_dir(self.folder.path()).env("NO_COLOR", "1");
        command.output().unwrap()
    }

    /// The JSON that a command prints.
    pub(crate) fn json(&self, line: &str) -> Value {
        let done = self.run(line);
        assert!(done.status.success(), "{line}\n{}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).unwrap()
    }

    /// What a command that fails says.
    pub(crate) fn refused(&self, line: &str) -> String {
        let done = self.run(line);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(matches!(done.status.code(), Some(1 | 2)), "{line} went through: {message}");
        assert!(done.stdout.is_empty(), "{line}");
        message
    }

    /// Runs a command and compares all that it says with what is kept in `snapshots/NAME.txt`; `BLESS=1` keeps it.
    pub(crate) fn check(&self, name: &str, line: &str) {
        let done = self.run(line);
        same(name, &shown(line, &done, self.folder.path()));
    }

    /// A model of images 1x8x8 with two outputs: the sum of the upper half less that of the lower, and its negative.
    pub(crate) fn image_model(&self, name: &str) {
        let mut b = Builder::new("halves");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(1), Dim::Known(8), Dim::Known(8)]);
        let weights: Vec<f32> = (0..64).map(|i| if i < 32 { 0.1 } else { 0.01 }).collect();
        let weights: Vec<f32> = weights.into_iter().flat_map(|w| [-w, w]).collect();
        let flat = b.reshape(&x, &[-1, 64]);
        let w = b.parameter("w", TensorData::f32(&[64, 2], &weights));
        let y = b.matmul(&flat, &w);
        let y = b.op("Tanh", &[&y]);
        b.output("y", &y);
        save(b, &self.file(name));
    }
}

/// A run as it looks in a terminal.
pub(crate) fn shown(line: &str, done: &Output, folder: &Path) -> String {
    let mut text = format!("$ brenier {line}\n");
    for (mark, part) in [("", &done.stdout), ("! ", &done.stderr)] {
        let part = String::from_utf8_lossy(part).replace(folder.to_str().unwrap(), "FOLDER");
        for line in part.lines().filter(|line| !is_progress(line)) {
            text.push_str(format!("{mark}{}", masked(line)).trim_end());
            text.push('\n');
        }
    }
    match done.status.code() {
        Some(0) => text,
        code => text + &format!("exit code {}\n", code.unwrap_or(-1)),
    }
}

/// What a run says after two seconds of how far it is: whether it comes depends on the machine.
fn is_progress(line: &str) -> bool {
    ["explaining ", "shift "].iter().any(|stage| {
        line.strip_prefix(stage).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Numbers with decimals become `#`, and so do counts of a solver that chooses its steps. The width of columns does not
/// depend on them.
fn masked(line: &str) -> String {
    let chosen = line.trim_start().starts_with("velocity evaluations");
    let decimal = |word: &str| {
        let word = word.trim_start_matches('(').trim_end_matches([',', ';', ':', ')']);
        (chosen || word.contains('.')) && word.parse::<f64>().is_ok()
    };
    let mut out = String::new();
    let mut rest = line;
    while !rest.is_empty() {
        let spaces = rest.len() - rest.trim_start_matches(' ').len();
        let end = rest[spaces..].find(' ').map_or(rest.len(), |at| spaces + at);
        let word = &rest[spaces..end];
        if decimal(word) {
            out.push_str(" #");
        } else {
            out.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out
}

pub(crate) fn same(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, kept, "{name} differs; BLESS=1 keeps what was found");
}

fn save(b: Builder, file: &Path) {
    let model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
    model.save(file).unwrap();
}

/// The model `w . x` of a table, the same for every one of its outputs.
pub(crate) fn linear(weights: &[f32], outputs: usize) -> Model {
    let mut b = Builder::new("linear");
    let x = b.input("x", DType::F32, &[Dim::symbol("N"), weights.len().into()]);
    let all: Vec<f32> = weights.iter().flat_map(|w| std::iter::repeat_n(*w, outputs)).collect();
    let w = b.parameter("w", TensorData::f32(&[weights.len(), outputs], &all));
    let y = b.matmul(&x, &w);
    b.output("y", &y);
    Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() }
}
