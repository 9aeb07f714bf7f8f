//! ONNX graphs as plain values, and differentiation as a function from graph to graph.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod backward;
mod build;
mod cost;
mod coverage;
mod error;
pub mod eval;
mod floats;
mod fuse;
pub mod fused;
mod grad;
mod graph;
mod half_weights;
mod lower;
mod options;
pub mod proto;
mod read;
mod recurrent;
mod resample;
mod rewrite;
mod rules;
pub mod shapes;
mod step;
mod tensor;
mod validate;
mod write;

pub use backward::BackwardRules;
pub use build::{Builder, Value};
pub use cost::Cost;
pub use coverage::{Coverage, Treatment, coverage, coverage_table};
pub use error::{Error, Result};
pub use fuse::fuse;
pub use grad::{Obstacle, grad, grad_with, gradient_name, obstacles, seed_name};
pub use graph::{
    Attribute, CLASSICAL_DOMAIN, Dim, Graph, Model, NEWEST_OPSET, Node, OLDEST_OPSET, ValueInfo, Words,
};
pub use lower::lower;
pub use options::GradOptions;
pub use read::{DataFiles, operators, without_maps};
pub use rewrite::{resize_by_axes, rewrite};
pub use step::{Gradients, Step, WeightGradient};
pub use tensor::{DType, TensorData};
