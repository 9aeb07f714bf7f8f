//! Classifiers, to have something to explain: trained by the same machinery, exported with logits.
//!
//! ```text
//! min over theta  E [ - sum_k q_k log softmax(f_theta(x))_k ],     q = one-hot labels, smoothed
//! ```
//!
//! The network takes rows as the user has them: the scaling is part of its graph, so whoever explains it needs to
//! know nothing of it.

use ndarray::{Array2, ArrayViewMut1, Axis};
use onnx_grad::{Attribute, Builder, DType, Dim, Graph, Model};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::data::Dataset;
use crate::engine::{EngineConfig, Tensor, Workers};
use crate::error::{Error, Result, expect_shape};
use crate::net::INPUT;
pub use crate::net::{ClassifierConfig, MlpClassifierConfig, ResnetConfig};
use crate::ranking::highest;
use crate::train::{Batch, Epochs, LOSS, Stream, Task, step_rng};

const TARGETS: &str = "targets";

/// Random changes of training images under which the class stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Augment {
    /// Mirror left and right, half of the time.
    pub flip: bool,
    /// Move by up to so many pixels either way; what comes in is black.
    pub shift: usize,
}

/// Telling classes apart.
pub struct Classification {
    data: Dataset,
    labels: Vec<usize>,
    augment: Augment,
    smoothing: f64,
    order: Epochs,
    seed: u64,
}

impl Classification {
    /// The task of predicting the labels of a data set. `smoothing` is the probability spread over all classes.
    pub fn new(data: Dataset, augment: Augment, smoothing: f64, seed: u64) -> Result<Self> {
        let labels = data.require_labels()?;
        if augment != Augment::default() && !data.is_images() {
            return Err(Error::Setting {
                name: "augmentation",
                value: format!("asked for with rows of shape {:?}", data.shape()),
                needs: "only images can be mirrored and moved",
                hint: "leave it out".into(),
            });
        }
        if !(0.0..1.0).contains(&smoothing) {
            return Err(Error::Setting {
                name: "label smoothing",
                value: smoothing.to_string(),
                needs: "it is a probability below 1",
                hint: "0.05".into(),
            });
        }
        let order = Epochs::new(seed, Stream::Data, data.len());
        Ok(Self { data, labels, augment, smoothing, order, seed })
    }

    fn classes(&self) -> usize {
        self.data.classes().len()
    }
}

impl Task for Classification {
    fn loss(&self, model: &Model) -> Result<Graph> {
        let (input, output) = interface(model)?;
        let mut graph = model.graph.clone();
        graph.outputs.clear();
        graph.name = "cross-entropy loss".into();
        let batch = graph.input(&input).and_then(|x| x.shape.as_ref()).and_then(|s| s.first()).cloned();
        let mut b = Builder::extend(graph, "loss/")?;
        let batch = batch.unwrap_or(Dim::symbol("N"));
        let targets = b.input(TARGETS, DType::F32, &[batch, self.classes().into()]);
        let log = b.op_with("LogSoftmax", &[&output], &[("axis", Attribute::Int(-1))]);
        let product = b.mul(&log, &targets);
        let sum = b.reduce_sum(&product, &[0, 1], false);
        let loss = b.op("Neg", &[&sum]);
        b.output(LOSS, &loss);
        Ok(b.finish()?)
    }

    fn batch(&self, step: u64, rows: usize) -> Result<Batch> {
        let indices = self.order.of_step(step, rows);
        let mut x = self.data.rows_f32(&indices)?;
        let mut rng = step_rng(self.seed, Stream::Pairs, step);
        if let (&[channels, height, width], true) = (self.data.shape(), self.augment != Augment::default()) {
            let reach = self.augment.shift as i64;
            for row in x.axis_iter_mut(Axis(0)) {
                let mut draw = || if reach > 0 { rng.random_range(-reach..=reach) } else { 0 };
                let by = (draw(), draw());
                let mirror = self.augment.flip && rng.random::<f64>() < 0.5;
                change(row, [channels, height, width], by, mirror);
            }
        }
        let classes = self.classes();
        let rest = self.smoothing / classes as f64;
        let mut targets = Array2::<f32>::from_elem((rows, classes), rest as f32);
        for (mut row, &index) in targets.axis_iter_mut(Axis(0)).zip(&indices) {
            row[self.labels[index]] += (1.0 - self.smoothing) as f32;
        }
        let shape: Vec<usize> = std::iter::once(rows).chain(self.data.shape().iter().copied()).collect();
        let found = x.shape().to_vec();
        let x = x.into_shape_with_order(shape.as_slice()).map_err(|_| Error::Shape {
            what: "the images of a step".to_string(),
            expected: shape.clone(),
            found,
        })?;
        let inputs =
            vec![(INPUT.to_string(), Tensor::from(x)), (TARGETS.to_string(), targets.into_dyn().into())];
        Ok(Batch { inputs, rest_loss: (classes as f64).ln() })
    }
}

/// The names of a classifier's input and logits.
fn interface(model: &Model) -> Result<(String, String)> {
    let names = |values: &[onnx_grad::ValueInfo]| -> String {
        values.iter().map(|v| v.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match (model.graph.inputs.as_slice(), model.graph.outputs.as_slice()) {
        ([input], [output, ..]) if input.name == INPUT => Ok((input.name.clone(), output.name.clone())),
        (inputs, outputs) => Err(Error::Training {
            reason: format!("its inputs are {}, its outputs {}", names(inputs), names(outputs)),
            remedy:
                "a classifier to be trained has one input, called 'input', and its logits as first output"
                    .into(),
        }),
    }
}

/// Moves and mirrors an image in place.
fn change(mut row: ArrayViewMut1<f32>, shape: [usize; 3], by: (i64, i64), mirror: bool) {
    let [channels, height, width] = shape;
    let before = row.to_vec();
    for c in 0..channels {
        for i in 0..height {
            for j in 0..width {
                let column = if mirror { width - 1 - j } else { j };
                let (from_i, from_j) = (i as i64 + by.0, column as i64 + by.1);
                let inside = (0..height as i64).contains(&from_i) && (0..width as i64).contains(&from_j);
                row[(c * height + i) * width + j] = match inside {
                    true => before[(c * height + from_i as usize) * width + from_j as usize],
                    false => 0.0,
                };
            }
        }
    }
}

/// The part of the rows of a labelled data set whose highest logit is that of their class.
pub fn accuracy(model: &Model, data: &Dataset, engine: &EngineConfig) -> Result<f64> {
    let labels = data.require_labels()?;
    data.require_rows(1, "measuring an accuracy")?;
    let (input, _) = interface(model)?;
    let workers = Workers::planned(engine.build()?.as_ref(), model)?;
    let mut right = 0;
    let all: Vec<usize> = (0..data.len()).collect();
    for part in all.chunks(1024) {
        let x = data.rows_f32(part)?;
        let shape: Vec<usize> = std::iter::once(part.len()).chain(data.shape().iter().copied()).collect();
        let found = x.shape().to_vec();
        let x = x.into_shape_with_order(shape.as_slice()).map_err(|_| Error::Shape {
            what: "the rows to be classified".to_string(),
            expected: shape.clone(),
            found,
        })?;
        let x = Tensor::from(x);
        let logits = workers.map(&[(input.as_str(), x.view())])?.into_iter().next();
        let logits = logits.map(Tensor::into_f32).transpose()?.unwrap_or_default();
        expect_shape("the logits", &[part.len(), data.classes().len()], logits.shape())?;
        for (&index, row) in part.iter().zip(logits.axis_iter(Axis(0))) {
            let best = highest(row.iter().map(|v| f64::from(*v)));
            right += usize::from(best == Some(labels[index]));
        }
    }
    Ok(right as f64 / data.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineKind;
    use ndarray::{Array1, array};

    #[test]
    fn images_move_and_mirror() {
        let mut image = Array1::from_iter((1..=6).map(|v| v as f32));
        change(image.view_mut(), [1, 2, 3], (0, 0), true);
        assert_eq!(image, array![3.0, 2.0, 1.0, 6.0, 5.0, 4.0]);
        let mut image = Array1::from_iter((1..=6).map(|v| v as f32));
        change(image.view_mut(), [1, 2, 3], (1, 1), false);
        assert_eq!(image, array![5.0, 6.0, 0.0, 0.0, 0.0, 0.0]);
    }

    /// Two sums of the same 35 numbers, by a sum and by a product: which is the larger is a matter of rounding.
    fn two_sums() -> Model {
        let mut b = Builder::new("sums");
        let x = b.input(INPUT, DType::F32, &[Dim::symbol("N"), Dim::Known(35)]);
        let sum = b.reduce_sum(&x, &[1], true);
        let ones = b.constant(onnx_grad::TensorData::f32(&[35, 1], &[1.0; 35]));
        let product = b.matmul(&x, &ones);
        let logits = b.concat(&[&sum, &product], 1);
        b.output("logits", &logits);
        Model { graph: b.finish().unwrap(), opset: 18, ir_version: 8, ..Model::default() }
    }

    #[test]
    fn the_accuracy_does_not_depend_on_the_order_of_rows() {
        let model = two_sums();
        let mut rng = step_rng(3, Stream::Data, 0);
        let values = Array2::from_shape_simple_fn((640, 35), || rng.random::<f32>() - 0.5);
        let mut turned = values.clone();
        turned.invert_axis(Axis(0));
        let data = |values: &Array2<f32>| {
            let data = Dataset::from_rows("sums", &[35], values.view()).unwrap();
            data.with_labels(vec![0; values.nrows()], vec!["sum".into(), "product".into()]).unwrap()
        };
        for kind in [EngineKind::Rten, EngineKind::Ort] {
            let engine = EngineConfig { kind, ..EngineConfig::default() };
            if engine.build().is_ok() {
                let [there, back] = [&values, &turned].map(|v| accuracy(&model, &data(v), &engine).unwrap());
                assert_eq!(there, back, "{kind:?}");
            }
        }
    }
}
