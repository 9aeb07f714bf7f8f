//! What `tokenizer_config.json` says beside a `tokenizer.json`: Transformers keeps names of tokens and the longest text there.

use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};

const FILE: &str = "tokenizer_config.json";
/// Larger lengths stand for none.
const NO_LIMIT: f64 = 1e7;

/// What is taken from it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    pad_token: Option<Name>,
    mask_token: Option<Name>,
    model_max_length: Option<f64>,
    padding_side: Option<String>,
}

/// A token is named by itself, or in an object that says more of it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Name {
    Plain(String),
    Added { content: String },
}

impl Name {
    fn text(&self) -> &str {
        match self {
            Name::Plain(text) | Name::Added { content: text } => text,
        }
    }
}

impl Settings {
    /// Those beside a file; none where there are none.
    pub(super) fn beside(tokenizer: &Path) -> Result<Settings> {
        let path = tokenizer.with_file_name(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Settings::default()),
            Err(error) => return Err(Error::Read { path, source: error.into() }),
        };
        serde_json::from_slice(&bytes).map_err(|error| Error::Read { path, source: error.into() })
    }

    pub(super) fn padding(&self) -> Option<&str> {
        self.pad_token.as_ref().map(Name::text)
    }

    pub(super) fn mask(&self) -> Option<&str> {
        self.mask_token.as_ref().map(Name::text)
    }

    pub(super) fn pads_left(&self) -> bool {
        self.padding_side.as_deref() == Some("left")
    }

    pub(super) fn longest(&self) -> Option<usize> {
        self.model_max_length.filter(|length| (1.0..NO_LIMIT).contains(length)).map(|length| length as usize)
    }
}
