//! What was found before, in the user's cache folder.
//!
//! A file for each model, engine and kind of machine: `$XDG_CACHE_HOME/brenier/engine-checks/` or
//! `~/.cache/brenier/engine-checks/`. Where nothing can be written, the next run asks again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use onnx_grad::{Graph, Model};

use super::Verdict;
use crate::engine::Engine;
use crate::whole_file::write_whole;

/// Where the verdict on one model is kept.
pub(super) struct Place {
    file: Option<PathBuf>,
}

impl Place {
    /// The place for a model on an engine, inside this folder. All that could change the verdict goes into its name.
    pub(super) fn within(folder: Option<&Path>, engine: &dyn Engine, model: &Model, key: &str) -> Place {
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), engine.described(), key, machine()).hash(&mut hasher);
        // Weights are hashed where they are; the rest is small and can be written out.
        let bare = Graph { initializers: Default::default(), ..model.graph.clone() };
        hasher.write(&Model { graph: bare, metadata: Default::default(), ..model.clone() }.to_bytes());
        for (name, weights) in &model.graph.initializers {
            (name, weights.dtype(), weights.shape()).hash(&mut hasher);
            hasher.write(weights.bytes());
        }
        let name = format!("{:016x}.json", hasher.finish());
        Place { file: folder.map(|folder| folder.join("brenier").join("engine-checks").join(name)) }
    }

    pub(super) fn read(&self) -> Option<Verdict> {
        serde_json::from_slice(&std::fs::read(self.file.as_ref()?).ok()?).ok()
    }

    /// Keeps a verdict; not being able to is no error.
    pub(super) fn write(&self, verdict: &Verdict) {
        let Some((file, bytes)) = self.file.as_ref().zip(serde_json::to_vec(verdict).ok()) else { return };
        if file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok()) {
            let _ = write_whole(file, &bytes);
        }
    }
}

/// The user's cache folder, where the system names one.
pub(super) fn folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))
}

/// The instructions that engines choose their kernels by: a home folder may serve several machines.
fn machine() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let has = [
            ("avx2", is_x86_feature_detected!("avx2")),
            ("avx512f", is_x86_feature_detected!("avx512f")),
            ("avx512vnni", is_x86_feature_detected!("avx512vnni")),
        ];
        let names: Vec<&str> = has.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        format!("x86_64 {}", names.join(" "))
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH.to_string()
}
