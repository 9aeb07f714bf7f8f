//! The function being explained.

mod logits;
mod micro_batch;
mod onnx;

pub use onnx::{OnnxPredictor, PredictorConfig, ValueAndGradient};
