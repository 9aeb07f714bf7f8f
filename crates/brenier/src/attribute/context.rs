//! What methods need besides the score: data, baselines, flows, the model as a graph.

use ndarray::ArrayView2;

use crate::data::Dataset;
use crate::flow::{NoisePredictor, VelocityField};
use crate::predictor::OnnxPredictor;
use crate::{Error, Result};

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
    /// The number of the first input in the run. An example's draws follow from its number in the run, so a run that
    /// is cut into chunks draws the same.
    pub first_example: usize,
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
        }
    }

    /// The data, or a refusal that says who wants them.
    pub(super) fn require_data(&self, method: &str) -> Result<&Dataset> {
        self.data.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it needs rows of data, and none are given".to_string(),
            remedy: "give data of the kind that the model was trained on (--background DATA)",
        })
    }

    /// The model as a graph, or a refusal that says who wants it.
    pub(super) fn require_model(&self, method: &str) -> Result<&OnnxPredictor> {
        self.model.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it looks inside a model, and the score is a closure".to_string(),
            remedy: "explain an ONNX model, or use a method that needs gradients only, such as 'ig'",
        })
    }
}
