//! DeepLIFT: how the difference from a reference travels through the network.
//!
//! ```text
//! m_x = m_y (y - y') / (x - x')      through a nonlinearity y of x  (the rescale rule)
//! sum_i m_i (x_i - x'_i) = f(x) - f(x')                             (Shrikumar et al., 2017)
//! ```
//!
//! The forward graph is there twice, once for the input and once for the reference `x'`, an input of its own
//! ([`reference_name`]). What travels back are multipliers: the slope between the two points instead of the derivative
//! at one. Every rule accounts for the whole difference of its output, so the sum above is exact:
//!
//! | operator | multiplier |
//! |---|---|
//! | activations and other functions, element by element | the rescale rule; the derivative where `x` and `x'` are within 1e-10 |
//! | layers, sums, means, reshapes | the derivative, which is the same everywhere |
//! | maxima and max-pools | the difference up to the larger of both maxima goes to the winner of `x`, the rest to that of `x'`, as in Captum |
//! | products of two values that depend on the input | the derivative in the middle: `ab - a'b' = (a - a') (b + b')/2 + (b - b') (a + a')/2` |
//! | quotients | a product with the reciprocal |
//!
//! An activation `x sigmoid(x)` is one function. The mean over many references is an estimate of SHAP values (Lundberg and Lee,
//! 2017: DeepSHAP). Softmax and normalisations by the input's own statistics are refused: no rule for them keeps the sum.

use std::collections::BTreeSet;

use super::{ACTIVATIONS, BackwardRules, LAYOUT, MEANS, refuse};
use crate::build::Value;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, ValueInfo};
use crate::step::{Gradients, Step};

const NAME: &str = "DeepLIFT";
/// Differences of inputs below this have no slope; Captum's limit.
const SMALL: f64 = 1e-10;
const FUNCTIONS: &[&str] = &[
    "Exp",
    "Log",
    "Sqrt",
    "Abs",
    "Erf",
    "Reciprocal",
    "Pow",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
    "Atanh",
];
const PRODUCTS: &[&str] = &["Mul", "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose"];

/// The name of a value where the graph is evaluated at the reference: of its input, its output, or one in between.
pub fn reference_name(name: &str) -> String {
    format!("reference/{name}")
}

/// The rescale rule, with the rules of all other operators.
///
/// The gradient graph has the inputs and outputs of the graph once more under their [`reference_name`]; what would be
/// the gradient is the multiplier of each input.
pub fn rescale() -> BackwardRules {
    BackwardRules::new(NAME)
        .with_forward(twice)
        .refusing_others()
        .on(ACTIVATIONS, slope)
        .on(FUNCTIONS, slope)
        .on(&["MaxPool", "GlobalMaxPool", "ReduceMax", "Max"], maximum)
        .on(PRODUCTS, product)
        .on(&["Div"], quotient)
        .on(&["Add", "Sub", "Neg", "Where"], linear)
        .on(LAYOUT, linear)
        .on(MEANS, linear)
}

/// The graph with a copy of everything that depends on its inputs, for the reference.
fn twice(graph: Graph) -> Result<Graph> {
    let mut both = graph.clone();
    let mut copied: BTreeSet<&str> = BTreeSet::new();
    let renamed = |info: &ValueInfo| ValueInfo { name: reference_name(&info.name), ..info.clone() };
    for input in &graph.inputs {
        copied.insert(&input.name);
        both.inputs.push(renamed(input));
    }
    for node in &graph.nodes {
        if !node.given_inputs().any(|input| copied.contains(input)) {
            continue;
        }
        copied.extend(node.wanted_outputs());
        both.nodes.push(at_reference(node, |name| copied.contains(name)));
    }
    let infos = graph.value_info.values().filter(|info| copied.contains(info.name.as_str()));
    both.value_info.extend(infos.map(|info| (reference_name(&info.name), renamed(info))));
    both.outputs.extend(graph.outputs.iter().filter(|o| copied.contains(o.name.as_str())).map(renamed));
    let values = graph
        .nodes
        .iter()
        .flat_map(Node::wanted_outputs)
        .chain(graph.initializers.keys().map(String::as_str));
    let values: BTreeSet<&str> = values.chain(graph.inputs.iter().map(|i| i.name.as_str())).collect();
    match copied.iter().map(|name| reference_name(name)).find(|name| values.contains(name.as_str())) {
        Some(taken) => Err(Error::Invalid {
            reason: format!("its value '{taken}' has the name that {NAME} gives to values at the reference"),
        }),
        None => Ok(both),
    }
}

/// A node of the copy.
fn at_reference(node: &Node, is_copied: impl Fn(&str) -> bool) -> Node {
    let mut twin = node.clone();
    twin.name = reference_name(&node.name);
    for name in twin.inputs.iter_mut().chain(&mut twin.outputs).filter(|name| is_copied(name)) {
        *name = reference_name(name);
    }
    twin
}

/// A value at the reference: the same one where it does not depend on the input.
fn twin(step: &Step<'_>, value: &str) -> Value {
    let name = reference_name(value);
    Value::named(if step.b.is_taken(&name) { &name } else { value })
}

/// `x - x'`, where it is too small to divide by, and itself or 1 there.
fn difference(step: &mut Step<'_>, value: &str) -> (Value, Value) {
    let reference = twin(step, value);
    let difference = step.b.sub(value, &reference);
    let size = step.b.op("Abs", &[&difference]);
    let (limit, one) = (step.b.scalar_like(value, SMALL), step.b.scalar_like(value, 1.0));
    let small = step.b.op("Less", &[&size, &limit]);
    let below = step.b.select(&small, &one, &difference);
    (small, below)
}

/// `(y - y') / (x - x')` in place of the derivative.
fn slope(step: &mut Step<'_>) -> Gradients {
    match step.wanted.iter().skip(1).any(|&wanted| wanted) {
        true => Err(refuse(NAME, step, "a parameter of it depends on the input")),
        false => whole(step, 0),
    }
}

/// As [`slope`] by input `i`, to which the derivative goes as a whole.
fn whole(step: &mut Step<'_>, i: usize) -> Gradients {
    let (multiplier, x, y) = (step.dy()?, step.x(i)?, step.y()?);
    let mut sent = step.derivative()?;
    let (small, below) = difference(step, x);
    let reference = twin(step, y);
    let change = step.b.sub(y, &reference);
    let ratio = step.b.div(&change, &below);
    let scaled = step.b.mul(&multiplier, &ratio);
    sent[i] = sent[i].take().map(|tangent| step.b.select(&small, &tangent, &scaled));
    Ok(sent)
}

/// The derivative, of an operator that is linear in all inputs that need one.
fn linear(step: &mut Step<'_>) -> Gradients {
    let moving = |i: usize, input: &&String| !step.wants(i) && *twin(step, input) != ***input;
    if let Some((_, input)) = step.node.inputs.iter().enumerate().find(|(i, input)| moving(*i, input)) {
        return Err(refuse(NAME, step, format!("'{input}', by which it selects, depends on the input")));
    }
    step.derivative()
}

/// Both maxima lie below the larger one; what leads up to it belongs to the winner at the input, what leads down to
/// the output belongs to the winner at the reference.
fn maximum(step: &mut Step<'_>) -> Gradients {
    let (multiplier, y) = (step.dy()?, step.y()?);
    let reference = twin(step, y);
    let top = step.b.op("Max", &[y, &reference]);
    let up = step.b.sub(&top, &reference);
    let up = step.b.mul(&multiplier, &up);
    let down = step.b.sub(y, &top);
    let down = step.b.mul(&multiplier, &down);
    let tangents = step.derivative()?;
    let gained = step.derivative_of(step.node, &up)?;
    let there = at_reference(step.node, |name| *twin(step, name) != *name);
    let lost = step.derivative_of(&there, &down)?;
    let mut sent = vec![None; step.node.inputs.len()];
    for (i, parts) in tangents.into_iter().zip(gained).zip(lost).enumerate() {
        let ((Some(tangent), Some(gained)), Some(lost)) = parts else { continue };
        let (small, below) = difference(step, step.x(i)?);
        let credit = step.b.add(&gained, &lost);
        let scaled = step.b.div(&credit, &below);
        sent[i] = Some(step.b.select(&small, &tangent, &scaled));
    }
    Ok(sent)
}

fn product(step: &mut Step<'_>) -> Gradients {
    if !(step.wants(0) && step.wants(1)) {
        return linear(step);
    }
    if step.node.is("Einsum") && step.node.inputs.len() > 2 {
        return Err(refuse(NAME, step, "more than two factors depend on the input"));
    }
    let (a, b) = (step.x(0)?, step.x(1)?);
    for (i, value, gate) in [(0, a, b), (1, b, a)] {
        if step.node.is("Mul") && step.gates.get(gate).is_some_and(|of| of == value) {
            return whole(step, i);
        }
    }
    let mut middle = step.node.clone();
    for (i, value) in [(0, a), (1, b)] {
        middle.inputs[i] = mean(step, value).to_string();
    }
    let multiplier = step.dy()?;
    step.derivative_of(&middle, &multiplier)
}

fn mean(step: &mut Step<'_>, value: &str) -> Value {
    let reference = twin(step, value);
    let sum = step.b.add(value, &reference);
    step.b.scale(&sum, 0.5)
}

/// `a (1/b)`: the slope of the reciprocal is `-1 / (b b')`.
fn quotient(step: &mut Step<'_>) -> Gradients {
    if !step.wants(1) {
        return linear(step);
    }
    let (multiplier, a, b) = (step.dy()?, step.x(0)?, step.x(1)?);
    let reference = twin(step, b);
    let mut sent = vec![None, None];
    if step.wants(0) {
        let here = step.b.div(&multiplier, b);
        let there = step.b.div(&multiplier, &reference);
        let sum = step.b.add(&here, &there);
        let half = step.b.scale(&sum, 0.5);
        sent[0] = Some(step.b.sum_to(&half, a)?);
    }
    let middle = mean(step, a);
    let above = step.b.mul(&multiplier, &middle);
    let below = step.b.mul(b, &reference);
    let gradient = step.b.div(&above, &below);
    let gradient = step.b.neg(&gradient);
    sent[1] = Some(step.b.sum_to(&gradient, b)?);
    Ok(sent)
}
