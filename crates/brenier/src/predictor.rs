//! The function being explained: any [`Score`], and above all a user's ONNX model.

mod inspection;
mod layer;
mod logits;
mod micro_batch;
mod onnx;
mod preprocessing;
mod resampling;
mod score;
mod sidecar;
mod values;

pub use inspection::{BlockedNode, Inspection, InterfaceValue};
pub use layer::{LayerPredictor, LayerValues};
pub(crate) use micro_batch::micro_batch;
pub use onnx::{OnnxPredictor, PredictorConfig, ValueAndGradient};
pub use preprocessing::{ChannelOrder, Layout, Preprocessing};
pub use score::{Score, ScoreFn, ValueFn};
pub use sidecar::Sidecar;
pub use values::ValuePredictor;
