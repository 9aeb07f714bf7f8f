//! How an engine runs a graph: the one place where that is decided.
//!
//! - **Fusing**: whether parts of a graph become [fused operators](onnx_grad::fused), for which the engine has kernels.
//! - **Gradients of weights**: which of their forms the engine runs fastest.
//! - **Rows at a time**: fixed by the graph alone, never by the load, so that a row is computed in the same way whoever
//!   asks for it. What one micro-batch computes stays near the cache: large networks run one row at a time, small
//!   ones up to [`MOST`].

use onnx_grad::shapes::Facts;
use onnx_grad::{Cost, Dim, GradOptions, Graph, Node, WeightGradient, fuse};

use super::possible::expect_possible;
use crate::error::Result;

/// What the weights of a graph are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weights {
    /// Part of the graph: a network that is used.
    Constants,
    /// Inputs: a network that is trained.
    Inputs,
}

/// What an [engine](super::Engine) does with graphs of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Whether it computes [fused operators](onnx_grad::fused) faster than what they stand for.
    pub fused: bool,
    /// The form of a convolution's weight gradient that it runs fastest.
    pub weight_gradient: WeightGradient,
    /// Whether the last bits of a row's sums can depend on its place in the micro-batch. Where they would, rows run one
    /// by one.
    pub place_matters: bool,
}

/// Beyond this, more rows no longer help.
const MOST: u64 = 64;
/// What a micro-batch may compute in all: about the second-level cache of a core, a few times over.
const BYTES: u64 = 4 << 20;
/// What a node should compute at once, on average: below this, calling it takes longer than its work. It counts for
/// graphs of very many nodes, such as a recurrent network step by step, whose values are small and soon forgotten.
const NODE_BYTES: u64 = 12 << 10;
/// What a micro-batch of a training may compute in all: a few times the cache of a core.
const TRAINING_BYTES: usize = 8 << 20;
/// Rows below which the work that every run of a training has, whatever its rows, stands out: weights are turned around
/// for the backward convolutions, and gradients of all parameters handed over.
const FEWEST: usize = 16;

impl Plan {
    /// The choices of a gradient graph.
    pub fn gradient(&self) -> GradOptions {
        GradOptions { weight_gradient: self.weight_gradient, fused: self.fused, ..GradOptions::default() }
    }

    /// The graph as it is loaded. One that contradicts itself stays as it is, for the engine to say where.
    pub(super) fn fuse(&self, graph: Graph) -> Graph {
        if self.fused { fuse(&graph).unwrap_or(graph) } else { graph }
    }

    /// How many rows of `graph` are computed at once. Its batch is the first axis of its first input.
    ///
    /// # Errors
    /// If a value of the graph is larger than any machine's memory.
    pub fn rows(&self, graph: &Graph) -> Result<usize> {
        expect_possible(graph)?;
        let batch = graph.inputs.first().and_then(|i| i.shape.as_ref()).and_then(|s| s.first());
        if let Some(Dim::Known(rows)) = batch {
            // Exported for a fixed batch.
            return Ok(usize::try_from(*rows).unwrap_or(1).max(1));
        }
        // Its scale is that of all rows together.
        let quantised = graph.nodes.iter().any(|node| node.is("DynamicQuantizeLinear"));
        if quantised || self.place_matters && !rows_are_independent(graph)? {
            return Ok(1);
        }
        // Of a network that only pools, the input is what is large.
        let bytes = Cost::of(graph)?.activation_bytes.max(input_bytes(graph)).max(1);
        let (suits, worth) = (BYTES / bytes, NODE_BYTES * graph.nodes.len() as u64 / bytes);
        let rows = if worth > suits { worth.next_multiple_of(4) } else { suits }.min(MOST);
        // A multiple of 4, or 1: ONNX Runtime treats the last elements of a tensor differently otherwise.
        Ok(if rows < 4 { 1 } else { (rows / 4 * 4) as usize })
    }

    /// How many rows of a step of `batch` rows are computed at once, by the graph of a loss and its gradient: what
    /// suits the cache, but enough that handing over the gradients of all parameters is little beside computing them;
    /// at least four micro-batches a step, so that workers can share.
    pub fn training_rows(&self, gradient: &Graph, parameters: usize, batch: usize) -> Result<usize> {
        let bytes = bytes_per_row(gradient)?.max(1);
        let suits = TRAINING_BYTES / bytes;
        let enough = (16 * parameters).div_ceil(bytes);
        Ok(suits.max(enough).max(FEWEST).min(batch.div_ceil(4)).max(1))
    }
}

/// Whether a row's place in the micro-batch cannot change its last bits in ONNX Runtime: sums over a number
/// of elements that is not a multiple of 4 depend on how the row is aligned in memory.
fn rows_are_independent(graph: &Graph) -> Result<bool> {
    let facts = Facts::of(graph)?;
    for node in &graph.nodes {
        let sums = node.op.starts_with("Reduce") || node.op == "InstanceNormalization";
        if !sums {
            continue;
        }
        let shape = node.input(0).and_then(|x| facts.get(x).shape.clone());
        let aligned =
            shape.is_some_and(|shape| shape.last().and_then(Dim::known).is_some_and(|n| n % 4 == 0));
        if !aligned {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Bytes of one row of all inputs, as far as their sizes are known.
fn input_bytes(graph: &Graph) -> u64 {
    let row = |shape: &Vec<Dim>| -> u64 {
        let sizes =
            shape.iter().skip(1).map(|dim| dim.known().and_then(|n| u64::try_from(n).ok()).unwrap_or(1));
        sizes.fold(4, u64::saturating_mul)
    };
    graph.inputs.iter().filter_map(|input| input.shape.as_ref()).map(row).fold(0, u64::saturating_add)
}

/// Bytes of all values that grow with the batch. Weights and their gradients do not.
fn bytes_per_row(graph: &Graph) -> Result<usize> {
    let facts = Facts::of(graph)?;
    let mut bytes = 0;
    for output in graph.nodes.iter().flat_map(Node::wanted_outputs) {
        let Some(shape) = &facts.get(output).shape else { continue };
        if shape.iter().all(|dim| dim.known().is_some()) {
            continue;
        }
        let size = |dim: &Dim| match dim {
            Dim::Known(n) => usize::try_from(*n).unwrap_or(1),
            Dim::Symbol { factor, .. } => usize::try_from(*factor).unwrap_or(1),
            Dim::Unknown => 1,
        };
        bytes += 4 * shape.iter().map(size).product::<usize>();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx_grad::{Builder, DType};

    fn graph(batch: Dim, width: i64, reduce: bool) -> Graph {
        let mut b = Builder::new("rows");
        let x = b.input("x", DType::F32, &[batch, Dim::Known(width)]);
        let y = b.op("Exp", &[&x]);
        let y = if reduce { b.reduce_sum(&y, &[1], true) } else { y };
        b.output("y", &y);
        b.finish().unwrap()
    }

    fn plan(place_matters: bool) -> Plan {
        Plan { fused: false, weight_gradient: WeightGradient::default(), place_matters }
    }

    #[test]
    fn many_small_nodes_run_more_rows_at_a_time() {
        let mut b = Builder::new("steps");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(512)]);
        let y = (0..3000).fold(x, |y, _| b.op("Tanh", &[&y]));
        b.output("y", &y);
        // 6 MB a row, which is more than the cache, but 2 kB a node.
        assert_eq!(plan(false).rows(&b.finish().unwrap()).unwrap(), 8);
    }

    #[test]
    fn the_model_alone_decides() {
        let n = || Dim::symbol("N");
        assert_eq!(plan(true).rows(&graph(n(), 8, false)).unwrap(), 64);
        assert_eq!(plan(true).rows(&graph(n(), 1 << 17, false)).unwrap(), 4);
        assert_eq!(plan(true).rows(&graph(n(), 1 << 20, false)).unwrap(), 1);
        assert_eq!(plan(true).rows(&graph(Dim::Known(3), 8, false)).unwrap(), 3);
        let mut b = Builder::new("pool");
        let x = b.input("x", DType::F32, &[n(), Dim::Known(1 << 20)]);
        let y = b.reduce_sum(&x, &[1], true);
        b.output("y", &y);
        assert_eq!(plan(true).rows(&b.finish().unwrap()).unwrap(), 1, "the input alone fills the cache");
        assert_eq!(plan(true).rows(&graph(n(), 7, true)).unwrap(), 1);
        assert_eq!(plan(false).rows(&graph(n(), 7, true)).unwrap(), 64);
        assert_eq!(plan(true).rows(&graph(n(), 8, true)).unwrap(), 64);
    }
}
