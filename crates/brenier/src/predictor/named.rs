//! Arrays by the names of a model's inputs, as rows of the model with one input.
//!
//! Where an inner value is explained, the part of the model before it runs first: its rows are what that part says.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayD, IxDyn};
use onnx_grad::Model;

use super::onnx::PredictorConfig;
use super::pack::{Packing, packed_parts};
use super::values::ValuePredictor;
use crate::error::{Error, Result};
use crate::packed::PackedInputs;
use crate::score::Score;

/// How arrays become rows.
#[derive(Debug)]
pub struct NamedInputs {
    packed: PackedInputs,
    /// The names that the model's inputs have.
    known: Vec<String>,
    inner: Vec<Inner>,
}

/// The part of a model before an inner value.
#[derive(Debug)]
struct Inner {
    value: String,
    shape: Vec<usize>,
    part: ValuePredictor,
}

impl NamedInputs {
    /// For a model whose packing is in the config.
    ///
    /// # Errors
    /// As [`OnnxPredictor::new`](crate::OnnxPredictor::new).
    pub fn new(model: &Model, config: &PredictorConfig) -> Result<NamedInputs> {
        let packing = config.packing.clone().unwrap_or_default();
        let mut graph = model.graph.with_floats(onnx_grad::DType::F16, onnx_grad::DType::F32);
        match &config.output {
            Some(output) => graph.outputs.retain(|found| found.name == *output),
            None => graph.outputs.truncate(1),
        }
        graph.prune();
        let known = graph.inputs.iter().map(|input| input.name.clone()).collect();
        let (_, packed, parts) = packed_parts(graph, &packing, &mut Vec::new())?;
        let mut inner = Vec::with_capacity(parts.len());
        for (value, part) in parts {
            let shape =
                packed.inputs.iter().find(|input| input.name == value).map(|input| input.shape.clone());
            let own = PredictorConfig {
                engine: config.engine.clone(),
                keep_final_activation: true,
                packing: Some(Packing {
                    values_only: true,
                    at: Vec::new(),
                    explain: None,
                    hold: Vec::new(),
                    ..packing.clone()
                }),
                ..PredictorConfig::default()
            };
            let part = ValuePredictor::new(&Model { graph: part, ..model.clone() }, &own)?;
            inner.push(Inner { value, shape: shape.unwrap_or_default(), part });
        }
        Ok(NamedInputs { packed, known, inner })
    }

    /// Which features are which input.
    pub fn packed(&self) -> &PackedInputs {
        &self.packed
    }

    /// A row for each example, from an array for each input whose first axis is the example.
    ///
    /// # Errors
    /// Names that the model does not have, and as [`PackedInputs::rows`].
    pub fn rows(&self, arrays: &BTreeMap<String, ArrayD<f64>>) -> Result<Array2<f64>> {
        if let Some(name) = arrays.keys().find(|name| !self.known.contains(name)) {
            return Err(Error::Inputs {
                reason: format!("the model has no input '{name}'; it has {}", self.known.join(", ")),
                remedy: "name arrays after its inputs, and leave out others".into(),
            });
        }
        let mut all = arrays.clone();
        for Inner { value, shape, part } in &self.inner {
            let Some(packed) = part.inputs() else { continue };
            let rows = packed.rows(arrays)?;
            let found = part.all_scores(rows.view())?;
            let whole: Vec<usize> = std::iter::once(rows.nrows()).chain(shape.iter().copied()).collect();
            let sizes = found.shape().to_vec();
            let found = found.into_shape_with_order(IxDyn(&whole)).map_err(|_| Error::Shape {
                what: format!("the value '{value}'"),
                expected: whole,
                found: sizes,
            })?;
            all.insert(value.clone(), found);
        }
        let mut rows_of = BTreeMap::new();
        for input in &self.packed.inputs {
            if let Some(array) = all.remove(&input.name) {
                rows_of.insert(input.name.clone(), array);
            }
        }
        self.packed.rows(&rows_of)
    }
}
