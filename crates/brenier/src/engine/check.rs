//! Whether an engine computes what ONNX says, asked once for each model.
//!
//! Engines have bugs, and a wrong number looks like any other: credit adds up to wrong scores as well as to right ones.
//! So a model is run once on a few made-up rows before it is explained. Every kind of node is then held against the
//! reference evaluator of `onnx-grad`:
//!
//! ```text
//! inner values   v = engine(graph with inner values as outputs)
//! each node      v[outputs] = reference(node, v[inputs])          to float32's rounding
//! as a whole     engine(graph) = engine(graph with inner values as outputs)
//! ```
//!
//! The engine's own values go into the reference, so rounding does not add up from node to node, a step function sees the
//! same numbers on both sides, and the node that differs is known at once. The last line is for what engines do to a
//! graph as a whole (fused operators, kernels of our own).
//!
//! The reference is slow. Of nodes of the same kind (operator, attributes, element types, shapes of weights) the cheapest
//! is asked, and of large products only a few columns are computed. What is not compared is told by [`Verdict`]. A model
//! that passed is not asked again: see [`cache`].

mod cache;
mod inner;
mod kinds;
mod node;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use onnx_grad::{DType, Dim, Graph, Model};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::inner::{Inner, Values};
use self::kinds::Kind;
use self::node::{Held, hold};
use super::{Engine, Tensor, TensorView, Weights};
use crate::error::{Disagreement, EngineError, Error, Remedy, Result};

/// Rows of the made-up batch, where the model takes any number and computes each by itself.
const ROWS: usize = 2;
/// What the reference computes in all: a multiplication or an element each.
const STEPS: u64 = 150_000_000;
/// Batches that must all differ before the model as a whole is said to.
const BATCHES: u64 = 3;
/// How far an output of the whole model may be off, in units of its largest value.
const WHOLE: f64 = 1e-3;
/// Inner values of more bytes than this are not asked for.
const BYTES: u64 = 1 << 30;

/// What was compared, and what was not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// Kinds of nodes that agree.
    pub(crate) agree: usize,
    /// Kinds of nodes that were not compared, each with the reason.
    pub(crate) left_out: Vec<String>,
}

impl Verdict {
    /// What a user should know.
    pub(crate) fn notice(&self, engine: &str) -> Option<String> {
        if self.left_out.is_empty() {
            return None;
        }
        let all = self.agree + self.left_out.len();
        let some = self.left_out.iter().take(3).cloned().collect::<Vec<_>>().join("; ");
        let more = if self.left_out.len() > 3 { "; ..." } else { "" };
        Some(format!(
            "{} of {all} kinds of operators were not checked against the reference evaluator on {engine}: {some}{more}",
            self.left_out.len()
        ))
    }
}

/// Runs a model as it will be run, whatever was fused in it.
pub(crate) type Run<'a> = &'a dyn Fn(&[(&str, TensorView)]) -> Result<Vec<Tensor>>;

/// Compares what `run` gives with the reference, unless the cache has it that this was done before.
///
/// `identity` and `key` are all that the result depends on besides the engine; `model` gives what `run` computes in ONNX's
/// own operators, and is asked for it only where nothing is in the cache.
///
/// # Errors
/// [`Error::EngineDisagrees`] names the first node whose value differs.
pub(crate) fn verdict(
    engine: &dyn Engine,
    (identity, key): (&Model, &str),
    model: impl FnOnce() -> Result<Model>,
    run: Run<'_>,
) -> Result<Verdict> {
    let place = cache::Place::within(cache::folder().as_deref(), engine, identity, key);
    kept_or(place, || Check { engine, model: &model()?, run }.compare())
}

fn kept_or(place: cache::Place, ask: impl FnOnce() -> Result<Verdict>) -> Result<Verdict> {
    if let Some(verdict) = place.read() {
        return Ok(verdict);
    }
    let verdict = ask()?;
    place.write(&verdict);
    Ok(verdict)
}

/// A model on an engine.
struct Check<'a> {
    engine: &'a dyn Engine,
    model: &'a Model,
    run: Run<'a>,
}

impl Check<'_> {
    fn compare(&self) -> Result<Verdict> {
        let graph = &self.model.graph;
        let kinds = match Kind::all(graph, BYTES) {
            Ok(kinds) => kinds,
            Err(why) => return Ok(Verdict { agree: 0, left_out: vec![why] }),
        };
        let rows = self.engine.plan(Weights::Constants).rows(graph)?.min(ROWS);
        let inputs = made_up(graph, rows, 0);
        let shown =
            Inner::of(self.engine, self.model, &kinds).and_then(|mut inner| Ok((inner.run(&inputs)?, inner)));
        let (values, mut inner) = match shown {
            Ok(shown) => shown,
            // What the engine does not run with more outputs it may run without them: then only this can be said.
            Err(error) => return Ok(Verdict { agree: 0, left_out: vec![format!("all of it ({error})")] }),
        };
        let mut verdict = Verdict::default();
        let asked = within_reach(&kinds, graph, &values, &mut verdict.left_out);
        let held: Vec<Held> = asked.par_iter().map(|kind| hold(kind, graph, &values)).collect();
        for (kind, held) in asked.iter().zip(held) {
            match held {
                Held::Agrees => verdict.agree += 1,
                Held::NotKnown(why) => verdict.left_out.push(format!("{} {why}", kind.label())),
                Held::Differs { value, found, expected } => {
                    return Err(self.disagreement(kind.label(), value, found, expected));
                }
            }
        }
        self.as_a_whole(&mut inner, rows)?;
        Ok(verdict)
    }

    /// The model as it will be run gives what its nodes give one by one. An input may lie at a step of the model (a ReLU's
    /// zero) where rounding decides; so only what differs for every batch is an error.
    fn as_a_whole(&self, inner: &mut Inner, rows: usize) -> Result<()> {
        let mut first = None;
        for batch in 0..BATCHES {
            let inputs = made_up(inner.graph(), rows, batch);
            let values = inner.run(&inputs)?;
            let Some((output, found, expected)) = self.differing_output(inner, &inputs, &values)? else {
                return Ok(());
            };
            first.get_or_insert((inputs, values, output, found, expected));
        }
        let Some((inputs, values, output, found, expected)) = first else { return Ok(()) };
        let value = inner.changed(self.engine, self.model, &inputs, &values).unwrap_or(output);
        let producers = self.model.graph.producers();
        let label = producers.get(value.as_str()).map(|&i| self.model.graph.nodes[i].label());
        Err(self.disagreement(label.unwrap_or_else(|| format!("'{value}'")), value, found, expected))
    }

    /// The first output that is another when the model is run as a whole, with both numbers.
    fn differing_output(
        &self,
        inner: &mut Inner,
        inputs: &[(String, Tensor)],
        values: &Values,
    ) -> Result<Option<(String, f64, f64)>> {
        let views: Vec<(&str, TensorView)> = inputs.iter().map(|(n, t)| (n.as_str(), t.view())).collect();
        let whole = (self.run)(&views)?;
        for (output, tensor) in inner.graph().outputs.iter().zip(&whole) {
            let (found, expected) = (inner::array(output.dtype, tensor), &values[&output.name]);
            if node::difference(&found, expected, WHOLE, 0.0).is_none() {
                continue;
            }
            let mut moved = Vec::new();
            for seed in 1..=3 {
                let disturbed: Vec<(String, Tensor)> =
                    inputs.iter().map(|(name, tensor)| (name.clone(), disturbed(tensor, seed))).collect();
                moved.extend(inner.run(&disturbed)?.remove(&output.name));
            }
            if let Some((found, expected)) = node::beyond(&found, expected, &moved, WHOLE) {
                return Ok(Some((output.name.clone(), found, expected)));
            }
        }
        Ok(None)
    }

    fn disagreement(&self, node: String, value: String, found: f64, expected: f64) -> Error {
        Error::Engine(EngineError::Disagrees(Box::new(Disagreement {
            engine: self.engine.name(),
            version: self.engine.version().to_string(),
            node,
            value,
            found,
            expected,
            remedy: match self.engine.name() {
                super::Rten::NAME => Remedy::OnnxRuntime,
                _ => Remedy::BuiltInEngine,
            },
        })))
    }
}

/// A batch for every input: numbers between 0 and 1 in the first row, between -2 and 2 in the second, zeros for integers.
fn made_up(graph: &Graph, rows: usize, batch: u64) -> Vec<(String, Tensor)> {
    let mut symbols: BTreeMap<&str, usize> = BTreeMap::new();
    let mut state = (batch + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut made = Vec::new();
    for input in &graph.inputs {
        let sizes: Vec<usize> = input
            .shape
            .iter()
            .flatten()
            .map(|dim| match dim {
                Dim::Known(n) => usize::try_from(*n).unwrap_or(1),
                Dim::Symbol { symbol, .. } => *symbols.entry(symbol).or_insert(rows),
                Dim::Unknown => rows,
            })
            .collect();
        let count: usize = sizes.iter().product();
        let row = (count / sizes.first().copied().unwrap_or(1).max(1)).max(1);
        let shaped = |values: Vec<f32>| ndarray::ArrayD::from_shape_vec(sizes.clone(), values);
        let values: Vec<f32> = (0..count)
            .map(|i| if (i / row).is_multiple_of(2) { next() } else { 4.0 * next() - 2.0 })
            .collect();
        let Ok(floats) = shaped(values) else { continue };
        let tensor = match input.dtype {
            DType::F32 => Tensor::F32(floats),
            DType::F64 => Tensor::F64(floats.mapv(f64::from)),
            DType::Bool => Tensor::Bool(floats.mapv(|_| false)),
            _ => Tensor::I64(floats.mapv(|_| 0)),
        };
        made.push((input.name.clone(), tensor));
    }
    made
}

/// The kinds whose nodes the reference gets through in time, the cheapest first, in the order of the graph.
fn within_reach<'a>(
    kinds: &'a [Kind],
    graph: &Graph,
    values: &Values,
    left_out: &mut Vec<String>,
) -> Vec<&'a Kind> {
    let mut costs: Vec<(u64, &Kind)> =
        kinds.iter().map(|kind| (node::cost(kind, graph, values), kind)).collect();
    costs.sort_by_key(|(cost, _)| *cost);
    let mut steps = STEPS;
    let mut asked = Vec::with_capacity(kinds.len());
    for (cost, kind) in costs {
        match steps.checked_sub(cost) {
            Some(rest) => {
                steps = rest;
                asked.push(kind);
            }
            None => left_out.push(format!("{} (it is too large)", kind.label())),
        }
    }
    asked.sort_by_key(|kind| kind.place);
    asked
}

/// A batch whose floats are changed in their last bits.
fn disturbed(tensor: &Tensor, seed: u64) -> Tensor {
    match tensor {
        Tensor::F32(data) => {
            let wide = onnx_grad::eval::Array { dtype: DType::F32, data: data.mapv(f64::from) };
            Tensor::F32(node::disturb(&wide, seed).data.mapv(|v| v as f32))
        }
        Tensor::F64(data) => {
            let wide = onnx_grad::eval::Array { dtype: DType::F64, data: data.clone() };
            Tensor::F64(node::disturb(&wide, seed).data)
        }
        other => other.clone(),
    }
}
