//! Layers that hold: a module imports only from modules to its left.
//!
//! [`back_edges`] follows the module tree of a crate from its root file, reads every path that begins at the crate's root
//! (`crate::...`, or enough `super::`s), in imports and in expressions, and resolves what the root re-exports to the module
//! it comes from. Code under `#[cfg(test)]` may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What contradicts the order of the modules of the crate with this root file, a line each.
pub(crate) fn back_edges(root: &Path, order: &[&str]) -> Vec<String> {
    let source = Source::read(root, &[]);
    let place = |module: &str| order.iter().position(|&listed| listed == module);
    let modules: BTreeSet<&str> = source.modules.iter().map(String::as_str).collect();
    let unlisted = modules.iter().filter(|module| place(module).is_none());
    let gone = order.iter().filter(|module| !modules.contains(*module));
    let mut wrong: Vec<String> = unlisted
        .map(|module| format!("module `{module}` has no place in the order of the layers"))
        .chain(gone.map(|module| format!("the order has a module `{module}` that the crate does not have")))
        .collect();
    for module in &source.modules {
        for (file, line, name) in uses(&file_of(root, &[module]), &[module]) {
            let target =
                if modules.contains(name.as_str()) { Some(&name) } else { source.reexports.get(&name) };
            let place_of = |module: &str| place(module).unwrap_or(usize::MAX);
            match target {
                None => wrong
                    .push(format!("{file}:{line}: `{name}` is neither a module nor a re-export of the root")),
                Some(target) if target == module || place_of(target) < place_of(module) => {}
                Some(target) => wrong
                    .push(format!("{file}:{line}: `{module}` uses `{target}` (as `{name}`), to its right")),
            }
        }
    }
    wrong
}

/// Where and by which name a module, with those inside it, uses the crate's root.
fn uses(file: &Path, module: &[&str]) -> Vec<(String, usize, String)> {
    let source = Source::read(file, module);
    let shown = file.display().to_string();
    let mut found: Vec<_> = source.uses.into_iter().map(|(line, name)| (shown.clone(), line, name)).collect();
    for inner in &source.modules {
        found.extend(uses(&file_of(file, &[inner]), &[module, &[inner]].concat()));
    }
    found
}

/// The file of a module that `parent` declares.
fn file_of(parent: &Path, module: &[&str]) -> PathBuf {
    let stem = parent.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let mut folder = parent.parent().unwrap_or(Path::new("")).to_path_buf();
    if !matches!(stem, "lib" | "main" | "mod") {
        folder.push(stem);
    }
    let path = module.iter().fold(folder, |path, part| path.join(part));
    let folder = path.join("mod.rs");
    if folder.exists() { folder } else { path.with_extension("rs") }
}

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The modules it declares, each in a file of its own.
    pub(crate) modules: Vec<String>,
    /// Names that it takes from the root of the crate, with their lines.
    pub(crate) uses: Vec<(usize, String)>,
    /// Names it re-exports, and the module each comes from: of interest in the root.
    pub(crate) reexports: BTreeMap<String, String>,
}

impl Source {
    fn read(file: &Path, module: &[&str]) -> Source {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Source::parse(&text, module)
    }

    /// Reads the text of a module with this path; the root's is empty.
    pub(crate) fn parse(text: &str, module: &[&str]) -> Source {
        let mut source = Source::default();
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{module:?}: {error}"));
        source.scan(tokens, module.len());
        source
    }

    fn scan(&mut self, tokens: TokenStream, depth: usize) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut i = 0;
        while i < tokens.len() {
            let rest = &tokens[i..];
            match rest {
                [hash, TokenTree::Group(attribute), ..]
                    if is(hash, "#") && text(&attribute.stream()) == "cfg(test)" =>
                {
                    i += item_length(rest);
                    continue;
                }
                [word, TokenTree::Ident(_), TokenTree::Group(body), ..]
                    if is(word, "mod") && body.delimiter() == Delimiter::Brace =>
                {
                    self.scan(body.stream(), depth + 1);
                    i += 3;
                    continue;
                }
                [word, TokenTree::Ident(name), end, ..] if is(word, "mod") && is(end, ";") => {
                    self.modules.push(name.to_string());
                }
                [word, TokenTree::Ident(from), ..] if depth == 0 && is(word, "use") => {
                    let names =
                        rest.iter().take_while(|token| !is(token, ";")).cloned().collect::<TokenStream>();
                    let mut last = Vec::new();
                    last_names(names, &mut last);
                    self.reexports.extend(last.into_iter().map(|name| (name, from.to_string())));
                }
                [word, ..] if is(word, "crate") || is(word, "super") => {
                    let inside = i >= 2 && is(&tokens[i - 1], ":") && is(&tokens[i - 2], ":");
                    let above = rest.chunks(3).take_while(|step| is_step(step, "super")).count();
                    let start = if above > 0 { 3 * above } else { 3 };
                    let at_root = if above > 0 { above == depth } else { is_step(rest, "crate") };
                    if at_root && !inside {
                        self.uses.extend(first_names(&rest[start.min(rest.len())..]));
                    }
                }
                _ => {}
            }
            if let TokenTree::Group(group) = &tokens[i] {
                self.scan(group.stream(), depth);
            }
            i += 1;
        }
    }
}

fn is(token: &TokenTree, text: &str) -> bool {
    matches!(token, TokenTree::Ident(_) | TokenTree::Punct(_)) && token.to_string() == text
}

/// Whether tokens begin with `word::`.
fn is_step(tokens: &[TokenTree], word: &str) -> bool {
    matches!(tokens, [a, b, c, ..] if is(a, word) && is(b, ":") && is(c, ":"))
}

fn text(tokens: &TokenStream) -> String {
    tokens.to_string().replace(' ', "")
}

/// How many tokens an item under an attribute has, with it.
fn item_length(tokens: &[TokenTree]) -> usize {
    let import = tokens.iter().skip(2).find(|token| matches!(token, TokenTree::Ident(word) if word != "pub"));
    let import = import.is_some_and(|word| is(word, "use"));
    let ends = |token: &TokenTree| {
        is(token, ";") || matches!(token, TokenTree::Group(g) if !import && g.delimiter() == Delimiter::Brace)
    };
    tokens.iter().position(ends).map_or(tokens.len(), |end| end + 1)
}

/// The first name of a path, or of each path in braces.
fn first_names(tokens: &[TokenTree]) -> Vec<(usize, String)> {
    match tokens.first() {
        Some(TokenTree::Ident(name)) => vec![(name.span().start().line, name.to_string())],
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            inner
                .split(|token| is(token, ","))
                .flat_map(first_names)
                .filter(|(_, name)| name != "self")
                .collect()
        }
        Some(token) => vec![(token.span().start().line, token.to_string())],
        None => Vec::new(),
    }
}

/// The last name of every path of an import: what it is called from there on.
fn last_names(tokens: TokenStream, names: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for path in tokens.split(|token| is(token, ",")) {
        match path.last() {
            Some(TokenTree::Group(group)) => last_names(group.stream(), names),
            Some(name) => names.push(name.to_string()),
            None => {}
        }
    }
}
