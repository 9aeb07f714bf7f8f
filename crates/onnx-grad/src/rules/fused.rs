//! Fused operators: their gradients are fused operators again.

use super::{Backward, Gradients, Step};
use crate::build::Value;
use crate::fused::{
    CONV, CONV_INPUT_GRADIENT, CONV_WEIGHT_GRADIENT, DOMAIN, GROUP_NORM, GROUP_NORM_GRADIENT, Operator,
};
use crate::graph::Node;
use crate::shapes::{Window, conv_attributes};

/// The rule for a fused operator.
pub(super) fn find(node: &Node) -> Option<Backward> {
    match node.op.as_str() {
        CONV => Some(conv),
        GROUP_NORM => Some(group_norm),
        _ => None,
    }
}

/// Appends a fused operator.
fn push(step: &mut Step<'_>, op: &str, inputs: &[&str], like: &Node) -> Vec<Value> {
    let (domain, attributes) = (DOMAIN.to_string(), like.attributes.clone());
    let mut node = Node { domain, attributes, ..Node::new(op, inputs, &[]) };
    let outputs = Operator::of(&node).map_or(1, |operator| operator.outputs);
    node.outputs = (0..outputs).map(|_| step.b.fresh(op)).collect();
    node.name = node.outputs.first().cloned().unwrap_or_default();
    let values = node.outputs.iter().map(|name| Value::named(name)).collect();
    step.b.push(node);
    values
}

fn conv(step: &mut Step<'_>) -> Gradients {
    let (dy, x, w, node) = (step.dy()?, step.x(0)?, step.x(1)?, step.node);
    let mut sent = vec![None; node.inputs.len()];
    if step.wants(0) {
        let back = Window::of(node, None)?.back().ok_or_else(|| step.malformed("it has no way back"))?;
        let back = Node { attributes: conv_attributes(&back), ..Node::default() };
        sent[0] = push(step, CONV_INPUT_GRADIENT, &[&dy, w], &back).pop();
    }
    if step.wants(1) || step.wants(2) {
        let gradients = push(step, CONV_WEIGHT_GRADIENT, &[x, &dy], node);
        sent.iter_mut().skip(1).zip(gradients).for_each(|(sent, gradient)| *sent = Some(gradient));
    }
    Ok(sent)
}

fn group_norm(step: &mut Step<'_>) -> Gradients {
    let (dy, x, gain, bias) = (step.dy()?, step.x(0)?, step.x(1)?, step.x(2)?);
    Ok(push(step, GROUP_NORM_GRADIENT, &[&dy, x, gain, bias], step.node).into_iter().map(Some).collect())
}
