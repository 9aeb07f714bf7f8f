//! A library names no flag: what to try is a `Remedy`, worded by those who talk to users.
//!
//! [`named`] reads every string of a crate outside of tests and documentation, and hands back those that speak command
//! line: `--flag`, `-o`, or a verb of `brenier`.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

const VERBS: [&str; 10] =
    ["train", "reflow", "explain", "evaluate", "inspect", "calibrate", "shift", "report", "export", "verify"];

/// The strings of the files below a folder that name flags or verbs, each with its file and line.
pub(crate) fn named(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(named(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let lines = in_code(&text).into_iter();
            found.extend(lines.map(|(line, literal)| format!("{}:{line}: {literal}", path.display())));
        }
    }
    found
}

/// The strings of a text that name flags or verbs.
pub(crate) fn in_code(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    scan(text.parse().unwrap(), &mut found);
    found
}

fn scan(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut i = 0;
    while i < tokens.len() {
        if let [TokenTree::Punct(hash), rest @ ..] = &tokens[i..]
            && hash.as_char() == '#'
        {
            // `#[..]` or `#![..]`
            let inner = rest.iter().take(2).find_map(|token| match token {
                TokenTree::Group(group) => Some(group.stream().to_string()),
                _ => None,
            });
            let inner = inner.unwrap_or_default();
            if inner.starts_with("doc") {
                i += if matches!(rest.first(), Some(TokenTree::Group(_))) { 2 } else { 3 };
                continue;
            }
            if inner.replace(' ', "") == "cfg(test)" {
                let ends = |token: &TokenTree| match token {
                    TokenTree::Punct(end) => end.as_char() == ';',
                    TokenTree::Group(body) => body.delimiter() == Delimiter::Brace,
                    _ => false,
                };
                i += tokens[i..].iter().position(ends).unwrap_or(tokens.len()) + 1;
                continue;
            }
        }
        match &tokens[i] {
            TokenTree::Group(group) => scan(group.stream(), found),
            TokenTree::Literal(literal) => {
                let text = literal.to_string();
                if text.contains('"') && speaks_command_line(&text) {
                    found.push((literal.span().start().line, text));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        i += 1;
    }
}

fn speaks_command_line(text: &str) -> bool {
    // The installer's flag, and names of colours.
    let text = text.replace("pip install --upgrade", "").replace("var(--", "");
    let words = || text.split(|c: char| c.is_whitespace() || "\"'`(),;:".contains(c));
    let long = |word: &str| {
        word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    // Formulas have `-f(x)` in them.
    let mut apart = text.split(|c: char| c.is_whitespace() || "\"'`".contains(c));
    let short = apart.any(|word| ["-o", "-f", "-m"].contains(&word));
    let pairs = words().zip(words().skip(1));
    short || words().any(long) || pairs.into_iter().any(|(a, b)| a == "brenier" && VERBS.contains(&b))
}
