//! Occlusion as a graph: no gradient, and the model once for every place of the window.
//!
//! ```text
//! hidden [W + 1, 1, ...]   1 where a window stands, in row w; row 0 hides nothing
//! points   where hidden the reference, else the input      scores at all points, those of row 0 are the input's
//! credit   sum_w hidden_w (score_0 - score_w) / sum_w hidden_w
//! ```
//!
//! A window is a product of ranges along the axes, and so is what it hides: the file holds the ranges, not the masks.

use std::ops::Range;

use ndarray::Array2;
use onnx_grad::{Builder, DType, Graph, Model, Node, TensorData, Value};

use super::wanted::{Begun, Wanted};
use super::{INSIDE, forward};
use crate::error::{Result, expect_shape};
use crate::predictor::SCORES;

/// What is asked: where the window stands, and what stands in for what it hides.
pub(super) struct Places<'a> {
    pub(super) windows: Vec<Vec<Range<usize>>>,
    pub(super) reference: &'a Array2<f64>,
    pub(super) shape: &'a [usize],
}

impl Places<'_> {
    /// The graph of the explanation.
    pub(super) fn graph(&self, model: &Model, wanted: Wanted) -> Result<Graph> {
        expect_shape("the reference", &[1, self.shape.iter().product()], self.reference.shape())?;
        let inner = forward(model)?;
        let dtype = model.graph.inputs[0].dtype;
        let Begun { builder: mut b, x, asked } = wanted.begin(model, &inner, self.shape);
        let hidden = self.hidden(&mut b, dtype);
        let each = b.unsqueeze(&x, &[0]);
        let reference = self.reference(&mut b, dtype);
        let is_hidden = b.cast(&hidden, DType::Bool);
        let points = b.select(&is_hidden, &reference, &each);
        let row: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        let points = b.reshape(&points, &[vec![-1], row.clone()].concat());
        b.push(Node::new("Identity", &[&points], &[&format!("{INSIDE}{}", model.graph.inputs[0].name)]));
        inner.nodes.iter().for_each(|node| b.push(node.clone()));
        let count = self.windows.len() as i64 + 1;
        let scores = b.reshape(&format!("{INSIDE}{SCORES}"), &[count, -1, wanted.outputs as i64]);
        let first = b.slice(&scores, 0, 0, 1, 1);
        let at_input = b.squeeze(&first, &[0]);
        let explained = wanted.explained(&mut b, &at_input, asked);
        let one_hot = wanted.one_hot(&mut b, &explained, dtype);
        let lost = b.sub(&first, &scores);
        let lost = b.mul(&lost, &one_hot);
        let lost = b.reduce_sum(&lost, &[2], false);
        let lost = b.reshape(&lost, &[vec![count, -1], vec![1; row.len()]].concat());
        let shares = b.mul(&lost, &hidden);
        let (sum, covers) = (b.reduce_sum(&shares, &[0], false), b.reduce_sum(&hidden, &[0], false));
        let mean = b.div(&sum, &covers);
        let credit = b.expand_like(&mean, &x);
        b.output("scores", &at_input);
        b.output("credit", &credit);
        b.output("explained", &explained);
        Ok(b.finish()?)
    }

    /// What every window hides, with ones in place of axes that all windows fill.
    fn hidden(&self, b: &mut Builder, dtype: DType) -> Value {
        let rank = self.shape.len();
        let fills = |axis: usize| self.windows.iter().all(|window| window[axis].len() == self.shape[axis]);
        // An axis that is filled says nothing; one must be kept, to say that row 0 hides nothing.
        let mut axes: Vec<usize> = (0..rank).filter(|&axis| !fills(axis)).collect();
        if axes.is_empty() {
            axes.push(rank - 1);
        }
        let mut product: Option<Value> = None;
        for axis in axes {
            let size = self.shape[axis];
            let mut along = vec![0.0; size];
            for window in &self.windows {
                along.extend((0..size).map(|i| f64::from(u8::from(window[axis].contains(&i)))));
            }
            let mut shape = vec![1; rank + 2];
            (shape[0], shape[axis + 2]) = (self.windows.len() + 1, size);
            let along = b.constant(TensorData::from_f64(dtype, &shape, &along));
            product = Some(match product {
                Some(product) => b.mul(&product, &along),
                None => along,
            });
        }
        product.unwrap_or_else(|| b.constant(TensorData::scalar(dtype, 0.0)))
    }

    /// What stands in for what is hidden; one number where it is the same everywhere.
    fn reference(&self, b: &mut Builder, dtype: DType) -> Value {
        let first = self.reference.first().copied().unwrap_or(0.0);
        if self.reference.iter().all(|value| *value == first) {
            return b.constant(TensorData::scalar(dtype, first));
        }
        let flat: Vec<f64> = self.reference.iter().copied().collect();
        b.constant(TensorData::from_f64(dtype, self.shape, &flat))
    }
}
