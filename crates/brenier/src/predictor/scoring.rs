//! Which numbers of an output are scores: places along its axes, reductions over parts of it, and differences.
//!
//! ```text
//! y [N, 21, 64, 64]      target 5,10,12           y[:, 5, 10, 12]                        one score
//!                        target 5,:,:  mean       the mean of y[:, 5] over all pixels    one score
//!                        target predicted,10,12   y[:, :, 10, 12]                        21 scores
//! ```
//!
//! All of it is written into the graph, behind the output. So every method explains it, whether it asks for values, for
//! gradients, or looks inside.

use std::fmt;

use onnx_grad::{Builder, DType, Dim, Graph, Model, TensorData, Value, shapes::Facts};
use serde::{Deserialize, Serialize};

use super::onnx::{PredictorConfig, SCORES, explained_output};
use super::values::ValuePredictor;
use crate::error::{Error, Remedy, Result};
use crate::fingerprint;

/// What a target says of one axis of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Along {
    /// One place.
    Place(usize),
    /// The places from the first up to, but without, the second: they are put together.
    Range(usize, usize),
    /// All places: they are put together.
    All,
    /// Every place is a score of its own.
    Each,
}

/// How several numbers become one score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reduce {
    /// Their mean.
    Mean,
    /// Their sum.
    Sum,
    /// The largest.
    Max,
}

/// What is taken from a score.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Minus {
    /// Another score, of the same kind as the target.
    Score(Vec<Along>),
    /// The highest of all other scores: what is left is a margin.
    HighestOther,
}

/// Weights of the numbers that are put together: 0 leaves one out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Within {
    /// The sizes of the axes that are reduced, in their order.
    pub shape: Vec<usize>,
    /// A weight for each place.
    pub weights: Vec<f32>,
}

/// Which numbers of an output are scores.
///
/// ```
/// use brenier::{Along, OnnxPredictor, PredictorConfig, Reduce, Score, Scoring};
/// use ndarray::array;
/// use onnx_grad::{Builder, DType, Model};
///
/// let mut b = Builder::new("maps");
/// let x = b.input("x", DType::F32, &["N".into(), 2usize.into(), 2usize.into()]);
/// let y = b.mul(&x, &x);
/// b.output("y", &y);
/// let scoring = Scoring { target: vec![Along::Place(1), Along::All], reduce: Some(Reduce::Sum), ..Scoring::default() };
/// let config = PredictorConfig { scoring: Some(scoring), ..PredictorConfig::default() };
/// let model = Model { graph: b.finish()?, opset: 18, ir_version: 8, ..Model::default() };
/// let model = OnnxPredictor::new(&model, &config)?;
/// assert_eq!(model.values(array![[1.0, 2.0, 3.0, 4.0]].view(), &[0])?, array![25.0]);
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scoring {
    /// What is said of each axis behind the batch; nothing where every number of a vector is a score.
    pub target: Vec<Along>,
    /// How the places of ranges become one number.
    pub reduce: Option<Reduce>,
    /// Weights of these places.
    pub within: Option<Within>,
    /// What is taken from every score.
    pub minus: Option<Minus>,
}

impl fmt::Display for Along {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Along::Place(place) => write!(f, "{place}"),
            Along::Range(from, to) => write!(f, "{from}:{to}"),
            Along::All => f.write_str(":"),
            Along::Each => f.write_str("predicted"),
        }
    }
}

/// A target as it is typed.
fn typed(target: &[Along]) -> String {
    target.iter().map(Along::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Scoring {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let reduced = match self.reduce {
            None => "",
            Some(Reduce::Mean) => "mean of ",
            Some(Reduce::Sum) => "sum of ",
            Some(Reduce::Max) => "largest of ",
        };
        let target = if self.target.is_empty() { "each score".to_string() } else { typed(&self.target) };
        write!(f, "{reduced}{target}")?;
        if let Some(within) = &self.within {
            let inside = within.weights.iter().filter(|weight| **weight != 0.0).count();
            write!(f, " within {inside} places")?;
        }
        match &self.minus {
            None => Ok(()),
            Some(Minus::Score(other)) => write!(f, " minus {}", typed(other)),
            Some(Minus::HighestOther) => f.write_str(" minus the highest other"),
        }
    }
}

impl Scoring {
    /// Whether one score is left, whatever the target.
    pub fn is_one_score(&self) -> bool {
        !self.target.is_empty() && !self.target.contains(&Along::Each)
    }

    /// All that decides the scores, weights included, in a line.
    pub fn described(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("{self} ({})", &fingerprint(text.as_bytes())[..12])
    }

    /// The class whose score is taken from all others, where nothing else is asked: what trees can do as well.
    fn plain_class(&self) -> Option<usize> {
        match (&self.minus, self.target.is_empty(), self.reduce) {
            (Some(Minus::Score(other)), true, None) => match other.as_slice() {
                [Along::Place(class)] => Some(*class),
                _ => None,
            },
            _ => None,
        }
    }

    /// The graph whose only output are these scores, `[N, C]`.
    pub(super) fn apply(&self, graph: Graph) -> Result<Graph> {
        let output = graph.outputs[0].name.clone();
        let mut source = graph;
        source.outputs.clear();
        let mut b = Builder::extend(source, "brenier/scoring/")?;
        let Some(shape) = b.shape(&output).map(<[Dim]>::to_vec) else {
            return Err(refused(
                format!("the number of axes of output '{output}' is not known"),
                "export the model with shapes, or leave the target a single number",
            ));
        };
        let sizes: Vec<Option<usize>> = shape.iter().skip(1).map(size).collect();
        if sizes.is_empty() && self.target.is_empty() {
            return Err(one_score());
        }
        let vector = [Along::Each];
        let target = if self.target.is_empty() { &vector[..] } else { &self.target };
        let place = Place { output: &output, sizes: &sizes };
        let scores = self.picked(&mut b, &place, target)?;
        let count = b.shape(&scores).and_then(|shape| shape.get(1).and_then(size));
        let scores = match &self.minus {
            None => scores,
            Some(_) if self.target.is_empty() && count == Some(1) => return Err(one_score()),
            Some(Minus::Score(other)) => {
                if other.contains(&Along::Each) {
                    return Err(refused(
                        format!("what is subtracted, {}, is not one score", typed(other)),
                        "name one place along each axis, or ranges that are put together",
                    ));
                }
                if other == target {
                    return Err(refused(
                        format!("{} is subtracted from itself, so the score would be 0", typed(other)),
                        "subtract another score",
                    ));
                }
                let other = self.picked(&mut b, &place, other)?;
                b.sub(&scores, &other)
            }
            Some(Minus::HighestOther) if count.is_none_or(|count| count < 2) => {
                return Err(refused(
                    format!("{} is one score, and there is no other to take from it", typed(target)),
                    "say 'predicted' along the axis of the classes, or name the score to subtract",
                ));
            }
            Some(Minus::HighestOther) => margins(&mut b, &scores),
        };
        b.output(SCORES, &scores);
        Ok(b.finish()?)
    }

    /// The numbers that a target names, as `[N, 1]`, or `[N, C]` where one axis has all scores.
    fn picked(&self, b: &mut Builder, place: &Place, target: &[Along]) -> Result<Value> {
        place.check(target)?;
        let reduced: Vec<usize> =
            (0..target.len()).filter(|i| matches!(target[*i], Along::All | Along::Range(..))).collect();
        let mut value = Value::named(place.output);
        for (i, along) in target.iter().enumerate() {
            if let Some((from, to)) = match along {
                Along::Place(at) => Some((*at, *at + 1)),
                Along::Range(from, to) => Some((*from, *to)),
                Along::All | Along::Each => None,
            } {
                value = b.slice(&value, i + 1, from as i64, to as i64, 1);
            }
        }
        match (reduced.is_empty(), self.reduce) {
            (false, None) => {
                let reason = format!("the target {} names more than one number", typed(target));
                return Err(Error::Predictor { reason, remedy: Remedy::SayHowToReduce });
            }
            (true, None) => {}
            (true, Some(_)) => {
                let reason =
                    format!("the target {} names single numbers: nothing is put together", typed(target));
                return Err(Error::Predictor { reason, remedy: Remedy::NameRange });
            }
            (false, Some(reduce)) => value = self.reduced(b, &value, reduce, &reduced)?,
        }
        if reduced.is_empty() && self.within.is_some() {
            let reason = "weights are given, but the target names single numbers".to_string();
            return Err(Error::Predictor { reason, remedy: Remedy::NameRange });
        }
        // What is left are axes of one place each, and at most one of scores.
        Ok(match target.len() {
            0 => b.unsqueeze(&value, &[1]),
            1 => value,
            _ => b.op_with("Flatten", &[&value], &[("axis", 1i64.into())]),
        })
    }

    /// The places along some axes put together; the axes keep one place.
    fn reduced(&self, b: &mut Builder, value: &str, reduce: Reduce, axes: &[usize]) -> Result<Value> {
        let shape = b.shape(value).map(<[Dim]>::to_vec).unwrap_or_default();
        let at: Vec<i64> = axes.iter().map(|axis| *axis as i64 + 1).collect();
        let Some(within) = &self.within else {
            return Ok(match reduce {
                Reduce::Mean => b.reduce_mean(value, &at, true),
                Reduce::Sum => b.reduce_sum(value, &at, true),
                Reduce::Max => largest(b, value, &at),
            });
        };
        let sizes: Option<Vec<usize>> = axes.iter().map(|axis| shape.get(axis + 1).and_then(size)).collect();
        within.check(sizes.as_deref())?;
        let mut wide = vec![1usize; shape.len()];
        for (axis, size) in axes.iter().zip(&within.shape) {
            wide[axis + 1] = *size;
        }
        let dtype = b.fact(value).dtype.unwrap_or(DType::F32);
        let weights: Vec<f64> = within.weights.iter().map(|weight| f64::from(*weight)).collect();
        if reduce == Reduce::Max {
            let kept: Vec<f64> = weights.iter().map(|weight| f64::from(u8::from(*weight != 0.0))).collect();
            // Far below any score, and still finite: 0 times infinity is nothing.
            let below: Vec<f64> = kept.iter().map(|kept| if *kept == 0.0 { -1e30 } else { 0.0 }).collect();
            let kept = b.constant(TensorData::from_f64(dtype, &wide, &kept));
            let below = b.constant(TensorData::from_f64(dtype, &wide, &below));
            let inside = b.mul(value, &kept);
            let inside = b.add(&inside, &below);
            return Ok(largest(b, &inside, &at));
        }
        let total: f64 = if reduce == Reduce::Mean { weights.iter().sum() } else { 1.0 };
        let weights: Vec<f64> = weights.iter().map(|weight| weight / total).collect();
        let weights = b.constant(TensorData::from_f64(dtype, &wide, &weights));
        let inside = b.mul(value, &weights);
        Ok(b.reduce_sum(&inside, &at, true))
    }
}

/// Where a target points: an output and the sizes of its axes behind the batch.
struct Place<'a> {
    output: &'a str,
    sizes: &'a [Option<usize>],
}

impl Place<'_> {
    fn check(&self, target: &[Along]) -> Result<()> {
        let Place { output, sizes } = self;
        let told: Vec<String> =
            sizes.iter().map(|size| size.map_or("?".to_string(), |size| size.to_string())).collect();
        if target.len() != sizes.len() {
            let axes = if sizes.len() == 1 { "1 axis" } else { &format!("{} axes", sizes.len()) };
            return Err(refused(
                format!(
                    "output '{output}' has {axes} behind the batch, [{}], but the target {} speaks of {}",
                    told.join(", "),
                    typed(target),
                    target.len()
                ),
                "say something of each axis: a number, a range such as 0:8, or ':' for all of it",
            ));
        }
        if target.iter().filter(|along| **along == Along::Each).count() > 1 {
            return Err(refused(
                format!("the target {} asks for the predicted place along two axes", typed(target)),
                "say 'predicted' along one axis, that of the classes",
            ));
        }
        for (i, (along, size)) in target.iter().zip(*sizes).enumerate() {
            let inside = match (along, size) {
                (Along::Place(at), Some(size)) => at < size,
                (Along::Range(from, to), Some(size)) => from < to && to <= size,
                (Along::Range(from, to), None) => from < to,
                _ => true,
            };
            if !inside {
                return Err(refused(
                    format!(
                        "'{along}' is not within axis {} of output '{output}', which has {} places",
                        i + 1,
                        told[i]
                    ),
                    "places are numbered from 0, and a range ends before its second number",
                ));
            }
            if size.is_none() && !matches!(along, Along::All) {
                return Err(Error::Predictor {
                    reason: format!("the size of axis {} of output '{output}' is open", i + 1),
                    remedy: Remedy::InputShapeOfImage,
                });
            }
        }
        Ok(())
    }
}

impl Within {
    fn check(&self, sizes: Option<&[usize]>) -> Result<()> {
        let hint = "give a weight for every place that is put together: 0 leaves it out";
        if sizes != Some(&self.shape) || self.weights.len() != self.shape.iter().product::<usize>() {
            let reason = match sizes {
                Some(sizes) => {
                    format!("the weights have shape {:?}, but the target's ranges have {sizes:?}", self.shape)
                }
                None => "the sizes of the target's ranges are open, so weights cannot be laid over them"
                    .to_string(),
            };
            return Err(refused(reason, hint));
        }
        if let Some(weight) = self.weights.iter().find(|weight| !(0.0..f32::INFINITY).contains(*weight)) {
            return Err(refused(format!("a weight is {weight}"), "weights are 0 or more"));
        }
        if self.weights.iter().all(|weight| *weight == 0.0) {
            return Err(refused("all weights are 0, so nothing is left".to_string(), hint));
        }
        Ok(())
    }
}

/// Every score minus the highest of the others: that of the highest is taken from its next.
fn margins(b: &mut Builder, scores: &str) -> Value {
    let two = b.ints(&[2]);
    let found = b.op_many("TopK", &[scores, &two], &[("axis", 1i64.into())], 2);
    let values = &found[0];
    let (first, second) = (b.slice(values, 1, 0, 1, 1), b.slice(values, 1, 1, 2, 1));
    let below = b.op("Less", &[scores, &first]);
    let others = b.select(&below, &first, &second);
    b.sub(scores, &others)
}

fn largest(b: &mut Builder, value: &str, axes: &[i64]) -> Value {
    let axes = b.ints(axes);
    b.op_with("ReduceMax", &[value, &axes], &[("keepdims", 1i64.into())])
}

fn size(dim: &Dim) -> Option<usize> {
    dim.known().and_then(|n| usize::try_from(n).ok())
}

fn refused(reason: String, remedy: &'static str) -> Error {
    Error::Predictor { reason, remedy: remedy.into() }
}

/// What is said of a difference where there is nothing to subtract.
pub(super) fn one_score() -> Error {
    refused("it has one score, and a difference takes two".to_string(), "explain the score itself")
}

/// The same scores where they are not part of a graph: of trees, and of files that are run as they are.
pub(super) fn without_graph(
    model: ValuePredictor,
    kind: &str,
    scoring: Option<&Scoring>,
) -> Result<ValuePredictor> {
    match scoring {
        None => Ok(model),
        Some(scoring) => match scoring.plain_class() {
            Some(class) => model.with_contrast(class),
            None => Err(refused(
                format!("scores of {kind} are taken as they are, and '{scoring}' would be part of a graph"),
                "explain single scores, or the difference of two",
            )),
        },
    }
}

/// The sizes of the explained output's axes behind the batch, as far as the file tells; nothing where not even their number
/// is known.
pub fn score_axes(model: &Model, config: &PredictorConfig) -> Option<Vec<Option<usize>>> {
    let graph = &model.graph;
    let output = match &config.output {
        Some(name) => graph.output(name)?,
        None => explained_output(graph)?,
    };
    let declared = output.shape.clone().filter(|shape| shape.iter().skip(1).all(|dim| size(dim).is_some()));
    let shape = declared
        .or_else(|| Facts::of(graph).ok()?.get(&output.name).shape.clone())
        .or(output.shape.clone())?;
    Some(shape.iter().skip(1).map(size).collect())
}
