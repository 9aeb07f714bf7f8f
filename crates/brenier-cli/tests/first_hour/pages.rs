//! Pages, help and what they say.

use std::path::{Path, PathBuf};

use crate::place::Place;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A page as one line.
fn page(name: &str) -> String {
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The pages that a user reads, by their paths.
fn pages() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().to_str().unwrap()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.push("README.md".to_string());
    names
}

const VERBS: [&str; 16] = [
    "demo",
    "explain",
    "merge",
    "evaluate",
    "shift",
    "inspect",
    "calibrate",
    "train",
    "reflow",
    "reproduce",
    "export",
    "verify",
    "report",
    "completions",
    "man",
    "",
];

/// What readers had to read twice.
const RIDDLES: [&str; 12] = [
    "by which the data itself came to be",
    "which noise its black background came from",
    "keeps what its first level had",
    "the noise's complement",
    "must make a difference",
    "that an editor shows",
    "for those who have looked",
    "learned by heart",
    "data that come in two",
    "whoever was paid",
    "nothing more than what is given",
    "what is ordinary is told",
];

#[test]
fn no_page_and_no_help_has_a_sentence_that_must_be_read_twice() {
    let place = Place::new();
    let mut texts: Vec<(String, String)> = pages().into_iter().map(|name| (page(&name), name)).collect();
    for verb in VERBS {
        let done = place.run(&format!("{verb} --help"));
        assert!(done.status.success(), "{verb}");
        let help = String::from_utf8_lossy(&done.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        texts.push((help, format!("{verb} --help")));
    }
    for (text, name) in texts {
        let found = RIDDLES.iter().find(|riddle| text.contains(*riddle));
        assert!(found.is_none(), "{name}: {}", found.unwrap());
    }
}

#[test]
fn pages_export_with_todays_exporter_whatever_the_argument_is_called() {
    for name in pages() {
        let text = page(&name);
        for old in ["dynamo=False", "dynamic_axes", "dynamic_shapes={"] {
            assert!(!text.contains(old), "{name} has {old}");
        }
        let (exports, shapes) =
            (text.matches("torch.onnx.export(").count(), text.matches("dynamic_shapes=(").count());
        assert_eq!(exports, shapes, "{name}");
    }
    assert!(page("README.md").contains("forward(self, img)"));
}

#[test]
fn pages_answer_what_new_users_ask() {
    for (name, answer) in [
        ("README.md", "**Why not Captum or SHAP?**"),
        ("README.md", "Brenier is for you if"),
        ("README.md", "Text is explained at the embedding of its tokens"),
        ("README.md", "docs/choosing-a-method.md#wrong-predictions"),
        ("README.md", "docs/data.md#the-columns-of-a-model"),
        ("docs/choosing-a-method.md", "## Wrong predictions"),
        ("docs/data.md", "## The columns of a model"),
        ("docs/engines.md", "## Which engine when"),
        ("docs/flows.md", "### How long it takes"),
        ("docs/flows.md", "The default is 4,000 steps of 32 images"),
    ] {
        assert!(page(name).contains(answer), "{name} does not say: {answer}");
    }
}
