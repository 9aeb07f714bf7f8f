//! A pipeline that was fitted on a data frame: one input for each column.
//!
//! ```text
//! age [N, 1]   job [N, 3]   sex [N, 2]   ->   row [N, 6] = [ age | job=clerk job=nurse job=smith | sex=f sex=m ]
//! ```
//!
//! Exporters write an input for each column, under the column's name. Such a model is a table like any other: its inputs
//! become one flat row ([`pack`]), and its names and levels the columns to which tables are bound by name.

use std::collections::BTreeMap;

use onnx_grad::{Graph, ValueInfo, Words};

use super::pack::{Packing, pack};
use super::split::{declared, drop_unused_inputs};
use crate::data::{Column, ColumnKind};
use crate::error::Result;

/// Where a model says which columns its table has.
pub(super) const COLUMNS: &str = "brenier.columns";

/// A graph that takes one flat row, and the columns of which the row is made.
pub(super) struct Framed {
    pub(super) graph: Graph,
    pub(super) columns: Vec<Column>,
}

impl Framed {
    /// Writes the columns where tables look for them.
    pub(super) fn tell(columns: &[Column], metadata: &mut BTreeMap<String, String>) {
        metadata.insert(COLUMNS.to_string(), serde_json::to_string(columns).unwrap_or_default());
    }
}

/// The graph with one row for all of its columns; nothing where it has one input of numbers, or an input that is no column.
///
/// # Errors
/// A graph that contradicts itself.
pub(super) fn framed(graph: &Graph, words: &Words) -> Result<Option<Framed>> {
    let mut graph = graph.clone();
    drop_unused_inputs(&mut graph);
    let coded = graph.inputs.iter().any(|input| words.levels.contains_key(&input.name));
    if graph.inputs.len() < 2 && !coded {
        return Ok(None);
    }
    let Some(columns) = graph.inputs.iter().map(|input| column(input, words)).collect() else {
        return Ok(None);
    };
    let (graph, _) = pack(graph, &Packing::default(), &mut Vec::new())?;
    Ok(Some(Framed { graph, columns }))
}

/// The column that an input is: a category with its levels, or a number.
fn column(input: &ValueInfo, words: &Words) -> Option<Column> {
    let name = input.name.clone();
    if let Some(values) = words.levels.get(&name) {
        return Some(Column { name, kind: ColumnKind::Categorical { values: values.clone() } });
    }
    let one = declared(input).is_some_and(|sizes| sizes == [Some(1)]);
    (one && input.dtype.is_float()).then_some(Column { name, kind: ColumnKind::Numeric })
}
