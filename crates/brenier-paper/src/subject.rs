//! What the experiments on images are run on: a model, its data, and flows to follow.

use brenier::attribute::{Context, Method, Need};
use brenier::data::Dataset;
use brenier::evaluate::draw_examples;
use brenier::flow::{NoisePredictor, OnnxFlow, VelocityField};
use brenier::{Error, OnnxPredictor, Result, fingerprint};
use ndarray::{Array2, ArrayView2};

/// A flow and what it is called in tables.
#[derive(Clone, Copy)]
pub struct NamedFlow<'a> {
    /// Its name, such as `2-RF`.
    pub name: &'a str,
    /// The flow.
    pub flow: &'a OnnxFlow,
}

/// A model with data of its kind, and what else there is for them.
#[derive(Clone)]
pub struct Subject<'a> {
    /// The data's name in tables, such as `CIFAR-10`.
    pub name: &'a str,
    /// The model that is explained.
    pub model: &'a OnnxPredictor,
    /// Rows that the model was trained on: references, means, neighbours.
    pub train: &'a Dataset,
    /// Rows that are explained.
    pub held_out: &'a Dataset,
    /// The flows, the least rectified first.
    pub flows: Vec<NamedFlow<'a>>,
    /// A diffusion model of the same data.
    pub diffusion: Option<&'a NoisePredictor>,
    /// What tells this subject's files from those of another, such as their fingerprints.
    pub identity: String,
}

/// Held-out rows and the outputs that are explained.
pub(super) struct Examples {
    pub(super) inputs: Array2<f64>,
    pub(super) targets: Vec<usize>,
    /// Which rows of the data they are.
    pub(super) rows: Vec<usize>,
}

impl Subject<'_> {
    /// So many held-out rows, drawn by the seed, each with the class that the model predicts.
    pub(super) fn examples(&self, count: usize, seed: u64) -> Result<Examples> {
        if self.held_out.shape() != self.model.shape() {
            return Err(Error::Shape {
                what: "a row of the data".to_string(),
                expected: self.model.shape().to_vec(),
                found: self.held_out.shape().to_vec(),
            });
        }
        if count == 0 {
            return Err(Error::Zero { what: "the number of examples" });
        }
        let rows = draw_examples(self.held_out.len(), count, seed);
        let inputs = self.held_out.rows_f64(&rows)?;
        let targets = self.model.values_only().predicted(inputs.view())?;
        Ok(Examples { inputs, targets, rows })
    }

    /// The most rectified flow.
    pub(super) fn best_flow(&self, experiment: &'static str) -> Result<NamedFlow<'_>> {
        self.flows.last().copied().ok_or_else(|| Error::Method {
            method: experiment.to_string(),
            reason: "there is no flow to follow".to_string(),
            remedy: "give one that was trained on the data (--flow flow.onnx)".into(),
        })
    }

    /// Whether there is a network for the method to follow, where it follows one.
    pub(super) fn has_network_for(&self, method: &Method) -> bool {
        let spec = method.spec();
        (!spec.needs(Need::Flow) || !self.flows.is_empty())
            && (!spec.needs(Need::Diffusion) || self.diffusion.is_some())
    }

    /// What methods need; transport follows the most rectified flow.
    pub(super) fn context(&self) -> Context<'_> {
        Context {
            data: Some(self.train),
            flows: self.flows.last().map(|named| named.flow as &dyn VelocityField).into_iter().collect(),
            diffusion: self.diffusion,
            model: Some(self.model),
            ..Context::default()
        }
    }

    /// What kept parts belong to: this subject and these inputs.
    pub(super) fn key(&self, inputs: ArrayView2<f64>) -> String {
        let bytes: Vec<u8> = inputs.iter().flat_map(|value| value.to_le_bytes()).collect();
        fingerprint(format!("{} {}", self.identity, fingerprint(&bytes)).as_bytes())
    }
}
