//! `LSTM`, `GRU` and `RNN`, step by step.
//!
//! The product of the input with its weights is one product for all steps. A step has only the product with the state
//! and the gates. States are `[1, batch, hidden]` throughout: the steps of the input are parts of one `Split`, and `Y`
//! is one `Concat`, whose gradients are again one `Concat` and cheap slices. Weights that are constants are transposed
//! here, once.
//!
//! Sequences that end early keep their state: `h = t < length ? new : h`. A reversed direction walks from the last step to
//! the first; a sequence that is shorter then starts where it ends, with its initial state.

mod cells;
mod weights;

use self::cells::{Cell, State};
use self::weights::Weights;
use crate::build::{Builder, Value};
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::recurrent::Recurrence;
use crate::tensor::{DType, TensorData};

/// More steps than this make a graph too large to be differentiated or loaded.
pub(crate) const MAX_STEPS: i64 = 4096;

/// What takes the place of the outputs, or `None` where the number of steps or a size is not known.
pub(super) fn spell(b: &mut Builder, node: &Node) -> Result<Option<Vec<Value>>> {
    let Ok(recurrence) = Recurrence::of(node) else { return Ok(None) };
    let (Some(x), Some(w), Some(r)) = (node.input(0), node.input(1), node.input(2)) else { return Ok(None) };
    let Some(x_shape) = b.shape(x).filter(|shape| shape.len() == 3) else { return Ok(None) };
    let steps = x_shape[usize::from(recurrence.batch_first)].known();
    let Some(steps) = steps.filter(|steps| (1..=MAX_STEPS).contains(steps)) else { return Ok(None) };
    let known =
        |b: &Builder, value: &str| b.shape(value)?.iter().map(Dim::known).collect::<Option<Vec<i64>>>();
    let (Some(w_shape), Some(r_shape)) = (known(b, w), known(b, r)) else { return Ok(None) };
    let (&[w_ways, w_rows, width], &[ways, rows, hidden]) = (&w_shape[..], &r_shape[..]) else {
        return Ok(None);
    };
    let gates = recurrence.layer.gates() as i64;
    let fit = [w_ways, ways].iter().all(|&n| n == recurrence.directions.len() as i64)
        && [w_rows, rows].iter().all(|&n| Some(n) == hidden.checked_mul(gates) && n > 0)
        && width > 0;
    if !fit {
        return Ok(None);
    }
    let unroll = Unroll { node, recurrence: &recurrence, steps, width, hidden };
    let x = first_steps(b, x, recurrence.batch_first, 3);
    let mut ways = Vec::new();
    for way in 0..recurrence.directions.len() {
        ways.push(unroll.direction(b, &x, way)?);
    }
    Ok(Some(unroll.outputs(b, &ways)))
}

/// Batch and steps exchanged where the batch comes first.
fn first_steps(b: &mut Builder, value: &str, batch_first: bool, rank: usize) -> Value {
    let perm: Vec<usize> = [1, 0].into_iter().chain(2..rank).collect();
    if batch_first { b.transpose(value, &perm) } else { Value::named(value) }
}

/// The value as `[1, batch, width]`, with the batch that `x` has: another symbol for it would hide that they are equal.
fn by_batch(b: &mut Builder, x: &str, value: &str, width: i64) -> Value {
    let batch = b.shape(x).and_then(|shape| shape.get(1).cloned()).unwrap_or(Dim::Unknown);
    if b.shape(value).is_some_and(|shape| shape.len() == 3 && shape[1].same(&batch)) {
        return Value::named(value);
    }
    if let Some(batch) = batch.known() {
        return b.reshape(value, &[1, batch, width]);
    }
    let ends = [("start", 1i64.into()), ("end", 2i64.into())];
    let (batch, one, width) = (b.op_with("Shape", &[x], &ends), b.ints(&[1]), b.ints(&[width]));
    let shape = b.concat(&[&one, &batch, &width], 0);
    b.op("Reshape", &[value, &shape])
}

/// What one direction computes: the state after every step, in the order of the input, and after the last.
struct Way {
    states: Vec<Value>,
    last: State,
}

struct Unroll<'a> {
    node: &'a Node,
    recurrence: &'a Recurrence,
    steps: i64,
    width: i64,
    hidden: i64,
}

impl Unroll<'_> {
    fn direction(&self, b: &mut Builder, x: &str, way: usize) -> Result<Way> {
        let (node, recurrence) = (self.node, self.recurrence);
        let weights = Weights { way, ways: recurrence.directions.len(), node };
        let cell = Cell::new(b, recurrence, &weights, way, self.hidden);
        let gates = recurrence.layer.gates() as i64 * self.hidden;
        let columns = weights.transposed(b, 1, 0, gates);
        // All rows of all steps in one matrix: engines multiply three axes as many small matrices.
        let rows = b.reshape(x, &[-1, self.width]);
        let mut projection = b.matmul(&rows, &columns);
        if let Some(bias) = cell.projected_bias(b, &weights) {
            projection = b.add(&projection, &bias);
        }
        let projection = b.reshape(&projection, &[self.steps, -1, gates]);
        let inputs = cell.inputs(b, &projection, self.steps);
        let lengths = self.lengths(b, x);
        let mut state = State { h: self.initial(b, x, 5, way), c: None };
        if cell.has_memory() {
            state.c = self.initial(b, x, 6, way);
        }
        let count = inputs.len();
        let mut states = vec![Value::named(""); count];
        for step in 0..count {
            let t = if recurrence.directions[way].reverse { count - 1 - step } else { step };
            let mut new = cell.step(b, &inputs[t], &state);
            let mut shown = new.h.clone();
            if let Some(lengths) = &lengths {
                let now = b.scalar_like(lengths, t as f64);
                let running = b.op("Greater", &[lengths, &now]);
                let kept = |b: &mut Builder, new: Option<Value>, old: &Option<Value>| {
                    let new = new?;
                    Some(match old {
                        Some(old) => b.select(&running, &new, old),
                        None => b.keep_where(&running, &new),
                    })
                };
                shown = kept(b, new.h.clone(), &None);
                // From a state of zeros both are the same.
                let h = if state.h.is_some() { kept(b, new.h, &state.h) } else { shown.clone() };
                new = State { h, c: kept(b, new.c, &state.c) };
            }
            if let Some(shown) = shown {
                states[t] = shown;
            }
            state = new;
        }
        Ok(Way { states, last: state })
    }

    /// Lengths as `[1, batch, 1]`, where some sequence may end early.
    fn lengths(&self, b: &mut Builder, x: &str) -> Option<Value> {
        let lengths = self.node.input(4)?;
        if b.fact(lengths).known_content().is_some_and(|all| all.iter().all(|&n| n == self.steps)) {
            return None;
        }
        let lengths = b.cast(lengths, DType::I32);
        Some(by_batch(b, x, &lengths, 1))
    }

    /// A state that is given, as `[1, batch, hidden]`.
    fn initial(&self, b: &mut Builder, x: &str, input: usize, way: usize) -> Option<Value> {
        let given = self.node.input(input)?;
        let given = first_steps(b, given, self.recurrence.batch_first, 3);
        let own = match self.recurrence.directions.len() {
            1 => given,
            _ => b.slice(&given, 0, way as i64, way as i64 + 1, 1),
        };
        Some(by_batch(b, x, &own, self.hidden))
    }

    fn outputs(&self, b: &mut Builder, ways: &[Way]) -> Vec<Value> {
        let batch_first = self.recurrence.batch_first;
        // An output that nobody uses is pruned.
        let mut all = Vec::new();
        for way in ways {
            let states: Vec<&str> = way.states.iter().map(|state| &**state).collect();
            let joined = b.concat(&states, 0);
            all.push(b.unsqueeze(&joined, &[1]));
        }
        let all: Vec<&str> = all.iter().map(|value| &**value).collect();
        let all = b.concat(&all, 1);
        // `[steps, directions, batch, hidden]`.
        let all = if batch_first { b.transpose(&all, &[2, 0, 1, 3]) } else { all };
        let mut outputs = vec![all];
        let memory = |way: &Way| way.last.c.clone();
        let last = |way: &Way| way.last.h.clone();
        for part in [last as fn(&Way) -> Option<Value>, memory] {
            let parts: Vec<Value> = ways.iter().filter_map(part).collect();
            if parts.len() == ways.len() {
                let parts: Vec<&str> = parts.iter().map(|value| &**value).collect();
                let joined = b.concat(&parts, 0);
                outputs.push(first_steps(b, &joined, batch_first, 3));
            }
        }
        outputs
    }
}

/// A vector as a constant of the element type that `like` has.
fn vector(b: &mut Builder, like: &str, values: &[f64]) -> Value {
    let dtype = b.fact(like).dtype.unwrap_or(DType::F32);
    b.constant(TensorData::from_f64(dtype, &[values.len()], values))
}
