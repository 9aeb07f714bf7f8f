//! What happens to an input before it reaches the model, as part of the model.
//!
//! ```text
//! g(x) = f(p(x)),   p(x) = (R x / scale - mean) / std,   d g / d x = (d p / d x)^T  d f / d p
//! ```
//!
//! Models are trained on normalised, resized, reordered images; people look at files. With the preprocessing
//! folded into the graph the score is a function of what the user sees: credit belongs to the pixels of the
//! file, baselines and flows live in its units, and completeness holds as before. All of it is linear but for the
//! mean, so the gradient through it is exact.

use ndarray::Array2;
use onnx_grad::{Builder, DType, Dim, Graph, TensorData, Value, ValueInfo};
use serde::{Deserialize, Deserializer, Serialize};

use super::resampling::resampling;
use crate::error::{Error, Remedy, Result};

/// Names of the nodes that prepare an input start with this.
pub(crate) const PREPARATION: &str = "brenier/preprocessing/";

/// The order of colours that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelOrder {
    /// Red first, as files have them.
    Rgb,
    /// Blue first.
    Bgr,
}

/// The order of axes that a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// `[batch, channels, height, width]`, as inputs are.
    Nchw,
    /// `[batch, height, width, channels]`.
    Nhwc,
}

/// What a model wants done to an input. What is absent is not done.
///
/// In this order: resize, reorder colours, divide by `scale`, subtract `mean`, divide by `std`, reorder axes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preprocessing {
    /// What values are divided by: 255 for a model of 0 to 1 and inputs of 0 to 255, `"1/255"` the other way round.
    #[serde(deserialize_with = "maybe_quotient", skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// What is subtracted then: a number for all, or one for each channel in the model's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mean: Vec<f64>,
    /// What is divided by then: a number for all, or one for each channel in the model's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub std: Vec<f64>,
    /// The order of colours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<ChannelOrder>,
    /// The order of axes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layout: Option<Layout>,
    /// Height and width that the model takes; inputs of another size are resized, with antialiasing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<[usize; 2]>,
}

impl Preprocessing {
    /// Whether nothing is to be done.
    pub fn is_identity(&self) -> bool {
        *self == Preprocessing::default()
    }

    /// What is said here, and where nothing is said, what is said there.
    pub fn or(self, other: Preprocessing) -> Preprocessing {
        let list = |a: Vec<f64>, b: Vec<f64>| if a.is_empty() { b } else { a };
        Preprocessing {
            scale: self.scale.or(other.scale),
            mean: list(self.mean, other.mean),
            std: list(self.std, other.std),
            channels: self.channels.or(other.channels),
            layout: self.layout.or(other.layout),
            size: self.size.or(other.size),
        }
    }

    /// A number, or one divided by another, such as `1/255`.
    pub fn parse_scale(text: &str) -> Option<f64> {
        let number = |part: &str| part.trim().parse::<f64>().ok();
        let value = match text.split_once('/') {
            Some((above, below)) => number(above)? / number(below)?,
            None => number(text)?,
        };
        (value.is_finite() && value != 0.0).then_some(value)
    }

    /// What is done, in words.
    pub fn words(&self) -> String {
        let list = |values: &[f64]| values.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        let mut parts = Vec::new();
        if let Some([height, width]) = self.size {
            parts.push(format!("resized to {height}x{width}"));
        }
        if self.channels == Some(ChannelOrder::Bgr) {
            parts.push("given blue first".to_string());
        }
        parts.extend(self.scale.map(|scale| format!("divided by {scale}")));
        if !self.mean.is_empty() {
            parts.push(format!("shifted by the mean {}", list(&self.mean)));
        }
        if !self.std.is_empty() {
            parts.push(format!("divided by the deviation {}", list(&self.std)));
        }
        if self.layout == Some(Layout::Nhwc) {
            parts.push("given with the channels last".to_string());
        }
        parts.join(", ")
    }

    /// The row shapes on both sides, `[channels, height, width]` or whatever the model takes: what the user gives,
    /// and what the model takes, the latter in its own layout.
    pub(super) fn shapes(
        &self,
        input: &ValueInfo,
        given: Option<&[usize]>,
    ) -> Result<(Vec<usize>, Vec<usize>)> {
        let last = self.layout == Some(Layout::Nhwc);
        let declared: Option<Vec<Option<usize>>> = input.shape.as_ref().map(|shape| {
            shape.iter().skip(1).map(|d| d.known().and_then(|n| usize::try_from(n).ok())).collect()
        });
        let mut model = match (declared, given) {
            (Some(sizes), _) => sizes,
            (None, Some(given)) => vec![None; given.len()],
            (None, None) => return Err(open_sizes(input)),
        };
        let images = last || self.size.is_some() || self.channels.is_some();
        if images && model.len() != 3 {
            return Err(refused(
                format!("input '{}' is no image, so it has no channels, layout or size", input.name),
                "give only scale, mean and std for rows of features",
            ));
        }
        if last {
            model.rotate_right(1);
        }
        if given.is_some_and(|given| given.len() != model.len()) {
            return Err(refused(
                format!("input '{}' has {} axes, but {given:?} was given", input.name, model.len()),
                "give the shape of one input without the batch, channels first",
            ));
        }
        if let Some(size) = self.size {
            for (axis, wanted) in [(1, size[0]), (2, size[1])] {
                if model[axis].is_some_and(|declared| declared != wanted) {
                    return Err(refused(
                        format!("the model takes images of {model:?}, not of {}x{}", size[0], size[1]),
                        "give the size that the model takes, or leave it out",
                    ));
                }
                model[axis] = Some(wanted);
            }
        }
        let user: Option<Vec<usize>> = match given {
            Some(given) => Some(given.to_vec()),
            None => model.iter().copied().collect(),
        };
        let user = user.ok_or_else(|| open_sizes(input))?;
        let mut model: Vec<usize> =
            model.iter().zip(&user).map(|(declared, &given)| declared.unwrap_or(given)).collect();
        let resizable = if self.size.is_some() { 1 } else { model.len() };
        if model[..resizable] != user[..resizable] {
            return Err(refused(
                format!("the model takes {model:?} (channels first), which {user:?} does not fit"),
                "give the size that inputs are resized to, and as many channels as the model has",
            ));
        }
        if last {
            model.rotate_left(1);
        }
        Ok((user, model))
    }

    /// The graph that takes what the user gives. Its input has the shape `[batch, user...]`.
    pub(super) fn before(&self, mut graph: Graph, user: &[usize]) -> Result<Graph> {
        let inner = graph.inputs.remove(0);
        let batch = inner.shape.as_ref().and_then(|s| s.first()).cloned().unwrap_or(Dim::symbol("N"));
        let name = format!("{}.unprocessed", inner.name);
        let dims: Vec<Dim> = std::iter::once(batch).chain(user.iter().map(|&n| n.into())).collect();
        let mut b = Builder::extend(Graph::new("preprocessing"), PREPARATION)?;
        let x = b.input(&name, inner.dtype, &dims);
        let x = self.resized(&mut b, x, user, inner.dtype);
        let x = self.reordered(&mut b, x, user)?;
        let x = self.normalised(&mut b, x, user, inner.dtype)?;
        let x = match self.layout {
            Some(Layout::Nhwc) => b.transpose(&x, &[0, 2, 3, 1]),
            _ => x,
        };
        b.output(&inner.name, &x);
        let mut whole = b.finish()?;
        whole.nodes.append(&mut graph.nodes);
        whole.initializers.append(&mut graph.initializers);
        whole.outputs = graph.outputs;
        whole.name = graph.name;
        whole.validate()?;
        Ok(whole)
    }

    fn resized(&self, b: &mut Builder, x: Value, user: &[usize], dtype: DType) -> Value {
        let (Some([height, width]), [_, from_height, from_width]) = (self.size, user) else { return x };
        let constant = |b: &mut Builder, matrix: &Array2<f64>| {
            let values: Vec<f64> = matrix.iter().copied().collect();
            b.constant(TensorData::from_f64(dtype, matrix.shape(), &values))
        };
        let mut x = x;
        if *from_height != height {
            let left = constant(b, &resampling(*from_height, height));
            x = b.matmul(&left, &x);
        }
        if *from_width != width {
            let right = constant(b, &resampling(*from_width, width).t().to_owned());
            x = b.matmul(&x, &right);
        }
        x
    }

    fn reordered(&self, b: &mut Builder, x: Value, user: &[usize]) -> Result<Value> {
        match (self.channels, user.first()) {
            (Some(ChannelOrder::Bgr), Some(3)) => {
                let colours: Vec<Value> = (0..3).rev().map(|c| b.slice(&x, 1, c, c + 1, 1)).collect();
                Ok(b.concat(&[&colours[0], &colours[1], &colours[2]], 1))
            }
            (Some(ChannelOrder::Bgr), channels) => Err(refused(
                format!(
                    "only three colours have an order, but there are {} channels",
                    channels.unwrap_or(&0)
                ),
                "leave out the order of channels",
            )),
            _ => Ok(x),
        }
    }

    /// `x a + b` with `a = 1 / (scale std)` and `b = -mean / std`, by channel.
    fn normalised(&self, b: &mut Builder, x: Value, user: &[usize], dtype: DType) -> Result<Value> {
        let channels = user.first().copied().unwrap_or(0);
        for (what, values) in [("mean", &self.mean), ("std", &self.std)] {
            if !matches!(values.len(), 0 | 1) && values.len() != channels {
                return Err(refused(
                    format!("{} values of {what} are given for {channels} channels", values.len()),
                    "give one number for all channels, or one for each",
                ));
            }
        }
        let scale = self.scale.unwrap_or(1.0);
        let fine = |v: &f64| v.is_finite() && *v != 0.0;
        if !self.std.iter().all(fine) || !fine(&scale) || !self.mean.iter().all(|v| v.is_finite()) {
            return Err(refused(
                format!("scale {scale}, mean {:?} and std {:?} cannot be computed with", self.mean, self.std),
                "give finite numbers, and nothing that would divide by zero",
            ));
        }
        let of = |values: &[f64], channel: usize, otherwise: f64| match values {
            [] => otherwise,
            [one] => *one,
            many => many[channel],
        };
        let factors: Vec<f64> = (0..channels).map(|c| 1.0 / (scale * of(&self.std, c, 1.0))).collect();
        let shifts: Vec<f64> =
            (0..channels).map(|c| -of(&self.mean, c, 0.0) / of(&self.std, c, 1.0)).collect();
        let mut sizes = vec![1; user.len()];
        sizes[0] = channels;
        let mut x = x;
        if factors.iter().any(|f| *f != 1.0) {
            let factors = b.constant(TensorData::from_f64(dtype, &sizes, &factors));
            x = b.mul(&x, &factors);
        }
        if shifts.iter().any(|s| *s != 0.0) {
            let shifts = b.constant(TensorData::from_f64(dtype, &sizes, &shifts));
            x = b.add(&x, &shifts);
        }
        Ok(x)
    }
}

fn refused(reason: String, remedy: impl Into<Remedy>) -> Error {
    Error::Predictor { reason, remedy: remedy.into() }
}

fn open_sizes(input: &ValueInfo) -> Error {
    refused(format!("the sizes of input '{}' are open", input.name), Remedy::InputShapeOfImage)
}

/// A number, or a text such as `1/255`.
fn maybe_quotient<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<f64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Number(f64),
        Text(String),
    }
    match Either::deserialize(deserializer)? {
        Either::Number(value) => Ok(Some(value)),
        Either::Text(text) => match Preprocessing::parse_scale(&text) {
            Some(value) => Ok(Some(value)),
            None => Err(serde::de::Error::custom(format!("'{text}' is no scale such as 255 or 1/255"))),
        },
    }
}
