//! Layer-wise Relevance Propagation: the score is handed back layer by layer, in shares of what each input contributed.
//!
//! ```text
//! R_i = sum_j  z_ij / (z_j + eps sign z_j)  R_j,     z_ij = x_i w_ij,  z_j = sum_i z_ij + b_j      (Bach et al., 2015)
//! ```
//!
//! Relevance starts as the score of the target. What the bias of a layer contributed goes to nobody; without biases,
//! and up to the stabiliser `eps`, relevance sums to the score. The [rules of a layer](LayerRule) differ in how `z` is
//! made of inputs and weights; everything else has one rule, that of Zennit's composites (Anders et al., 2021):
//!
//! | operator | relevance |
//! |---|---|
//! | activations, element by element; scaling and shifting by constants | passes as it is |
//! | maxima and max-pools | goes to the winner |
//! | means, sums, average pools, residual additions | in proportion to what each summand contributed (`Norm`) |
//! | reshapes, concatenations, slices | goes along |
//!
//! A batch normalisation is part of the layer before it when rules see the graph. Products of two values that both
//! depend on the input (attention, gating), softmax and normalisations by the input's own statistics have no rule and
//! are refused.

mod layer;

use super::{ACTIVATIONS, BackwardRules, LAYOUT, MEANS, gated, refuse};
use crate::build::Value;
use crate::graph::{Graph, Node};
use crate::step::{Gradients, Step};

pub use layer::LayerRule;

const NAME: &str = "LRP";
const CONVOLUTIONS: &[&str] = &["Conv", "ConvTranspose"];
const DENSE: &[&str] = &["Gemm", "MatMul", "Einsum"];

/// Which rule each layer has.
#[derive(Debug, Clone, PartialEq)]
pub struct Composite {
    /// Of layers with no layer before them; as the others where not given.
    pub first: Option<LayerRule>,
    /// Of convolutions.
    pub convolution: LayerRule,
    /// Of matrix products with weights.
    pub dense: LayerRule,
    /// What keeps denominators other than those of [`LayerRule::Epsilon`] from 0.
    pub stabiliser: f64,
    /// Nodes whose names start with this are no layers: they prepare the input, as resizing by matrix products does.
    pub preparation: Option<String>,
}

impl Composite {
    /// One rule for all layers, and a stabiliser of 1e-6, as in Zennit.
    pub fn uniform(rule: LayerRule) -> Self {
        Self { first: None, convolution: rule, dense: rule, stabiliser: 1e-6, preparation: None }
    }

    /// The rules of all operators.
    pub fn rules(&self) -> BackwardRules {
        let layers = [CONVOLUTIONS, DENSE].concat();
        let stabiliser = self.stabiliser;
        let mut rules =
            BackwardRules::new(NAME).starting_with(|b, output, seed| b.mul(seed, output)).refusing_others();
        if let Some(prefix) = self.preparation.clone() {
            let prepares = move |node: &Node, _: &Graph| node.name.starts_with(&prefix);
            rules = rules.on_where(&layers, prepares, move |step| contributions(step, stabiliser));
        }
        if let Some(first) = self.first {
            let prefix = self.preparation.clone();
            let is_first = move |node: &Node, graph: &Graph| !follows_layer(node, graph, prefix.as_deref());
            rules = rules.on_where(&layers, is_first, move |step| first.share(step, stabiliser));
        }
        let (convolution, dense) = (self.convolution, self.dense);
        rules
            .on(CONVOLUTIONS, move |step| convolution.share(step, stabiliser))
            .on(DENSE, move |step| dense.share(step, stabiliser))
            .on(ACTIVATIONS, pass)
            .on(&["Neg"], pass)
            .deriving(LAYOUT)
            .deriving(&["MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "Max", "Min", "Where"])
            .on(MEANS, move |step| contributions(step, stabiliser))
            .on(&["Add", "Sub"], move |step| sum(step, stabiliser))
            .on(&["Mul", "Div"], product)
    }
}

/// Whether a layer lies between the input and this one.
fn follows_layer(node: &Node, graph: &Graph, preparation: Option<&str>) -> bool {
    let producers = graph.producers();
    let mut seen = std::collections::BTreeSet::new();
    let mut open: Vec<&str> = node.given_inputs().collect();
    while let Some(value) = open.pop() {
        let Some(&i) = producers.get(value).filter(|&&i| seen.insert(i)) else { continue };
        let before = &graph.nodes[i];
        let layer = CONVOLUTIONS.iter().chain(DENSE).any(|op| before.is(op));
        if layer && !preparation.is_some_and(|prefix| before.name.starts_with(prefix)) {
            return true;
        }
        open.extend(before.given_inputs());
    }
    false
}

/// Relevance as it is, summed where the input was broadcast.
fn pass(step: &mut Step<'_>) -> Gradients {
    let relevance = step.dy()?;
    let mut sent = vec![None; step.node.inputs.len()];
    let Some(only) = step.wanted.iter().position(|&wanted| wanted) else { return Ok(sent) };
    if step.wanted.iter().filter(|&&wanted| wanted).count() > 1 {
        return Err(refuse(NAME, step, "two of its inputs depend on the model's input"));
    }
    sent[only] = Some(step.b.sum_to(&relevance, step.x(only)?)?);
    Ok(sent)
}

/// To every summand in proportion to what it contributed.
fn contributions(step: &mut Step<'_>, stabiliser: f64) -> Gradients {
    let (relevance, y) = (step.dy()?, step.y()?);
    let share = divide(step, &relevance, y, stabiliser);
    let mut sent = step.derivative_of(step.node, &share)?;
    for (i, part) in sent.iter_mut().enumerate() {
        if let Some(slope) = part {
            *part = Some(step.b.mul(step.x(i)?, slope));
        }
    }
    Ok(sent)
}

/// A constant that is added is a bias or a shift; two values share.
fn sum(step: &mut Step<'_>, stabiliser: f64) -> Gradients {
    match step.wants(0) && step.wants(1) {
        true => contributions(step, stabiliser),
        false => pass(step),
    }
}

fn product(step: &mut Step<'_>) -> Gradients {
    match (step.wants(0), step.wants(1)) {
        (true, true) if step.node.is("Mul") => {
            let value = gated(step).ok_or_else(|| refuse(NAME, step, "both factors depend on the input"))?;
            let mut sent = vec![None, None];
            sent[value] = Some(step.dy()?);
            Ok(sent)
        }
        (_, true) if step.node.is("Div") => {
            Err(refuse(NAME, step, "it divides by what depends on the input"))
        }
        _ => pass(step),
    }
}

/// `relevance / (z + eps sign z)`, where the sign of 0 is 1; with `eps = 0`, 0 where `z` is.
fn divide(step: &mut Step<'_>, relevance: &str, z: &str, epsilon: f64) -> Value {
    let zero = step.b.scalar_like(z, 0.0);
    if epsilon == 0.0 {
        let nothing = step.b.op("Equal", &[z, &zero]);
        let one = step.b.scalar_like(z, 1.0);
        let below = step.b.select(&nothing, &one, z);
        let share = step.b.div(relevance, &below);
        return step.b.select(&nothing, &zero, &share);
    }
    let negative = step.b.op("Less", &[z, &zero]);
    let (up, down) = (step.b.scalar_like(z, epsilon), step.b.scalar_like(z, -epsilon));
    let shift = step.b.select(&negative, &down, &up);
    let below = step.b.add(z, &shift);
    step.b.div(relevance, &below)
}
