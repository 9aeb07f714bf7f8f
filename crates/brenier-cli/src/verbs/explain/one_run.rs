//! A folder holds one run: nothing of an earlier one lies beside it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What a run of one method leaves in its folder.
const RESULTS: [&str; 6] = [
    "explanations.run.json",
    "explanations.npz",
    "explanations.jsonl",
    "explanations.parquet",
    "stills.npz",
    "traces.npz",
];

/// Refuses a folder with results that this run would leave standing beside its own; removes them where that was asked for.
/// `folders` are those of this run's methods.
pub(super) fn make_room(folder: &Path, folders: &[(String, PathBuf)], replace: bool) -> Result<()> {
    let ours = |place: &Path| folders.iter().any(|(_, folder)| folder == place);
    let holds = |place: &Path| place.join(RESULTS[0]).exists();
    let mut others: Vec<PathBuf> = Vec::new();
    if holds(folder) && !ours(folder) {
        others.push(folder.to_owned());
    }
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let place = entry?.path();
        if place.is_dir() && holds(&place) && !ours(&place) {
            others.push(place);
        }
    }
    others.sort();
    if let Some(other) = others.first()
        && !replace
    {
        bail!(
            "{} holds the results of another run\nhint: choose another folder with -o, or replace them with --force",
            other.display()
        );
    }
    for other in others {
        for name in RESULTS {
            remove(&other.join(name))?;
        }
        if other != folder {
            // What is not ours stays, and so does its folder.
            let _ = std::fs::remove_dir(&other);
        }
    }
    Ok(())
}

/// Removes heat maps of an earlier run.
pub(super) fn keep_only(folder: &Path, made: &[PathBuf]) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if is_heat_map(&path) && !made.contains(&path) {
            remove(&path)?;
        }
    }
    Ok(())
}

/// Whether a file is named as heat maps are: `0003-ig-target8.png`.
fn is_heat_map(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(stem) = name.strip_suffix(".png") else { return false };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let first = stem.split_once('-').is_some_and(|(example, _)| number(example));
    first && stem.rsplit_once("-target").is_some_and(|(_, target)| number(target))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
