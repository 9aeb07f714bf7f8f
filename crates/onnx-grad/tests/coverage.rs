//! The table in the documentation is the one that the registries print.
#![allow(clippy::unwrap_used)]

use std::path::Path;

const ABOVE: &str = "# Operators

Which operators of ONNX (opsets 11 to 24) can be differentiated. An operator with a *rule* has a derivative of its own;
one that is *spelled out* is first written in simpler operators; one that *passes through* computes as always, and no
gradient goes through it. Operators that are not listed run where they do not lie between the input and the output,
and are named in an error (and by `brenier inspect`) where they do. What gradients are at equal values and on kinks is
[a choice](methods.md#equal-values).

This page is printed from the registries: `BLESS=1 cargo test -p onnx-grad --test coverage`.

";

#[test]
fn the_documentation_lists_what_there_is() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operators.md");
    let text = format!("{ABOVE}{}", onnx_grad::coverage_table());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&page, &text).unwrap();
    }
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert!(written == text, "docs/operators.md is out of date: run with BLESS=1");
}
