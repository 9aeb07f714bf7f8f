//! Both populations as numbers, matched and credited: all of them, or a part of each.

use std::ops::Range;

use ndarray::{Array1, Array2, ArrayView2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::ShiftConfig;
use super::credit::{Credit, Lines, credit};
use crate::Result;
use crate::data::{ColumnKind, Dataset, columns_with_features};
use crate::score::Score;
use crate::transport::{Matching, in_units, match_rows};

pub(super) fn whole(data: &Dataset) -> Result<Array2<f64>> {
    data.rows_f64(&(0..data.len()).collect::<Vec<_>>())
}

/// A column, or a feature of data that has none.
pub(super) struct ColumnOf {
    pub(super) name: String,
    pub(super) features: Range<usize>,
    pub(super) categorical: bool,
}

pub(super) fn columns(data: &Dataset) -> Vec<ColumnOf> {
    if data.columns().is_empty() {
        let names = data.feature_names().into_iter().enumerate();
        return names.map(|(i, name)| ColumnOf { name, features: i..i + 1, categorical: false }).collect();
    }
    columns_with_features(data.columns())
        .map(|(column, features)| {
            let categorical = matches!(column.kind, ColumnKind::Categorical { .. });
            ColumnOf { name: column.name.clone(), features, categorical }
        })
        .collect()
}

/// Both populations, with their unit and columns, and the score that is asked.
pub(super) struct Rows<'a> {
    pub(super) score: &'a dyn Score,
    pub(super) target: usize,
    pub(super) a: ArrayView2<'a, f64>,
    pub(super) b: ArrayView2<'a, f64>,
    pub(super) unit: &'a Array1<f64>,
    pub(super) columns: &'a [ColumnOf],
    pub(super) config: &'a ShiftConfig,
}

impl Rows<'_> {
    /// The credit of some rows of both, with the strongest so many pairs; `watch` hears how much of it is done.
    pub(super) fn credit(
        &self,
        of_a: &[usize],
        of_b: &[usize],
        strongest: usize,
        watch: &mut dyn FnMut(f64),
    ) -> Result<(Credit, Matching)> {
        let (x, y) = (self.a.select(Axis(0), of_a), self.b.select(Axis(0), of_b));
        let (u, v) = (in_units(x.view(), self.unit), in_units(y.view(), self.unit));
        let matching = match_rows(u.view(), v.view(), &self.config.matching)?;
        let ranges: Vec<Range<usize>> = self.columns.iter().map(|column| column.features.clone()).collect();
        let lines = Lines {
            a: x.view(),
            b: y.view(),
            pairs: &matching.pairs,
            columns: &ranges,
            integral: &self.config.integral,
            strongest,
        };
        let found = credit(self.score, self.target, &lines, watch)?;
        Ok((found, matching))
    }

    /// The rows of disjoint parts of both; none where a part would have fewer than two rows.
    pub(super) fn batches(&self) -> Vec<(Vec<usize>, Vec<usize>)> {
        let count = self.config.batches;
        if self.a.nrows().min(self.b.nrows()) < 2 * count {
            return Vec::new();
        }
        let order = |rows: usize, stream: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(self.config.matching.seed);
            rng.set_stream(stream);
            let mut order: Vec<usize> = (0..rows).collect();
            order.shuffle(&mut rng);
            order
        };
        let (first, second) = (order(self.a.nrows(), 2), order(self.b.nrows(), 3));
        let part = |order: &[usize], k: usize| {
            order[k * order.len() / count..(k + 1) * order.len() / count].to_vec()
        };
        (0..count).map(|k| (part(&first, k), part(&second, k))).collect()
    }

    /// The first column of numbers in which no row of one population lies within the range of the other.
    pub(super) fn apart(&self) -> Option<String> {
        let found = self.columns.iter().find(|column| {
            let feature = column.features.start;
            let (a, b) = (range(&self.a, feature), range(&self.b, feature));
            !column.categorical && (a.1 < b.0 || b.1 < a.0)
        });
        found.map(|column| column.name.clone())
    }

    /// The columns that are the same in every row of both.
    pub(super) fn constant(&self) -> Vec<String> {
        let still = |column: &&ColumnOf| column.features.clone().all(|feature| self.unit[feature] == 0.0);
        self.columns.iter().filter(still).map(|column| column.name.clone()).collect()
    }
}

/// The least and the greatest value of a feature.
fn range(rows: &ArrayView2<f64>, feature: usize) -> (f64, f64) {
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    rows.column(feature).iter().fold(ends, |(low, high), &v| (low.min(v), high.max(v)))
}
