//! The weights of one direction: constants as constants, others sliced and transposed in the graph.

use super::vector;
use crate::build::{Builder, Value};
use crate::graph::Node;
use crate::tensor::TensorData;

/// The weights of one of `ways` directions.
pub(super) struct Weights<'a> {
    pub(super) way: usize,
    pub(super) ways: usize,
    pub(super) node: &'a Node,
}

impl Weights<'_> {
    /// Rows `from..to` of the matrix of this direction, transposed, of input `i`: `[directions, rows, columns]`.
    pub(super) fn transposed(&self, b: &mut Builder, i: usize, from: i64, to: i64) -> Value {
        let name = self.node.input(i).unwrap_or_default();
        if let Some(data) = b.fact(name).constant.clone()
            && let &[_, rows, columns] = data.shape()
        {
            let (first, last) = (from as usize, to as usize);
            let values = data.to_f64();
            let matrix = &values[self.way * rows * columns..(self.way + 1) * rows * columns];
            let mut turned = Vec::with_capacity((last - first) * columns);
            for column in 0..columns {
                turned.extend((first..last).map(|row| matrix[row * columns + column]));
            }
            return b.constant(TensorData::from_f64(data.dtype(), &[columns, last - first], &turned));
        }
        let whole = b.shape(name).and_then(|shape| shape.get(1)?.known()) == Some(to - from);
        let mut matrix = self.own(b, name);
        matrix = b.squeeze(&matrix, &[0]);
        if !whole {
            matrix = b.slice(&matrix, 0, from, to, 1);
        }
        b.transpose(&matrix, &[1, 0])
    }

    /// Elements `from..to` of the vector of this direction, of input `i`: `[directions, elements]`.
    pub(super) fn vector(&self, b: &mut Builder, i: usize, from: i64, to: i64) -> Option<Value> {
        let name = self.node.input(i)?;
        if let Some(values) = self.values(b, i, from, to) {
            return Some(vector(b, name, &values));
        }
        let own = self.own(b, name);
        let own = b.squeeze(&own, &[0]);
        Some(b.slice(&own, 0, from, to, 1))
    }

    /// The same in numbers, where they are constant.
    pub(super) fn values(&self, b: &Builder, i: usize, from: i64, to: i64) -> Option<Vec<f64>> {
        let data = b.fact(self.node.input(i)?).constant.as_ref()?;
        let &[_, size] = data.shape() else { return None };
        let start = self.way * size;
        data.to_f64().get(start + from as usize..start + to as usize).map(<[f64]>::to_vec)
    }

    fn own(&self, b: &mut Builder, name: &str) -> Value {
        match self.ways {
            1 => Value::named(name),
            _ => b.slice(name, 0, self.way as i64, self.way as i64 + 1, 1),
        }
    }
}
