//! What a layer with weights sends to its inputs.
//!
//! A layer is linear in its input, so every rule is the same three steps with other inputs and weights `(x', w')`: apply
//! the layer to them (`z`), divide the relevance by `z`, send the quotient back by `w'` and multiply by `x'`. The way back is the
//! derivative of the layer's own operator.

use super::super::refuse;
use super::{CONVOLUTIONS, NAME, divide};
use crate::build::Value;
use crate::error::Result;
use crate::graph::{Graph, Node};
use crate::step::{Gradients, Step};

/// How the relevance of a layer's outputs is shared among its inputs. `x+` and `w-` are positive and negative parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LayerRule {
    /// In proportion to `x w`; the stabiliser takes relevance from outputs near 0. With 0 it is LRP-0.
    Epsilon {
        /// The stabiliser.
        epsilon: f64,
    },
    /// As [`LayerRule::Epsilon`] with contributions of the output's sign enlarged by `gamma` (Montavon et al., 2019; for
    /// inputs of both signs: Andeol et al., 2021).
    Gamma {
        /// By how much.
        gamma: f64,
    },
    /// In proportion to positive contributions only, `x+ w+ + x- w-`.
    ZPlus,
    /// Positive contributions share `alpha` times the relevance, negative ones `-beta` times; `alpha - beta = 1`.
    AlphaBeta {
        /// Of positive contributions.
        alpha: f64,
        /// Of negative contributions.
        beta: f64,
    },
    /// In equal shares, whatever inputs and weights are (Lapuschkin et al., 2019).
    Flat,
    /// In proportion to `w^2`, whatever the inputs are (Montavon et al., 2017).
    WSquare,
    /// In proportion to `x w - low w+ - high w-`, for inputs between two bounds (Montavon et al., 2017). The bounds
    /// are those of the graph's input; what comes before the layer is applied to them too.
    ZBox {
        /// The lowest value of an input.
        low: f64,
        /// The highest value of an input.
        high: f64,
    },
}

/// A linear map of one value, with weights and maybe a bias.
struct Layer {
    /// Which operand is the value.
    at: usize,
    x: Value,
    weights: Value,
    bias: Option<Value>,
    /// The output, with the bias.
    z: Value,
    stabiliser: f64,
}

/// Inputs, weights and bias of a part of `z`.
type Term = (Value, Value, Option<Value>);

impl LayerRule {
    pub(super) fn share(self, step: &mut Step<'_>, stabiliser: f64) -> Gradients {
        let layer = Layer::of(step, stabiliser)?;
        let relevance = step.dy()?;
        let z = layer.z.clone();
        let to_input = match self {
            LayerRule::Epsilon { epsilon } => {
                let share = divide(step, &relevance, &z, epsilon);
                let slope = layer.back(step, &layer.weights, &share)?;
                step.b.mul(&layer.x, &slope)
            }
            LayerRule::ZPlus => {
                let terms = layer.same_sign(step);
                layer.share(step, &terms, &relevance)?
            }
            LayerRule::AlphaBeta { alpha, beta } => {
                let (same, opposite) = (layer.same_sign(step), layer.opposite_sign(step));
                let [gain, loss] = [alpha, -beta].map(|k| step.b.scale(&relevance, k));
                let gain = layer.share(step, &same, &gain)?;
                let loss = layer.share(step, &opposite, &loss)?;
                step.b.add(&gain, &loss)
            }
            LayerRule::Gamma { gamma } => {
                let zero = step.b.scalar_like(&z, 0.0);
                let enlarge = |step: &mut Step<'_>, (x, part, bias): Term| -> Term {
                    let whole = |step: &mut Step<'_>, all: &Value, part: &Value| {
                        let more = step.b.scale(part, gamma);
                        step.b.add(all, &more)
                    };
                    let bias = bias.zip(layer.bias.clone()).map(|(part, all)| whole(step, &all, &part));
                    (x, whole(step, &layer.weights, &part), bias)
                };
                let mut total: Option<Value> = None;
                for (sign, terms) in [("Greater", layer.same_sign(step)), ("Less", layer.opposite_sign(step))]
                {
                    let terms: Vec<Term> = terms.into_iter().map(|term| enlarge(step, term)).collect();
                    let mask = step.b.op(sign, &[&z, &zero]);
                    let masked = step.b.keep_where(&mask, &relevance);
                    let part = layer.share(step, &terms, &masked)?;
                    total = Some(total.map_or(part.clone(), |sum| step.b.add(&sum, &part)));
                }
                total.ok_or_else(|| step.malformed("it has no terms"))?
            }
            LayerRule::Flat => {
                let ones = (ones_like(step, &layer.x), ones_like(step, &layer.weights), None);
                layer.share(step, &[ones], &relevance)?
            }
            LayerRule::WSquare => {
                let square = |step: &mut Step<'_>, v: &Value| step.b.mul(v, v);
                let weights = square(step, &layer.weights);
                let bias = layer.bias.as_ref().map(|bias| square(step, bias));
                let ones = ones_like(step, &layer.x);
                layer.share(step, &[(ones, weights, bias)], &relevance)?
            }
            LayerRule::ZBox { low, high } => layer.box_share(step, &relevance, low, high)?,
        };
        let mut sent = vec![None; step.node.inputs.len()];
        sent[layer.at] = Some(to_input);
        Ok(sent)
    }
}

impl Layer {
    fn of(step: &mut Step<'_>, stabiliser: f64) -> Result<Layer> {
        let active: Vec<usize> = (0..step.wanted.len()).filter(|&i| step.wants(i)).collect();
        let &[at @ (0 | 1)] = active.as_slice() else {
            return Err(refuse(NAME, step, "more than one of its operands depends on the input"));
        };
        let convolution = CONVOLUTIONS.iter().any(|op| step.node.is(op));
        let operands = step.node.given_inputs().count();
        if (convolution && at != 0) || (step.node.is("Einsum") && operands != 2) {
            return Err(refuse(NAME, step, "its weights are not a constant operand"));
        }
        let (x, weights) = (Value::named(step.x(at)?), Value::named(step.x(1 - at)?));
        let mut z = Value::named(step.y()?);
        let bias = match step.node.input(2) {
            Some(bias) if convolution => Some(Value::named(bias)),
            Some(bias) if step.node.is("Gemm") => {
                Some(step.b.scale(bias, f64::from(step.node.float("beta", 1.0))))
            }
            _ => match added_bias(step.forward, &z) {
                Some((bias, sum)) => {
                    z = sum;
                    Some(bias)
                }
                None => None,
            },
        };
        Ok(Layer { at, x, weights, bias, z, stabiliser })
    }

    /// The node with another value and other weights; a convolution's bias is part of it.
    fn node(&self, node: &Node, x: &str, weights: &str, bias: Option<&str>) -> Node {
        let mut node = node.clone();
        node.inputs = vec![String::new(); 2];
        node.inputs[self.at] = x.to_string();
        node.inputs[1 - self.at] = weights.to_string();
        node.inputs.extend(bias.map(str::to_string));
        node
    }

    fn apply(&self, step: &mut Step<'_>, (x, weights, bias): &Term) -> Value {
        let convolution = CONVOLUTIONS.iter().any(|op| step.node.is(op));
        let inner = bias.as_deref().filter(|_| convolution);
        let mut node = self.node(step.node, x, weights, inner);
        let name = step.b.fresh(&node.op);
        (node.name, node.outputs) = (name.clone(), vec![name.clone()]);
        step.b.push(node);
        match bias {
            Some(bias) if !convolution => step.b.add(&name, bias),
            _ => Value::named(&name),
        }
    }

    /// What `share` is sent back by these weights.
    fn back(&self, step: &mut Step<'_>, weights: &str, share: &Value) -> Result<Value> {
        let node = self.node(step.node, &self.x, weights, None);
        let wanted = (0..2).map(|i| i == self.at).collect();
        let mut sent = step.derivative_with(&node, share, wanted)?;
        sent.swap_remove(self.at).ok_or_else(|| step.malformed("its derivative sends nothing"))
    }

    /// `sum of x (relevance / z) w^T` over terms, with `z` the sum of the terms.
    fn share(&self, step: &mut Step<'_>, terms: &[Term], relevance: &Value) -> Result<Value> {
        let parts: Vec<Value> = terms.iter().map(|term| self.apply(step, term)).collect();
        let z = total(step, &parts)?;
        let share = divide(step, relevance, &z, self.stabiliser);
        let mut parts = Vec::new();
        for (x, weights, _) in terms {
            let slope = self.back(step, weights, &share)?;
            parts.push(step.b.mul(x, &slope));
        }
        total(step, &parts)
    }

    /// Products that are positive: `x+ w+` with the positive part of the bias, and `x- w-`.
    fn same_sign(&self, step: &mut Step<'_>) -> Vec<Term> {
        self.terms(step, ["Max", "Min"])
    }

    /// Products that are negative: `x+ w-` with the negative part of the bias, and `x- w+`.
    fn opposite_sign(&self, step: &mut Step<'_>) -> Vec<Term> {
        self.terms(step, ["Min", "Max"])
    }

    fn terms(&self, step: &mut Step<'_>, [with_positive, with_negative]: [&str; 2]) -> Vec<Term> {
        let part = |step: &mut Step<'_>, op: &str, v: &str| {
            let zero = step.b.scalar_like(v, 0.0);
            step.b.op(op, &[v, &zero])
        };
        let bias = self.bias.as_ref().map(|bias| part(step, with_positive, bias));
        let weights = part(step, with_positive, &self.weights);
        if is_positive(step.forward, &self.x, &mut 64) {
            return vec![(self.x.clone(), weights, bias)];
        }
        let (positive, negative) = (part(step, "Max", &self.x), part(step, "Min", &self.x));
        let others = part(step, with_negative, &self.weights);
        vec![(positive, weights, bias), (negative, others, None)]
    }

    fn box_share(&self, step: &mut Step<'_>, relevance: &Value, low: f64, high: f64) -> Result<Value> {
        // What comes before the layer may exchange the ends, channel by channel.
        let [a, b] = [low, high].map(|bound| at_bound(step, &self.x, bound));
        let (low, high) = (step.b.op("Min", &[&a, &b]), step.b.op("Max", &[&a, &b]));
        let zero = step.b.scalar_like(&self.weights, 0.0);
        let positive = step.b.op("Max", &[&self.weights, &zero]);
        let negative = step.b.op("Min", &[&self.weights, &zero]);
        let terms: [Term; 3] =
            [(self.x.clone(), self.weights.clone(), None), (low, positive, None), (high, negative, None)];
        let [z, below, above] = [0, 1, 2].map(|i| self.apply(step, &terms[i]));
        let z = step.b.sub(&z, &below);
        let z = step.b.sub(&z, &above);
        let share = divide(step, relevance, &z, self.stabiliser);
        let mut parts = Vec::new();
        for (x, weights, _) in &terms {
            let slope = self.back(step, weights, &share)?;
            parts.push(step.b.mul(x, &slope));
        }
        let inside = step.b.sub(&parts[0], &parts[1]);
        Ok(step.b.sub(&inside, &parts[2]))
    }
}

fn total(step: &mut Step<'_>, parts: &[Value]) -> Result<Value> {
    let sum = parts.iter().cloned().reduce(|sum, part| step.b.add(&sum, &part));
    sum.ok_or_else(|| step.malformed("it has no terms"))
}

fn ones_like(step: &mut Step<'_>, like: &str) -> Value {
    let one = step.b.scalar_like(like, 1.0);
    step.b.expand_like(&one, like)
}

/// The constant that the only user of a product adds to it, and the sum.
fn added_bias(graph: &Graph, product: &str) -> Option<(Value, Value)> {
    let mut users = graph.nodes.iter().filter(|node| node.given_inputs().any(|input| input == product));
    let (user, None) = (users.next()?, users.next()) else { return None };
    let bias = user.given_inputs().find(|input| *input != product)?;
    let adds = user.is("Add") && graph.initializers.contains_key(bias);
    adds.then(|| (Value::named(bias), Value::named(&user.outputs[0])))
}

/// Whether a value is certainly never negative, so that half of the terms are zero.
fn is_positive(graph: &Graph, value: &str, steps: &mut usize) -> bool {
    const ALWAYS: &[&str] = &["Relu", "Sigmoid", "HardSigmoid", "Softplus", "Exp", "Abs"];
    const WHERE_INPUT_IS: &[&str] = &[
        "MaxPool",
        "GlobalMaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "ReduceMean",
        "ReduceSum",
        "ReduceMax",
        "Flatten",
        "Reshape",
        "Transpose",
        "Squeeze",
        "Unsqueeze",
        "Slice",
        "Identity",
    ];
    let made = graph.nodes.iter().find(|node| node.wanted_outputs().any(|output| output == value));
    let Some(node) = made.filter(|_| *steps > 0) else { return false };
    *steps -= 1;
    let is = |ops: &[&str]| ops.iter().any(|op| node.is(op));
    is(ALWAYS)
        || (is(WHERE_INPUT_IS) && is_positive(graph, &node.inputs[0], steps))
        || (is(&["Add", "Concat"]) && node.given_inputs().all(|input| is_positive(graph, input, steps)))
}

/// What a value is where every element of the graph's inputs is this number.
fn at_bound(step: &mut Step<'_>, value: &str, bound: f64) -> Value {
    if step.forward.input(value).is_some() {
        let bound = step.b.scalar_like(value, bound);
        return step.b.expand_like(&bound, value);
    }
    let made = step.forward.nodes.iter().find(|node| node.outputs.iter().any(|output| output == value));
    let Some(node) = made else { return Value::named(value) };
    let mut node = node.clone();
    for input in node.inputs.iter_mut().filter(|input| !input.is_empty()) {
        *input = at_bound(step, &input.clone(), bound).to_string();
    }
    let mut found = Value::named(value);
    for output in node.outputs.iter_mut().filter(|output| !output.is_empty()) {
        let name = step.b.fresh(&node.op);
        if output == value {
            found = Value::named(&name);
        }
        *output = name;
    }
    node.name = found.to_string();
    step.b.push(node);
    found
}
