//! Differentiation, from graph to graph.
//!
//! For outputs `y` of a graph, inputs or parameters `x`, and a seed `s` of the shape of `y`, the new graph
//! also computes the vector-Jacobian product
//!
//! ```text
//! grad/x = sum over outputs y of  (dy/dx)^T s_y
//! ```
//!
//! A one-hot row as seed gives the gradient of one class score; a scalar output (a loss) needs no seed,
//! it is 1. The walk is the textbook's: from the outputs back, every node turns the gradients of its
//! outputs into gradients of its inputs by the [rule](crate::rules) of its operator, and what arrives at a
//! value from several sides is added. Since the result is a graph again, it can be written to a file, run
//! by any engine, and differentiated once more.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node};
use crate::lower;
use crate::rules::{self, Kind, Step};

/// How a `Relu` sends gradients back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReluBackward {
    /// The derivative: where the input was positive.
    #[default]
    Standard,
    /// Guided Backpropagation: where the input was positive and the gradient is
    /// (Springenberg et al., 2015).
    Guided,
    /// The deconvolutional network: where the gradient is positive (Zeiler and Fergus, 2014).
    Deconvnet,
}

/// How the gradient of a convolution's weights is computed; engines differ in which is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightGradient {
    /// A convolution of the input with the output's gradient, batch and channels exchanged.
    #[default]
    TransposedConv,
    /// Windows laid out as columns, then one matrix product.
    Im2col,
}

/// The choices there are in a gradient graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GradOptions {
    /// How a `Relu` sends gradients back.
    pub relu: ReluBackward,
    /// How the gradient of a convolution's weights is computed.
    pub weight_gradient: WeightGradient,
}

/// The name under which the gradient of `name` is an output of the gradient graph.
pub fn gradient_name(name: &str) -> String {
    format!("grad/{name}")
}

/// The name of the input by which the gradient of output `name` is seeded.
pub fn seed_name(name: &str) -> String {
    format!("seed/{name}")
}

/// The graph that also computes gradients of `outputs` with respect to inputs or initializers.
///
/// The new graph has the inputs and outputs of the old one; for every output of `outputs` that is not a
/// scalar the input [`seed_name`], of the output's shape; and for every name in `with_respect_to` the
/// output [`gradient_name`]. The outputs of `with_respect_to` are the last ones, in order.
///
/// The result can be differentiated again. A gradient whose name is taken by an earlier one gets the
/// [`gradient_name`] of that name: the gradient of `grad/x` with respect to `x` is `grad/grad/x`. A seed that
/// is an input already, because the output was differentiated before, seeds both.
///
/// ```
/// use onnx_grad::{Builder, DType, Dim, grad};
///
/// let mut b = Builder::new("square");
/// let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3)]);
/// let y = b.mul(&x, &x);
/// b.output("y", &y);
/// let graph = grad(&b.finish()?, &["y"], &["x"])?;
/// assert_eq!(graph.inputs[1].name, "seed/y");
/// assert_eq!(graph.outputs[1].name, "grad/x");
/// # Ok::<(), onnx_grad::Error>(())
/// ```
pub fn grad(graph: &Graph, outputs: &[&str], with_respect_to: &[&str]) -> Result<Graph> {
    grad_with(graph, outputs, with_respect_to, GradOptions::default())
}

/// As [`grad`], with choices.
pub fn grad_with(
    graph: &Graph,
    outputs: &[&str],
    with_respect_to: &[&str],
    options: GradOptions,
) -> Result<Graph> {
    for &name in with_respect_to {
        if graph.input(name).is_none() && !graph.initializers.contains_key(name) {
            return Err(no_such_value(name, graph.inputs.iter().map(|v| v.name.as_str())));
        }
    }
    for &name in outputs {
        if graph.output(name).is_none() {
            return Err(no_such_value(name, graph.outputs.iter().map(|v| v.name.as_str())));
        }
    }
    let graph = lower::lower(graph, with_respect_to)?;
    let nodes = graph.nodes.clone();
    let mut builder = Builder::extend(graph, "grad/")?;
    for name in with_respect_to
        .iter()
        .filter(|name| builder.graph().initializers.contains_key(**name))
        .collect::<Vec<_>>()
    {
        builder.forget_constant(name);
    }
    let activity = Activity::of(&builder, with_respect_to);

    let mut arrived: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for &output in outputs {
        let seed = seed(&mut builder, output)?;
        arrived.entry(output.to_string()).or_default().push(seed);
    }
    for node in nodes.iter().rev() {
        if !node.wanted_outputs().any(|output| arrived.contains_key(output)) {
            continue;
        }
        let rule = rules::find(node);
        if let Some(Kind::Stop(_)) = rule {
            continue;
        }
        let wanted: Vec<bool> =
            node.inputs.iter().map(|input| !input.is_empty() && activity.contains(input)).collect();
        if !wanted.contains(&true) {
            continue;
        }
        let Some(Kind::Backward(backward)) = rule else {
            return Err(rules::unknown(node));
        };
        let gradients = node
            .outputs
            .iter()
            .map(|output| arrived.get(output).map(|parts| sum(&mut builder, parts)))
            .collect();
        let mut step = Step { b: &mut builder, node, gradients, wanted, options };
        let sent = backward(&mut step)?;
        for (input, gradient) in node.inputs.iter().zip(sent) {
            if let Some(gradient) = gradient.filter(|_| activity.contains(input)) {
                arrived.entry(input.clone()).or_default().push(gradient);
            }
        }
    }
    for &name in with_respect_to {
        let Some(parts) = arrived.get(name) else {
            return Err(no_gradient(name, outputs, &nodes, &activity));
        };
        let gradient = sum(&mut builder, parts);
        let mut free = gradient_name(name);
        while builder.is_taken(&free) {
            free = gradient_name(&free);
        }
        builder.output(&free, &gradient);
    }
    builder.graph_mut().prune();
    builder.finish()
}

/// The values that depend on `with_respect_to` in a way gradients can follow.
struct Activity(BTreeSet<String>);

impl Activity {
    fn of(builder: &Builder, with_respect_to: &[&str]) -> Activity {
        let mut active: BTreeSet<String> = with_respect_to.iter().map(|s| s.to_string()).collect();
        for node in &builder.graph().nodes {
            let reached = node.given_inputs().any(|input| active.contains(input));
            if !reached || matches!(rules::find(node), Some(Kind::Stop(_))) {
                continue;
            }
            for output in node.wanted_outputs() {
                if builder.fact(output).dtype.is_none_or(|dtype| dtype.is_float()) {
                    active.insert(output.to_string());
                }
            }
        }
        Activity(active)
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// The gradient of an output with respect to itself: 1 for a scalar, else supplied from outside.
fn seed(builder: &mut Builder, output: &str) -> Result<Value> {
    let fact = builder.fact(output).clone();
    let dtype = fact.dtype.filter(|d| d.is_float()).ok_or_else(|| Error::NoGradient {
        output: output.to_string(),
        input: String::new(),
        reason: "the output is not a float".to_string(),
    })?;
    match fact.shape {
        Some(shape) if shape.is_empty() => Ok(builder.scalar_like(output, 1.0)),
        Some(_) if builder.graph().input(&seed_name(output)).is_some() => {
            Ok(Value::named(&seed_name(output)))
        }
        Some(shape) => Ok(builder.input(&seed_name(output), dtype, &shape)),
        None => Err(Error::UnknownShape {
            node: format!("of output '{output}'"),
            what: "the rank of the output".to_string(),
        }),
    }
}

fn sum(builder: &mut Builder, parts: &[Value]) -> Value {
    let mut total = parts[0].clone();
    for part in &parts[1..] {
        total = builder.add(&total, part);
    }
    total
}

fn no_such_value<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<String> = known.take(20).map(|n| format!("'{n}'")).collect();
    Error::NoSuchValue { name: name.to_string(), known: known.join(", ") }
}

/// Says which node stands between the outputs and the input.
fn no_gradient(input: &str, outputs: &[&str], nodes: &[Node], activity: &Activity) -> Error {
    let mut needed: BTreeSet<&str> = outputs.iter().copied().collect();
    let mut stops = Vec::new();
    for node in nodes.iter().rev() {
        if !node.wanted_outputs().any(|output| needed.contains(output)) {
            continue;
        }
        let reached = node.given_inputs().any(|value| activity.contains(value));
        if reached && !node.wanted_outputs().any(|value| activity.contains(value)) {
            stops.push(node);
        }
        needed.extend(node.given_inputs());
    }
    // A shape that is taken besides is not what stands in the way, unless there is nothing else.
    let culprit = stops.iter().rev().find(|node| !node.is("Shape") && !node.is("Size")).or(stops.last());
    let reason = match culprit {
        None => "the output does not depend on it".to_string(),
        Some(node) => match rules::find(node) {
            Some(Kind::Stop(why)) => format!("node {} stops it ({why})", node.label()),
            _ => format!("node {} stops it (its output is not a float)", node.label()),
        },
    };
    Error::NoGradient { output: outputs.join("', '"), input: input.to_string(), reason }
}
