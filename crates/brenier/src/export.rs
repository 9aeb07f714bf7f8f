//! An explanation as an ONNX file: the model, its gradient and the sum along the path in one graph.
//!
//! ```text
//! x [N, ...]  ->  points [P N, ...]  ->  scores and gradients at all points  ->  scores, credit, residual, explained
//! ```
//!
//! Every method whose work is fixed beforehand takes gradients at points that are linear in the input and sums them with
//! weights that are linear in it too (`export/plan.rs`). So one graph does for all of them: it lays all points of a batch below each
//! other, runs the gradient graph once, and adds up. The graph has ONNX's own operators only, and any runtime can run it
//! where the model runs. Sums are in float32 there, where `explain` has float64: credit differs in the sixth digit.

mod plan;

use std::collections::BTreeMap;

use onnx_grad::{
    Attribute, BackwardRules, Builder, DType, Dim, GradOptions, Graph, Model, Node, TensorData, Value,
    grad_with, gradient_name, seed_name,
};
use serde::{Deserialize, Serialize};

pub use self::plan::Exported;
use self::plan::Plan;
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
        format!(
            "an explanation of {target} by {} ({}), {} gradients for each input",
            self.method, self.settings, self.gradients
        )
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
    let prepared = predictor.model();
    let shape = predictor.shape();
    let plan = Plan::new(method, shape.iter().product())?;
    if let (ExportedTarget::Fixed(class), outputs) = (target, predictor.outputs())
        && class >= outputs
    {
        return Err(Error::Target { target: class, outputs, row: 0 });
    }
    if matches!(method, Exported::GuidedBackprop | Exported::Deconvnet) {
        expect_relu(predictor)?;
    }
    let gradient = inside(prepared, method.rules())?;
    let graph =
        Explainer { plan: &plan, shape, outputs: predictor.outputs(), target }.graph(&gradient, prepared)?;
    let facts = ExportedFacts {
        method: method.name().to_string(),
        settings: method.in_words(),
        target,
        gradients: plan.points.len(),
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
    let input = &model.graph.inputs[0];
    if let Some(rows) = input.shape.as_ref().and_then(|shape| shape.first()).and_then(Dim::known) {
        return Err(Error::Predictor {
            reason: format!(
                "the model takes {rows} rows at a time, and an exported explanation lays many below each other"
            ),
            remedy: "export the model with an open batch axis".into(),
        });
    }
    let options = GradOptions { rules, ..GradOptions::default() };
    let mut graph = grad_with(&model.graph, &[SCORES], &[&input.name], options)?;
    let has_body = |node: &Node| node.attributes.values().any(|value| matches!(value, Attribute::Graph(_)));
    if graph.nodes.iter().any(has_body) {
        return Err(Error::Predictor {
            reason: "the model has a subgraph (If, Loop or Scan)".to_string(),
            remedy: Remedy::ExplainInPlace,
        });
    }
    let set_apart = |name: &mut String| {
        if !name.is_empty() {
            name.insert_str(0, INSIDE);
        }
    };
    for node in &mut graph.nodes {
        node.inputs.iter_mut().chain(&mut node.outputs).chain([&mut node.name]).for_each(set_apart);
    }
    for value in graph.inputs.iter_mut().chain(&mut graph.outputs) {
        set_apart(&mut value.name);
    }
    let weights = std::mem::take(&mut graph.initializers);
    graph.initializers = weights.into_iter().map(|(name, data)| (format!("{INSIDE}{name}"), data)).collect();
    Ok(graph)
}

/// What the graph is made from.
struct Explainer<'a> {
    plan: &'a Plan,
    shape: &'a [usize],
    outputs: usize,
    target: ExportedTarget,
}

impl Explainer<'_> {
    fn graph(&self, gradient: &Graph, model: &Model) -> Result<Graph> {
        let input = &model.graph.inputs[0];
        let batch = input.shape.as_ref().and_then(|shape| shape.first()).cloned().unwrap_or(Dim::symbol("N"));
        let row: Vec<Dim> = self.shape.iter().map(|&n| n.into()).collect();
        let mut b = Builder::new("explainer");
        let x = b.input(&input.name, input.dtype, &[vec![batch.clone()], row].concat());
        let asked = (self.target == ExportedTarget::Input).then(|| b.input("target", DType::I64, &[batch]));
        for (name, data) in &gradient.initializers {
            b.parameter(name, data.clone());
        }
        let each = b.unsqueeze(&x, &[0]);
        let references = self.references(&mut b, input.dtype);
        let points = self.points(&mut b, &each, references.as_ref());
        let (taken, seed) = (format!("{INSIDE}{}", input.name), format!("{INSIDE}{}", seed_name(SCORES)));
        b.push(Node::new("Identity", &[&points], &[&taken]));
        // The forward part first: the seed follows from the scores.
        let (forward, back) = split(gradient, &seed);
        forward.into_iter().for_each(|node| b.push(node.clone()));
        let classes = self.outputs as i64;
        let scores = b.reshape(&format!("{INSIDE}{SCORES}"), &[self.plan.points.len() as i64, -1, classes]);
        let first = b.slice(&scores, 0, 0, 1, 1);
        let at_input = b.squeeze(&first, &[0]);
        let explained = self.explained(&mut b, &at_input, asked);
        let one_hot = self.one_hot(&mut b, &explained, input.dtype);
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
        if let Some(residual) = self.residual(&mut b, &scores, &one_hot, &credit) {
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

    /// The class of each row, `[rows]`.
    fn explained(&self, b: &mut Builder, scores: &Value, asked: Option<Value>) -> Value {
        match (self.target, asked) {
            (ExportedTarget::Input, Some(asked)) => asked,
            (ExportedTarget::Fixed(class), _) => {
                let highest = argmax(b, scores);
                let zero = b.sub(&highest, &highest);
                let class = b.constant(TensorData::ints(&[class as i64]));
                b.add(&zero, &class)
            }
            _ => argmax(b, scores),
        }
    }

    /// One where a class is explained, zero elsewhere, `[rows, classes]`.
    fn one_hot(&self, b: &mut Builder, explained: &Value, dtype: DType) -> Value {
        let classes: Vec<i64> = (0..self.outputs as i64).collect();
        let classes = b.ints(&classes);
        let column = b.unsqueeze(explained, &[1]);
        let equal = b.op("Equal", &[&column, &classes]);
        let one_hot = b.cast(&equal, dtype);
        if self.target != ExportedTarget::Input {
            return one_hot;
        }
        // A class that there is not makes a row of zeros, and of that no numbers: credit of zero would look like an answer.
        let ones = b.reduce_sum(&one_hot, &[1], true);
        b.div(&one_hot, &ones)
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
    fn residual(&self, b: &mut Builder, scores: &Value, one_hot: &Value, credit: &Value) -> Option<Value> {
        let weights = self.plan.change.as_ref()?;
        let dtype = b.fact(credit).dtype.unwrap_or(DType::F32);
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

/// The first of the highest scores of each row.
fn argmax(b: &mut Builder, scores: &Value) -> Value {
    let attributes = [
        ("axis", Attribute::Int(1)),
        ("keepdims", Attribute::Int(0)),
        ("select_last_index", Attribute::Int(0)),
    ];
    b.op_with("ArgMax", &[scores], &attributes)
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
