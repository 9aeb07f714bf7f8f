//! What methods need besides the score: data, baselines, flows, the model as a graph.

use ndarray::ArrayView2;

use super::draws::Key;
use crate::data::Dataset;
use crate::flow::{NoisePredictor, VelocityField};
use crate::predictor::OnnxPredictor;
use crate::{Error, Remedy, Result};

/// What methods need besides the score. Each says in words what it misses.
#[derive(Default, Clone)]
pub struct Context<'a> {
    /// Rows to take means, references and neighbours from.
    pub data: Option<&'a Dataset>,
    /// Baselines that the user gives, one row or one for each input.
    pub baselines: Option<ArrayView2<'a, f64>>,
    /// The flows to follow.
    pub flows: Vec<&'a dyn VelocityField>,
    /// The diffusion model to follow.
    pub diffusion: Option<&'a NoisePredictor>,
    /// The model behind the score, for methods that look inside.
    pub model: Option<&'a OnnxPredictor>,
    /// The number of the first input in the run, for certificates and messages.
    pub first_example: usize,
    /// Inputs whose draws are made in place of those of the inputs themselves, a row for each: what is explained again a
    /// little moved is explained with the same draws.
    pub draw_as: Option<ArrayView2<'a, f64>>,
}

impl Context<'_> {
    /// The same for a shorter time, such as that of another model: the compiler cannot shorten a `Context` by itself,
    /// because of the array that it holds.
    pub fn reborrow(&self) -> Context<'_> {
        Context {
            data: self.data,
            baselines: self.baselines.as_ref().map(|rows| rows.view()),
            flows: self.flows.clone(),
            diffusion: self.diffusion,
            model: self.model,
            first_example: self.first_example,
            draw_as: self.draw_as.as_ref().map(|rows| rows.view()),
        }
    }

    /// What each input draws by.
    pub(super) fn keys(&self, inputs: ArrayView2<f64>) -> Vec<Key> {
        match &self.draw_as {
            Some(others) if others.nrows() == inputs.nrows() => Key::of_each(others.view()),
            _ => Key::of_each(inputs),
        }
    }

    /// The data, or a refusal that says who wants them.
    pub(super) fn require_data(&self, method: &str) -> Result<&Dataset> {
        self.data.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it needs rows of data, and none are given".to_string(),
            remedy: Remedy::GiveBackground,
        })
    }

    /// The model as a graph, or a refusal that says who wants it.
    pub(super) fn require_model(&self, method: &str) -> Result<&OnnxPredictor> {
        self.model.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it looks inside a model, and the score is a closure".to_string(),
            remedy: "explain an ONNX model, or use a method that needs gradients only, such as 'ig'".into(),
        })
    }
}
