//! How many places for tokens a graph has: the longest text that its positions allow.
//!
//! Positions are vectors like those of words, chosen by place: from a list of places that is cut to the length of the text,
//! by a range of numbers, or as a table that is cut itself. What is found otherwise is not known here, and the engine says
//! where a text is too long.

use std::collections::BTreeMap;

use onnx_grad::{Graph, TensorData};

use super::split::embeddings;

/// The number of places, where the graph shows it.
pub(super) fn places(graph: &Graph, ids: &str) -> Option<usize> {
    let width = embeddings(graph).into_iter().find(|table| table.ids == ids)?.width;
    let constant = |name: Option<&str>| name.and_then(|name| graph.initializers.get(name));
    let vectors = |table: &TensorData| table.dtype().is_float() && table.shape().last() == Some(&width);
    // Values that are numbers of places, with how many there are, where a list says so.
    let mut counted: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    let mut found: Option<usize> = None;
    let mut at_most = |places: usize| found = Some(found.map_or(places, |found| found.min(places)));
    for node in &graph.nodes {
        let Some(output) = node.output(0) else { continue };
        if node.is("Range") {
            counted.insert(output, None);
        } else if node.is("Slice") {
            match constant(node.input(0)) {
                Some(list) if !list.dtype().is_float() && list.shape().len() == 2 && list.shape()[0] == 1 => {
                    counted.insert(output, Some(list.shape()[1]));
                }
                Some(table) if vectors(table) && (2..=3).contains(&table.shape().len()) => {
                    at_most(table.shape()[table.shape().len() - 2]);
                }
                _ => {}
            }
        } else if node.is("Gather") && node.int("axis", 0) == 0 {
            let table = constant(node.input(0)).filter(|table| vectors(table) && table.shape().len() == 2);
            if let (Some(table), Some(places)) = (table, node.input(1).and_then(|index| counted.get(index))) {
                at_most(places.unwrap_or(table.shape()[0]));
            }
        } else if ["Add", "Cast", "Expand", "Identity", "Reshape", "Squeeze", "Unsqueeze"]
            .iter()
            .any(|op| node.is(op))
        {
            let from = node.given_inputs().find_map(|input| counted.get(input).copied());
            if let Some(places) = from {
                counted.insert(output, places);
            }
        }
    }
    found
}
