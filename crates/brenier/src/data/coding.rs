//! What the features of a table mean: which column each comes from, and which value it stands for.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// A column of a table, and the features it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// The column's name in the file.
    pub name: String,
    /// How its cells became numbers.
    pub kind: ColumnKind,
}

/// How the cells of a column became numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ColumnKind {
    /// One feature: the number in the cell.
    Numeric,
    /// A feature for each value, 1 where the cell has that value and 0 elsewhere.
    Categorical {
        /// The values, in the order of their features.
        values: Vec<String>,
    },
}

impl Column {
    /// The number of features that the column became.
    pub fn width(&self) -> usize {
        match &self.kind {
            ColumnKind::Numeric => 1,
            ColumnKind::Categorical { values } => values.len(),
        }
    }

    /// The names of its features: the column's name, or `column=value` for each value.
    pub fn feature_names(&self) -> Vec<String> {
        match &self.kind {
            ColumnKind::Numeric => vec![self.name.clone()],
            ColumnKind::Categorical { values } => {
                values.iter().map(|value| format!("{}={value}", self.name)).collect()
            }
        }
    }
}

/// Each column with the range of features it became.
pub(crate) fn with_features(columns: &[Column]) -> impl Iterator<Item = (&Column, Range<usize>)> {
    columns.iter().scan(0, |start, column| {
        let range = *start..*start + column.width();
        *start = range.end;
        Some((column, range))
    })
}
