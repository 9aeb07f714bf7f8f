//! A node together with its inputs, and the questions every op asks of them.

use super::Array;
use crate::error::{Error, Result};
use crate::graph::Node;
use crate::tensor::{DType, MAX_RANK};

/// How large a tensor and how long a computation may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Elements of one tensor.
    pub(crate) elements: usize,
    /// Multiplications of one node.
    pub(crate) steps: usize,
}

impl Limits {
    /// More elements than these (2 GiB of `f64`) are a mistake in the model, not a tensor to evaluate, and
    /// more multiplications would take minutes here.
    pub(crate) const EVALUATION: Limits = Limits { elements: 1 << 28, steps: 1 << 34 };
}

/// The number of elements of a shape, or `None` where they are too many to hold.
///
/// Axes of size zero do not excuse absurd other axes: strides are computed from them all the same.
pub(super) fn element_count(shape: &[usize], limits: Limits) -> Option<usize> {
    if shape.len() > MAX_RANK {
        return None;
    }
    let nonzero = shape
        .iter()
        .filter(|&&d| d > 0)
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= limits.elements)?;
    Some(if shape.contains(&0) { 0 } else { nonzero })
}

/// One evaluation of one node.
pub(super) struct Call<'a> {
    pub(super) node: &'a Node,
    inputs: &'a [Option<&'a Array>],
    limits: Limits,
}

impl<'a> Call<'a> {
    pub(super) fn new(node: &'a Node, inputs: &'a [Option<&'a Array>], limits: Limits) -> Call<'a> {
        Call { node, inputs, limits }
    }

    /// The same node on other inputs.
    pub(super) fn with_inputs<'b>(&'b self, inputs: &'b [Option<&'b Array>]) -> Call<'b> {
        Call { node: self.node, inputs, limits: self.limits }
    }

    /// The error for a node that breaks the specification.
    pub(super) fn malformed(&self, reason: impl Into<String>) -> Error {
        Error::Node { node: self.node.label(), reason: reason.into() }
    }

    /// The error for a node that the evaluator does not cover.
    pub(super) fn unsupported(&self, reason: impl Into<String>) -> Error {
        Error::NotEvaluable { node: self.node.label(), reason: reason.into() }
    }

    /// How many inputs there are, those left out included.
    pub(super) fn count(&self) -> usize {
        self.inputs.len()
    }

    /// The `i`-th input, where it is given.
    pub(super) fn optional(&self, i: usize) -> Option<&'a Array> {
        self.inputs.get(i).copied().flatten()
    }

    /// The `i`-th input.
    pub(super) fn input(&self, i: usize) -> Result<&'a Array> {
        self.optional(i).ok_or_else(|| self.malformed(format!("input {i} is missing")))
    }

    /// All inputs, none of which may be left out.
    pub(super) fn all(&self) -> Result<Vec<&'a Array>> {
        if self.count() == 0 {
            return Err(self.malformed("it has no inputs"));
        }
        (0..self.count()).map(|i| self.input(i)).collect()
    }

    /// The content of the `i`-th input as integers, where it is given.
    pub(super) fn optional_ints(&self, i: usize) -> Option<Vec<i64>> {
        self.optional(i).map(|a| a.data.iter().map(|&v| v as i64).collect())
    }

    /// The content of the `i`-th input as integers.
    pub(super) fn ints(&self, i: usize) -> Result<Vec<i64>> {
        self.input(i)?;
        Ok(self.optional_ints(i).unwrap_or_default())
    }

    /// The only element of the `i`-th input.
    pub(super) fn scalar(&self, i: usize) -> Result<f64> {
        let array = self.input(i)?;
        match array.data.iter().next() {
            Some(&value) if array.data.len() == 1 => Ok(value),
            _ => Err(self.malformed(format!("input {i} has shape {:?}, not one element", array.shape()))),
        }
    }

    /// An axis as the specification counts it, negative from the back, made an index.
    pub(super) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let wrapped = if axis < 0 { axis.saturating_add(rank as i64) } else { axis };
        usize::try_from(wrapped)
            .ok()
            .filter(|&a| a < rank)
            .ok_or_else(|| self.malformed(format!("axis {axis} is outside a tensor of {rank} axes")))
    }

    /// Distinct axes, made indices.
    pub(super) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>> {
        let mut seen = vec![false; rank];
        axes.iter()
            .map(|&a| {
                let axis = self.axis(a, rank)?;
                match std::mem::replace(&mut seen[axis], true) {
                    true => Err(self.malformed(format!("axis {a} is named twice"))),
                    false => Ok(axis),
                }
            })
            .collect()
    }

    /// A size read from a tensor or an attribute.
    pub(super) fn size(&self, size: i64) -> Result<usize> {
        usize::try_from(size).map_err(|_| self.malformed(format!("an axis of size {size}")))
    }

    /// Sizes read from a tensor or an attribute.
    pub(super) fn sizes(&self, sizes: &[i64]) -> Result<Vec<usize>> {
        sizes.iter().map(|&s| self.size(s)).collect()
    }

    /// Refuses a shape that is too large to hold; otherwise its number of elements.
    pub(super) fn room(&self, shape: &[usize]) -> Result<usize> {
        element_count(shape, self.limits)
            .ok_or_else(|| self.unsupported(format!("a tensor of shape {shape:?} is too large")))
    }

    /// Refuses work that would not end; `factors` multiply to the number of steps.
    pub(super) fn work(&self, factors: &[usize]) -> Result<()> {
        match factors.iter().try_fold(1usize, |n, &f| n.checked_mul(f)) {
            Some(steps) if steps <= self.limits.steps => Ok(()),
            _ => Err(self.unsupported(format!("{factors:?} steps are too many"))),
        }
    }

    /// An array, where shape and values agree and are not too large.
    pub(super) fn array(&self, dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<Array> {
        if self.room(shape)? != values.len() {
            return Err(self.malformed(format!("{} values cannot take the shape {shape:?}", values.len())));
        }
        Ok(Array::new(dtype, shape, values))
    }

    /// The rank of an array, which must be at least `least`.
    pub(super) fn rank(&self, array: &Array, least: usize) -> Result<usize> {
        match array.shape().len() {
            rank if rank >= least => Ok(rank),
            rank => Err(self.malformed(format!("an input has {rank} axes, not at least {least}"))),
        }
    }
}
