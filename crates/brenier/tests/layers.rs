//! A module imports only from modules to its left; see `ARCHITECTURE.md`.

#[path = "../../../tests/flags/mod.rs"]
mod flags;
#[path = "../../../tests/layers/mod.rs"]
mod layers;

use std::path::Path;

const ORDER: &[&str] = &[
    // Leaves: what went wrong, names, files.
    "error",
    "memory",
    "nearest",
    "registry",
    "ranking",
    "student",
    "fingerprint",
    "readable",
    "whole_file",
    "lock",
    "store",
    "npy",
    "npz",
    // The function explained, the velocity field.
    "packed",
    "text",
    "score",
    // What is ordinary for a field that was learned.
    "calibration",
    "field",
    "data",
    "problems",
    "engine",
    "net",
    "train",
    "predictor",
    "classify",
    // Couplings of rows: flows are trained on them.
    "transport",
    "flow",
    "path",
    "attribute",
    "calibrate",
    // Why this and not that.
    "compare",
    // Explanations as files of their own.
    "export",
    "evaluate",
    "report",
    "runs",
];

#[test]
fn a_module_imports_only_from_modules_to_its_left() {
    let wrong = layers::back_edges(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")), ORDER);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn no_string_names_a_flag() {
    let found = flags::named(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
    assert!(found.is_empty(), "say it as a `Remedy`, or without the flag:\n{}", found.join("\n"));
}

#[test]
fn flags_are_seen_in_messages_and_not_elsewhere() {
    let seen = |text: &str| flags::in_code(text).len();
    assert_eq!(seen(r#"const A: &str = "use --engine ort";"#), 1);
    assert_eq!(seen(r#"#[error("give it with -o")] struct A;"#), 1);
    assert_eq!(seen(r#"fn f() { g("`brenier inspect` says why") }"#), 1);
    assert_eq!(seen("/// With --engine ort.\nfn f() {}"), 0);
    assert_eq!(seen(r#"#[cfg(test)] mod tests { const A: &str = "--engine"; }"#), 0);
    assert_eq!(seen(r#"const A: &str = "color: var(--ink); 3 - x; a -- b";"#), 0);
}
