//! An explanation as an ONNX file: the model, its gradient and the sum along the path in one graph.
//!
//! ```text
//! x [N, ...]  ->  points [P N, ...]  ->  scores and gradients at all points  ->  scores, credit, residual, explained
//! ```
//!
//! Most methods whose work is fixed beforehand take gradients at points that are linear in the input and sums them with
//! weights that are linear in it too (`export/plan.rs`). So one graph does for all of these: it lays all points of a batch below each
//! other, runs the gradient graph once, and adds up. Occlusion and Grad-CAM have graphs of their own. Every graph has ONNX's own operators only, and any runtime can run it
//! where the model runs. Sums are in float32 there, where `explain` has float64: credit differs in the sixth digit.

mod grad_cam;
mod looped;
mod occlusion;
mod plan;
mod wanted;

use std::collections::BTreeMap;

use onnx_grad::{
    Attribute, BackwardRules, Builder, DType, Dim, GradOptions, Graph, Model, Node, TensorData, Value,
    grad_with, gradient_name, seed_name,
};
use serde::{Deserialize, Serialize};

use self::occlusion::Places;
pub use self::plan::Exported;
use self::plan::Plan;
use self::wanted::{Begun, Wanted};
use crate::attribute::expect_relu;
use crate::error::{Error, Remedy, Result};
use crate::predictor::{OnnxPredictor, SCORES};

/// The key of an exported explanation in the file's metadata.
pub const KEY: &str = "brenier.explainer";
/// Before the names of all values of the model inside.
const INSIDE: &str = "model/";

/// Which score is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportedTarget {
    /// That of the class with the highest score, the first of equals.
    #[default]
    Predicted,
    /// Always this one.
    Fixed(usize),
    /// What a second input says, `target`: int64, one for each row.
    Input,
}

/// How steps along a path are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExportedSteps {
    /// All at once, as one batch.
    #[default]
    Batch,
    /// One after another, in an ONNX `Loop`: memory does not grow with their number.
    Loop,
}

/// What an exported file says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedFacts {
    /// The method's name.
    pub method: String,
    /// What there is to know of it, in words.
    pub settings: String,
    /// Which score is explained.
    pub target: ExportedTarget,
    /// Gradients for each input.
    pub gradients: usize,
    /// Scores for each input, where no gradients are taken.
    #[serde(default)]
    pub scores: usize,
    /// The fingerprint of the model's file, where it was read from one.
    pub model: Option<String>,
    /// The version of this program.
    pub version: String,
}

impl ExportedFacts {
    /// What a file says of itself; none where it is no exported explanation.
    pub fn of(model: &Model) -> Option<ExportedFacts> {
        serde_json::from_str(model.metadata.get(KEY)?).ok()
    }

    /// In one sentence.
    pub fn in_words(&self) -> String {
        let target = match self.target {
            ExportedTarget::Predicted => "the highest score".to_string(),
            ExportedTarget::Fixed(class) => format!("score {class}"),
            ExportedTarget::Input => "the score that the input 'target' names".to_string(),
        };
        let work = match (self.gradients, self.scores) {
            (0, scores) => format!("{scores} scores"),
            (1, _) => "1 gradient".to_string(),
            (gradients, _) => format!("{gradients} gradients"),
        };
        format!("an explanation of {target} by {} ({}), {work} for each input", self.method, self.settings)
    }
}

/// The explanation of a model by a method as a graph of its own.
///
/// Inputs are that of the model and, where the target is one, `target`. Outputs are `scores [N, C]`, `credit` in the shape
/// of the input, `explained [N]`, and for methods that promise it `residual [N]`: the sum of the credit minus the change of
/// the score.
///
/// # Errors
/// A batch size that is fixed in the model, a target that it does not have, a rule without fixed nodes, references of
/// another width, and operators that have no gradient.
pub fn export(
    predictor: &OnnxPredictor,
    method: &Exported,
    target: ExportedTarget,
    fingerprint: Option<String>,
) -> Result<Model> {
    export_with(predictor, method, target, ExportedSteps::Batch, fingerprint)
}

/// The same, with steps taken as is asked.
///
/// # Errors
/// As for [`export`], and a loop for a method without several steps.
pub fn export_with(
    predictor: &OnnxPredictor,
    method: &Exported,
    target: ExportedTarget,
    steps: ExportedSteps,
    fingerprint: Option<String>,
) -> Result<Model> {
    let prepared = predictor.model();
    let shape = predictor.shape();
    let wanted = Wanted { target, outputs: predictor.outputs() };
    if let (ExportedTarget::Fixed(class), outputs) = (target, predictor.outputs())
        && class >= outputs
    {
        return Err(Error::Target { target: class, outputs, row: 0 });
    }
    if matches!(method, Exported::GuidedBackprop | Exported::Deconvnet) {
        expect_relu(predictor)?;
    }
    if steps == ExportedSteps::Loop && matches!(method, Exported::Occlusion { .. } | Exported::GradCam { .. })
    {
        return Err(Error::Setting {
            name: "the way of taking steps",
            value: "loop".to_string(),
            needs: "it needs a method with several steps along a path",
            hint: "leave it out".into(),
        });
    }
    let (graph, gradients, scores) = match method {
        Exported::Occlusion { config, reference } => {
            let windows = config.places(shape)?;
            let scores = windows.len() + 1;
            (Places { windows, reference, shape }.graph(prepared, wanted)?, 0, scores)
        }
        Exported::GradCam { layer } => {
            let &[channels, height, width] = shape else {
                return Err(Error::Method {
                    method: method.name().to_string(),
                    reason: format!("inputs of shape {shape:?} are not images"),
                    remedy: "use a method that needs no image, such as 'ig'".into(),
                });
            };
            let layer = predictor.layer(layer.as_deref())?;
            (grad_cam::graph(prepared, wanted, layer.layer(), [channels, height, width])?, 1, 0)
        }
        _ => {
            let plan = Plan::new(method, shape.iter().product())?;
            let gradient = inside(prepared, method.rules())?;
            let explainer = Explainer { plan: &plan, shape, wanted };
            let graph = match steps {
                ExportedSteps::Batch => explainer.graph(&gradient, prepared)?,
                ExportedSteps::Loop => explainer.looped(&gradient, prepared)?,
            };
            (graph, plan.points.len(), 0)
        }
    };
    let facts = ExportedFacts {
        method: method.name().to_string(),
        settings: match steps {
            ExportedSteps::Batch => method.in_words(),
            ExportedSteps::Loop => format!("{}, one step after another", method.in_words()),
        },
        target,
        gradients,
        scores,
        model: fingerprint,
        version: env!("CARGO_PKG_VERSION").to_string(),
    };
    let mut metadata = BTreeMap::new();
    let text =
        serde_json::to_string(&facts).map_err(|e| Error::Write { path: KEY.into(), source: e.into() })?;
    metadata.insert(KEY.to_string(), text);
    Ok(Model { graph, metadata, producer: "brenier".to_string(), ..prepared.clone() })
}

/// The gradient graph of a model, all of its names set apart from those of the explainer.
fn inside(model: &Model, rules: BackwardRules) -> Result<Graph> {
    expect_open(model)?;
    let options = GradOptions { rules, ..GradOptions::default() };
    set_apart(grad_with(&model.graph, &[SCORES], &[&model.graph.inputs[0].name], options)?)
}

/// The model itself, set apart in the same way.
fn forward(model: &Model) -> Result<Graph> {
    expect_open(model)?;
    set_apart(model.graph.clone())
}

/// Refuses a model that takes one number of rows only.
fn expect_open(model: &Model) -> Result<()> {
    let input = &model.graph.inputs[0];
    match input.shape.as_ref().and_then(|shape| shape.first()).and_then(Dim::known) {
        Some(rows) => Err(Error::Predictor {
            reason: format!(
                "the model takes {rows} rows at a time, and an exported explanation lays many below each other"
            ),
            remedy: "export the model with an open batch axis".into(),
        }),
        None => Ok(()),
    }
}

/// A graph with other names for all of its values.
fn set_apart(mut graph: Graph) -> Result<Graph> {
    let has_body = |node: &Node| node.attributes.values().any(|value| matches!(value, Attribute::Graph(_)));
    if graph.nodes.iter().any(has_body) {
        return Err(Error::Predictor {
            reason: "the model has a subgraph (If, Loop or Scan)".to_string(),
            remedy: Remedy::ExplainInPlace,
        });
    }
    let rename = |name: &mut String| {
        if !name.is_empty() {
            name.insert_str(0, INSIDE);
        }
    };
    for node in &mut graph.nodes {
        node.inputs.iter_mut().chain(&mut node.outputs).chain([&mut node.name]).for_each(rename);
    }
    for value in graph.inputs.iter_mut().chain(&mut graph.outputs) {
        rename(&mut value.name);
    }
    let weights = std::mem::take(&mut graph.initializers);
    graph.initializers = weights.into_iter().map(|(name, data)| (format!("{INSIDE}{name}"), data)).collect();
    Ok(graph)
}

/// What the graph is made from.
struct Explainer<'a> {
    plan: &'a Plan,
    shape: &'a [usize],
    wanted: Wanted,
}

impl Explainer<'_> {
    fn graph(&self, gradient: &Graph, model: &Model) -> Result<Graph> {
        let input = &model.graph.inputs[0];
        let Begun { builder: mut b, x, asked } = self.wanted.begin(model, gradient, self.shape);
        let each = b.unsqueeze(&x, &[0]);
        let references = self.references(&mut b, input.dtype);
        let points = self.points(&mut b, &each, references.as_ref());
        let (taken, seed) = (format!("{INSIDE}{}", input.name), format!("{INSIDE}{}", seed_name(SCORES)));
        b.push(Node::new("Identity", &[&points], &[&taken]));
        // The forward part first: the seed follows from the scores.
        let (forward, back) = split(gradient, &seed);
        forward.into_iter().for_each(|node| b.push(node.clone()));
        let classes = self.wanted.outputs as i64;
        let scores = b.reshape(&format!("{INSIDE}{SCORES}"), &[self.plan.points.len() as i64, -1, classes]);
        let first = b.slice(&scores, 0, 0, 1, 1);
        let at_input = b.squeeze(&first, &[0]);
        let explained = self.wanted.explained(&mut b, &at_input, asked);
        let one_hot = self.wanted.one_hot(&mut b, &explained, input.dtype);
        let every = b.unsqueeze(&one_hot, &[0]);
        let every = b.expand_like(&every, &scores);
        let flat = b.reshape(&every, &[-1, classes]);
        b.push(Node::new("Identity", &[&flat], &[&seed]));
        back.into_iter().for_each(|node| b.push(node.clone()));
        let found = b.reshape(&format!("{INSIDE}{}", gradient_name(&input.name)), &self.laid_out(-1));
        let credit = self.credit(&mut b, &each, &found, references.as_ref());
        b.output("scores", &at_input);
        b.output("credit", &credit);
        b.output("explained", &explained);
        if let Some(residual) = self.residual(&mut b, input.dtype, &scores, &one_hot, &credit) {
            b.output("residual", &residual);
        }
        let mut graph = b.finish()?;
        // Numbers that rules look at while they are applied are not all part of what they make.
        graph.prune();
        Ok(graph)
    }

    /// The shape `[points, rows, ...]` in which everything is added up.
    fn laid_out(&self, rows: i64) -> Vec<i64> {
        let row = self.shape.iter().map(|&n| n as i64);
        [self.plan.points.len() as i64, rows].into_iter().chain(row).collect()
    }

    /// A number for each point, to be multiplied with `[points, rows, ...]`; none where all are zero.
    fn numbers(&self, b: &mut Builder, dtype: DType, of: impl Fn(&plan::Point) -> f64) -> Option<Value> {
        let values: Vec<f64> = self.plan.points.iter().map(of).collect();
        let shape: Vec<usize> = [vec![values.len()], vec![1; self.shape.len() + 1]].concat();
        values.iter().any(|&v| v != 0.0).then(|| b.constant(TensorData::from_f64(dtype, &shape, &values)))
    }

    /// The reference of each point, `[points, 1, ...]`; none where all are zero.
    fn references(&self, b: &mut Builder, dtype: DType) -> Option<Value> {
        let rows = &self.plan.references;
        if rows.iter().all(|&v| v == 0.0) {
            return None;
        }
        let shape = [vec![rows.nrows(), 1], self.shape.to_vec()].concat();
        let all = b.constant(TensorData::from_f64(dtype, &shape, &rows.iter().copied().collect::<Vec<_>>()));
        let which: Vec<i64> = self.plan.points.iter().map(|point| point.which as i64).collect();
        let which = b.ints(&which);
        Some(b.op_with("Gather", &[&all, &which], &[("axis", Attribute::Int(0))]))
    }

    /// All points, one below the other.
    fn points(&self, b: &mut Builder, each: &Value, references: Option<&Value>) -> Value {
        let dtype = b.fact(each).dtype.unwrap_or(DType::F32);
        let mut sum = self.numbers(b, dtype, |p| p.of_input).map(|k| b.mul(each, &k));
        let mut add = |b: &mut Builder, part: Value| {
            sum = Some(match &sum {
                Some(sum) => b.add(sum, &part),
                None => part,
            });
        };
        if let (Some(references), Some(k)) = (references, self.numbers(b, dtype, |p| p.of_reference)) {
            let part = b.mul(references, &k);
            add(b, part);
        }
        if let Some(noise) = &self.plan.noise {
            let axes: Vec<i64> = (2..self.shape.len() as i64 + 2).collect();
            let axes = b.ints(&axes);
            let (high, low) = (b.op("ReduceMax", &[each, &axes]), b.op("ReduceMin", &[each, &axes]));
            let range = b.sub(&high, &low);
            let shape = [vec![noise.nrows(), 1], self.shape.to_vec()].concat();
            let noise = TensorData::from_f64(dtype, &shape, &noise.iter().copied().collect::<Vec<_>>());
            let noise = b.constant(noise);
            let part = b.mul(&noise, &range);
            add(b, part);
        }
        let row: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        b.reshape(&sum.unwrap_or_else(|| each.clone()), &[vec![-1], row].concat())
    }

    /// The weighted sum of the gradients over all points.
    fn credit(&self, b: &mut Builder, each: &Value, gradients: &Value, references: Option<&Value>) -> Value {
        let dtype = b.fact(each).dtype.unwrap_or(DType::F32);
        let weighted = |b: &mut Builder, k: &Value| {
            let product = b.mul(gradients, k);
            b.reduce_sum(&product, &[0], false)
        };
        let mut parts = Vec::new();
        // What is multiplied by the input is added up before that: a product for each feature instead of one for each point.
        if let Some(k) = self.numbers(b, dtype, |p| p.times_input) {
            let sum = weighted(b, &k);
            let row = b.squeeze(each, &[0]);
            parts.push(b.mul(&sum, &row));
        }
        if let (Some(references), Some(k)) = (references, self.numbers(b, dtype, |p| p.times_reference)) {
            let factor = b.mul(references, &k);
            parts.push(weighted(b, &factor));
        }
        if let Some(k) = self.numbers(b, dtype, |p| p.plain) {
            parts.push(weighted(b, &k));
        }
        let mut parts = parts.into_iter();
        let first = parts.next().unwrap_or_else(|| b.zeros_like(each));
        parts.fold(first, |sum, part| b.add(&sum, &part))
    }

    /// The sum of the credit minus the score's change from the mean of the references.
    fn residual(
        &self,
        b: &mut Builder,
        dtype: DType,
        scores: &Value,
        one_hot: &Value,
        credit: &Value,
    ) -> Option<Value> {
        let weights = self.plan.change.as_ref()?;
        let weights = b.constant(TensorData::from_f64(dtype, &[weights.len(), 1, 1], weights));
        let weighted = b.mul(scores, &weights);
        let change = b.reduce_sum(&weighted, &[0], false);
        let picked = b.mul(&change, one_hot);
        let change = b.reduce_sum(&picked, &[1], false);
        let flat = b.reshape(credit, &[-1, self.shape.iter().product::<usize>() as i64]);
        let sum = b.reduce_sum(&flat, &[1], false);
        Some(b.sub(&sum, &change))
    }
}

/// The nodes that do not need the seed, and those that do, both in order.
fn split<'a>(graph: &'a Graph, seed: &str) -> (Vec<&'a Node>, Vec<&'a Node>) {
    let mut after = std::collections::BTreeSet::from([seed.to_string()]);
    graph.nodes.iter().partition(|node| {
        let needs = node.given_inputs().any(|input| after.contains(input));
        if needs {
            after.extend(node.wanted_outputs().map(str::to_string));
        }
        !needs
    })
}
