//! Flags from a file: `--config FILE.toml`.
//!
//! ```toml
//! seed = 3                       # for every verb that has --seed
//!
//! [explain]
//! model = "model.onnx"
//! method = ["transport", "ig"]   # --method transport,ig
//! flow = ["a.onnx", "b.onnx"]    # --flow a.onnx --flow b.onnx
//! keep-softmax = true
//! inputs = ["images/"]           # what stands without a flag, by its name in --help
//! ```
//!
//! Entries become flags and go through the same parser, so that what they may be, and what is said of a mistake,
//! is the same. What is typed wins over the file. Names that no verb knows are refused, so a misspelled entry does
//! not go unnoticed.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brenier::nearest_name;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};
use toml::{Table, Value};

use crate::args::Args;

/// What was typed, with what the file says in the places where nothing was typed.
pub(crate) fn arguments(typed: Vec<OsString>) -> Result<Vec<OsString>> {
    let named = |word: &OsString| word == "--config" || word.to_string_lossy().starts_with("--config=");
    if !typed.iter().any(named) {
        return Ok(typed);
    }
    let mut command = Args::command();
    command.build();
    // Mistakes in what was typed are told later, by the parser itself.
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(&typed) else {
        return Ok(typed);
    };
    let Some((name, given)) = matches.subcommand() else { return Ok(typed) };
    let file = given.try_get_one::<PathBuf>("config").ok().flatten();
    let (Some(file), Some(verb)) = (file, command.find_subcommand(name)) else { return Ok(typed) };
    let text = brenier::readable::read_to_string(file)
        .with_context(|| format!("cannot read {}\nhint: --config takes a TOML file", file.display()))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        anyhow::anyhow!(
            "{} is no TOML, line {line}: {}\nhint: an entry looks like method = [\"ig\", \"transport\"]",
            file.display(),
            error.message()
        )
    })?;
    let about = || format!("in {}", file.display());
    let entries = entries(&command, verb, table).with_context(about)?;
    let (mut flags, mut plain) = (Vec::new(), Vec::new());
    for (arg, value) in entries {
        if gives_way(verb, arg, given) {
            continue;
        }
        let into = if arg.is_positional() { &mut plain } else { &mut flags };
        into.extend(words(arg, &value).with_context(about)?);
    }
    let place = typed.iter().position(|word| word == name).unwrap_or(0) + 1;
    let (before, after) = typed.split_at(place);
    Ok([before, &flags, after, &plain].concat())
}

/// The name of an argument in a file.
fn key(arg: &Arg) -> String {
    arg.get_long().map_or_else(|| arg.get_id().to_string().replace('_', "-"), str::to_string)
}

fn find<'a>(verb: &'a Command, name: &str) -> Option<&'a Arg> {
    let spelled = name.replace('_', "-");
    verb.get_arguments()
        .filter(|arg| !matches!(arg.get_id().as_str(), "config" | "help" | "version"))
        .find(|arg| key(arg) == spelled)
}

/// The entries that concern a verb: those under its name, and those at the top that it knows.
fn entries<'a>(command: &'a Command, verb: &'a Command, table: Table) -> Result<Vec<(&'a Arg, Value)>> {
    let mut found: Vec<(&Arg, Value)> = Vec::new();
    let mut own = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(inside) => {
                let Some(named) = command.find_subcommand(&name) else {
                    let verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                    let nearest = nearest_name(&name, &verbs).unwrap_or_default();
                    bail!("there is no verb '{name}'\nhint: did you mean [{nearest}]?");
                };
                for (name, value) in inside {
                    let Some(arg) = find(named, &name) else { return Err(unknown(&name, [named])) };
                    if named.get_name() == verb.get_name() {
                        own.push((arg, value));
                    }
                }
            }
            value => match find(verb, &name) {
                Some(arg) => found.push((arg, value)),
                None if command.get_subcommands().any(|verb| find(verb, &name).is_some()) => {}
                None => return Err(unknown(&name, command.get_subcommands())),
            },
        }
    }
    // What stands under the verb's name is said of it, and wins.
    found.retain(|(arg, _)| own.iter().all(|(other, _)| other.get_id() != arg.get_id()));
    found.extend(own);
    Ok(found)
}

fn unknown<'a>(name: &str, verbs: impl IntoIterator<Item = &'a Command>) -> anyhow::Error {
    let keys: Vec<String> = verbs.into_iter().flat_map(Command::get_arguments).map(key).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let nearest = nearest_name(name, &keys).unwrap_or_default();
    anyhow::anyhow!("there is no flag '{name}'\nhint: did you mean '{nearest}'?")
}

/// Whether something was typed that says the same, or that the entry does not go together with.
fn gives_way(verb: &Command, arg: &Arg, given: &ArgMatches) -> bool {
    let typed = |other: &Arg| {
        let id = other.get_id().as_str();
        given.try_contains_id(id).is_ok() && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    let excluded = |a: &Arg, b: &Arg| verb.get_arg_conflicts_with(a).iter().any(|c| c.get_id() == b.get_id());
    typed(arg)
        || verb.get_arguments().any(|other| typed(other) && (excluded(arg, other) || excluded(other, arg)))
}

/// The words that would be typed for an entry.
fn words(arg: &Arg, value: &Value) -> Result<Vec<OsString>> {
    let name = key(arg);
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return match value {
            Value::Boolean(true) => Ok(vec![format!("--{name}").into()]),
            Value::Boolean(false) => Ok(Vec::new()),
            _ => bail!("'{name}' is of type {}\nhint: it is a flag: say true or false", value.type_str()),
        };
    }
    let plain = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Array(_) | Value::Table(_) => {
            bail!(
                "'{name}' holds a value of type {}\nhint: give a text, a number or a list",
                value.type_str()
            )
        }
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        Value::Boolean(truth) => Ok(truth.to_string()),
        Value::Datetime(date) => Ok(date.to_string()),
    };
    let items = match value {
        Value::Array(items) => items.iter().map(plain).collect::<Result<Vec<String>>>()?,
        one => vec![plain(one)?],
    };
    let repeated = matches!(arg.get_action(), ArgAction::Append) && arg.get_value_delimiter().is_none();
    let items = if repeated || arg.is_positional() { items } else { vec![items.join(",")] };
    let word = |item: String| if arg.is_positional() { item } else { format!("--{name}={item}") };
    Ok(items.into_iter().map(|item| word(item).into()).collect())
}
