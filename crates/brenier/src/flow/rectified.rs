//! The rectified-flow loss (Liu et al., 2022).
//!
//! ```text
//! min over theta  E | v_theta((1 - t) z0 + t z1, t) - (z1 - z0) |^2 / d         (Eq. rectified_flow_loss)
//! ```
//!
//! over pairs `(z0, z1)` of reference and data. The minimiser is the conditional mean of the displacement given
//! the state, so the loss does not go to zero: its floor says how much the straight lines cross.

use std::ops::ControlFlow;
use std::path::Path;

use ndarray::Array2;
use onnx_grad::{Builder, DType, Dim, Graph, Model, Node};

use super::onnx::signature;
use super::pairs::Pairs;
use crate::engine::Tensor;
use crate::error::{Error, Result, expect_shape};
use crate::net::{CLASSES, STATE, TIME, VELOCITY};
use crate::train::{Batch, LOSS, Progress, Task, TrainConfig, Trained, fit, mean_loss, strata};

pub(super) const START: &str = "z0";
pub(super) const END: &str = "z1";

/// Matching velocities over pairs.
pub struct Rectified<'a> {
    shape: Vec<usize>,
    pairs: &'a dyn Pairs,
    seed: u64,
}

impl<'a> Rectified<'a> {
    /// The task of training the flow `model` on pairs; times are drawn by the seed.
    pub fn new(model: &Model, pairs: &'a dyn Pairs, seed: u64) -> Result<Self> {
        let (shape, _) = signature(model, None)?;
        expect_shape("an example of the training pairs", &shape, pairs.shape())?;
        Ok(Self { shape, pairs, seed })
    }
}

impl Task for Rectified<'_> {
    fn loss(&self, model: &Model) -> Result<Graph> {
        let mut loss = LossGraph::begin("rectified-flow loss", &model.graph, &self.shape)?;
        let b = &mut loss.b;
        let target = b.sub(END, START);
        let column = b.unsqueeze(TIME, &loss.axes);
        let moved = b.mul(&target, &column);
        let state = b.add(START, &moved);
        loss.finish(&model.graph, &state, &target)
    }

    fn batch(&self, step: u64, rows: usize) -> Result<Batch> {
        let (z0, z1) = self.pairs.draw(step, rows)?;
        let sum: f64 = z0.iter().zip(&z1).map(|(a, b)| f64::from(b - a).powi(2)).sum();
        let rest_loss = sum / z0.len().max(1) as f64;
        let mut inputs = vec![
            (START.to_string(), fold("the references of a step", z0, rows, &self.shape)?),
            (END.to_string(), fold("the data of a step", z1, rows, &self.shape)?),
            (TIME.to_string(), strata(self.seed, step, rows).into()),
        ];
        if let Some(classes) = self.pairs.classes(step, rows)? {
            inputs.push((CLASSES.to_string(), classes.into_dyn().into()));
        }
        Ok(Batch { inputs, rest_loss })
    }
}

/// Trains the flow `model` (inputs `x`, `t`, output `v`) on pairs. See [`fit`].
pub fn train(
    model: &Model,
    pairs: &dyn Pairs,
    config: &TrainConfig,
    run: Option<&Path>,
    progress: &mut dyn FnMut(&Progress) -> ControlFlow<()>,
) -> Result<Trained> {
    fit(model, &Rectified::new(model, pairs, config.seed)?, config, run, progress)
}

/// The mean loss per feature of a flow over so many steps of pairs, without training: for held-out data.
pub fn flow_loss(model: &Model, pairs: &dyn Pairs, steps: u64, config: &TrainConfig) -> Result<f64> {
    mean_loss(model, &Rectified::new(model, pairs, config.seed)?, steps, config)
}

/// Flat rows with the shape of an example.
pub(super) fn fold(what: &str, z: Array2<f32>, rows: usize, shape: &[usize]) -> Result<Tensor> {
    let sizes: Vec<usize> = std::iter::once(rows).chain(shape.iter().copied()).collect();
    let found = z.shape().to_vec();
    let folded = z.into_shape_with_order(sizes.as_slice());
    folded.map(Tensor::from).map_err(|_| Error::Shape { what: what.to_string(), expected: sizes, found })
}

/// A loss under construction: inputs `z0`, `z1` and `t`, around a network from `x` and `t` to `v`.
pub(super) struct LossGraph {
    pub(super) b: Builder,
    /// The axes of an example.
    pub(super) axes: Vec<i64>,
    pub(super) batch: Dim,
}

impl LossGraph {
    pub(super) fn begin(name: &str, net: &Graph, shape: &[usize]) -> Result<LossGraph> {
        let dtype = net.input(STATE).map_or(DType::F32, |x| x.dtype);
        if dtype != DType::F32 {
            return Err(Error::Flow {
                reason: format!("it computes in {dtype}"),
                remedy: "training is in float32: export the network so".into(),
            });
        }
        let batch = net.input(STATE).and_then(|x| x.shape.as_ref()).and_then(|s| s.first()).cloned();
        let batch = batch.filter(|b| *b != Dim::Unknown).unwrap_or(Dim::symbol("N"));
        let dims: Vec<Dim> = std::iter::once(batch.clone()).chain(shape.iter().map(|&n| n.into())).collect();
        let initializers = net.initializers.clone();
        let graph = Graph { name: name.into(), initializers, ..Graph::default() };
        let mut b = Builder::extend(graph, "loss/")?;
        b.input(START, DType::F32, &dims);
        b.input(END, DType::F32, &dims);
        b.input(TIME, DType::F32, std::slice::from_ref(&batch));
        if let Some(&Dim::Known(classes)) =
            net.input(CLASSES).and_then(|c| c.shape.as_ref()).and_then(|s| s.get(1))
        {
            b.input(CLASSES, DType::F32, &[batch.clone(), Dim::Known(classes)]);
        }
        Ok(LossGraph { b, axes: (1..=shape.len() as i64).collect(), batch })
    }

    /// The network at `state`, and the squared distance of what it says from the target.
    pub(super) fn finish(self, net: &Graph, state: &str, target: &str) -> Result<Graph> {
        let LossGraph { mut b, axes, .. } = self;
        b.push(Node::new("Identity", &[state], &[STATE]));
        for node in &net.nodes {
            b.push(node.clone());
        }
        let gap = b.sub(VELOCITY, target);
        let square = b.mul(&gap, &gap);
        let per_row = b.reduce_mean(&square, &axes, false);
        let sum = b.reduce_sum(&per_row, &[0], false);
        b.output(LOSS, &sum);
        Ok(b.finish()?)
    }
}
