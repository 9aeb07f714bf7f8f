//! What the registries of methods, metrics and objectives share: names that are found however they are typed, and
//! tables of the documentation.
//!
//! A registry is a list of specs, one for each name. Everything that lists names (`--help`, the pages, errors, tests)
//! goes through that list, so that a thing which is not in it is nowhere, and one that is in it is everywhere.

/// What a spec is found by.
pub(crate) trait Named {
    /// The name on the command line and in files.
    fn name(&self) -> &'static str;
    /// Other names that people know it by.
    fn aliases(&self) -> &'static [&'static str];
}

/// The spec of this name or alias. Case, `-`, `_` and spaces make no difference: `IntegratedGradients`,
/// `integrated_gradients` and `integrated-gradients` are one name.
pub(crate) fn find<'a, S: Named>(mut specs: impl Iterator<Item = &'a S>, name: &str) -> Option<&'a S> {
    let wanted = folded(name);
    specs.find(|spec| folded(spec.name()) == wanted || spec.aliases().iter().any(|a| folded(a) == wanted))
}

/// The name that was probably meant: that of the spec whose name or alias is nearest.
pub(crate) fn nearest<'a, S: Named + 'a>(specs: impl Iterator<Item = &'a S>, name: &str) -> &'static str {
    let known: Vec<(&str, &'static str)> = specs
        .flat_map(|spec| {
            let name = spec.name();
            std::iter::once((name, name)).chain(spec.aliases().iter().map(move |alias| (*alias, name)))
        })
        .collect();
    let spellings: Vec<&str> = known.iter().map(|(spelling, _)| *spelling).collect();
    let nearest = crate::nearest_name(name, &spellings);
    known.iter().find(|(spelling, _)| Some(*spelling) == nearest).map_or("", |(_, name)| *name)
}

/// A name without what people write differently.
fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).flat_map(char::to_lowercase).collect()
}

/// A table in Markdown with the names in its first column. Rows that say the same are one row with several names,
/// at the place of the last.
pub(crate) fn markdown_table(head: &[&str], rows: Vec<(&'static str, Vec<String>)>) -> String {
    let mut joined: Vec<(Vec<&str>, Vec<String>)> = Vec::new();
    for (name, cells) in rows {
        let same = joined.iter().position(|(_, there)| *there == cells);
        let mut names = same.map_or_else(Vec::new, |place| joined.remove(place).0);
        names.push(name);
        joined.push((names, cells));
    }
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for (names, cells) in joined {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("| {} | {} |\n", names.join(", "), cells.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Spec(&'static str, &'static [&'static str]);

    impl Named for Spec {
        fn name(&self) -> &'static str {
            self.0
        }
        fn aliases(&self) -> &'static [&'static str] {
            self.1
        }
    }

    const SPECS: &[Spec] = &[Spec("ig", &["integrated-gradients"]), Spec("grad-cam", &["layer-grad-cam"])];

    #[test]
    fn names_are_found_however_they_are_typed() {
        let found = |name: &str| find(SPECS.iter(), name).map(|spec| spec.0);
        for name in ["ig", "IG", "IntegratedGradients", "integrated_gradients", "Integrated Gradients"] {
            assert_eq!(found(name), Some("ig"), "{name}");
        }
        assert_eq!(found("LayerGradCam"), Some("grad-cam"));
        assert_eq!(found("integrated"), None);
    }

    #[test]
    fn an_alias_that_is_nearest_stands_for_its_name() {
        assert_eq!(nearest(SPECS.iter(), "integrated-gradient"), "ig");
        assert_eq!(nearest(SPECS.iter(), "grad-can"), "grad-cam");
    }

    #[test]
    fn rows_that_say_the_same_are_one() {
        let rows = vec![("a", vec!["x".into()]), ("b", vec!["y".into()]), ("c", vec!["x".into()])];
        let table = markdown_table(&["name", "says"], rows);
        assert_eq!(table, "| name | says |\n|---|---|\n| `b` | y |\n| `a`, `c` | x |\n");
    }
}
