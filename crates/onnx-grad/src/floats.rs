//! One float type for a whole graph.
//!
//! Models with half-precision weights are common as files and rare as engines: RTen computes in float32
//! only, and ONNX Runtime's half-precision operators on CPUs are few. A graph in another float type
//! computes the same function up to rounding.

use crate::graph::{Attribute, Graph};
use crate::tensor::{DType, TensorData};

impl Graph {
    /// Whether inputs, constants or casts have floats of this type.
    pub fn has_floats(&self, dtype: DType) -> bool {
        let cast = |node: &crate::graph::Node| {
            node.is("Cast") && node.int("to", 0) == i64::from(dtype.code())
                || node.attributes.values().any(|value| match value {
                    Attribute::Tensor(tensor) => tensor.dtype() == dtype,
                    Attribute::Graph(body) => body.has_floats(dtype),
                    _ => false,
                })
        };
        self.inputs.iter().any(|input| input.dtype == dtype)
            || self.initializers.values().any(|tensor| tensor.dtype() == dtype)
            || self.nodes.iter().any(cast)
    }

    /// The same graph with all floats of type `from` turned into type `to`.
    pub fn with_floats(&self, from: DType, to: DType) -> Graph {
        let mut graph = self.clone();
        let swap = |dtype: &mut DType| {
            if *dtype == from {
                *dtype = to;
            }
        };
        graph.inputs.iter_mut().for_each(|v| swap(&mut v.dtype));
        graph.outputs.iter_mut().for_each(|v| swap(&mut v.dtype));
        graph.value_info.values_mut().for_each(|v| swap(&mut v.dtype));
        graph.initializers.values_mut().for_each(|t| convert(t, from, to));
        for node in &mut graph.nodes {
            let cast = node.is("Cast") || node.is("EyeLike") || node.is("RandomNormalLike");
            for (name, attribute) in &mut node.attributes {
                match attribute {
                    Attribute::Tensor(tensor) => convert(tensor, from, to),
                    Attribute::Graph(body) => **body = body.with_floats(from, to),
                    Attribute::Int(code)
                        if cast && (name == "to" || name == "dtype") && *code == i64::from(from.code()) =>
                    {
                        *code = i64::from(to.code());
                    }
                    _ => {}
                }
            }
        }
        graph
    }
}

fn convert(tensor: &mut TensorData, from: DType, to: DType) {
    if tensor.dtype() == from {
        *tensor = TensorData::from_f64(to, tensor.shape(), &tensor.to_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Builder;

    #[test]
    fn halves_become_floats_everywhere() {
        let mut b = Builder::new("half");
        let x = b.input("x", DType::F16, &[2usize.into()]);
        let w = b.parameter("w", TensorData::from_f64(DType::F16, &[2], &[0.5, 2.0]));
        let y = b.mul(&x, &w);
        let y = b.cast(&y, DType::F32);
        let y = b.cast(&y, DType::F16);
        b.output("y", &y);
        let graph = b.finish().unwrap().with_floats(DType::F16, DType::F32);
        assert_eq!(graph.inputs[0].dtype, DType::F32);
        assert_eq!(graph.initializers["w"], TensorData::f32(&[2], &[0.5, 2.0]));
        assert!(graph.nodes.iter().filter(|n| n.op == "Cast").all(|n| n.int("to", 0) == 1));
    }
}
