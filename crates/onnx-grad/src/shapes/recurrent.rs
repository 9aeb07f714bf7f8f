//! Shapes of recurrent layers.

use super::Fact;
use super::infer::{malformed, show, typed};
use crate::error::Result;
use crate::graph::{Dim, Node};
use crate::recurrent::Layer;

/// `Y [steps, directions, batch, hidden]`, then `Y_h` and for an LSTM `Y_c`, both `[directions, batch, hidden]`; with
/// layout 1 the batch comes first in all of them.
pub(super) fn infer(node: &Node, inputs: &[&Fact]) -> Result<Vec<Fact>> {
    let Some(x) = inputs.first() else { return Err(malformed(node, "it has no input")) };
    let batch_first = node.int("layout", 0) != 0;
    let (steps, batch) = match x.shape.as_deref() {
        Some([n, t, _]) if batch_first => (t.clone(), n.clone()),
        Some([t, n, _]) => (t.clone(), n.clone()),
        Some(shape) => {
            let reason = format!("its input has shape {}, not three axes", show(shape));
            return Err(malformed(node, reason));
        }
        None => (Dim::Unknown, Dim::Unknown),
    };
    let directions = match node.string("direction", "forward") {
        "bidirectional" => Dim::Known(2),
        _ => Dim::Known(1),
    };
    let weights = inputs.get(2).and_then(|r| r.shape.as_ref()?.get(2).cloned());
    let declared = Some(node.int("hidden_size", 0)).filter(|&size| size > 0).map(Dim::Known);
    let hidden = weights.filter(|size| *size != Dim::Unknown).or(declared).unwrap_or(Dim::Unknown);
    let (all, last) = match batch_first {
        true => {
            (vec![batch.clone(), steps, directions.clone(), hidden.clone()], vec![batch, directions, hidden])
        }
        false => {
            (vec![steps, directions.clone(), batch.clone(), hidden.clone()], vec![directions, batch, hidden])
        }
    };
    let mut facts = vec![typed(x.dtype, Some(all)), typed(x.dtype, Some(last.clone()))];
    if Layer::of(node) == Some(Layer::Lstm) {
        facts.push(typed(x.dtype, Some(last)));
    }
    Ok(facts)
}
