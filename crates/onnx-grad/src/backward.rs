//! Backward rules as values: what replaces the derivative of an operator on the way back.
//!
//! ```text
//! grad/x = what the rules send to x, when the seed arrives at the outputs
//! ```
//!
//! The walk of [`grad_with`](crate::grad_with) asks a [`BackwardRules`] first, node by node, and the derivative only
//! where it has no rule. What travels back is then whatever the rules say it is: a gradient that was rectified
//! ([`relu`]), relevance ([`lrp`]), the slope between two points ([`deeplift`]). Rules append nodes like derivatives do, so
//! the result is a graph, and every engine runs it.
//!
//! ```
//! use onnx_grad::{BackwardRules, Builder, DType, Dim, GradOptions, grad_with};
//!
//! // Rounding has no derivative worth the name: let gradients through as if it were not there.
//! let straight_through = BackwardRules::new("straight-through")
//!     .on(&["Round"], |step| Ok(vec![Some(step.dy()?)]));
//!
//! let mut b = Builder::new("rounded");
//! let x = b.input("x", DType::F32, &[Dim::symbol("N"), Dim::Known(3)]);
//! let y = b.op("Round", &[&x]);
//! b.output("y", &y);
//! let options = GradOptions { rules: straight_through, ..GradOptions::default() };
//! let graph = grad_with(&b.finish()?, &["y"], &["x"], options)?;
//! assert_eq!(graph.outputs[1].name, "grad/x");
//! # Ok::<(), onnx_grad::Error>(())
//! ```

pub mod deeplift;
pub mod lrp;
pub mod relu;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node};
use crate::step::{Gradients, Step};

type Rule = Arc<dyn Fn(&mut Step<'_>) -> Gradients + Send + Sync>;
type When = Arc<dyn Fn(&Node, &Graph) -> bool + Send + Sync>;
type Start = Arc<dyn Fn(&mut Builder, &str, &Value) -> Value + Send + Sync>;
type Forward = Arc<dyn Fn(Graph) -> Result<Graph> + Send + Sync>;

/// What replaces the derivative of some operators, or of some nodes. The first rule that fits a node is taken; where
/// none fits, the derivative.
#[derive(Clone, Default)]
pub struct BackwardRules {
    name: String,
    entries: Vec<Entry>,
    start: Option<Start>,
    forward: Option<Forward>,
    closed: bool,
}

#[derive(Clone)]
struct Entry {
    ops: Vec<String>,
    when: Option<When>,
    rule: Rule,
}

impl BackwardRules {
    /// No rules yet; the name is for messages.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_string(), ..Self::default() }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A rule for all nodes of these operators.
    #[must_use]
    pub fn on(
        mut self,
        ops: &[&str],
        rule: impl Fn(&mut Step<'_>) -> Gradients + Send + Sync + 'static,
    ) -> Self {
        let ops = ops.iter().map(|op| op.to_string()).collect();
        self.entries.push(Entry { ops, when: None, rule: Arc::new(rule) });
        self
    }

    /// The derivative for all nodes of these operators, also where [others are refused](Self::refusing_others).
    #[must_use]
    pub fn deriving(self, ops: &[&str]) -> Self {
        self.on(ops, |step| step.derivative())
    }

    /// A rule for those nodes of these operators that a condition holds for: of the node (its name, whether it has a
    /// bias) or of its place in the lowered graph (whether a layer is before it).
    #[must_use]
    pub fn on_where(
        mut self,
        ops: &[&str],
        when: impl Fn(&Node, &Graph) -> bool + Send + Sync + 'static,
        rule: impl Fn(&mut Step<'_>) -> Gradients + Send + Sync + 'static,
    ) -> Self {
        let ops = ops.iter().map(|op| op.to_string()).collect();
        self.entries.push(Entry { ops, when: Some(Arc::new(when)), rule: Arc::new(rule) });
        self
    }

    /// What arrives at an output, made of the output and its seed, in place of the seed.
    #[must_use]
    pub fn starting_with(
        mut self,
        start: impl Fn(&mut Builder, &str, &Value) -> Value + Send + Sync + 'static,
    ) -> Self {
        self.start = Some(Arc::new(start));
        self
    }

    /// What the rules need beside the forward graph: a function that adds to the lowered graph, before the walk.
    #[must_use]
    pub fn with_forward(mut self, forward: impl Fn(Graph) -> Result<Graph> + Send + Sync + 'static) -> Self {
        self.forward = Some(Arc::new(forward));
        self
    }

    /// Refuses nodes that have no rule here, instead of taking their derivative.
    #[must_use]
    pub fn refusing_others(mut self) -> Self {
        self.closed = true;
        self
    }

    /// The rule of a node.
    pub(crate) fn find(&self, node: &Node, graph: &Graph) -> Option<&Rule> {
        let fits = |entry: &&Entry| {
            entry.ops.iter().any(|op| node.is(op)) && entry.when.as_ref().is_none_or(|when| when(node, graph))
        };
        self.entries.iter().find(fits).map(|entry| &entry.rule)
    }

    /// Whether a node of this operator may be treated otherwise than by its derivative.
    pub(crate) fn concern(&self, op: &str) -> bool {
        self.closed || self.entries.iter().any(|entry| entry.ops.iter().any(|own| own == op))
    }

    /// The refusal of a node without a rule, where there is no derivative underneath.
    pub(crate) fn refusal(&self, node: &Node) -> Option<Error> {
        self.closed.then(|| Error::NoBackwardRule {
            rules: self.name.clone(),
            node: node.label(),
            reason: format!("there is none for {}", node.op),
        })
    }

    /// What arrives at an output.
    pub(crate) fn start(&self, b: &mut Builder, output: &str, seed: Value) -> Value {
        match &self.start {
            Some(start) => start(b, output, &seed),
            None => seed,
        }
    }

    /// The lowered graph with what the rules need beside it.
    pub(crate) fn forward(&self, graph: Graph) -> Result<Graph> {
        match &self.forward {
            Some(forward) => forward(graph),
            None => Ok(graph),
        }
    }
}

impl fmt::Debug for BackwardRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ops: Vec<&str> = self.entries.iter().flat_map(|e| e.ops.iter().map(String::as_str)).collect();
        f.debug_struct("BackwardRules").field("name", &self.name).field("ops", &ops).finish()
    }
}

/// A node that a set of rules has no rule for, with the reason.
fn refuse(rules: &str, step: &Step<'_>, reason: impl Into<String>) -> Error {
    Error::NoBackwardRule { rules: rules.to_string(), node: step.node.label(), reason: reason.into() }
}

/// Functions of one value, element by element; other operands are constants.
const ACTIVATIONS: &[&str] = &[
    "Relu",
    "LeakyRelu",
    "PRelu",
    "Elu",
    "Sigmoid",
    "HardSigmoid",
    "HardSwish",
    "Gelu",
    "Softplus",
    "Softsign",
    "Tanh",
    "Clip",
];
/// Operators that move, copy and leave out elements of one or more values.
const LAYOUT: &[&str] = &[
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Identity",
    "Cast",
    "Transpose",
    "Concat",
    "Split",
    "Slice",
    "Expand",
    "Tile",
    "Pad",
    "Trilu",
    "Gather",
    "GatherElements",
    "GatherND",
];
/// Sums with fixed weights, without a bias.
const MEANS: &[&str] =
    &["AveragePool", "GlobalAveragePool", "ReduceSum", "ReduceMean", "Resize", "CumSum", "Sum", "Mean"];

/// Which factor of a product is a value that the other one is a function of, element by element: the product is then an
/// activation, as `x sigmoid(x)` is, or `x Phi(x)`.
fn gated(step: &Step<'_>) -> Option<usize> {
    let (a, b) = (step.node.input(0)?, step.node.input(1)?);
    let producers = step.forward.producers();
    let mut steps = 64;
    if function_of(step.forward, &producers, b, a, &mut steps) {
        return Some(0);
    }
    steps = 64;
    function_of(step.forward, &producers, a, b, &mut steps).then_some(1)
}

/// Whether `gate` is made of `value` and constants by elementwise operators.
fn function_of(
    graph: &Graph,
    producers: &BTreeMap<&str, usize>,
    gate: &str,
    value: &str,
    steps: &mut usize,
) -> bool {
    const ELEMENTWISE: &[&str] =
        &["Add", "Sub", "Mul", "Div", "Neg", "Pow", "Sqrt", "Exp", "Log", "Erf", "Reciprocal", "Abs"];
    if *steps == 0 {
        return false;
    }
    *steps -= 1;
    let Some(node) = producers.get(gate).map(|&i| &graph.nodes[i]) else { return false };
    let elementwise = ELEMENTWISE.iter().chain(ACTIVATIONS).any(|op| node.is(op));
    elementwise
        && node.given_inputs().all(|input| {
            input == value
                || graph.initializers.contains_key(input)
                || function_of(graph, producers, input, value, steps)
        })
}
