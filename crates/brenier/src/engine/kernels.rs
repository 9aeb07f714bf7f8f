//! Kernels of our own for what training spends its time on, and RTen's explanations of images.
//!
//! Engines are made for inference: weights that change with every run, gradients of weights, and a normalisation whose
//! gradient is a dozen passes over memory are not what they are fast at. The operators of [`onnx_grad::fused`] stand for
//! these parts of a graph; here is what computes them, for one thread, in safe Rust over RTen's portable vectors. Either
//! engine hands such nodes to these kernels and runs all others itself: ONNX Runtime as custom operators
//! ([`super::ort`]), RTen between two parts of the graph ([`super::rten`]).
//!
//! Every example is computed by itself and in the same order, so results do not depend on what else is in the batch;
//! sums over examples go from the first to the last.

mod conv;
mod conv_weights;
mod norm;
mod planes;
#[cfg(test)]
mod tests;

use onnx_grad::{Node, fused};

use self::conv::{Conv, Direction};
use self::conv_weights::ConvWeights;
use self::norm::{Activation, GroupNorm};
use self::planes::Window;

/// A tensor that a kernel reads, in row-major order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) shape: &'a [usize],
    pub(super) data: &'a [f32],
}

/// Shapes that do not fit each other or the node's attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misfit;

impl Misfit {
    /// The sentence for a node whose inputs have these shapes.
    pub(super) fn told(self, shapes: &[&[usize]]) -> String {
        let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
        format!("the shapes of its inputs do not fit: {}", shapes.join(", "))
    }
}

/// One node's kernel, with the memory it works in. Used by one thread at a time; clones share what was [fixed](Kernel::fix).
#[derive(Debug, Clone)]
pub(super) struct Kernel(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// `x, w, bias?` to `y`, or `dy, w` to `dx`.
    Conv(Conv),
    /// `x, dy` to `dw, dbias`.
    ConvWeights(ConvWeights),
    /// `x, gain, bias` to `y`.
    GroupNorm(GroupNorm),
    /// `dy, x, gain, bias` to `dx, dgain, dbias`.
    GroupNormGradient(GroupNorm),
}

impl Kernel {
    /// The kernel for a node of the fused operators.
    pub(super) fn of(node: &Node) -> Option<Kernel> {
        if node.domain != fused::DOMAIN {
            return None;
        }
        let kind = match node.op.as_str() {
            fused::CONV => Kind::Conv(Conv::new(window(node)?, Direction::Forward)),
            fused::CONV_INPUT_GRADIENT => Kind::Conv(Conv::new(window(node)?, Direction::Backward)),
            fused::CONV_WEIGHT_GRADIENT => Kind::ConvWeights(ConvWeights::new(window(node)?)),
            fused::GROUP_NORM => Kind::GroupNorm(group_norm(node)?),
            fused::GROUP_NORM_GRADIENT => Kind::GroupNormGradient(group_norm(node)?),
            _ => return None,
        };
        Some(Kernel(kind))
    }

    /// Tells of an input that is the same in every run: what depends on it alone is then computed once. Whether the
    /// kernel keeps what it needs of it: from then on its shape is enough.
    pub(super) fn fix(&mut self, input: usize, value: Input) -> bool {
        match (&mut self.0, input) {
            (Kind::Conv(conv), 1) => conv.fix_weights(value),
            _ => false,
        }
    }

    /// The shapes of the outputs.
    pub(super) fn shapes(&self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, Misfit> {
        if inputs.iter().any(|shape| shape.iter().skip(1).any(|&size| size == 0)) {
            return Err(Misfit);
        }
        match (&self.0, inputs) {
            (Kind::Conv(conv), [x, w, ..]) => {
                let shape = conv.shape(x, w)?;
                let fits = inputs.get(2).is_none_or(|bias| bias.iter().product::<usize>() == shape[1]);
                if fits { Ok(vec![shape]) } else { Err(Misfit) }
            }
            (Kind::ConvWeights(weights), [x, dy]) => weights.shapes(x, dy),
            (Kind::GroupNorm(norm), [x, gain, bias]) => {
                norm.check(x, gain, bias)?;
                Ok(vec![x.to_vec()])
            }
            (Kind::GroupNormGradient(norm), [dy, x, gain, bias]) => {
                norm.check(x, gain, bias)?;
                if dy != x {
                    return Err(Misfit);
                }
                Ok(vec![x.to_vec(), gain.to_vec(), bias.to_vec()])
            }
            _ => Err(Misfit),
        }
    }

    /// Computes outputs of the [shapes](Kernel::shapes) that belong to the inputs'.
    pub(super) fn run(&mut self, inputs: &[Input], outputs: &mut [&mut [f32]]) -> Result<(), Misfit> {
        match (&mut self.0, inputs, outputs) {
            (Kind::Conv(conv), [x, w, bias @ ..], [y]) => conv.run(*x, *w, bias.first().map(|b| b.data), y),
            (Kind::ConvWeights(weights), [x, dy], [dw, db]) => weights.run(*x, *dy, dw, db),
            (Kind::GroupNorm(norm), [x, gain, bias], [y]) => norm.run(*x, gain.data, bias.data, y),
            (Kind::GroupNormGradient(norm), [dy, x, gain, bias], [dx, dgain, dbias]) => {
                norm.gradient(dy.data, *x, gain.data, bias.data, [dx, dgain, dbias])
            }
            _ => Err(Misfit),
        }
    }
}

/// The attributes of a convolution, where they are what [`fused`] writes.
fn window(node: &Node) -> Option<Window> {
    let list = |name: &str| -> Option<Vec<usize>> {
        node.ints(name)?.iter().map(|&v| usize::try_from(v).ok()).collect()
    };
    let pair = |values: &[usize]| -> Option<[usize; 2]> { values.try_into().ok() };
    let (kernel, dilations, pads) = (list("kernel_shape")?, list("dilations")?, list("pads")?);
    let window = Window {
        kernel: pair(&kernel)?,
        dilations: pair(&dilations)?,
        before: pair(pads.get(..2)?)?,
        after: pair(pads.get(2..)?)?,
    };
    window.kernel.iter().all(|&k| k > 0).then_some(window)
}

fn group_norm(node: &Node) -> Option<GroupNorm> {
    let activation = match node.string("activation", "") {
        "" => Activation::None,
        fused::SILU => Activation::Silu,
        _ => return None,
    };
    let groups = usize::try_from(node.int("groups", 0)).ok()?;
    Some(GroupNorm { groups, epsilon: node.float("epsilon", 1e-5), activation })
}
