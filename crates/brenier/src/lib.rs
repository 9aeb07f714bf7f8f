//! Feature attribution along transport geodesics.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod engine;
mod error;
mod predictor;

pub use error::{Error, Result};
pub use predictor::{OnnxPredictor, PredictorConfig, ValueAndGradient};
