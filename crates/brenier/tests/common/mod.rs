//! What several test binaries share.
#![allow(dead_code)] // Each binary uses its own part.

use std::sync::Arc;

use brenier::engine::{Engine, EngineConfig, EngineKind};
use brenier::{EngineError, Error};

/// Both engines. Where ONNX Runtime is missing, tests fail with the remedy, unless told to do without.
pub(crate) fn engines() -> Vec<Arc<dyn Engine>> {
    let rten = EngineConfig::default().build().unwrap();
    match (EngineConfig { kind: EngineKind::Ort, ..EngineConfig::default() }).build() {
        Ok(ort) => vec![rten, ort],
        Err(Error::Engine(EngineError::NoOnnxRuntime { .. }))
            if std::env::var_os("BRENIER_TEST_WITHOUT_ORT").is_some() =>
        {
            vec![rten]
        }
        Err(error) => panic!("{error} (or set BRENIER_TEST_WITHOUT_ORT to test without it)"),
    }
}

/// How to get each of [`engines`].
pub(crate) fn engine_configs() -> Vec<EngineConfig> {
    let kinds = [EngineKind::Rten, EngineKind::Ort];
    kinds[..engines().len()].iter().map(|&kind| EngineConfig { kind, ..EngineConfig::default() }).collect()
}
