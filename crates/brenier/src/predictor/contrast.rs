//! Why this and not that: every score minus the score of one class.
//!
//! ```text
//! f_c(x) - f_k(x)     for every class c, with the class k that is compared with
//! ```
//!
//! Written into the graph, so that every method explains the difference, whether it asks for gradients or looks inside. The
//! highest score stays the highest.

use onnx_grad::{Builder, Dim, Graph};

use super::onnx::SCORES;
use crate::error::{Error, Result};

/// The graph with the score of `class` taken from every score.
pub(super) fn contrasted(graph: &Graph, class: usize) -> Result<Graph> {
    let outputs = graph.outputs[0].shape.as_ref().and_then(|shape| shape.get(1)).and_then(Dim::known);
    check_class(outputs.and_then(|n| usize::try_from(n).ok()), class)?;
    let mut source = graph.clone();
    source.outputs.clear();
    let all = format!("{SCORES}/all");
    for node in &mut source.nodes {
        let names = node.inputs.iter_mut().chain(&mut node.outputs);
        names.filter(|name| *name == SCORES).for_each(|name| name.clone_from(&all));
    }
    let mut builder = Builder::extend(source, "brenier/contrast/")?;
    let place = class as i64;
    let other = builder.slice(&all, 1, place, place + 1, 1);
    let difference = builder.sub(&all, &other);
    builder.output(SCORES, &difference);
    Ok(builder.finish()?)
}

/// Refuses a class that the model does not have, and a model with one score.
pub(super) fn check_class(outputs: Option<usize>, class: usize) -> Result<()> {
    match outputs {
        Some(1) => Err(Error::Predictor {
            reason: "it has one score, and a contrast takes the difference of two".to_string(),
            remedy: "explain the score itself".into(),
        }),
        Some(outputs) if class >= outputs => Err(Error::Target { target: class, outputs, row: 0 }),
        _ => Ok(()),
    }
}
