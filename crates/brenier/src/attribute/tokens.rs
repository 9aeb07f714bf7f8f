//! Methods without gradients hide whole tokens.
//!
//! Ids are explained at their vectors (`[tokens, width]`). To hide one number of a vector says little: the tokens are
//! what can be there or not. So unless groups or a window were asked for, each vector is one group, and credit of a
//! token, the sum over its vector, is the credit of its group.

use super::{Grouping, Method};
use crate::packed::PackedInputs;

/// A method over tokens, and what its values are to be multiplied with.
pub(super) struct OverTokens {
    pub(super) method: Method,
    /// Occlusion gives all numbers of a window what the window is worth: a vector's share is that of one of them.
    pub(super) share: f64,
}

/// The same method, with every vector of an embedding as one part of the input.
pub(super) fn over_tokens(method: &Method, inputs: &PackedInputs, shape: &[usize]) -> OverTokens {
    let mut over = OverTokens { method: method.clone(), share: 1.0 };
    let Some(labels) = labels(inputs) else { return over };
    let only = inputs.explained().count() == 1;
    match &mut over.method {
        Method::KernelShap(method) => take(&mut method.groups, labels),
        Method::Lime(method) => take(&mut method.groups, labels),
        Method::ShapleyValues(method) => take(&mut method.groups, labels),
        Method::Occlusion(method) if only && method.window.is_none() && method.stride.is_none() => {
            let mut window = vec![1; shape.len()];
            if let (Some(last), Some(&width)) = (window.last_mut(), shape.last()) {
                *last = width;
                over.share = 1.0 / width as f64;
            }
            (method.window, method.stride) = (Some(window.clone()), Some(window));
        }
        _ => {}
    }
    over
}

/// A number for every explained feature, the same for those of one vector; nothing without an embedding.
fn labels(inputs: &PackedInputs) -> Option<Vec<usize>> {
    inputs.explained().find(|input| input.embeds.is_some())?;
    let (mut labels, mut next) = (Vec::new(), 0);
    for input in inputs.explained() {
        let width = input.embeds.as_ref().and(input.shape.last().copied()).unwrap_or(1).max(1);
        labels.extend((0..input.range.len()).map(|feature| next + feature / width));
        next += input.range.len().div_ceil(width);
    }
    Some(labels)
}

/// Groups of tokens, unless others were asked for.
fn take(groups: &mut Grouping, labels: Vec<usize>) {
    if matches!(groups, Grouping::Natural | Grouping::Each) {
        *groups = Grouping::Given { labels };
    }
}
