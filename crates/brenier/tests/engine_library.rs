//! Loading the ONNX Runtime library: one test, for a process loads it once.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use brenier::engine::{Engine, EngineConfig, EngineKind, OnnxRuntime, Provider};
use brenier::{EngineError, Error};

#[test]
fn a_process_loads_one_library() {
    // Something that is no library, before anything is loaded: refused, and nothing is spoilt by it.
    let text = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let error = OnnxRuntime::new(Some(&text), Provider::Cpu, 1).unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::OnnxRuntimeLibrary { .. })), "{error}");
    assert!(error.to_string().contains("version 1.24 or newer is needed"), "{error}");

    let config = EngineConfig { kind: EngineKind::Ort, ..EngineConfig::default() };
    match config.build() {
        Ok(engine) => assert!(engine.workers() >= 1),
        Err(Error::Engine(EngineError::NoOnnxRuntime { .. }))
            if std::env::var_os("BRENIER_TEST_WITHOUT_ORT").is_some() =>
        {
            return;
        }
        Err(error) => panic!("{error} (or set BRENIER_TEST_WITHOUT_ORT to test without it)"),
    }

    // Now that one is loaded, it is found again, and another is refused.
    assert_eq!(OnnxRuntime::new(None, Provider::Cpu, 3).unwrap().workers(), 3);
    let error = OnnxRuntime::new(Some(&text), Provider::Cpu, 1).unwrap_err();
    assert!(
        matches!(&error, Error::Engine(EngineError::OnnxRuntimeTwice { asked, .. }) if asked.ends_with("Cargo.toml")),
        "{error}"
    );
    assert!(error.to_string().contains("a process holds only one"), "{error}");
}
