//! A module imports only from modules to its left; see `ARCHITECTURE.md`.

#[path = "../../../tests/flags/mod.rs"]
mod flags;
#[path = "../../../tests/layers/mod.rs"]
mod layers;

use std::path::Path;

const ORDER: &[&str] = &[
    "error",
    "proto",
    "tensor",
    "graph",
    "fused",
    "resample",
    "recurrent",
    "shapes",
    "half_weights",
    "validate",
    "read",
    "write",
    "floats",
    "cost",
    "build",
    "rewrite",
    "eval",
    "fuse",
    "lower",
    "step",
    "rules",
    "backward",
    "options",
    "grad",
    "coverage",
];

#[test]
fn a_module_imports_only_from_modules_to_its_left() {
    let wrong = layers::back_edges(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")), ORDER);
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_way_to_name_the_root_is_seen() {
    let source = layers::Source::parse(
        "use crate::a::{B, c::D};
         use crate::{
             e,
             f::{self, G},
             H as I,
         };
         use super::inner; use super::super::j::K;
         mod declared;
         pub(crate) fn one(x: crate::l::M) -> n::crate_like { let v = vec![crate::O::new()]; super::super::p::q(v) }
         #[cfg(test)]
         mod tests { use crate::unseen; }
         #[cfg(test)]
         use crate::{unseen, too};
         mod inline { use super::super::super::r; use super::inner; }
         // use crate::unseen;
         const S: &str = \"crate::unseen\";",
        &["x", "y"],
    );
    let names: Vec<&str> = source.uses.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["a", "e", "f", "H", "j", "l", "O", "p", "r"]);
    assert_eq!(source.uses[2].0, 4, "the line of a grouped import");
    assert_eq!(source.modules, ["declared"]);
    let root = layers::Source::parse("mod a; pub use a::{B, c::D, E as F}; pub use g::H;", &[]);
    let from = |name: &str| root.reexports.get(name).map(String::as_str);
    assert_eq!(
        [from("B"), from("D"), from("F"), from("H"), from("E")],
        [Some("a"), Some("a"), Some("a"), Some("g"), None]
    );
}

#[test]
fn no_string_names_a_flag() {
    let found = flags::named(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
    assert!(found.is_empty(), "say it as a `Remedy`, or without the flag:\n{}", found.join("\n"));
}
