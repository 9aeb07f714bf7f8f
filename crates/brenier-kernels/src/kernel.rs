//! The kernel of a node: which one, which shapes it takes and makes, and how it is run.

use onnx_grad::fused::{self, Operator};
use onnx_grad::shapes::{Fact, fused_outputs};
use onnx_grad::{DType, Node};

use super::conv::Conv;
use super::conv_weights::ConvWeights;
use super::norm::{Activation, GroupNorm};
use super::planes::{Direction, Window};
use super::{Arithmetic, Input, Misfit};

/// One node's kernel, with the memory it works in. Used by one thread at a time; clones share what was [fixed](Kernel::fix).
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The operator and its attributes.
    node: Node,
    kind: Kind,
    /// Shapes of inputs and those of the outputs they make: the ones of the last run.
    seen: Option<(Shapes, Shapes)>,
}

type Shapes = Vec<Vec<usize>>;

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
    pub fn of(node: &Node) -> Option<Kernel> {
        Operator::of(node)?;
        let kind = match node.op.as_str() {
            fused::CONV => Kind::Conv(Conv::new(window(node)?, Direction::Forward)),
            fused::CONV_INPUT_GRADIENT => Kind::Conv(Conv::new(window(node)?, Direction::Backward)),
            fused::CONV_WEIGHT_GRADIENT => Kind::ConvWeights(ConvWeights::new(window(node)?)),
            fused::GROUP_NORM => Kind::GroupNorm(group_norm(node)?),
            fused::GROUP_NORM_GRADIENT => Kind::GroupNormGradient(group_norm(node)?),
            _ => return None,
        };
        let node = Node { inputs: Vec::new(), outputs: Vec::new(), ..node.clone() };
        Some(Kernel { node, kind, seen: None })
    }

    /// Tells of an input that is the same in every run: what depends on it alone is then computed once. Whether the
    /// kernel keeps what it needs of it: from then on its shape is enough.
    pub fn fix(&mut self, input: usize, value: Input, arithmetic: Arithmetic) -> bool {
        match (&mut self.kind, input) {
            (Kind::Conv(conv), 1) => conv.fix_weights(value, arithmetic),
            _ => false,
        }
    }

    /// The shapes of the outputs, as [`fused_outputs`] has them, for inputs that fit each other.
    pub fn shapes(&mut self, inputs: &[&[usize]]) -> Result<Vec<Vec<usize>>, Misfit> {
        if let Some((seen, shapes)) = &self.seen
            && seen.iter().map(Vec::as_slice).eq(inputs.iter().copied())
        {
            return Ok(shapes.clone());
        }
        self.check(inputs)?;
        let fact = |shape: &&[usize]| Fact::new(DType::F32, shape.iter().map(|&size| size.into()).collect());
        let facts: Vec<Fact> = inputs.iter().map(fact).collect();
        let outputs = fused_outputs(&self.node, &facts.iter().collect::<Vec<_>>()).map_err(|_| Misfit)?;
        let shapes: Option<Shapes> = outputs.iter().map(Fact::known_shape).collect();
        let shapes = shapes.ok_or(Misfit)?;
        self.seen = Some((inputs.iter().map(|shape| shape.to_vec()).collect(), shapes.clone()));
        Ok(shapes)
    }

    /// Whether inputs of these shapes fit each other and the attributes.
    fn check(&self, inputs: &[&[usize]]) -> Result<(), Misfit> {
        let empty = inputs.iter().any(|shape| shape.iter().skip(1).any(|&size| size == 0));
        if empty || !Operator::of(&self.node).is_some_and(|operator| operator.takes(inputs.len())) {
            return Err(Misfit);
        }
        let fits = match (&self.kind, inputs) {
            (Kind::Conv(conv), [x, w, bias @ ..]) => conv.takes(x, w, bias.first().copied()),
            (Kind::ConvWeights(weights), [x, dy]) => weights.takes(x, dy),
            (Kind::GroupNorm(norm), [x, gain, bias]) => norm.takes(x, gain, bias),
            (Kind::GroupNormGradient(norm), [dy, x, gain, bias]) => dy == x && norm.takes(x, gain, bias),
            _ => false,
        };
        if fits { Ok(()) } else { Err(Misfit) }
    }

    /// Computes outputs of the [shapes](Kernel::shapes) that belong to the inputs'.
    pub fn run(&mut self, inputs: &[Input], outputs: &mut [&mut [f32]]) -> Result<(), Misfit> {
        match (&mut self.kind, inputs, outputs) {
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
