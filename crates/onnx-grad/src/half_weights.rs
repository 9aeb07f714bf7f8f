//! Weights in 16 bits: half the size of a file, with the arithmetic as it was.
//!
//! A weight `w` is stored as float16 under another name, and a `Cast` gives it back as float32: any engine can
//! run such a file. When it is read, the casts are carried out at once, so nothing after the reader knows of them,
//! and an engine without float16 runs it as well.

use crate::graph::{Attribute, Graph, Model, Node};
use crate::tensor::{DType, TensorData};

/// Smaller tensors are left alone: a cast costs as much as it saves, and constants keep their digits.
const SMALLEST: usize = 64;

/// The largest number that float16 holds.
const LARGEST: f64 = 65_504.0;

impl Model {
    /// Stores large float32 weights as float16. Weights that float16 cannot hold stay as they are.
    ///
    /// Every weight is rounded to 11 significant bits, a relative change of at most 5e-4.
    pub fn halve_weights(&mut self) {
        let fits = |tensor: &TensorData| {
            tensor.dtype() == DType::F32
                && tensor.len() >= SMALLEST
                && tensor.to_f64().iter().all(|v| v.abs() <= LARGEST)
        };
        let names: Vec<String> =
            self.graph.initializers.iter().filter(|(_, t)| fits(t)).map(|(name, _)| name.clone()).collect();
        let mut casts = Vec::with_capacity(names.len());
        for name in names {
            let half = format!("{name}.f16");
            if self.graph.initializers.contains_key(&half) {
                continue;
            }
            if let Some(tensor) = self.graph.initializers.remove(&name) {
                let rounded = TensorData::from_f64(DType::F16, tensor.shape(), &tensor.to_f64());
                self.graph.initializers.insert(half.clone(), rounded);
                let mut cast = Node::new("Cast", &[half.as_str()], &[name.as_str()]);
                cast.attributes.insert("to".to_string(), Attribute::Int(DType::F32.code().into()));
                casts.push(cast);
            }
        }
        casts.append(&mut self.graph.nodes);
        self.graph.nodes = casts;
    }
}

impl Model {
    /// Whether [`Model::halve_weights`] would lose nothing, as for weights that come from a file that has them in 16 bits.
    pub fn fits_half_weights(&self) -> bool {
        let large = |t: &&TensorData| t.dtype() == DType::F32 && t.len() >= SMALLEST;
        let mut weights = self.graph.initializers.values().filter(large).peekable();
        let exact = |tensor: &TensorData| {
            let values = tensor.to_f64();
            TensorData::from_f64(DType::F16, tensor.shape(), &values).to_f64() == values
        };
        weights.peek().is_some() && weights.all(exact)
    }
}

/// Carries out casts of float16 weights to float32.
pub(crate) fn widen(graph: &mut Graph) {
    let to_single = i64::from(DType::F32.code());
    let mut widened = Vec::new();
    let initializers = &graph.initializers;
    let outputs: Vec<&str> = graph.outputs.iter().map(|output| output.name.as_str()).collect();
    graph.nodes.retain(|node| {
        let half = node.inputs.first().and_then(|name| initializers.get(name));
        let is_half = half.is_some_and(|tensor| tensor.dtype() == DType::F16);
        let cast = node.op == "Cast" && node.domain.is_empty() && node.int("to", 0) == to_single;
        match (half, node.outputs.first()) {
            (Some(tensor), Some(output)) if cast && is_half && !outputs.contains(&output.as_str()) => {
                let name = node.inputs[0].clone();
                widened.push((name, output.clone(), TensorData::f32(tensor.shape(), &tensor.to_f32())));
                false
            }
            _ => true,
        }
    });
    let still_used = |graph: &Graph, name: &str| {
        // The body of a branch or loop may use any value outside of it.
        let nested = |node: &Node| node.attributes.values().any(|a| matches!(a, Attribute::Graph(_)));
        graph.nodes.iter().any(|node| nested(node) || node.inputs.iter().any(|input| input == name))
            || graph.outputs.iter().any(|output| output.name == name)
    };
    for (half, name, tensor) in widened {
        graph.initializers.insert(name, tensor);
        if !still_used(graph, &half) {
            graph.initializers.remove(&half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;
    use crate::graph::Dim;

    #[test]
    fn halved_weights_come_back_rounded_under_their_own_names() {
        let values: Vec<f32> = (0..64).map(|i| 0.1 * i as f32 - 1.7).collect();
        let mut b = Builder::new("net");
        let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(8)]);
        let w = b.parameter("w", TensorData::f32(&[8, 8], &values));
        let small = b.parameter("small", TensorData::f32(&[8], &[0.1; 8]));
        let y = b.matmul(&x, &w);
        let y = b.add(&y, &small);
        b.output("y", &y);
        let mut model = Model { graph: b.finish().unwrap(), ir_version: 8, opset: 18, ..Model::default() };
        let before = model.graph.clone();
        let full = model.to_bytes().len();
        assert!(!model.fits_half_weights());
        model.halve_weights();
        assert!(model.graph.initializers.contains_key("w.f16"));
        let bytes = model.to_bytes();
        assert!(bytes.len() < full);
        let read = Model::from_bytes(bytes).unwrap();
        assert!(read.fits_half_weights());
        assert_eq!(read.graph.nodes, before.nodes);
        assert_eq!(read.graph.initializers["small"], before.initializers["small"]);
        assert!(!read.graph.initializers.contains_key("w.f16"));
        for (found, value) in read.graph.initializers["w"].to_f32().iter().zip(&values) {
            assert!((found - value).abs() <= 5e-4 * value.abs(), "{found} {value}");
        }
    }
}
