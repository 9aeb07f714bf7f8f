//! Credit by the columns of a table: that of a category is the sum over its levels, and the level of the row is shown.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView1};

use crate::attribute::{Explanation, Frames};
use crate::data::{Column, ColumnKind, columns_with_features};

/// What a column contributed, with the value that the row has there.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnCredit {
    /// The column's name.
    pub name: String,
    /// The row's level of a category, or its number.
    pub value: String,
    /// The credit.
    pub credit: f64,
}

/// The credit of each column, in order; none where the columns are not those of the explanation.
pub fn credit_by_column(columns: &[Column], explanation: &Explanation) -> Vec<ColumnCredit> {
    let by = ByColumn::new(columns);
    if by.features() != explanation.values.len() {
        return Vec::new();
    }
    let levels = by.levels(explanation.input.view());
    let inputs = by.shown(explanation.input.view(), explanation.input.view());
    let credit = by.sums(explanation.values.view());
    let listed = columns.iter().zip(levels).zip(inputs.iter().zip(&credit));
    let one = |((column, level), (input, credit)): ((&Column, Option<String>), (&f64, &f64))| ColumnCredit {
        name: column.name.clone(),
        value: level.unwrap_or_else(|| short(*input)),
        credit: *credit,
    };
    listed.map(one).collect()
}

/// A number with four digits.
pub(super) fn short(number: f64) -> String {
    let places = match number.abs() {
        size if size >= 1000.0 || number.fract() == 0.0 => 0,
        size if size >= 10.0 => 2,
        _ => 4,
    };
    let text = format!("{number:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// From features to columns.
pub(super) struct ByColumn<'a> {
    columns: Vec<(&'a Column, Range<usize>)>,
}

impl<'a> ByColumn<'a> {
    pub(super) fn new(columns: &'a [Column]) -> Self {
        Self { columns: columns_with_features(columns).collect() }
    }

    /// The columns, with the features of each.
    pub(super) fn entries(&self) -> &[(&'a Column, Range<usize>)] {
        &self.columns
    }

    /// The features of all columns.
    pub(super) fn features(&self) -> usize {
        self.columns.last().map_or(0, |(_, range)| range.end)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.columns.iter().map(|(column, _)| column.name.clone()).collect()
    }

    /// The level that a row has in each category; nothing for numbers, and for rows between levels.
    pub(super) fn levels(&self, row: ArrayView1<f64>) -> Vec<Option<String>> {
        let level = |(column, range): &(&Column, Range<usize>)| match &column.kind {
            ColumnKind::Numeric => None,
            ColumnKind::Categorical { values } => {
                range.clone().find(|&i| row[i] > 0.5).and_then(|i| values.get(i - range.start).cloned())
            }
        };
        self.columns.iter().map(level).collect()
    }

    fn sums(&self, values: ArrayView1<f64>) -> Array1<f64> {
        self.columns.iter().map(|(_, range)| range.clone().map(|i| values[i]).sum::<f64>()).collect()
    }

    /// The number of each column of a row; of a category how much the row has of the level that `input` has.
    fn shown(&self, row: ArrayView1<f64>, input: ArrayView1<f64>) -> Array1<f64> {
        let feature = |range: &Range<usize>| {
            range
                .clone()
                .max_by(|&i, &j| input[i].total_cmp(&input[j]).then(j.cmp(&i)))
                .unwrap_or(range.start)
        };
        self.columns.iter().map(|(_, range)| row[feature(range)]).collect()
    }

    /// The same explanation, by column. Standard errors are added up: that of a sum is no larger.
    pub(super) fn explanation(&self, of: &Explanation) -> Explanation {
        Explanation {
            values: self.sums(of.values.view()),
            shape: vec![self.columns.len()],
            reference: of.reference.as_ref().map(|row| self.shown(row.view(), of.input.view())),
            input: self.shown(of.input.view(), of.input.view()),
            standard_errors: of.standard_errors.as_ref().map(|errors| self.sums(errors.view())),
            certificate: of.certificate.clone(),
        }
    }

    /// The same stills, by column.
    pub(super) fn frames(&self, of: &Frames, input: ArrayView1<f64>) -> Frames {
        let rows = |array: &Array2<f64>, one: &dyn Fn(ArrayView1<f64>) -> Array1<f64>| {
            let mut by_column = Array2::zeros((array.nrows(), self.columns.len()));
            for (mut to, from) in by_column.rows_mut().into_iter().zip(array.rows()) {
                to.assign(&one(from));
            }
            by_column
        };
        Frames {
            states: rows(&of.states, &|row| self.shown(row, input)),
            credit: rows(&of.credit, &|row| self.sums(row)),
            ..of.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Certificate;
    use crate::data::columns_of_features;
    use ndarray::array;

    #[test]
    fn a_category_is_one_column_with_the_level_of_the_row() {
        let columns = columns_of_features(&["age", "city=Lyon", "city=Oslo", "city=Pisa", "debt"]);
        let explanation = Explanation {
            values: array![1.0, -0.25, 0.5, 0.125, 2.0],
            shape: vec![5],
            reference: Some(array![0.0, 1.0, 0.0, 0.0, 0.5]),
            input: array![38.0, 0.0, 1.0, 0.0, 3.25],
            standard_errors: Some(array![0.1, 0.1, 0.2, 0.0, 0.3]),
            certificate: Certificate::new("ig", 0, 0, 1.0),
        };
        let found = credit_by_column(&columns, &explanation);
        let shown: Vec<(&str, &str, f64)> =
            found.iter().map(|c| (c.name.as_str(), c.value.as_str(), c.credit)).collect();
        assert_eq!(shown, [("age", "38", 1.0), ("city", "Oslo", 0.375), ("debt", "3.25", 2.0)]);
        let by = ByColumn::new(&columns);
        let whole = by.explanation(&explanation);
        assert_eq!((whole.values.sum(), whole.input), (explanation.values.sum(), array![38.0, 1.0, 3.25]));
        assert_eq!(whole.reference.unwrap(), array![0.0, 0.0, 0.5]);
        assert!((whole.standard_errors.unwrap()[1] - 0.3).abs() < 1e-12);
        // Columns of another table say nothing.
        assert!(credit_by_column(&columns[..2], &explanation).is_empty());
    }
}
