//! Engines run graphs. Brenier has none of its own: it hands graphs to engines that exist, and has kernels for the few
//! operators that they are slow at (see [`Plan`]).
//!
//! - [`Rten`]: pure Rust, built in, 32-bit floats on the CPU.
//! - [`OnnxRuntime`]: a shared library found at run time, 32- and 64-bit floats, CPU and GPU.
//!
//! An [`Engine`] loads a [`Model`] into a [`Program`]: one single-threaded instance that maps named inputs
//! to outputs. [`Workers`] run one program per core over the rows of a batch, in micro-batches of a fixed
//! size. Both numbers that could change a result's last bits are thereby fixed: a program never uses more
//! than one thread, and always sees the same number of rows. So results are bit-identical for any number
//! of workers and for any batch that a caller sends ([`Workers::map`] names the few ops to which a row's
//! place in the micro-batch matters). (It is the fastest arrangement as well: a worker per
//! core beats threads inside one run, and small micro-batches stay in the cache.)
//!
//! ```
//! use brenier::engine::{EngineConfig, Workers};
//! use ndarray::array;
//! use onnx_grad::{DType, Graph, Model, Node, ValueInfo};
//!
//! let graph = Graph {
//!     inputs: vec![ValueInfo::new("x", DType::F32, &["N"])],
//!     outputs: vec![ValueInfo::new("y", DType::F32, &["N"])],
//!     nodes: vec![Node::new("Neg", &["x"], &["y"])],
//!     ..Graph::default()
//! };
//! let model = Model { graph, ir_version: 8, opset: 17, ..Model::default() };
//!
//! let engine = EngineConfig::default().build()?;
//! let workers = Workers::new(engine.as_ref(), &model, 4)?;
//! let x = array![1.0f32, 2.0, 3.0];
//! let y = workers.map(&[("x", (&x).into())])?;
//! assert_eq!(y, [array![-1.0f32, -2.0, -3.0].into()]);
//! # Ok::<(), brenier::Error>(())
//! ```

use onnx_grad::Model;

use crate::error::{EngineError, Error, Remedy, Result};

mod arithmetic;
mod as_it_is;
pub(crate) mod check;
mod config;
mod ort;
mod plan;
mod possible;
mod processor;
mod rten;
mod signature;
mod tensor;
mod workers;

pub use self::arithmetic::Arithmetic;
pub use self::as_it_is::AsItIs;
pub use self::config::{EngineConfig, EngineKind};
pub use self::ort::{OnnxRuntime, Provider};
pub use self::plan::{Plan, Weights};
pub use self::processor::processor;
pub use self::rten::Rten;
pub use self::tensor::{Tensor, TensorView};
pub use self::workers::Workers;

/// Something that runs ONNX graphs.
pub trait Engine: std::fmt::Debug + Send + Sync {
    /// The engine's name, as messages have it.
    fn name(&self) -> &'static str;

    /// The engine's version.
    fn version(&self) -> &str;

    /// The engine as certificates name it: all that its last bits depend on.
    fn described(&self) -> String {
        format!("{} {}", self.name(), self.version())
    }

    /// How it runs graphs with weights of this kind: what is fused, and how many rows at a time.
    fn plan(&self, weights: Weights) -> Plan;

    /// How many workers suit this engine and its device.
    fn workers(&self) -> usize;

    /// Loads a model `count` times. The instances share the weights where the engine can.
    ///
    /// Returns exactly `count` programs. An op or element type that the engine does not run is an error.
    fn load_many(&self, model: &Model, count: usize) -> Result<Vec<Box<dyn Program>>>;

    /// Loads a file as it is, `count` times: for models with operators that only this engine knows. An engine
    /// that knows none but ONNX's own refuses.
    fn load_as_it_is(&self, _file: &[u8], _count: usize) -> Result<AsItIs> {
        Err(Error::Engine(EngineError::Load {
            engine: self.name(),
            node: None,
            reason: "it has operators that are not ONNX's own".to_string(),
            remedy: Remedy::OnnxRuntime,
        }))
    }

    /// Loads a model once.
    fn load(&self, model: &Model) -> Result<Box<dyn Program>> {
        Ok(self.load_many(model, 1)?.swap_remove(0))
    }
}

/// A loaded model: one single-threaded instance, used by one worker at a time.
pub trait Program: Send {
    /// Runs the model and returns its outputs in the model's order.
    ///
    /// Every input of the model must be given once, by name and in any order. Inputs in standard layout
    /// are not copied.
    fn run(&mut self, inputs: &[(&str, TensorView)]) -> Result<Vec<Tensor>>;
}
