//! Explanations and an evaluation may share a folder, and then a page: only if they are of one model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// What must be the same.
const OF_A_MODEL: [&str; 3] = ["the model's fingerprint", "the explained output", "the preprocessing"];
/// Where a run of either verb says what it is made from: `explain`, finished and not, and `evaluate`.
const EXPLAINED: [&str; 2] = ["explanations.run.json", "explanations.parts/run.json"];
const EVALUATED: &str = "parts/run.json";

/// Refuses to explain into a folder with an evaluation of another model.
pub(crate) fn expect_evaluated_model(folder: &Path, made_from: &[(String, String)]) -> Result<()> {
    expect_same(&[folder.join(EVALUATED)], "an evaluation", made_from)
}

/// Refuses to evaluate into a folder with explanations of another model.
pub(crate) fn expect_explained_model(folder: &Path, made_from: &[(String, String)]) -> Result<()> {
    let mut places = vec![folder.to_owned()];
    if let Ok(entries) = std::fs::read_dir(folder) {
        places.extend(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|place| place.is_dir()));
    }
    places.sort();
    let claims: Vec<PathBuf> =
        places.iter().flat_map(|place| EXPLAINED.map(|claim| place.join(claim))).collect();
    expect_same(&claims, "explanations", made_from)
}

fn expect_same(claims: &[PathBuf], what: &str, made_from: &[(String, String)]) -> Result<()> {
    for claim in claims.iter().filter(|claim| claim.exists()) {
        let text =
            brenier::readable::read(claim).with_context(|| format!("cannot read {}", claim.display()))?;
        let kept: BTreeMap<String, String> =
            serde_json::from_slice(&text).with_context(|| format!("cannot read {}", claim.display()))?;
        for (name, now) in made_from.iter().filter(|(name, _)| OF_A_MODEL.contains(&name.as_str())) {
            let Some(before) = kept.get(name).filter(|before| *before != now) else { continue };
            bail!(
                "{} is of {what} with another model: {name} was {before}, and now it is {now}\nhint: choose another folder with -o",
                claim.display()
            );
        }
    }
    Ok(())
}
