//! Transport flows: velocity fields that carry the reference distribution to the data.
//!
//! A flow is a [`VelocityField`]: a closed form, a closure, or an ONNX graph with inputs `x [N, ...]` and
//! `t [N]` and output `v [N, ...]` ([`OnnxFlow`]). Networks of that form are built ([`NetworkConfig`]), trained
//! ([`train`]) on [`Pairs`] of reference and data, and straightened ([`reflow_pairs`]) here.

mod assignment;
mod metadata;
mod net;
mod onnx;
mod pairs;
mod reflow;
mod train;
mod velocity;

pub use assignment::assign;
pub use metadata::{AffineScaling, FlowMetadata, Objective};
pub use net::{MlpConfig, NetworkConfig, UnetConfig};
pub use onnx::OnnxFlow;
pub use pairs::{CoupledPairs, Coupling, MatrixRows, Pairs, PairsFn, Rows, Source, StoredPairs, couple};
pub use reflow::{flow_ends, reflow_pairs};
pub use train::{Progress, TrainConfig, Trained, flow_loss, train};
pub use velocity::{FieldFn, VelocityField};
