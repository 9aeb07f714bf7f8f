//! Finished parts of a long run, kept in a folder so that an interrupted run does not lose them.
//!
//! A part is what one seed found, what a method scores on a few examples, or what a figure needs: plain numbers,
//! written as JSON the moment they are there, beside the settings that they came from. A run that finds a part of
//! the same settings takes it, to the bit; one of other settings is made again. Where parts of different runs must
//! not be mixed at all, the folder is claimed for one run first, and another one is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lock::Lock;
use crate::whole_file::{make_folder, write_whole};
use crate::{Error, Remedy, Result};

/// The file that says which run a folder was claimed for.
const CLAIM: &str = "run.json";

/// Where finished parts are kept.
#[derive(Debug, Clone, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    replacing: bool,
}

#[derive(Serialize, Deserialize)]
struct Part {
    settings: Value,
    result: Value,
}

impl Store {
    /// Nowhere: every run makes everything.
    pub fn nowhere() -> Store {
        Store::default()
    }

    /// In a folder, which is made when the first part is finished.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Store {
        Store { folder: Some(folder.into()), replacing: false }
    }

    /// A part of this store with a folder of its own.
    pub fn within(&self, name: &str) -> Store {
        Store { folder: self.folder.as_ref().map(|folder| folder.join(name)), ..self.clone() }
    }

    /// The same store, in which a run that claims the folder takes the place of another one.
    pub fn replacing(self) -> Store {
        Store { replacing: true, ..self }
    }

    /// The folder, for what is kept there besides parts.
    ///
    /// # Errors
    /// If there is none, with what it is needed for.
    pub fn require_folder(&self, needs: &'static str) -> Result<&Path> {
        self.folder.as_deref().ok_or_else(|| Error::Setting {
            name: "the folder for results",
            value: "not given".to_string(),
            needs,
            hint: Remedy::ChooseFolder,
        })
    }

    /// Says what the parts in the folder are made from, by name: a model, data, settings. The first run writes it
    /// down; every other one must say the same, or the parts go where the store is [`Store::replacing`].
    ///
    /// While the lock that is handed back lives, no other process can claim the folder.
    ///
    /// # Errors
    /// If the folder was claimed for something else, with the first thing that differs; if another process is at work
    /// there.
    pub fn claim(&self, about: &BTreeMap<String, String>) -> Result<Lock> {
        let Some(folder) = &self.folder else { return Ok(Lock::default()) };
        let path = folder.join(CLAIM);
        let unwritable =
            |source: Box<dyn std::error::Error + Send + Sync>| Error::Write { path: path.clone(), source };
        if path.exists() {
            let lock = Lock::on(&path, folder)?;
            match refuse_others(folder, &path, about) {
                Err(Error::OtherParts { .. }) if self.replacing => {
                    std::fs::remove_dir_all(folder).map_err(|e| unwritable(e.into()))?;
                }
                answer => return answer.map(|()| lock),
            }
        }
        make_folder(folder)?;
        write_whole(&path, &serde_json::to_vec_pretty(about).map_err(|e| unwritable(e.into()))?)?;
        Lock::on(&path, folder)
    }

    /// The part of this name: the one that was kept, if it has the same settings, or else a new one.
    ///
    /// # Errors
    /// What `make` says, and a folder that cannot be written to. A file that is no part counts as none.
    pub fn part<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        settings: &impl Serialize,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Some(folder) = &self.folder else { return make() };
        let path = folder.join(format!("{name}.json"));
        let unwritable = |e: serde_json::Error| Error::Write { path: path.clone(), source: e.into() };
        let settings = serde_json::to_value(settings).map_err(unwritable)?;
        if let Some(kept) = read(&path).filter(|part| part.settings == settings)
            && let Ok(result) = serde_json::from_value(kept.result)
        {
            return Ok(result);
        }
        let made = make()?;
        let part = Part { settings, result: serde_json::to_value(&made).map_err(unwritable)? };
        make_folder(folder)?;
        write_whole(&path, &serde_json::to_vec(&part).map_err(unwritable)?)?;
        Ok(made)
    }
}

/// An error where a folder was claimed for something else.
pub(crate) fn refuse_others(folder: &Path, claim: &Path, about: &BTreeMap<String, String>) -> Result<()> {
    let unreadable =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Read { path: claim.to_owned(), source };
    let bytes = std::fs::read(claim).map_err(|e| unreadable(e.into()))?;
    let kept: BTreeMap<String, String> = serde_json::from_slice(&bytes).map_err(|e| unreadable(e.into()))?;
    let absent = "none".to_string();
    for name in kept.keys().chain(about.keys()) {
        let (before, now) = (kept.get(name).unwrap_or(&absent), about.get(name).unwrap_or(&absent));
        if before != now {
            return Err(Error::OtherParts {
                folder: folder.to_owned(),
                what: name.clone(),
                kept: around_difference(before, now),
                asked: around_difference(now, before),
            });
        }
    }
    Ok(())
}

/// A value that is not too long to be read; of a long one, where it begins to differ.
pub(crate) fn around_difference(value: &str, other: &str) -> String {
    const LONGEST: usize = 120;
    let count = value.chars().count();
    if count <= LONGEST {
        return value.to_string();
    }
    let same = value.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let first = same.saturating_sub(LONGEST / 2);
    let part: String = value.chars().skip(first).take(LONGEST).collect();
    let (before, after) =
        (if first > 0 { "..." } else { "" }, if first + LONGEST < count { "..." } else { "" });
    format!("{before}{part}{after}")
}

fn read(path: &Path) -> Option<Part> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_made_once_for_its_settings() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path().join("parts"));
        let mut made = 0;
        let mut ask = |store: &Store, settings: &[u64]| {
            store
                .part("seed-0", &settings, || {
                    made += 1;
                    Ok(vec![0.1 + 0.2, f64::from(made)])
                })
                .unwrap()
        };
        let first = ask(&store, &[1, 2]);
        assert_eq!(ask(&store, &[1, 2]), first, "kept, to the bit");
        assert_eq!(ask(&store, &[1, 3])[1], 2.0, "other settings");
        std::fs::write(folder.path().join("parts/seed-0.json"), "{\"settings\": [1, 3], ").unwrap();
        assert_eq!(ask(&store, &[1, 3])[1], 3.0, "half a file is none");
        assert_eq!(ask(&Store::nowhere(), &[1, 3])[1], 4.0);
        let failed: Result<f64> = store.part("other", &1, || Err(Error::Zero { what: "it" }));
        assert!(failed.is_err() && !folder.path().join("parts/other.json").exists());
    }

    #[test]
    fn a_claimed_folder_is_for_one_run() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_folder(folder.path().join("parts"));
        let about = |model: &str| BTreeMap::from([("the model".to_string(), model.to_string())]);
        store.claim(&about("a")).unwrap();
        store.claim(&about("a")).unwrap();
        let message = store.claim(&about("b")).unwrap_err().to_string();
        assert!(message.contains("the model was a, and now it is b\nhint: "), "{message}");
        let message = store.claim(&BTreeMap::new()).unwrap_err().to_string();
        assert!(message.contains("now it is none"), "{message}");
        Store::nowhere().claim(&about("b")).unwrap();
        // Where that is wanted, the parts of the other run go; those of the same run stay.
        let part = folder.path().join("parts/part.json");
        std::fs::write(&part, "").unwrap();
        let replacing = store.clone().replacing();
        replacing.claim(&about("a")).unwrap();
        assert!(part.exists());
        replacing.claim(&about("b")).unwrap();
        assert!(!part.exists() && store.claim(&about("b")).is_ok());
    }
}
