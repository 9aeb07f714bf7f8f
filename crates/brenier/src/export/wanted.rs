//! Which score a file explains: what every explainer asks of the scores.

use onnx_grad::{Attribute, Builder, DType, Dim, Graph, Model, TensorData, Value};

use super::ExportedTarget;

/// The target, of so many scores.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) target: ExportedTarget,
    pub(super) outputs: usize,
}

/// A graph that was begun: its input, the class that is asked for where that is an input, and the model's weights.
pub(super) struct Begun {
    pub(super) builder: Builder,
    pub(super) x: Value,
    pub(super) asked: Option<Value>,
}

impl Wanted {
    /// Begins a graph with the inputs of the model, and with the weights of what goes into it.
    pub(super) fn begin(self, model: &Model, inner: &Graph, shape: &[usize]) -> Begun {
        let input = &model.graph.inputs[0];
        let batch = input.shape.as_ref().and_then(|shape| shape.first()).cloned().unwrap_or(Dim::symbol("N"));
        let row: Vec<Dim> = shape.iter().map(|&n| n.into()).collect();
        let mut builder = Builder::new("explainer");
        let x = builder.input(&input.name, input.dtype, &[vec![batch.clone()], row].concat());
        let asked =
            (self.target == ExportedTarget::Input).then(|| builder.input("target", DType::I64, &[batch]));
        for (name, data) in &inner.initializers {
            builder.parameter(name, data.clone());
        }
        Begun { builder, x, asked }
    }

    /// The class of each row, `[rows]`.
    pub(super) fn explained(self, b: &mut Builder, scores: &Value, asked: Option<Value>) -> Value {
        match (self.target, asked) {
            (ExportedTarget::Input, Some(asked)) => asked,
            (ExportedTarget::Fixed(class), _) => {
                let highest = argmax(b, scores);
                let zero = b.sub(&highest, &highest);
                let class = b.constant(TensorData::ints(&[class as i64]));
                b.add(&zero, &class)
            }
            _ => argmax(b, scores),
        }
    }

    /// One where a class is explained, zero elsewhere, `[rows, classes]`.
    pub(super) fn one_hot(self, b: &mut Builder, explained: &Value, dtype: DType) -> Value {
        let classes: Vec<i64> = (0..self.outputs as i64).collect();
        let classes = b.ints(&classes);
        let column = b.unsqueeze(explained, &[1]);
        let equal = b.op("Equal", &[&column, &classes]);
        let one_hot = b.cast(&equal, dtype);
        if self.target != ExportedTarget::Input {
            return one_hot;
        }
        // A class that there is not makes a row of zeros, and of that no numbers: credit of zero would look like an answer.
        let ones = b.reduce_sum(&one_hot, &[1], true);
        b.div(&one_hot, &ones)
    }
}

/// The first of the highest scores of each row.
fn argmax(b: &mut Builder, scores: &Value) -> Value {
    let attributes = [
        ("axis", Attribute::Int(1)),
        ("keepdims", Attribute::Int(0)),
        ("select_last_index", Attribute::Int(0)),
    ];
    b.op_with("ArgMax", &[scores], &attributes)
}
