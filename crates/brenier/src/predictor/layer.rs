//! A model seen at one of its layers: the layer's values and the gradient of a score with respect to them.
//!
//! ```text
//! A(x)  [N, channels, height, width],    d f_c / d A  of the same shape
//! ```
//!
//! The walk back through the graph ends at the layer instead of the input, so this costs less than an input
//! gradient. Layers are those of the lowered graph: a batch normalisation is part of the convolution before it.

use ndarray::{Array1, Array4, ArrayView2, Ix4};
use onnx_grad::{DType, Dim, GradOptions, Graph, Model, ValueInfo, grad_with, seed_name, shapes::Facts};

use super::onnx::{PredictorConfig, SCORES, floats, matrix, one_hot};
use crate::engine::{Engine, Tensor, Weights, Workers};
use crate::error::{Error, Remedy, Result, expect_shape};

/// A model that also gives the values of a layer and the gradient there.
#[derive(Debug)]
pub struct LayerPredictor {
    input: String,
    dtype: DType,
    shape: Vec<usize>,
    outputs: usize,
    layer: String,
    workers: Workers,
}

/// What a layer says of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerValues {
    /// The score of each row's target.
    pub scores: Array1<f64>,
    /// The layer's values, `[N, channels, height, width]`.
    pub activations: Array4<f64>,
    /// The gradient of the target's score with respect to them.
    pub gradients: Array4<f64>,
}

impl LayerPredictor {
    pub(super) fn new(
        model: &Model,
        config: &PredictorConfig,
        engine: &dyn Engine,
        name: Option<&str>,
    ) -> Result<LayerPredictor> {
        let mut graph = model.graph.clone();
        let layer = find(&graph, name)?;
        let facts = Facts::of(&graph)?;
        let dims = |value: &str| facts.get(value).shape.clone();
        let known = |dim: &Dim| dim.known().and_then(|n| usize::try_from(n).ok());
        let shape = dims(&graph.inputs[0].name).and_then(|s| s[1..].iter().map(known).collect());
        let outputs = dims(SCORES).and_then(|s| known(s.get(1)?));
        let at = dims(&layer).filter(|shape| shape.len() == 4);
        let (Some(shape), Some(outputs), Some(at)) = (shape, outputs, at) else {
            return Err(Error::Predictor {
                reason: format!("the values of layer '{layer}' are not maps [channels, height, width]"),
                remedy: Remedy::ChooseLayer,
            });
        };
        let dtype = graph.inputs[0].dtype;
        graph.outputs.push(ValueInfo { name: layer.clone(), dtype, shape: Some(at) });
        let options =
            GradOptions { rules: config.rules.clone(), ..engine.plan(Weights::Constants).gradient() };
        let gradient = grad_with(&graph, &[SCORES], &[&layer], options)?;
        let input = graph.inputs[0].name.clone();
        let workers = Workers::planned(engine, &Model { graph: gradient, ..model.clone() })?;
        Ok(LayerPredictor { input, dtype, shape, outputs, layer, workers })
    }

    /// The name of the layer's value in the graph.
    pub fn layer(&self) -> &str {
        &self.layer
    }

    /// The layer's values and gradients for flat rows `[rows, features]` and a target for each.
    pub fn values_and_gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<LayerValues> {
        expect_shape("the list of targets", &[x.nrows()], &[targets.len()])?;
        let shape: Vec<usize> = std::iter::once(x.nrows()).chain(self.shape.iter().copied()).collect();
        let seed = one_hot(targets, self.outputs)?.into_dyn();
        let found = x.shape().to_vec();
        let fold = x.mapv(|v| v as f32).into_shape_with_order(shape.clone());
        let x = fold.map_err(|_| Error::Shape { what: "the batch".to_string(), expected: shape, found })?;
        let feed = |array: ndarray::ArrayD<f32>| -> Tensor {
            match self.dtype {
                DType::F64 => array.mapv(f64::from).into(),
                _ => array.into(),
            }
        };
        let (x, seed) = (feed(x), feed(seed));
        let outputs = self.workers.map(&[(&self.input, x.view()), (&seed_name(SCORES), seed.view())])?;
        let mut outputs = outputs.into_iter();
        let scores = matrix(outputs.next())?;
        let scores = targets.iter().enumerate().map(|(row, &target)| scores[[row, target]]).collect();
        let activations = maps(outputs.next())?;
        Ok(LayerValues { scores, activations, gradients: maps(outputs.next())? })
    }
}

/// The value that a layer's name stands for.
fn find(graph: &Graph, name: Option<&str>) -> Result<String> {
    let mut convolutions = graph.nodes.iter().filter(|node| node.is("Conv"));
    let value = match name {
        None => convolutions.next_back(),
        Some(name) => {
            let named = |node: &&onnx_grad::Node| node.name == name || node.output(0) == Some(name);
            graph.nodes.iter().find(named)
        }
    };
    if let Some(value) = value.and_then(|node| node.output(0)) {
        return Ok(value.to_string());
    }
    let known: Vec<String> = graph.nodes.iter().filter(|n| n.is("Conv")).map(|n| n.label()).collect();
    Err(match (name, known.is_empty()) {
        (_, true) => Error::Predictor {
            reason: "it has no convolution, so it has no maps to look at".to_string(),
            remedy: "use a method that needs none, such as 'ig' or 'smoothgrad'".into(),
        },
        (name, false) => Error::Predictor {
            reason: format!(
                "there is no layer '{}'; convolutions are {}",
                name.unwrap_or(""),
                known.join(", ")
            ),
            remedy: "name one of them, or another node by its name or output".into(),
        },
    })
}

fn maps(tensor: Option<Tensor>) -> Result<Array4<f64>> {
    let array = floats(tensor)?;
    let found = array.shape().to_vec();
    let expected = vec![found.first().copied().unwrap_or(0), 0, 0, 0];
    array.into_dimensionality::<Ix4>().map_err(|_| Error::Shape {
        what: "the layer's values".to_string(),
        expected,
        found,
    })
}
