//! Differentiation, from graph to graph.
//!
//! For outputs `y` of a graph, inputs, parameters or inner values `x`, and a seed `s` of the shape of `y`, the new graph
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

use crate::backward::BackwardRules;
use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::fuse;
use crate::graph::{Graph, Node};
use crate::lower;
use crate::options::GradOptions;
use crate::rules::{self, Kind};
use crate::step::Step;

/// The name under which the gradient of `name` is an output of the gradient graph.
pub fn gradient_name(name: &str) -> String {
    format!("grad/{name}")
}

/// The name of the input by which the gradient of output `name` is seeded.
pub fn seed_name(name: &str) -> String {
    format!("seed/{name}")
}

/// The graph that also computes gradients of `outputs` with respect to inputs or initializers, or to values in
/// between that are outputs of the graph as well.
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
    let mut walk = Walk::back(graph, outputs, with_respect_to, options)?;
    if let Some(error) = walk.obstacles.iter_mut().find_map(|obstacle| obstacle.error.take()) {
        return Err(error);
    }
    for (&name, source) in with_respect_to.iter().zip(&walk.sources) {
        let Some(parts) = walk.arrived.get(source) else {
            return Err(no_gradient(name, outputs, &walk.obstacles));
        };
        let gradient = sum(&mut walk.builder, parts);
        let mut free = gradient_name(name);
        while walk.builder.is_taken(&free) {
            free = gradient_name(&free);
        }
        walk.builder.output(&free, &gradient);
    }
    walk.builder.graph_mut().prune();
    walk.builder.finish()
}

/// A node between input and output that gradients do not get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// The node, by name and op.
    pub node: String,
    /// Why not.
    pub reason: String,
    /// Why there is no gradient graph at all; `None` where the node only stops gradients, as `Floor` does,
    /// and what flows around it is right.
    pub error: Option<Error>,
}

/// Every node between the outputs and `with_respect_to` that gradients do not get through.
///
/// Where none of them has an error, [`grad`] succeeds, unless all ways are stopped.
pub fn obstacles(graph: &Graph, outputs: &[&str], with_respect_to: &[&str]) -> Result<Vec<Obstacle>> {
    Ok(Walk::back(graph, outputs, with_respect_to, GradOptions::default())?.obstacles)
}

/// The walk from the outputs back.
struct Walk {
    builder: Builder,
    /// What the values to differentiate by are called after lowering.
    sources: Vec<String>,
    /// The sigmoids of the graph: of what value each is.
    gates: BTreeMap<String, String>,
    /// The gradients that arrived at each value.
    arrived: BTreeMap<String, Vec<Value>>,
    obstacles: Vec<Obstacle>,
}

impl Walk {
    fn back(graph: &Graph, outputs: &[&str], with_respect_to: &[&str], options: GradOptions) -> Result<Walk> {
        for &name in with_respect_to {
            let known = graph.input(name).is_some() || graph.output(name).is_some();
            if !known && !graph.initializers.contains_key(name) {
                return Err(no_such_value(name, graph.inputs.iter().map(|v| v.name.as_str())));
            }
        }
        for &name in outputs {
            if graph.output(name).is_none() {
                return Err(no_such_value(name, graph.outputs.iter().map(|v| v.name.as_str())));
            }
        }
        let rules = &options.rules;
        let mut graph = rules.forward(lower::lower(graph, with_respect_to)?)?;
        // Rules for parts of a fused operator would not see them.
        if options.fused && !fuse::PARTS.iter().any(|op| rules.concern(op)) {
            graph = fuse::fuse(&graph)?;
        }
        let sources: Vec<String> = with_respect_to.iter().map(|name| source(&graph, name)).collect();
        let forward = graph.clone();
        let nodes = &forward.nodes;
        let mut builder = Builder::extend(graph, "grad/")?;
        for name in with_respect_to {
            if builder.graph().initializers.contains_key(*name) {
                builder.forget_constant(name);
            }
        }
        let activity = Activity::of(&builder, &sources, rules);
        let mut arrived: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for &output in outputs {
            let seed = seed(&mut builder, output)?;
            let seed = rules.start(&mut builder, output, seed);
            arrived.entry(output.to_string()).or_default().push(seed);
        }
        // A gate that is asked about itself must keep what arrives at it.
        let gates = nodes
            .iter()
            .filter(|node| node.is("Sigmoid"))
            .filter_map(|node| Some((node.output(0)?.to_string(), node.input(0)?.to_string())))
            .filter(|(gate, _)| !sources.contains(gate))
            .collect();
        let mut walk = Walk { builder, sources, gates, arrived, obstacles: Vec::new() };
        for node in nodes.iter().rev() {
            walk.step(node, &forward, &activity, &options);
        }
        if walk.sources.iter().any(|name| !walk.arrived.contains_key(name)) {
            walk.note_stops(nodes, outputs, &activity);
        }
        Ok(walk)
    }

    /// Sends what arrived at a node's outputs on to its inputs.
    fn step(&mut self, node: &Node, forward: &Graph, activity: &Activity, options: &GradOptions) {
        let wanted: Vec<bool> =
            node.inputs.iter().map(|input| !input.is_empty() && activity.contains(input)).collect();
        let reached = node.wanted_outputs().any(|output| self.arrived.contains_key(output));
        if !reached || !wanted.contains(&true) {
            return;
        }
        let own = options.rules.find(node, forward).cloned();
        let sent = match (own, options.rules.refusal(node), rules::find(node)) {
            (Some(rule), _, _) => rule(&mut self.at(node, forward, wanted, options)),
            (None, Some(refusal), _) => Err(refusal),
            (None, None, Some(Kind::Stop(why))) => {
                let reason = why.to_string();
                self.obstacles.push(Obstacle { node: node.label(), reason, error: None });
                return;
            }
            (None, None, Some(Kind::Backward(backward))) => {
                backward(&mut self.at(node, forward, wanted, options))
            }
            (None, None, None) => Err(rules::unknown(node)),
        };
        match sent {
            Ok(sent) => {
                for (input, gradient) in node.inputs.iter().zip(sent) {
                    if let Some(gradient) = gradient.filter(|_| activity.contains(input)) {
                        self.arrived.entry(input.clone()).or_default().push(gradient);
                    }
                }
            }
            Err(error) => {
                let reason = match &error {
                    Error::NotDifferentiable { reason, .. }
                    | Error::NoBackwardRule { reason, .. }
                    | Error::Node { reason, .. } => reason.clone(),
                    Error::UnknownShape { what, .. } => format!("it needs {what}, which is not known"),
                    other => other.to_string(),
                };
                self.obstacles.push(Obstacle { node: node.label(), reason, error: Some(error) });
                // The walk goes on as if there were a rule, so that all obstacles are found at once.
                for input in node.inputs.iter().filter(|input| activity.contains(input)) {
                    let zeros = self.builder.zeros_like(input);
                    self.arrived.entry(input.clone()).or_default().push(zeros);
                }
            }
        }
    }

    /// A node with what arrived at its outputs.
    fn at<'a>(
        &'a mut self,
        node: &'a Node,
        forward: &'a Graph,
        wanted: Vec<bool>,
        options: &GradOptions,
    ) -> Step<'a> {
        let gradients = node
            .outputs
            .iter()
            .map(|output| self.arrived.get(output).map(|parts| sum(&mut self.builder, parts)))
            .collect();
        let weight_gradient = options.weight_gradient;
        let (b, gates, derivative) =
            (&mut self.builder, &self.gates, rules::derivative as fn(&mut Step<'_>) -> _);
        Step { b, node, forward, gradients, wanted, gates, weight_gradient, derivative }
    }

    /// Notes the nodes behind which nothing arrived: an integer in between hides them from the walk.
    fn note_stops(&mut self, nodes: &[Node], outputs: &[&str], activity: &Activity) {
        let mut needed: BTreeSet<&str> = outputs.iter().copied().collect();
        for node in nodes.iter().rev() {
            if !node.wanted_outputs().any(|output| needed.contains(output)) {
                continue;
            }
            needed.extend(node.given_inputs());
            let reached = node.given_inputs().any(|value| activity.contains(value));
            let stops = reached && !node.wanted_outputs().any(|value| activity.contains(value));
            let known = self.obstacles.iter().any(|obstacle| obstacle.node == node.label());
            // A shape that is taken besides is not what stands in the way.
            if !stops || known || node.is("Shape") || node.is("Size") {
                continue;
            }
            let reason = match rules::find(node) {
                Some(Kind::Stop(why)) => why.to_string(),
                _ => "its output is not a float".to_string(),
            };
            self.obstacles.push(Obstacle { node: node.label(), reason, error: None });
        }
    }
}

/// The values that depend on `with_respect_to` in a way gradients can follow.
struct Activity(BTreeSet<String>);

impl Activity {
    fn of(builder: &Builder, with_respect_to: &[String], rules: &BackwardRules) -> Activity {
        let mut active: BTreeSet<String> = with_respect_to.iter().cloned().collect();
        for node in &builder.graph().nodes {
            let reached = node.given_inputs().any(|input| active.contains(input));
            let stops = matches!(rules::find(node), Some(Kind::Stop(_)))
                && rules.find(node, builder.graph()).is_none();
            if !reached || stops {
                continue;
            }
            // Integers that stand for floats are followed, so that the refusal says what the model is.
            let quantised = rules::is_quantised(node);
            for output in node.wanted_outputs() {
                if quantised || builder.fact(output).dtype.is_none_or(|dtype| dtype.is_float()) {
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

/// The value behind a name: an output may be no more than another name for a value that the graph uses.
fn source(graph: &Graph, name: &str) -> String {
    let producers = graph.producers();
    let mut name = name;
    while let Some(node) = producers.get(name).map(|&i| &graph.nodes[i]).filter(|node| node.is("Identity")) {
        match node.input(0) {
            Some(input) => name = input,
            None => break,
        }
    }
    name.to_string()
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

fn no_gradient(input: &str, outputs: &[&str], obstacles: &[Obstacle]) -> Error {
    let reason = match obstacles {
        [] => "the output does not depend on it".to_string(),
        [.., Obstacle { node, reason, .. }] => format!("node {node} stops it ({reason})"),
    };
    Error::NoGradient { output: outputs.join("', '"), input: input.to_string(), reason }
}
