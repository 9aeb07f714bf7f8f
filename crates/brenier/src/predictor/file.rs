//! A model's file as it was loaded, and its fingerprint: what two people must have in common to explain the same scores.
//!
//! ```text
//! hash      SHA-256 of the file; with external data, of its hash and the hash of every data file
//! hash_as   the same with all that is decided beside the file: output, shape, preprocessing, the cut of the softmax
//! ```
//!
//! Files are read once, and what is hashed is what is run: a file that somebody replaces in the meantime changes neither.

use std::path::Path;

use bytes::Bytes;
use onnx_grad::Model;

use super::onnx::PredictorConfig;
use crate::error::Result;
use crate::fingerprint;

/// The bytes of a model's file, with those of its data files.
#[derive(Debug)]
pub struct ModelFile {
    bytes: Bytes,
    /// The graph; an error for trees, and for what is no ONNX.
    model: onnx_grad::Result<Model>,
    hash: String,
}

impl ModelFile {
    /// Reads a file and its external data.
    ///
    /// # Errors
    /// If there is no such file. Whether it is a model is told by whoever asks for one.
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFile> {
        let path = path.as_ref();
        let bytes: Bytes = crate::readable::read(path)
            .map_err(|error| onnx_grad::Error::File {
                action: "read",
                path: path.to_path_buf(),
                reason: error.to_string(),
            })?
            .into();
        let own = fingerprint(&bytes);
        let read = Model::from_bytes_in(bytes.clone(), path.parent().unwrap_or(Path::new("")));
        let (model, hash) = match read {
            Err(error) => (Err(error), own),
            Ok((model, files)) if files.is_empty() => (Ok(model), own),
            Ok((model, files)) => {
                let mut text = format!("file {own}\n");
                for (location, content) in &files {
                    text.push_str(&format!("data {} {}\n", location.display(), fingerprint(content)));
                }
                (Ok(model), fingerprint(text.as_bytes()))
            }
        };
        Ok(ModelFile { bytes, model, hash })
    }

    /// Takes the bytes of a file that holds all its data.
    pub fn from_bytes(bytes: Vec<u8>) -> ModelFile {
        let bytes: Bytes = bytes.into();
        let (model, hash) = (Model::from_bytes(bytes.clone()), fingerprint(&bytes));
        ModelFile { bytes, model, hash }
    }

    /// The file itself.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The graph that it holds.
    ///
    /// # Errors
    /// If it is no ONNX file that can be read.
    pub fn model(&self) -> Result<&Model> {
        self.model.as_ref().map_err(|error| error.clone().into())
    }

    /// The fingerprint of the file with its external data; without such data, that of `sha256sum`.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The fingerprint of the scores that are explained: of the file, and of all that is decided beside it. `contrast`
    /// is the class whose score is taken from all, where there is one.
    pub fn hash_as(&self, config: &PredictorConfig, contrast: Option<usize>) -> String {
        // Every part on a line of its own, as JSON: no two settings have one text.
        let mut parts = serde_json::json!({
            "model": self.hash,
            "output": config.output,
            "input shape": config.input_shape,
            "preprocessing": config.preprocessing,
            "final activation": if config.keep_final_activation { "kept" } else { "cut" },
            "contrast": contrast,
            "inputs": config.packing.as_ref().map(|packing| format!("{packing:?}")),
        });
        if let Some(scoring) = &config.scoring {
            parts["scoring"] = scoring.described().into();
        }
        fingerprint(parts.to_string().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Minus, Preprocessing, Scoring};

    fn model(folder: &str) -> ModelFile {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
        ModelFile::open(fixtures.join(folder)).unwrap()
    }

    #[test]
    fn a_hash_covers_all_that_decides_the_scores() {
        let file = model("torch/vgg.script.onnx");
        assert_eq!(file.hash(), fingerprint(file.bytes()), "as sha256sum says");
        let plain = PredictorConfig::default();
        let scaled = Preprocessing { scale: Some(255.0), ..Preprocessing::default() };
        let others = [
            PredictorConfig { output: Some("y".to_string()), ..plain.clone() },
            PredictorConfig { input_shape: Some(vec![3, 16, 16]), ..plain.clone() },
            PredictorConfig { preprocessing: scaled, ..plain.clone() },
            PredictorConfig { keep_final_activation: true, ..plain.clone() },
            PredictorConfig {
                scoring: Some(Scoring { minus: Some(Minus::HighestOther), ..Scoring::default() }),
                ..plain.clone()
            },
        ];
        let mut hashes: Vec<String> = others.iter().map(|config| file.hash_as(config, None)).collect();
        hashes.push(file.hash_as(&plain, None));
        hashes.push(file.hash_as(&plain, Some(1)));
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), 7);
    }
}
