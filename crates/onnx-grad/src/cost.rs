//! What a graph costs to run: arithmetic and memory for one row of the batch.

use crate::error::Result;
use crate::graph::{Dim, Graph, Node};
use crate::shapes::{Facts, einsum_terms};

/// What one row of the batch costs. Symbols count as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Floating-point operations of convolutions and matrix products, a multiply-add counting as two.
    pub flops: u64,
    /// Bytes of all values that nodes compute.
    pub activation_bytes: u64,
    /// Nodes whose cost could not be told, because their shapes are not known.
    pub unknown_nodes: usize,
}

impl Cost {
    /// Adds up the nodes of a graph.
    pub fn of(graph: &Graph) -> Result<Cost> {
        let facts = Facts::of(graph)?;
        let mut cost = Cost::default();
        for node in &graph.nodes {
            match node_flops(node, &facts) {
                Some(flops) => cost.flops = cost.flops.saturating_add(flops),
                None => cost.unknown_nodes += 1,
            }
            for output in node.wanted_outputs() {
                let fact = facts.get(output);
                let bytes = fact.dtype.map_or(4, |d| d.size() as u64);
                let count = fact.shape.as_ref().map_or(0, |shape| elements(shape));
                cost.activation_bytes = cost.activation_bytes.saturating_add(count.saturating_mul(bytes));
            }
        }
        Ok(cost)
    }
}

fn size(dim: &Dim) -> u64 {
    match dim {
        Dim::Known(n) => u64::try_from(*n).unwrap_or(0),
        Dim::Symbol { factor, .. } => u64::try_from(*factor).unwrap_or(0),
        Dim::Unknown => 1,
    }
}

fn elements(shape: &[Dim]) -> u64 {
    shape.iter().map(size).fold(1, u64::saturating_mul)
}

/// Two operations for every multiply-add; 0 for nodes that only move or map elements.
fn node_flops(node: &Node, facts: &Facts) -> Option<u64> {
    let shape = |name: Option<&str>| name.and_then(|n| facts.get(n).shape.clone());
    let (x, w, y) = (shape(node.input(0)), shape(node.input(1)), shape(node.output(0)));
    let multiply_adds = match node.op.as_str() {
        _ if !node.is_standard() => 0,
        // Every element of the output is a sum over one filter.
        "Conv" => elements(&y?).saturating_mul(elements(w?.get(1..)?)),
        "ConvTranspose" => elements(&x?).saturating_mul(elements(w?.get(1..)?)),
        "MatMul" => elements(&y?).saturating_mul(size(x?.last()?)),
        "Gemm" => {
            let inner = if node.int("transA", 0) != 0 { 0 } else { 1 };
            elements(&y?).saturating_mul(size(x?.get(inner)?))
        }
        "Einsum" => {
            let shapes: Vec<Vec<Dim>> =
                node.given_inputs().map(|n| facts.get(n).shape.clone()).collect::<Option<_>>()?;
            let ranks: Vec<usize> = shapes.iter().map(Vec::len).collect();
            let (terms, _) = einsum_terms(node.string("equation", ""), &ranks)?;
            let mut labels: Vec<(char, u64)> = Vec::new();
            for (term, shape) in terms.iter().zip(&shapes) {
                for (label, dim) in term.chars().zip(shape) {
                    match labels.iter_mut().find(|(l, _)| *l == label) {
                        Some((_, n)) => *n = (*n).max(size(dim)),
                        None => labels.push((label, size(dim))),
                    }
                }
            }
            labels.iter().map(|(_, n)| *n).fold(1, u64::saturating_mul)
        }
        _ => 0,
    };
    Some(multiply_adds.saturating_mul(2))
}
