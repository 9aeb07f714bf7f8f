//! A model seen at two points at once: its scores at an input and at a reference, and the multipliers between them.
//!
//! ```text
//! sum_i m_i (x_i - x'_i) = f_c(x) - f_c(x')
//! ```
//!
//! The graph is that of [DeepLIFT's rules](onnx_grad::backward::deeplift): the forward part twice, and one way back.

use ndarray::{Array1, Array2, ArrayView2};
use onnx_grad::backward::deeplift::{reference_name, rescale};
use onnx_grad::{GradOptions, Model, grad_with, seed_name};

use super::onnx::{SCORES, floats, matrix, one_hot};
use super::values::ValuePredictor;
use crate::engine::{Weights, Workers};
use crate::error::{Error, Result, expect_shape};

/// A model that compares inputs with references.
#[derive(Debug)]
pub struct PairPredictor<'a> {
    values: &'a ValuePredictor,
    workers: Workers,
}

/// What lies between a batch of inputs and their references.
#[derive(Debug, Clone, PartialEq)]
pub struct Multipliers {
    /// The score of each row's target at the input.
    pub scores: Array1<f64>,
    /// The same at the reference.
    pub reference_scores: Array1<f64>,
    /// The multiplier of each feature, `[rows, features]`.
    pub multipliers: Array2<f64>,
}

impl<'a> PairPredictor<'a> {
    pub(super) fn new(values: &'a ValuePredictor, model: &Model) -> Result<PairPredictor<'a>> {
        let engine = values.engine();
        let options = GradOptions { rules: rescale(), ..engine.plan(Weights::Constants).gradient() };
        let graph = grad_with(&model.graph, &[SCORES], &[values.input()], options)?;
        let workers = Workers::planned(engine, &Model { graph, ..model.clone() })?;
        Ok(PairPredictor { values, workers })
    }

    /// Multipliers for flat rows `[rows, features]`, a reference and a target for each.
    pub fn multipliers(
        &self,
        x: ArrayView2<f64>,
        references: ArrayView2<f64>,
        targets: &[usize],
    ) -> Result<Multipliers> {
        expect_shape("the references", x.shape(), references.shape())?;
        expect_shape("the list of targets", &[x.nrows()], &[targets.len()])?;
        let seed = one_hot(targets, self.values.outputs())?.into_dyn();
        let points = self.values.feed(self.values.fold(x)?.view());
        let references = self.values.feed(self.values.fold(references)?.view());
        let seed = self.values.feed(seed.view());
        let input = self.values.input();
        let outputs = self.workers.map(&[
            (input, points.view()),
            (&reference_name(input), references.view()),
            (&seed_name(SCORES), seed.view()),
        ])?;
        let mut outputs = outputs.into_iter();
        let scores = self.values.pick(&matrix(outputs.next())?, targets)?;
        let reference_scores = self.values.pick(&matrix(outputs.next())?, targets)?;
        let multipliers = floats(outputs.next())?;
        let found = multipliers.shape().to_vec();
        let multipliers = multipliers.into_shape_with_order(x.dim()).map_err(|_| Error::Shape {
            what: "the multipliers".to_string(),
            expected: x.shape().to_vec(),
            found,
        })?;
        Ok(Multipliers { scores, reference_scores, multipliers })
    }
}
