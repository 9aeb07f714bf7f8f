//! Transport flows: velocity fields that carry the reference distribution to the data.
//!
//! A flow is a [`VelocityField`]: a closed form, a closure, or an ONNX graph with inputs `x [N, ...]` and
//! `t [N]` and output `v [N, ...]` ([`OnnxFlow`]). Networks of that form are built ([`NetworkConfig`]), trained
//! ([`train`]) on [`Pairs`] of reference and data, and straightened by pairs that
//! a flow makes ([`reflow_pairs`](crate::reflow_pairs)).

mod between;
mod diffusion;
mod identity;
mod metadata;
mod onnx;
mod pairs;
mod rectified;
mod reversed;

pub use between::{ClassFlows, ClassPairs};
pub use diffusion::{Denoising, NoisePredictor, noise_schedule, predict_noise_with};
pub use identity::flow_identity;
pub use metadata::{FlowMetadata, Objective};
pub use onnx::OnnxFlow;
pub use pairs::{
    CoupledPairs, Coupling, MatrixRows, Pairs, PairsFn, Rows, ScaledRows, Source, StoredPairs, couple,
};
pub use rectified::{Rectified, flow_loss, train};
pub use reversed::Reversed;

pub use crate::field::{FieldFn, VelocityField};
pub use crate::net::{MlpConfig, NetworkConfig, UnetConfig};
pub use crate::train::{Progress, TrainConfig, Trained};
