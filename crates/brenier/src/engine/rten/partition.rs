//! A partitioner around RTen, because RTen takes no custom operators.
//!
//! RTen 0.27 has a registry of operators, but only of its own: what an operator is (its `Operator` and `ReadOp` traits) and
//! how it is added to the registry are private to that crate. So a graph with [fused operators](onnx_grad::fused) is run by
//! three parts that would otherwise be an engine's business:
//!
//! - [`cut`]: **the partitioner** cuts the graph into stages: parts, each a model of its own for RTen, and single nodes that
//!   a [kernel](brenier_kernels) computes. A part has as many nodes as can run before the next kernel must. A graph without
//!   fused operators is one part, as it is.
//! - [`staged`]: **liveness**. Each stage knows which values it is the last to use. They are handed over: RTen computes in
//!   place where it can, and what a kernel was the last to use goes back to the pool.
//! - [`buffers`]: **the pool** of memory that kernels write their results into. Asking the system for it takes as long as
//!   using it.
//!
//! Values go from one stage to the next without being copied. Should RTen make `Operator` public, a fused operator becomes
//! one operator of its registry, as in ONNX Runtime, and this folder can go.

mod buffers;
mod cut;
mod staged;

pub(super) use staged::{Staged, Stopped, Workbench};
