//! Transport flows: velocity fields that carry the reference distribution to the data.
//!
//! A flow is a [`VelocityField`]: a closed form, a closure, or an ONNX graph with inputs `x [N, ...]` and
//! `t [N]` and output `v [N, ...]`. Networks of that form are built here ([`NetworkConfig`]).

mod assignment;
mod metadata;
mod net;
mod onnx;
mod pairs;
mod velocity;

pub use assignment::assign;
pub use metadata::{AffineScaling, FlowMetadata, Objective};
pub use net::{MlpConfig, NetworkConfig, UnetConfig};
pub use onnx::OnnxFlow;
pub use pairs::{CoupledPairs, Coupling, MatrixRows, Pairs, PairsFn, Rows, Source, StoredPairs, couple};
pub use velocity::{FieldFn, VelocityField};
