//! The function being explained: any [`Score`], and above all a user's ONNX model.

mod behind;
mod columnwise;
mod contrast;
mod ending;
mod file;
mod frame;
mod inspection;
mod layer;
mod logits;
mod named;
mod onnx;
mod outputs;
mod pack;
mod pairs;
mod places;
mod preprocessing;
mod resampling;
mod scoring;
mod sidecar;
mod signature;
mod split;
mod texts;
mod tree_file;
mod trees;
mod values;

pub use file::ModelFile;
pub use inspection::{BlockedNode, Inspection, InterfaceValue};
pub use layer::{LayerPredictor, LayerValues};
pub use named::NamedInputs;
pub(crate) use onnx::SCORES;
pub use onnx::{OnnxPredictor, PredictorConfig, ValueAndGradient};
pub use outputs::Outputs;
pub use pack::Packing;
pub use pairs::{Multipliers, PairPredictor};
pub(crate) use preprocessing::PREPARATION;
pub use preprocessing::{ChannelOrder, Layout, Preprocessing};
pub use resampling::resampling;
pub use scoring::{Along, Minus, Reduce, Scoring, Within, score_axes};
pub use sidecar::{Sidecar, SidecarColumn};
pub use split::{Embedding, embeddings};
pub use texts::{TextBaseline, TextInputs};
pub use values::ValuePredictor;

pub(crate) use crate::score::Score;
