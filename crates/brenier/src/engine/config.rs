//! Which engine, and how: what a user writes down.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Arithmetic, Engine, OnnxRuntime, Provider, Rten};
use crate::error::{EngineError, Error, Remedy, Result};

/// The engines there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EngineKind {
    /// [`Rten`], built in.
    #[default]
    Rten,
    /// [`OnnxRuntime`], found at run time.
    Ort,
}

impl EngineKind {
    /// The name, as in configurations and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Rten => "rten",
            EngineKind::Ort => "ort",
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<EngineKind> {
        let all = [EngineKind::Rten, EngineKind::Ort];
        all.into_iter().find(|kind| kind.name() == name).ok_or_else(|| Error::UnknownChoice {
            what: "engine",
            found: name.to_string(),
            known: all.map(EngineKind::name).to_vec(),
        })
    }
}

/// Workers at the most: each has a program of its own.
const MOST_WORKERS: usize = 1024;

/// Which engine, where it runs and with how many workers. Builds the [`Engine`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// The engine. Default: RTen.
    pub kind: EngineKind,
    /// The ONNX Runtime library; searched for where not given (see [`OnnxRuntime`]). RTen needs none.
    pub library: Option<PathBuf>,
    /// Where ONNX Runtime runs. RTen runs on the CPU only.
    pub provider: Provider,
    /// The number of workers. Default: one per core, or one where the provider is not the CPU.
    pub workers: Option<usize>,
    /// How RTen computes convolutions. Default: fast.
    pub arithmetic: Arithmetic,
    /// Whether models to explain are run without comparing the engine's values with the reference evaluator first.
    /// Default: they are compared, once for each model and version of the engine.
    pub unchecked: bool,
}

impl EngineConfig {
    /// The engine. Fails where ONNX Runtime or the provider is asked for and not available.
    pub fn build(&self) -> Result<Arc<dyn Engine>> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.unwrap_or_else(|| match self.provider {
            Provider::Cpu => cores(),
            _ => 1,
        });
        if workers == 0 {
            return Err(Error::Zero { what: "the number of workers" });
        }
        if workers > MOST_WORKERS {
            return Err(Error::TooMany { name: "the number of workers", value: workers, most: MOST_WORKERS });
        }
        match self.kind {
            EngineKind::Rten if self.provider != Provider::Cpu => Err(Error::Engine(EngineError::Provider {
                engine: Rten::NAME,
                provider: self.provider.name(),
                reason: "it has no GPU support".to_string(),
                available: vec![Provider::Cpu.name()],
                remedy: Some(Remedy::OnnxRuntime),
            })),
            EngineKind::Rten => Ok(Arc::new(Rten::new(workers).with_arithmetic(self.arithmetic))),
            EngineKind::Ort => {
                Ok(Arc::new(OnnxRuntime::new(self.library.as_deref(), self.provider, workers)?))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_writes() {
        let config = EngineConfig {
            kind: EngineKind::Ort,
            provider: Provider::Cuda,
            workers: Some(2),
            ..EngineConfig::default()
        };
        let json = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<EngineConfig>(&json).unwrap(), config);
        assert_eq!(serde_json::from_str::<EngineConfig>("{}").unwrap(), EngineConfig::default());
        assert!(serde_json::from_str::<EngineConfig>(r#"{"engine": "ort"}"#).is_err());
    }

    #[test]
    fn refuses_what_cannot_be_had() {
        let refusal = |config: EngineConfig| config.build().unwrap_err().to_string();
        assert_eq!(
            refusal(EngineConfig { provider: Provider::Cuda, ..EngineConfig::default() }),
            "RTen cannot run on cuda: it has no GPU support; available here: cpu; run the model with \
             ONNX Runtime, which knows more of them"
        );
        assert_eq!(
            refusal(EngineConfig { workers: Some(0), ..EngineConfig::default() }),
            "the number of workers must be at least 1"
        );
        assert_eq!(
            "tract".parse::<EngineKind>().unwrap_err().to_string(),
            "there is no engine 'tract'; choose one of rten, ort"
        );
        assert_eq!(
            "exact".parse::<Arithmetic>().unwrap_err().to_string(),
            "there is no arithmetic 'exact'; choose one of fast, accurate"
        );
    }
}
