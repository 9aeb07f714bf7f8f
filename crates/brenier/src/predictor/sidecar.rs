//! What a model's file does not say of itself, in a file beside it: `model.toml` for `model.onnx`.
//!
//! ```toml
//! classes = ["cat", "dog"]
//! columns = ["age", { name = "city", values = ["Lyon", "Oslo"] }]      # of a table, in the model's order
//!
//! [preprocessing]
//! scale = 255                    # x / 255; "1/255" for x * 255
//! mean = [0.485, 0.456, 0.406]
//! std = [0.229, 0.224, 0.225]
//! channels = "bgr"
//! layout = "nhwc"
//! size = [224, 224]
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::preprocessing::Preprocessing;
use crate::data::{Column, ColumnKind};
use crate::error::{Error, Result};

/// What stands beside a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sidecar {
    /// The names of the outputs, in their order.
    pub classes: Vec<String>,
    /// The columns of the table that it takes, in its order.
    pub columns: Vec<SidecarColumn>,
    /// What is done to an input before it reaches the model.
    pub preprocessing: Preprocessing,
}

/// A column as it is written beside a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a column is a name, or { name = \"city\", values = [\"Lyon\", \"Oslo\"] }")]
pub enum SidecarColumn {
    /// Numbers, under this name.
    Number(String),
    /// A category: a feature for each value, in this order.
    Category {
        /// Its name.
        name: String,
        /// Its values.
        values: Vec<String>,
    },
}

impl Sidecar {
    /// Where it would be for this model.
    pub fn path(model: &Path) -> PathBuf {
        model.with_extension("toml")
    }

    /// The columns, as data are coded by.
    pub fn coding(&self) -> Vec<Column> {
        let column = |column: &SidecarColumn| match column {
            SidecarColumn::Number(name) => Column { name: name.clone(), kind: ColumnKind::Numeric },
            SidecarColumn::Category { name, values } => {
                let kind = ColumnKind::Categorical { values: values.clone() };
                Column { name: name.clone(), kind }
            }
        };
        self.columns.iter().map(column).collect()
    }

    /// Reads the file beside a model; nothing where there is none.
    ///
    /// # Errors
    /// If the file is not TOML, or has keys that mean nothing.
    pub fn beside(model: &Path) -> Result<Sidecar> {
        let path = Sidecar::path(model);
        let text = match crate::readable::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Sidecar::default()),
            Err(error) => return Err(Error::Read { path, source: error.into() }),
        };
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            Error::Sidecar { path, line, reason: error.message().replace('\n', " ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChannelOrder, Layout};

    fn beside(text: &str) -> Result<Sidecar> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("net.toml"), text).unwrap();
        Sidecar::beside(&folder.path().join("net.onnx"))
    }

    #[test]
    fn a_file_beside_the_model_is_read() {
        let text = "classes = [\"cat\", \"dog\"]\n[preprocessing]\nscale = \"1/255\"\nmean = [0.5]\nchannels = \"bgr\"\n\
                    layout = \"nhwc\"\nsize = [4, 5]\n";
        let found = beside(text).unwrap();
        assert_eq!(found.classes, ["cat", "dog"]);
        let p = &found.preprocessing;
        assert!((p.scale.unwrap() - 1.0 / 255.0).abs() < 1e-15);
        assert_eq!(
            (p.channels, p.layout, p.size),
            (Some(ChannelOrder::Bgr), Some(Layout::Nhwc), Some([4, 5]))
        );
        assert_eq!(beside("[preprocessing]\nscale = 255").unwrap().preprocessing.scale, Some(255.0));
        assert_eq!(Sidecar::beside(Path::new("nowhere.onnx")).unwrap(), Sidecar::default());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, told) in [
            ("[preprocessing]\nmaen = [1.0]", "line 2: unknown field `maen`"),
            ("[preprocessing]\nscale = \"half\"", "line 2: 'half' is no scale"),
            ("classes = 3", "line 1: "),
            ("columns = [3]", "line 1: a column is a name, or { name"),
        ] {
            let error = beside(text).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains("net.toml"), "{error}");
        }
    }
}
