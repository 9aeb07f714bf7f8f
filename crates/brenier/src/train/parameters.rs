//! The trained numbers of a network, as one long vector and as named tensors.

use ndarray::{ArrayViewD, IxDyn};
use onnx_grad::{DType, Graph, Model, TensorData};

use crate::engine::TensorView;
use crate::error::{Error, Result};

/// Where each parameter lies in the long vector. In the order of names.
#[derive(Debug, Clone)]
pub(super) struct Parameters {
    entries: Vec<Entry>,
    len: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    shape: Vec<usize>,
    start: usize,
}

impl Entry {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }
}

impl Parameters {
    /// Names of initializers that look like parameters.
    pub(super) fn candidates(graph: &Graph, frozen: &[String]) -> Vec<String> {
        let constant = |name: &str| name.to_ascii_lowercase().contains("const");
        graph
            .initializers
            .iter()
            .filter(|(name, tensor)| {
                tensor.dtype() == DType::F32
                    && tensor.len() > 1
                    && !constant(name)
                    && !frozen.iter().any(|prefix| name.starts_with(prefix))
            })
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The layout of these initializers.
    pub(super) fn new(graph: &Graph, names: &[String]) -> Parameters {
        let mut entries = Vec::with_capacity(names.len());
        let mut start = 0;
        for name in names {
            if let Some(tensor) = graph.initializers.get(name) {
                let entry = Entry { name: name.clone(), shape: tensor.shape().to_vec(), start };
                start += entry.len();
                entries.push(entry);
            }
        }
        Parameters { entries, len: start }
    }

    /// The names, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// The number of numbers.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The values that a model has.
    pub(super) fn values(&self, model: &Model) -> Result<Vec<f32>> {
        let mut values = Vec::with_capacity(self.len);
        for entry in &self.entries {
            let tensor = model.graph.initializers.get(&entry.name);
            values.extend(tensor.map(TensorData::to_f32).unwrap_or_default());
        }
        crate::error::expect_shape("the parameters", &[self.len], &[values.len()])?;
        if let Some(place) = values.iter().position(|v| !v.is_finite()) {
            let name = self.entries.iter().rev().find(|e| e.start <= place).map_or("", |e| &e.name);
            return Err(Error::Training {
                reason: format!("parameter '{name}' holds {}", values[place]),
                remedy: "begin from a model whose weights are finite".into(),
            });
        }
        Ok(values)
    }

    /// The tensors, to be passed to a program.
    pub(super) fn views<'a>(&'a self, values: &'a [f32]) -> Vec<(&'a str, TensorView<'a>)> {
        let view = |entry: &'a Entry| {
            let slice = &values[entry.start..entry.start + entry.len()];
            ArrayViewD::from_shape(IxDyn(&entry.shape), slice).ok().map(|v| (entry.name.as_str(), v.into()))
        };
        self.entries.iter().filter_map(view).collect()
    }

    /// Which numbers belong to weights (of rank 2 and more) rather than to biases and gains.
    pub(super) fn decayed(&self) -> Vec<bool> {
        let weight = |entry: &Entry| entry.shape.iter().filter(|&&n| n > 1).count() >= 2;
        self.entries.iter().flat_map(|entry| std::iter::repeat_n(weight(entry), entry.len())).collect()
    }

    /// Names and shapes in one line: a checkpoint of another network is not taken for one of this.
    pub(super) fn fingerprint(&self) -> String {
        let entries: Vec<String> = self.entries.iter().map(|e| format!("{}{:?}", e.name, e.shape)).collect();
        entries.join(" ")
    }

    /// The model with these values in place of its own.
    pub(super) fn model_with(&self, model: &Model, values: &[f32]) -> Model {
        let mut model = model.clone();
        for entry in &self.entries {
            let data = TensorData::f32(&entry.shape, &values[entry.start..entry.start + entry.len()]);
            model.graph.initializers.insert(entry.name.clone(), data);
        }
        model
    }
}
