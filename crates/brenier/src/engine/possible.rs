//! What a graph would take at the least, before an engine is asked for it: a few bytes of constants can ask for a tensor
//! larger than any memory, and an engine that tries does not come back.

use onnx_grad::shapes::{Fact, Facts};
use onnx_grad::{Dim, Graph, Node};

use crate::error::{Error, Result};
use crate::memory;

/// A single value of more bytes is a mistake or an attack.
const LARGEST: u64 = 32 << 30;

/// Refuses a graph that takes or computes a value larger than any machine's memory, as far as its file tells.
pub(super) fn expect_possible(graph: &Graph) -> Result<()> {
    let facts = Facts::of(graph)?;
    let taken = graph.inputs.iter().map(|input| {
        (input.shape.as_deref().map_or(1, |shape| product(shape.iter().map(known))), input.dtype.size())
    });
    let computed = graph.nodes.iter().flat_map(|node| {
        let asked = asked_for(node, &facts);
        node.wanted_outputs().map(move |output| (output, asked)).collect::<Vec<_>>()
    });
    let computed = computed.map(|(output, asked)| {
        let fact = facts.get(output);
        let shape = fact.shape.as_deref().map_or(1, |shape| product(shape.iter().map(known)));
        (shape.max(asked), fact.dtype.map_or(4, |dtype| dtype.size()))
    });
    let bytes = taken.chain(computed).map(|(count, size)| count.saturating_mul(size as u64)).max();
    let most = LARGEST.min(memory::most());
    match bytes {
        Some(bytes) if bytes > most => Err(Error::TooLarge { bytes, most }),
        _ => Ok(()),
    }
}

/// Elements that a node makes by constants alone, where sizes are beyond what shapes are followed for.
fn asked_for(node: &Node, facts: &Facts) -> u64 {
    let fact = |place: usize| node.input(place).map(|name| facts.get(name));
    let sizes = |place: usize| {
        let content = fact(place).and_then(|fact| fact.content.clone()).unwrap_or_default();
        product(content.iter().map(known))
    };
    match node.op.as_str() {
        _ if !node.is_standard() => 1,
        "ConstantOfShape" => sizes(0),
        "Expand" => sizes(1),
        "Tile" => sizes(1).saturating_mul(
            fact(0)
                .map_or(1, |fact| fact.shape.as_deref().map_or(1, |shape| product(shape.iter().map(known)))),
        ),
        "OneHot" => sizes(1),
        "Range" => {
            let number = |place: usize| fact(place).and_then(only_number);
            let (Some(from), Some(to), Some(step)) = (number(0), number(1), number(2)) else { return 1 };
            // Casts of floats end at the largest number.
            ((to - from) / step).ceil().max(0.0) as u64
        }
        _ => 1,
    }
}

/// The one number of a constant.
fn only_number(fact: &Fact) -> Option<f64> {
    let whole = fact.known_content().filter(|content| content.len() == 1).map(|content| content[0] as f64);
    whole.or_else(|| {
        let data = fact.constant.as_ref().filter(|data| data.len() == 1)?;
        data.to_f64().first().copied()
    })
}

fn known(dim: &Dim) -> u64 {
    dim.known().and_then(|n| u64::try_from(n).ok()).unwrap_or(1)
}

fn product(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(1, u64::saturating_mul)
}
