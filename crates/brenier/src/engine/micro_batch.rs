//! How many rows a program sees at once.
//!
//! The number is fixed by the model alone, never by the load, so that a row is computed in the same way
//! whoever asks for it. It is chosen so that what one micro-batch computes stays near the cache: large
//! networks run one row at a time, small ones up to [`MOST`].

use onnx_grad::{Cost, Dim, Graph, shapes::Facts};

use crate::error::Result;

/// Beyond this, more rows no longer help.
const MOST: u64 = 64;
/// What a micro-batch may compute in all: about the second-level cache of a core, a few times over.
const BYTES: u64 = 4 << 20;

/// The number of rows for `graph`, whose batch is the first axis of its first input.
pub(crate) fn micro_batch(graph: &Graph, row_dependent: bool) -> Result<usize> {
    let batch = graph.inputs.first().and_then(|i| i.shape.as_ref()).and_then(|s| s.first());
    if let Some(Dim::Known(rows)) = batch {
        // Exported for a fixed batch.
        return Ok(usize::try_from(*rows).unwrap_or(1).max(1));
    }
    if row_dependent && !rows_are_independent(graph)? {
        return Ok(1);
    }
    let bytes = Cost::of(graph)?.activation_bytes.max(1);
    let rows = (BYTES / bytes).min(MOST);
    // A multiple of 4, or 1: ONNX Runtime treats the last elements of a tensor differently otherwise.
    Ok(if rows < 4 { 1 } else { (rows / 4 * 4) as usize })
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

    #[test]
    fn the_model_alone_decides() {
        let n = || Dim::symbol("N");
        assert_eq!(micro_batch(&graph(n(), 8, false), true).unwrap(), 64);
        assert_eq!(micro_batch(&graph(n(), 1 << 17, false), true).unwrap(), 4);
        assert_eq!(micro_batch(&graph(n(), 1 << 20, false), true).unwrap(), 1);
        assert_eq!(micro_batch(&graph(Dim::Known(3), 8, false), true).unwrap(), 3);
        assert_eq!(micro_batch(&graph(n(), 7, true), true).unwrap(), 1);
        assert_eq!(micro_batch(&graph(n(), 7, true), false).unwrap(), 64);
        assert_eq!(micro_batch(&graph(n(), 8, true), true).unwrap(), 64);
    }
}
