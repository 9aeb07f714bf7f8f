//! What is known of every value: element type, shape with symbolic sizes, and the content of small
//! integer tensors.
//!
//! The reverse walk must know which axes were broadcast and how large a window was; most of that is in
//! the file, and the rest follows node by node. A batch stays a symbol (`N`, also `4 N` after a reshape),
//! so one graph serves every batch size. Integer tensors that compute shapes are followed by content:
//! `Concat(Shape(x)[0:1], [64])` is known to hold `[N, 64]`, so that a `Reshape` by it has a known shape.
//!
//! Inference is sound rather than complete: what cannot be told is [`Dim::Unknown`], which becomes a
//! symbol of its own, and what contradicts itself is an error that names the node.

pub(crate) mod dims;
mod einsum;
mod fused;
mod infer;
mod layout;
mod recurrent;
mod window;

use std::collections::HashMap;

use crate::error::Result;
use crate::graph::{Dim, Graph, Node, ValueInfo};
use crate::tensor::{DType, MAX_RANK, TensorData};

pub(crate) use einsum::einsum_terms;
pub(crate) use fused::conv_attributes;
pub use fused::fused_outputs;
pub(crate) use infer::{constant_value, conv_window, normalise_axis, reduced_axes};
pub(crate) use layout::{pad_spec, slice_bounds, slice_spec};
pub(crate) use window::Window;

/// Integer tensors up to this many elements are followed by content.
const MAX_CONTENT: usize = 64;

/// What is known of one value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Fact {
    /// The element type.
    pub dtype: Option<DType>,
    /// The shape, where at least the rank is known.
    pub shape: Option<Vec<Dim>>,
    /// For small integer tensors of rank 0 or 1: the elements.
    pub content: Option<Vec<Dim>>,
    /// For constants: the data.
    pub constant: Option<TensorData>,
}

impl Fact {
    /// A value of known type and shape.
    pub fn new(dtype: DType, shape: Vec<Dim>) -> Fact {
        Fact { dtype: Some(dtype), shape: Some(shape), ..Fact::default() }
    }

    /// All that a constant tells.
    pub fn constant(data: &TensorData) -> Fact {
        let small_ints = !data.dtype().is_float() && data.len() <= MAX_CONTENT && data.shape().len() <= 1;
        Fact {
            dtype: Some(data.dtype()),
            shape: Some(data.shape().iter().map(|&d| d.into()).collect()),
            content: small_ints.then(|| data.to_i64().into_iter().map(Dim::Known).collect()),
            constant: Some(data.clone()),
        }
    }

    /// What a graph's declaration tells.
    fn declared(info: &ValueInfo) -> Fact {
        Fact { dtype: Some(info.dtype), shape: info.shape.clone(), ..Fact::default() }
    }

    /// The number of axes, where known.
    pub fn rank(&self) -> Option<usize> {
        self.shape.as_ref().map(Vec::len)
    }

    /// The shape in numbers, where all of it is known.
    pub fn known_shape(&self) -> Option<Vec<usize>> {
        self.shape.as_ref()?.iter().map(|d| d.known().and_then(|n| usize::try_from(n).ok())).collect()
    }

    /// The content in numbers, where all of it is known.
    pub fn known_content(&self) -> Option<Vec<i64>> {
        self.content.as_ref()?.iter().map(Dim::known).collect()
    }

    /// Gives every unknown axis a symbol of its own, so that equal sizes can be told downstream.
    fn name_unknown(mut self, value: &str) -> Fact {
        self.shape = self.shape.filter(|shape| shape.len() <= MAX_RANK);
        if let Some(shape) = &mut self.shape {
            for (axis, dim) in shape.iter_mut().enumerate() {
                // Sizes beyond any tensor are not sizes, and would overflow in arithmetic.
                if *dim == Dim::Unknown || dim.known().is_some_and(|n| !(0..1 << 40).contains(&n)) {
                    *dim = Dim::symbol(format!("{}{value}.{axis}", dims::FRESH));
                }
            }
        }
        self
    }

    /// Fills what is unknown here with what `hint` knows.
    fn refine(mut self, hint: &Fact) -> Fact {
        self.dtype = self.dtype.or(hint.dtype);
        self.shape = match (self.shape, &hint.shape) {
            (Some(mine), Some(theirs)) if mine.len() == theirs.len() => Some(
                mine.into_iter()
                    .zip(theirs)
                    .map(|(m, t)| if m == Dim::Unknown { t.clone() } else { m })
                    .collect(),
            ),
            (None, theirs) => theirs.clone(),
            (mine, _) => mine,
        };
        self
    }
}

/// What is known of the values of a graph, by name.
#[derive(Debug, Clone, Default)]
pub struct Facts(HashMap<String, Fact>);

impl Facts {
    /// Walks the graph once and notes what is known of every value.
    pub fn of(graph: &Graph) -> Result<Facts> {
        let mut facts = Facts::default();
        for input in &graph.inputs {
            facts.set(&input.name, Fact::declared(input));
        }
        for (name, data) in &graph.initializers {
            facts.set(name, Fact::constant(data));
        }
        for node in &graph.nodes {
            facts.follow(node, |name| graph.value_info.get(name).or_else(|| graph.output(name)))?;
        }
        Ok(facts)
    }

    /// What follows for the outputs of `node`.
    pub(crate) fn infer(&self, node: &Node) -> Result<Vec<Fact>> {
        let nothing = Fact::default();
        let inputs: Vec<&Fact> =
            node.inputs.iter().map(|name| if name.is_empty() { &nothing } else { self.get(name) }).collect();
        let mut outputs = infer::infer(node, &inputs)?;
        outputs.resize(node.outputs.len(), Fact::default());
        Ok(outputs)
    }

    /// Notes what follows for the outputs of `node`; `hint` is what the file says of a value.
    pub(crate) fn follow<'a>(
        &mut self,
        node: &Node,
        hint: impl Fn(&str) -> Option<&'a ValueInfo>,
    ) -> Result<()> {
        for (name, fact) in node.outputs.iter().zip(self.infer(node)?) {
            if !name.is_empty() {
                let fact = match hint(name) {
                    Some(info) => fact.refine(&Fact::declared(info)),
                    None => fact,
                };
                self.set(name, fact);
            }
        }
        Ok(())
    }

    /// What is known of a value; nothing for a name that is not there.
    pub fn get(&self, name: &str) -> &Fact {
        const NOTHING: &Fact = &Fact { dtype: None, shape: None, content: None, constant: None };
        self.0.get(name).unwrap_or(NOTHING)
    }

    pub(crate) fn set(&mut self, name: &str, fact: Fact) {
        self.0.insert(name.to_string(), fact.name_unknown(name));
    }
}
