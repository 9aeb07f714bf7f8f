//! One node on the way back, as a backward rule sees it.

use std::collections::BTreeMap;

use crate::build::{Builder, Value};
use crate::error::{Error, Result};
use crate::graph::{Dim, Graph, Node};
use crate::shapes::Fact;

/// A rule may need a constant (the matrix of a `Resize`, the kernels of a `MaxPool`), up to this many elements.
const MAX_TABLE: usize = 1 << 24;

/// How the gradient of a convolution's weights is computed; engines differ in which is fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightGradient {
    /// A convolution of the input with the output's gradient, batch and channels exchanged.
    #[default]
    TransposedConv,
    /// Matrix products of windows and the output's gradient: one for every tap of a kernel without strides and groups,
    /// with the image moved by that tap; else of windows laid out as columns.
    Im2col,
}

/// One node on the way back.
pub struct Step<'a> {
    /// Where new nodes go.
    pub b: &'a mut Builder,
    /// The node.
    pub node: &'a Node,
    /// The lowered graph that is differentiated.
    pub forward: &'a Graph,
    /// The gradient of each output, where one arrived.
    pub gradients: Vec<Option<Value>>,
    /// Which inputs need a gradient.
    pub wanted: Vec<bool>,
    /// The sigmoids of the graph: of what value each is.
    pub(crate) gates: &'a BTreeMap<String, String>,
    /// How the gradient of a convolution's weights is computed.
    pub(crate) weight_gradient: WeightGradient,
    /// The derivative of any operator.
    pub(crate) derivative: Backward,
}

/// The gradient of each input, where there is one.
pub type Gradients = Result<Vec<Option<Value>>>;
/// A rule that depends on nothing but the step.
pub(crate) type Backward = fn(&mut Step<'_>) -> Gradients;

impl<'a> Step<'a> {
    /// The name of the `i`-th input.
    pub fn x(&self, i: usize) -> Result<&'a str> {
        let node: &'a Node = self.node;
        node.input(i).ok_or_else(|| self.malformed(format!("it has no input {i}")))
    }

    /// The name of the first output.
    pub fn y(&self) -> Result<&'a str> {
        let node: &'a Node = self.node;
        node.output(0).ok_or_else(|| self.malformed("it has no output"))
    }

    /// The gradient of the first output.
    pub fn dy(&self) -> Result<Value> {
        self.gradients.first().cloned().flatten().ok_or_else(|| {
            self.not_differentiable("only its first output can be differentiated, and another one is used")
        })
    }

    /// Whether the `i`-th input needs a gradient.
    pub fn wants(&self, i: usize) -> bool {
        self.wanted.get(i).copied().unwrap_or(false)
    }

    /// What is known of each input.
    pub(crate) fn facts(&self) -> Vec<&Fact> {
        const NOTHING: &Fact = &Fact { dtype: None, shape: None, content: None, constant: None };
        self.node.inputs.iter().map(|n| if n.is_empty() { NOTHING } else { self.b.fact(n) }).collect()
    }

    /// The shape of a value, or an error that says it must be known.
    pub(crate) fn shape(&self, value: &str) -> Result<Vec<Dim>> {
        self.b
            .shape(value)
            .map(<[Dim]>::to_vec)
            .ok_or_else(|| self.unknown_shape(format!("the rank of '{value}'")))
    }

    /// The size of an axis as a number, or an error that says it must be known.
    pub(crate) fn size(&self, value: &str, axis: usize) -> Result<i64> {
        let shape = self.shape(value)?;
        shape
            .get(axis)
            .and_then(Dim::known)
            .ok_or_else(|| self.unknown_shape(format!("the size of axis {axis} of '{value}'")))
    }

    /// The sizes behind batch and channels, of which there must be `rank`.
    pub(crate) fn spatial(&self, value: &str, rank: usize) -> Result<Vec<Dim>> {
        match self.shape(value)?.get(2..) {
            Some(sizes) if sizes.len() == rank => Ok(sizes.to_vec()),
            _ => Err(self.malformed(format!("'{value}' does not have {rank} spatial axes"))),
        }
    }

    /// The product of sizes, as the number of elements of a constant that the gradient needs.
    pub(crate) fn table(&self, sizes: &[i64]) -> Result<usize> {
        let count = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(usize::try_from(size).ok()?));
        count.filter(|&n| n <= MAX_TABLE).ok_or_else(|| {
            self.not_differentiable(format!(
                "its gradient needs a table of {sizes:?} numbers, which is too large"
            ))
        })
    }

    /// An attribute that names an axis, counted from the front.
    pub(crate) fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        let axis = self.node.int(name, default);
        crate::shapes::normalise_axis(axis, rank)
            .ok_or_else(|| self.malformed(format!("axis {axis} is not an axis of a tensor of rank {rank}")))
    }

    pub(crate) fn malformed(&self, reason: impl Into<String>) -> Error {
        Error::Node { node: self.node.label(), reason: reason.into() }
    }

    pub(crate) fn unknown_shape(&self, what: impl Into<String>) -> Error {
        Error::UnknownShape { node: self.node.label(), what: what.into() }
    }

    /// A refusal that names the node.
    pub fn not_differentiable(&self, reason: impl Into<String>) -> Error {
        Error::NotDifferentiable { node: self.node.label(), reason: reason.into() }
    }

    /// What the derivative of the node's operator sends to its inputs.
    ///
    /// # Errors
    /// If the operator has no derivative.
    pub fn derivative(&mut self) -> Gradients {
        (self.derivative)(self)
    }

    /// What the derivative of another node sends to its inputs, such as this node with other weights, when this
    /// gradient arrives at its first output. The inputs that need one are the same.
    ///
    /// # Errors
    /// As [`Step::derivative`].
    pub fn derivative_of(&mut self, node: &Node, gradient: &Value) -> Gradients {
        let wanted = self.wanted.clone();
        self.derivative_with(node, gradient, wanted)
    }

    /// As [`Step::derivative_of`], with the inputs that need a gradient.
    ///
    /// # Errors
    /// As [`Step::derivative`].
    pub fn derivative_with(&mut self, node: &Node, gradient: &Value, wanted: Vec<bool>) -> Gradients {
        let derivative = self.derivative;
        derivative(&mut Step {
            b: self.b,
            node,
            forward: self.forward,
            gradients: vec![Some(gradient.clone())],
            wanted,
            gates: self.gates,
            weight_gradient: self.weight_gradient,
            derivative,
        })
    }
}
