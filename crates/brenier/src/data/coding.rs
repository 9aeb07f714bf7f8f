//! What the features of a table mean: which column each comes from, and which value it stands for.

use std::collections::{BTreeSet, HashMap};
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

/// The values of a category, to be found by their text; numbers that are names also by their size (1.0 is 1).
pub(crate) struct Levels<'a> {
    by_text: HashMap<&'a str, usize>,
    by_number: HashMap<u64, usize>,
}

impl<'a> Levels<'a> {
    pub(crate) fn new(values: &'a [String]) -> Self {
        let numbered = || values.iter().enumerate();
        Self {
            by_text: numbered().map(|(level, value)| (value.as_str(), level)).collect(),
            by_number: numbered().filter_map(|(level, value)| Some((number(value)?, level))).collect(),
        }
    }

    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        self.by_text.get(text).or_else(|| self.by_number.get(&number(text)?)).copied()
    }
}

fn number(text: &str) -> Option<u64> {
    text.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| (number + 0.0).to_bits())
}

/// The columns that features of these names come from: `city=Oslo` and `city=Lyon` beside each other are values of one.
///
/// ```
/// use brenier::data::columns_of_features;
///
/// let columns = columns_of_features(&["age", "city=Lyon", "city=Oslo"]);
/// assert_eq!((columns.len(), columns[1].name.as_str(), columns[1].width()), (2, "city", 2));
/// ```
pub fn columns_of_features(names: &[impl AsRef<str>]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        match (name.split_once('='), columns.last_mut()) {
            (Some((column, value)), Some(Column { name, kind: ColumnKind::Categorical { values } }))
                if *name == column =>
            {
                values.push(value.to_owned());
            }
            (Some((column, value)), _) => {
                let kind = ColumnKind::Categorical { values: vec![value.to_owned()] };
                columns.push(Column { name: column.to_owned(), kind });
            }
            (None, _) => columns.push(Column { name: name.to_owned(), kind: ColumnKind::Numeric }),
        }
    }
    columns
}

/// The values of a category in their order: numbers by size (2 before 10), all else as text.
pub(crate) fn in_order(values: BTreeSet<String>) -> Vec<String> {
    let numbers: Option<Vec<f64>> = values.iter().map(|value| value.parse().ok()).collect();
    match numbers {
        None => values.into_iter().collect(),
        Some(numbers) => {
            let mut keyed: Vec<(f64, String)> = numbers.into_iter().zip(values).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            keyed.into_iter().map(|(_, value)| value).collect()
        }
    }
}

/// The columns of the first, with the values that a category has in either.
pub(crate) fn joint(first: &[Column], second: &[Column]) -> Vec<Column> {
    let with_values = |column: &Column| {
        let other = second.iter().find(|other| other.name == column.name).map(|other| &other.kind);
        let kind = match (&column.kind, other) {
            (ColumnKind::Categorical { values }, Some(ColumnKind::Categorical { values: more })) => {
                let values = in_order(values.iter().chain(more).cloned().collect());
                ColumnKind::Categorical { values }
            }
            (kind, _) => kind.clone(),
        };
        Column { name: column.name.clone(), kind }
    };
    first.iter().map(with_values).collect()
}

/// Each column with the range of features it became.
pub(crate) fn with_features(columns: &[Column]) -> impl Iterator<Item = (&Column, Range<usize>)> {
    columns.iter().scan(0, |start, column| {
        let range = *start..*start + column.width();
        *start = range.end;
        Some((column, range))
    })
}
