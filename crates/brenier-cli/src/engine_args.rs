//! The flags that choose an engine, shared by every verb that runs networks.

use std::path::PathBuf;

use brenier::engine::{Arithmetic, EngineConfig, EngineKind, Provider};
use clap::Args;

/// Which engine runs the networks
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// The engine: rten (built in) or ort (ONNX Runtime, found at run time)
    #[arg(long, value_name = "ENGINE", default_value_t = EngineKind::Rten)]
    engine: EngineKind,
    /// ONNX Runtime's shared library; default: ORT_DYLIB_PATH, an active Python environment, the system's places
    #[arg(long, value_name = "FILE")]
    ort_library: Option<PathBuf>,
    /// Where ONNX Runtime runs: cpu, cuda, tensorrt, coreml, directml, ...
    #[arg(long, value_name = "PROVIDER", default_value_t = Provider::Cpu)]
    provider: Provider,
    /// Number of workers, each on a core of its own; default: one for every core
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// How the built-in engine computes convolutions of 3x3: fast, or accurate (smaller rounding errors)
    #[arg(long, value_name = "ARITHMETIC", default_value_t = Arithmetic::Fast)]
    arithmetic: Arithmetic,
    /// Do not compare the engine's values with the reference evaluator when a model is first used
    #[arg(long)]
    no_engine_check: bool,
}

impl EngineArgs {
    /// Takes another engine or library, where one is given.
    pub(crate) fn replace(&mut self, engine: Option<EngineKind>, library: Option<PathBuf>) {
        self.engine = engine.unwrap_or(self.engine);
        self.ort_library = library.or(self.ort_library.take());
    }

    /// What the flags mean.
    pub(crate) fn config(&self) -> EngineConfig {
        EngineConfig {
            kind: self.engine,
            library: self.ort_library.clone(),
            provider: self.provider,
            workers: self.workers,
            arithmetic: self.arithmetic,
            unchecked: self.no_engine_check,
        }
    }
}
