//! ONNX graphs as plain values, and differentiation as a function from graph to graph.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod build;
mod error;
pub mod eval;
mod graph;
pub mod proto;
mod read;
pub mod shapes;
mod tensor;
mod validate;
mod write;

pub use build::{Builder, Value};
pub use error::{Error, Result};
pub use graph::{Attribute, Dim, Graph, Model, NEWEST_OPSET, Node, OLDEST_OPSET, ValueInfo};
pub use tensor::{DType, TensorData};
