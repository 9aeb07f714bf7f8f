//! Steps one after another: an ONNX `Loop` around the gradient, so that memory does not grow with their number.
//!
//! ```text
//! before   scores at the input and at the references: the class, the residual
//! loop     k = 0, 1, ...:   sum += grad f(point k) (c_k x + d_k r_k + e_k)
//! ```
//!
//! Weights of the model stand once in the file; the body reads them from around it.

use ndarray::Axis;
use onnx_grad::{
    Attribute, Builder, DType, Dim, Graph, Model, Node, TensorData, Value, ValueInfo, gradient_name,
    seed_name,
};

use super::plan::{Plan, Point};
use super::wanted::Begun;
use super::{Explainer, INSIDE, split};
use crate::error::{Error, Result};
use crate::predictor::SCORES;

/// Before the names of all values of the model in one step.
const STEP: &str = "step/";
/// Before the names of all other values of one step.
const AROUND: &str = "around/";

impl Plan {
    /// The points of which only scores are wanted, and those of which gradients are.
    fn parted(&self) -> Result<(Plan, Plan)> {
        let wanted = |point: &Point| [point.times_input, point.times_reference, point.plain] != [0.0; 3];
        let some = |keep: bool| {
            let rows: Vec<usize> =
                (0..self.points.len()).filter(|&row| wanted(&self.points[row]) == keep).collect();
            Plan {
                points: rows.iter().map(|&row| self.points[row]).collect(),
                references: self.references.clone(),
                noise: self.noise.as_ref().filter(|_| keep).map(|noise| noise.select(Axis(0), &rows)),
                change: self.change.as_ref().map(|change| rows.iter().map(|&row| change[row]).collect()),
            }
        };
        let (scores, gradients) = (some(false), some(true));
        match scores.points.is_empty() {
            false => Ok((scores, gradients)),
            true => Err(Error::Setting {
                name: "the way of taking steps",
                value: "loop".to_string(),
                needs: "it needs a method with several steps",
                hint: "leave it out: this method takes one gradient".into(),
            }),
        }
    }
}

impl Explainer<'_> {
    /// The graph with a loop.
    pub(super) fn looped(&self, gradient: &Graph, model: &Model) -> Result<Graph> {
        let (before, steps) = self.plan.parted()?;
        let outer = Explainer { plan: &before, ..*self };
        let input = &model.graph.inputs[0];
        let Begun { builder: mut b, x, asked } = self.wanted.begin(model, gradient, self.shape);
        let each = b.unsqueeze(&x, &[0]);
        let references = outer.references(&mut b, input.dtype);
        let points = outer.points(&mut b, &each, references.as_ref());
        b.push(Node::new("Identity", &[&points], &[&format!("{INSIDE}{}", input.name)]));
        let seed = format!("{INSIDE}{}", seed_name(SCORES));
        let (forward, _) = split(gradient, &seed);
        forward.into_iter().for_each(|node| b.push(node.clone()));
        let shape = [before.points.len() as i64, -1, self.wanted.outputs as i64];
        let scores = b.reshape(&format!("{INSIDE}{SCORES}"), &shape);
        let first = b.slice(&scores, 0, 0, 1, 1);
        let at_input = b.squeeze(&first, &[0]);
        let explained = self.wanted.explained(&mut b, &at_input, asked);
        let one_hot = self.wanted.one_hot(&mut b, &explained, input.dtype);
        let body = Body::new(&mut b, &steps, self.shape, input.dtype, &x);
        let body = body.graph(gradient, &input.name, &one_hot);
        let count = b.constant(TensorData::scalar(DType::I64, steps.points.len() as f64));
        let nothing = b.zeros_like(&x);
        let credit = Value::named("loop/credit");
        let mut node = Node::new("Loop", &[&count, "", &nothing], &[&credit]);
        node.name = "loop".to_string();
        node.attributes.insert("body".to_string(), Attribute::Graph(Box::new(body)));
        b.push(node);
        b.output("scores", &at_input);
        b.output("credit", &credit);
        b.output("explained", &explained);
        if let Some(residual) = outer.residual(&mut b, input.dtype, &scores, &one_hot, &credit) {
            b.output("residual", &residual);
        }
        let mut graph = b.finish()?;
        graph.prune();
        // What comes out of a loop is not inferred; it is as large as what goes in.
        let (batch, credit) = (graph.inputs[0].shape.clone(), &mut graph.outputs[1]);
        (credit.dtype, credit.shape) = (input.dtype, batch);
        Ok(graph)
    }
}

/// One step: the point, the gradient there, and what it adds to the sum.
struct Body<'a> {
    dtype: DType,
    nodes: Vec<Node>,
    x: &'a str,
    rank: usize,
    /// What the input, the reference and one are multiplied with for the point, and for the sum.
    of_point: Vec<Value>,
    of_sum: Vec<Value>,
}

const NUMBER: &str = "around/number";
const GOES_ON: &str = "around/goes_on";
const SO_FAR: &str = "around/so_far";

impl<'a> Body<'a> {
    fn new(b: &mut Builder, steps: &Plan, shape: &[usize], dtype: DType, x: &'a str) -> Body<'a> {
        let (of_point, of_sum) = (Vec::new(), Vec::new());
        let mut body = Body { dtype, nodes: Vec::new(), x, rank: shape.len(), of_point, of_sum };
        let x = Value::named(x);
        if let Some(k) = body.number(b, steps, |point| point.of_input) {
            let part = body.op("Mul", &[&x, &k]);
            body.of_point.push(part);
        }
        if let Some(k) = body.number(b, steps, |point| point.times_input) {
            let part = body.op("Mul", &[&x, &k]);
            body.of_sum.push(part);
        }
        if steps.references.iter().any(|&v| v != 0.0) {
            let rows = &steps.references;
            let flat: Vec<f64> = rows.iter().copied().collect();
            let all = b.constant(TensorData::from_f64(
                dtype,
                &[vec![rows.nrows()], shape.to_vec()].concat(),
                &flat,
            ));
            let which: Vec<i64> = steps.points.iter().map(|point| point.which as i64).collect();
            let which = b.ints(&which);
            let which = body.op("Gather", &[&which, NUMBER]);
            let reference = body.op("Gather", &[&all, &which]);
            if let Some(k) = body.number(b, steps, |point| point.of_reference) {
                let part = body.op("Mul", &[&reference, &k]);
                body.of_point.push(part);
            }
            if let Some(k) = body.number(b, steps, |point| point.times_reference) {
                let part = body.op("Mul", &[&reference, &k]);
                body.of_sum.push(part);
            }
        }
        if let Some(noise) = &steps.noise {
            let flat: Vec<f64> = noise.iter().copied().collect();
            let all = b.constant(TensorData::from_f64(
                dtype,
                &[vec![noise.nrows()], shape.to_vec()].concat(),
                &flat,
            ));
            let axes: Vec<i64> = (1..=shape.len() as i64).collect();
            let axes = b.ints(&axes);
            let (high, low) = (b.op("ReduceMax", &[&x, &axes]), b.op("ReduceMin", &[&x, &axes]));
            let range = b.sub(&high, &low);
            let noise = body.op("Gather", &[&all, NUMBER]);
            let part = body.op("Mul", &[&noise, &range]);
            body.of_point.push(part);
        }
        if let Some(k) = body.number(b, steps, |point| point.plain) {
            body.of_sum.push(k);
        }
        body
    }

    /// A number of this step; none where it is zero at all steps.
    fn number(&mut self, b: &mut Builder, steps: &Plan, of: fn(&Point) -> f64) -> Option<Value> {
        let values: Vec<f64> = steps.points.iter().map(of).collect();
        if values.iter().all(|&value| value == 0.0) {
            return None;
        }
        let all = b.constant(TensorData::from_f64(self.dtype, &[values.len()], &values));
        Some(self.op("Gather", &[&all, NUMBER]))
    }

    fn op(&mut self, op: &str, inputs: &[&str]) -> Value {
        let name = format!("{AROUND}{op}_{}", self.nodes.len());
        let mut node = Node::new(op, inputs, &[&name]);
        node.name.clone_from(&name);
        self.nodes.push(node);
        Value::named(&name)
    }

    fn sum(&mut self, parts: Vec<Value>) -> Option<Value> {
        parts.into_iter().reduce(|sum, part| self.op("Add", &[&sum, &part]))
    }

    /// The body of the loop around the gradient graph.
    fn graph(mut self, gradient: &Graph, input: &str, one_hot: &str) -> Graph {
        let (of_point, of_sum) = (std::mem::take(&mut self.of_point), std::mem::take(&mut self.of_sum));
        let point = self.sum(of_point).unwrap_or_else(|| Value::named(self.x));
        let within = |name: &str| format!("{STEP}{name}");
        self.nodes.push(Node::new("Identity", &[&point], &[&within(input)]));
        self.nodes.push(Node::new("Identity", &[one_hot], &[&within(&seed_name(SCORES))]));
        let rename = |name: &mut String| {
            if !gradient.initializers.contains_key(name.as_str())
                && let Some(own) = name.strip_prefix(INSIDE)
            {
                *name = within(own);
            }
        };
        for node in &gradient.nodes {
            let mut node = node.clone();
            node.inputs.iter_mut().chain(&mut node.outputs).chain([&mut node.name]).for_each(rename);
            self.nodes.push(node);
        }
        let found = Value::named(&within(&gradient_name(input)));
        let adds = match self.sum(of_sum) {
            Some(weight) => self.op("Mul", &[&found, &weight]),
            None => found,
        };
        let sum = self.op("Add", &[SO_FAR, &adds]);
        let goes_on = self.op("Identity", &[GOES_ON]);
        let value = |name: &str, dtype: DType, rank: usize| {
            let shape = (0..rank).map(|axis| Dim::symbol(format!("step_{axis}"))).collect();
            ValueInfo { name: name.to_string(), dtype, shape: Some(shape) }
        };
        let mut graph = Graph::new("step");
        graph.inputs = vec![
            value(NUMBER, DType::I64, 0),
            value(GOES_ON, DType::Bool, 0),
            value(SO_FAR, self.dtype, self.rank + 1),
        ];
        graph.outputs = vec![value(&goes_on, DType::Bool, 0), value(&sum, self.dtype, self.rank + 1)];
        graph.nodes = self.nodes;
        graph.prune();
        graph
    }
}
