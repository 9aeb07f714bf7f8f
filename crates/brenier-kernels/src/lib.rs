//! Kernels for the fused operators of `onnx-grad`: convolutions, group normalisations, and their gradients.
//!
//! Engines are made for inference: weights that change with every run, gradients of weights, and a normalisation whose
//! gradient is a dozen passes over memory are not what they are fast at. The operators of [`onnx_grad::fused`] stand for
//! these parts of a graph; here is what computes them, for one thread, in safe Rust over RTen's portable vectors. An
//! engine hands such nodes to these kernels and runs all others itself.
//!
//! Every example is computed by itself and in the same order, so results do not depend on what else is in the batch;
//! sums over examples go from the first to the last.
//!
//! ```
//! use brenier_kernels::{Input, Kernel};
//! use onnx_grad::{Attribute, Node, fused};
//!
//! // A kernel of one tap that doubles an image.
//! let node = Node { domain: fused::DOMAIN.to_string(), ..Node::new(fused::CONV, &["x", "w"], &["y"]) }
//!     .with("kernel_shape", Attribute::Ints(vec![1, 1]))
//!     .with("dilations", Attribute::Ints(vec![1, 1]))
//!     .with("pads", Attribute::Ints(vec![0; 4]));
//! let mut kernel = Kernel::of(&node).expect("a fused operator");
//! let (x, w) = (Input { shape: &[1, 1, 1, 2], data: &[3.0, 4.0] }, Input { shape: &[1; 4], data: &[2.0] });
//! assert_eq!(kernel.shapes(&[x.shape, w.shape])?, [[1, 1, 1, 2]]);
//! let mut y = [0.0; 2];
//! kernel.run(&[x, w], &mut [&mut y])?;
//! assert_eq!(y, [6.0, 8.0]);
//! # Ok::<(), brenier_kernels::Misfit>(())
//! ```
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod arithmetic;
mod conv;
mod conv_weights;
mod input;
mod kernel;
mod norm;
mod planes;
#[cfg(test)]
mod tests;
mod winograd;

pub use arithmetic::Arithmetic;
pub use input::{Input, Misfit};
pub use kernel::Kernel;
