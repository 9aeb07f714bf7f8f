//! `brenier merge`: the shards of a run as one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brenier::evaluate::EvaluationShard;
use brenier::report::ExplanationReader;
use brenier::runs::explain::{Failure, merge};
use clap::Args;

use super::evaluate::{Facts, write_files};
use super::explain::record::RECORD;
use super::explain::{Incomplete, SHARDS, page, tell_failures};
use crate::output::{print_data, print_progress};

/// The file that says that a folder is whole.
const WHOLE: &str = "explanations.run.json";
/// The file of a table.
const TABLE: &str = "evaluation.json";

/// Join the shards of a run
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  for i in 1 2 3 4; do brenier explain -m model.onnx rows.npy -o out --shard $i/4; done
  brenier merge out
  brenier merge node1/out node2/out -o all --report
  for i in 1 2; do brenier evaluate -m model.onnx rows.npy -o table --shard $i/2; done; brenier merge table

Shards may be of any number, in any order, and of several numbers of shards, as long as they are all inputs together. The files
are those of one run, to the bit. Exit 0: all inputs are explained; 1: shards are missing or of another run; 3: with
--keep-going, inputs failed or are missing.")]
pub(crate) struct Merge {
    /// Folders that 'explain -o DIR --shard' or 'evaluate -o DIR --shard' has written, or folders of single shards
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// Where the results go; the folder that was given, where it is one
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Also write report.html, and heat maps of images
    #[arg(long)]
    report: bool,
    /// Draw heat maps over the input in grey
    #[arg(long, requires = "report")]
    overlay: bool,
    /// Merge what is there although shards are missing, and tell which inputs
    #[arg(long)]
    keep_going: bool,
    /// Replace results of another run in the folder
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &Merge) -> Result<()> {
    let into = match (&args.output, args.folders.as_slice()) {
        (Some(output), _) => output.clone(),
        (None, [one]) if one.join(SHARDS).is_dir() => one.clone(),
        (None, folders) if let Some(missing) = folders.iter().find(|folder| !folder.is_dir()) => {
            bail!(
                "there is no folder {}\nhint: give the folder that 'explain -o DIR --shard I/N' has written to",
                missing.display()
            )
        }
        _ => bail!("it is not said where the results go\nhint: choose a folder with -o"),
    };
    let mut shards = Vec::new();
    for folder in &args.folders {
        shards.extend(shards_of(folder)?);
    }
    shards.sort();
    if let Some(evaluations) = evaluations(&shards)? {
        if args.keep_going || args.report {
            let flag = if args.keep_going { "--keep-going" } else { "--report" };
            bail!("{flag} makes no difference to the shards of an evaluation\nhint: leave it out");
        }
        let count = evaluations.len();
        let facts = evaluations.first().map(|first| (first.title.clone(), first.facts.clone()));
        let (title, facts) = facts.unwrap_or_default();
        let table = EvaluationShard::merge(evaluations, &into)?;
        if into.join(TABLE).exists()
            && !args.force
            && std::fs::read(into.join(TABLE))? != table.json()?.as_bytes()
        {
            bail!(
                "{} holds another table\nhint: choose another folder with -o, or replace it with --force",
                into.join(TABLE).display()
            );
        }
        print_progress(&format!("{}: {} examples from {count} shards", into.display(), table.examples));
        write_files(&into, Facts { title, facts }, &table)?;
        return print_data(&table.text());
    }
    // Of one method a shard has the results itself, of several a folder for each.
    let mut methods: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for shard in &shards {
        for (name, folder) in methods_of(shard)? {
            methods.entry(name).or_default().push(folder);
        }
    }
    let Some(first) = shards.first().filter(|_| !methods.is_empty()) else {
        bail!(
            "there are no finished shards in {}\nhint: 'brenier explain -o DIR --shard 1/4' writes one",
            list(&args.folders)
        );
    };
    let (mut failures, mut missing, mut parts) = (Vec::<Failure>::new(), Vec::new(), Vec::new());
    for (name, folders) in &methods {
        let place = if name.is_empty() { into.clone() } else { into.join(name) };
        let merged = merge(folders, &place, args.keep_going, args.force)?;
        let (shards, inputs) = (merged.shards, merged.inputs);
        let left: usize = merged.missing.iter().map(|range| range.len()).sum();
        print_data(&format!(
            "{}: {} of {inputs} inputs from {shards} shards\n",
            place.display(),
            inputs - left - merged.failures.len()
        ))?;
        failures.extend(merged.failures);
        missing.extend(merged.missing);
        parts.push((name.clone(), place));
    }
    for file in [RECORD, "report.json"] {
        let (from, to) = (first.join(file), into.join(file));
        if from.exists() {
            std::fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    if args.report {
        let shape = parts.first().map(|(_, folder)| shape_of(folder)).transpose()?.unwrap_or_default();
        page::draw(&into, &parts, &shape, args.overlay)?;
    }
    for range in &missing {
        print_progress(&format!("missing: inputs {} to {}", range.start, range.end - 1));
    }
    tell_failures(&failures)?;
    match missing.iter().map(|range| range.len()).sum::<usize>() {
        0 => Ok(()),
        count => Err(anyhow!(Incomplete(format!(
            "{count} inputs are in none of the shards\nhint: run the missing shards and merge again"
        )))),
    }
}

/// Shards of an evaluation, where these are some.
fn evaluations(shards: &[PathBuf]) -> Result<Option<Vec<EvaluationShard>>> {
    let found: Vec<EvaluationShard> = shards
        .iter()
        .filter_map(|shard| EvaluationShard::load(shard).transpose())
        .collect::<Result<_, _>>()?;
    match found.len() {
        0 => Ok(None),
        all if all == shards.len() => Ok(Some(found)),
        _ => bail!(
            "shards of explanations and of an evaluation lie together\nhint: merge them one after the other"
        ),
    }
}

/// The finished shards of a folder, or the folder itself where it is one.
fn shards_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let inside = folder.join(SHARDS);
    if !inside.is_dir() {
        return Ok(vec![folder.to_owned()]);
    }
    let is_whole = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            name.contains("-of-") && !name.starts_with("unfinished-")
        })
    };
    Ok(inside_of(&inside)?.into_iter().filter(is_whole).collect())
}

/// The results of a shard by method; without a name where there is one method.
fn methods_of(shard: &Path) -> Result<Vec<(String, PathBuf)>> {
    if shard.join(WHOLE).exists() {
        return Ok(vec![(String::new(), shard.to_owned())]);
    }
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        path.join(WHOLE).exists().then_some((name, path))
    };
    Ok(inside_of(shard)?.into_iter().filter_map(named).collect())
}

fn inside_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let read =
        || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    read().with_context(|| format!("cannot read {}", folder.display()))
}

/// The shape of the inputs.
fn shape_of(folder: &Path) -> Result<Vec<usize>> {
    match ExplanationReader::open(folder)?.next() {
        Some(first) => Ok(first?.shape),
        None => Ok(Vec::new()),
    }
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
