//! Shapes of the outputs of fused operators, and the attributes of those that have a window.

use super::{Fact, Window};
use crate::error::Result;
use crate::fused::{CONV, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT, GROUP_NORM, GROUP_NORM_GRADIENT};
use crate::graph::{Attribute, Dim, Node};

/// What is known of the outputs of a [fused operator](crate::fused), from what is known of its inputs.
///
/// ```
/// use onnx_grad::shapes::{Fact, fused_outputs};
/// use onnx_grad::{Attribute, DType, Dim, Node, fused};
///
/// let conv = Node { domain: fused::DOMAIN.to_string(), ..Node::new(fused::CONV, &["x", "w"], &["y"]) }
///     .with("kernel_shape", Attribute::Ints(vec![3, 3]))
///     .with("dilations", Attribute::Ints(vec![1, 1]))
///     .with("pads", Attribute::Ints(vec![1, 1, 0, 0]));
/// let [x, w] = [[2, 4, 8, 8], [5, 4, 3, 3]].map(|s| Fact::new(DType::F32, s.map(Dim::Known).to_vec()));
/// let outputs = fused_outputs(&conv, &[&x, &w])?;
/// assert_eq!(outputs[0].known_shape(), Some(vec![2, 5, 7, 7]));
/// # Ok::<(), onnx_grad::Error>(())
/// ```
pub fn fused_outputs(node: &Node, inputs: &[&Fact]) -> Result<Vec<Fact>> {
    let like = |fact: &Fact| Fact { dtype: fact.dtype, shape: fact.shape.clone(), ..Fact::default() };
    Ok(match (node.op.as_str(), inputs) {
        (CONV, [x, w, ..]) => vec![convolved(node, x, w, 0)?],
        (CONV_INPUT_GRADIENT, [dy, w]) => vec![convolved(node, dy, w, 1)?],
        (CONV_WEIGHT_GRADIENT, [x, dy]) => {
            let channels = |fact: &Fact| fact.shape.as_ref().and_then(|s| s.get(1).cloned());
            let (out, inner) = (channels(dy), channels(x));
            let kernel = Window::of(node, None)?.kernel.into_iter().map(Dim::Known);
            let weights =
                out.clone().zip(inner).map(|(out, inner)| [out, inner].into_iter().chain(kernel).collect());
            let fact = |shape| Fact { dtype: x.dtype, shape, ..Fact::default() };
            vec![fact(weights), fact(out.map(|out| vec![out]))]
        }
        (GROUP_NORM, [x, ..]) => vec![like(x)],
        (GROUP_NORM_GRADIENT, [_, x, gain, bias]) => vec![like(x), like(gain), like(bias)],
        _ => Vec::new(),
    })
}

/// What a window makes of an image, with the channels that an axis of the weights has.
fn convolved(node: &Node, x: &Fact, w: &Fact, axis: usize) -> Result<Fact> {
    let window = Window::of(node, None)?;
    let shape = || {
        let (image, weights) = (x.shape.as_ref()?, w.shape.as_ref()?);
        let mut shape = vec![image.first()?.clone(), weights.get(axis)?.clone()];
        shape.extend(image.get(2..)?.iter().enumerate().map(|(i, size)| window.places(i, size)));
        (image.len() == window.rank() + 2).then_some(shape)
    };
    Ok(Fact { dtype: x.dtype, shape: shape(), ..Fact::default() })
}

/// The attributes of a fused convolution with this window.
pub(crate) fn conv_attributes(window: &Window) -> std::collections::BTreeMap<String, Attribute> {
    [
        ("kernel_shape", window.kernel.clone()),
        ("dilations", window.dilations.clone()),
        ("pads", window.pads()),
    ]
    .map(|(name, values)| (name.to_string(), values.into()))
    .into()
}
