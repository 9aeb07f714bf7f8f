//! Why the mean score moved from one population to another.
//!
//! ```text
//! c_j = sum over pairs (x, y) of  w  int_0^1 d_j f(x + t (y - x)) (y_j - x_j) dt,     sum_j c_j = mean f(B) - mean f(A)
//! ```
//!
//! over the optimal coupling of the rows of A with those of B ([`match_rows`]), in units of both populations
//! ([`units`]). Where each column moved by its own increasing map, or a category's rows moved at random, the
//! coupling finds these very moves, whatever the dependence of columns; with no shift at all the expected credit is 0.
//!
//! **Intervals** come from batches: both populations are cut into ten disjoint parts, each pair of parts is matched by
//! itself, and `c_j +- t sd_j / sqrt(10)` with the 0.975 quantile `t` of Student's distribution with nine degrees of
//! freedom. Pairs of one matching are not independent: an interval that takes them so is far too short.
//!
//! **What is said and what not**: if the interval of the total covers 0 there is nothing to rank; if columns cancel each
//! other, it is said; below 300 rows nothing was tested. Credit is association under the model, not cause.

mod credit;
mod movement;
mod remarks;
mod student;

use std::ops::Range;

use ndarray::{Array1, ArrayView2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use self::credit::{Credit, credit};
use self::movement::Movements;
pub use self::remarks::Remark;
use self::student::quantile;
use super::{PathIntegral, Rule};
use crate::data::{ColumnKind, Dataset, Population, columns_with_features};
use crate::score::Score;
use crate::transport::{MatchConfig, Matching, in_units, match_rows, units};
use crate::{Result, error};

/// How a shift is explained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShiftConfig {
    /// How rows are matched. Its seed is the seed of everything that is drawn.
    pub matching: MatchConfig,
    /// How credit is given along each line.
    pub integral: PathIntegral,
    /// Disjoint parts from which intervals are estimated.
    pub batches: usize,
    /// The part of intervals that cover the truth.
    pub confidence: f64,
    /// Random exchanges of rows that say how far a column moves without any shift.
    pub exchanges: usize,
}

impl Default for ShiftConfig {
    /// Ten batches, 95 % intervals, 99 exchanges; each line to 1e-3 of its own change.
    fn default() -> Self {
        let rule = Rule::Adaptive { tolerance: 1e-3, max_gradients: 400 };
        Self {
            matching: MatchConfig::default(),
            integral: PathIntegral { micro_batch: 256, ..PathIntegral::new(rule) },
            batches: 10,
            confidence: 0.95,
            exchanges: 99,
        }
    }
}

/// Why the mean score moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// The first population: its name, its rows, and its mean score.
    pub from: Side,
    /// The second.
    pub to: Side,
    /// The output whose score is explained.
    pub target: usize,
    /// `mean f(B) - mean f(A)`, with its interval.
    pub change: Estimate,
    /// The sum of all credit.
    pub credit_sum: f64,
    /// `|credit_sum - change|`: what the integration left.
    pub residual: f64,
    /// Every column of a table, or every feature of other data, in order.
    pub columns: Vec<ColumnShift>,
    /// What a reader must know before the numbers.
    pub remarks: Vec<Remark>,
    /// The mean squared distance of matched rows in units, per feature that varies.
    pub mean_squared_distance: f64,
    /// Blocks that were matched by themselves; 1: the matching is the best of all.
    pub blocks: usize,
    /// Evaluations of the gradient.
    pub gradient_evaluations: usize,
    /// The settings.
    pub config: ShiftConfig,
}

/// One of two populations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// Its name.
    pub name: String,
    /// Its rows.
    pub rows: usize,
    /// Its mean score.
    pub mean_score: f64,
}

/// A number with its sampling error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its standard error and its interval; absent where there are too few rows for batches.
    pub interval: Option<Interval>,
}

/// The sampling error of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The standard error.
    pub standard_error: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    fn new(value: f64, standard_error: f64, t: f64) -> Self {
        Self { standard_error, low: value - t * standard_error, high: value + t * standard_error }
    }

    /// Whether it covers a number.
    pub fn covers(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// What a column had to do with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ColumnShift {
    /// Its name.
    pub name: String,
    /// Its features.
    pub features: Range<usize>,
    /// Its part of the change.
    pub credit: Estimate,
    /// Whether its credit differs from 0, held to a level that is shared among all columns (Bonferroni).
    pub significant: bool,
    /// How far the column itself moved: the sorted distance of its values (Wasserstein-1) in units, or the share of rows
    /// whose category would have to change.
    pub moved: f64,
    /// How far it would appear to move without a shift: exceeded by 5 % of random exchanges of rows.
    pub moved_by_chance: f64,
    /// Numbers: the difference of the means, in the column's own numbers.
    pub mean_difference: Option<f64>,
}

impl Shift {
    /// What every reader must be told.
    pub const CAVEAT: &'static str = "credit says what the model's score is associated with along the move from A to B, not what caused the move";

    /// Columns by the size of their credit, largest first; nothing where the total may be 0, since then there is nothing
    /// to rank.
    pub fn ranking(&self) -> Option<Vec<usize>> {
        if self.remarks.iter().any(|remark| matches!(remark, Remark::NoChange { .. } | Remark::Same)) {
            return None;
        }
        let mut order: Vec<usize> = (0..self.columns.len()).collect();
        let size = |i: usize| self.columns[i].credit.value.abs();
        order.sort_by(|&i, &j| size(j).total_cmp(&size(i)));
        Some(order)
    }
}

/// Explains why the mean score of `target` differs between two populations.
///
/// # Errors
/// Populations that cannot be compared, settings of 0, and a score that is not finite somewhere on the way.
pub fn shift(
    score: &dyn Score,
    target: usize,
    from: &Population,
    to: &Population,
    config: &ShiftConfig,
) -> Result<Shift> {
    check(config)?;
    let to = &to.aligned_with(from)?;
    let (a, b) = (from.rows(), to.rows());
    error::expect_shape("a row of the populations", score.shape(), a.shape())?;
    let (unit, x, y) = (units(a, b)?, whole(a)?, whole(b)?);
    let rows = Rows { a: x.view(), b: y.view(), unit: &unit, columns: columns(a) };
    let all = |n: usize| (0..n).collect::<Vec<_>>();
    let (order_a, order_b) = (all(a.len()), all(b.len()));
    let (found, matching) = rows.credit(score, target, &order_a, &order_b, config)?;
    let batches = rows.batches(score, target, config)?;
    let intervals = Intervals::new(&batches, config);
    let movements = Movements::new(x.view(), y.view(), config.exchanges, config.matching.seed);
    let columns: Vec<ColumnShift> = rows
        .columns
        .iter()
        .enumerate()
        .map(|(j, column)| {
            let value = found.columns[j];
            let moved = movements.of(column, &unit);
            ColumnShift {
                name: column.name.clone(),
                features: column.features.clone(),
                credit: intervals.estimate(value, |batch| batch.columns[j]),
                significant: intervals.differs(value, |batch| batch.columns[j], rows.columns.len()),
                moved: moved.distance,
                moved_by_chance: moved.by_chance,
                mean_difference: moved.mean_difference,
            }
        })
        .collect();
    let change = intervals.estimate(found.mean_to - found.mean_from, |b| b.mean_to - b.mean_from);
    let credit_sum = found.columns.iter().sum::<f64>();
    let side =
        |p: &Population, mean_score| Side { name: p.name().to_owned(), rows: p.rows().len(), mean_score };
    let spread = unit.iter().filter(|u| **u > 0.0).count().max(1) as f64;
    let mut result = Shift {
        from: side(from, found.mean_from),
        to: side(to, found.mean_to),
        target,
        change,
        credit_sum,
        residual: (credit_sum - change.value).abs(),
        columns,
        remarks: Vec::new(),
        mean_squared_distance: matching.optimality.cost / spread,
        blocks: matching.blocks,
        gradient_evaluations: found.gradients + batches.iter().map(|batch| batch.gradients).sum::<usize>(),
        config: *config,
    };
    result.remarks = remarks::remarks(&result, from.is_same_as(to), rows.apart());
    Ok(result)
}

fn check(config: &ShiftConfig) -> Result<()> {
    if config.batches < 2 || !(config.confidence > 0.0 && config.confidence < 1.0) {
        return Err(crate::Error::Setting {
            name: "the intervals",
            value: format!("{} batches and a confidence of {}", config.batches, config.confidence),
            needs: "there must be two batches at the least, and a confidence between 0 and 1",
            hint: "10 batches and 0.95 are the defaults",
        });
    }
    Ok(())
}

fn whole(data: &Dataset) -> Result<ndarray::Array2<f64>> {
    data.rows_f64(&(0..data.len()).collect::<Vec<_>>())
}

/// A column, or a feature of data that has none.
struct ColumnOf {
    name: String,
    features: Range<usize>,
    categorical: bool,
}

fn columns(data: &Dataset) -> Vec<ColumnOf> {
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

/// Both populations, with their unit and columns.
struct Rows<'a> {
    a: ArrayView2<'a, f64>,
    b: ArrayView2<'a, f64>,
    unit: &'a Array1<f64>,
    columns: Vec<ColumnOf>,
}

impl Rows<'_> {
    /// The credit of some rows of both.
    fn credit(
        &self,
        score: &dyn Score,
        target: usize,
        of_a: &[usize],
        of_b: &[usize],
        config: &ShiftConfig,
    ) -> Result<(Credit, Matching)> {
        let (x, y) = (self.a.select(Axis(0), of_a), self.b.select(Axis(0), of_b));
        let (u, v) = (in_units(x.view(), self.unit), in_units(y.view(), self.unit));
        let matching = match_rows(u.view(), v.view(), &config.matching)?;
        let ranges: Vec<Range<usize>> = self.columns.iter().map(|column| column.features.clone()).collect();
        let found = credit(score, target, (x.view(), y.view()), &matching.pairs, &ranges, &config.integral)?;
        Ok((found, matching))
    }

    /// The credit of disjoint parts of both; none where a part would have fewer than two rows.
    fn batches(&self, score: &dyn Score, target: usize, config: &ShiftConfig) -> Result<Vec<Credit>> {
        let count = config.batches;
        if self.a.nrows().min(self.b.nrows()) < 2 * count {
            return Ok(Vec::new());
        }
        let order = |rows: usize, stream: u64| {
            let mut rng = ChaCha8Rng::seed_from_u64(config.matching.seed);
            rng.set_stream(stream);
            let mut order: Vec<usize> = (0..rows).collect();
            order.shuffle(&mut rng);
            order
        };
        let (first, second) = (order(self.a.nrows(), 2), order(self.b.nrows(), 3));
        let part = |order: &[usize], k: usize| {
            order[k * order.len() / count..(k + 1) * order.len() / count].to_vec()
        };
        (0..count)
            .map(|k| Ok(self.credit(score, target, &part(&first, k), &part(&second, k), config)?.0))
            .collect()
    }

    /// The first column of numbers in which no row of one population lies within the range of the other.
    fn apart(&self) -> Option<String> {
        let range = |rows: &ArrayView2<f64>, feature: usize| {
            let column = rows.column(feature);
            let ends = (f64::INFINITY, f64::NEG_INFINITY);
            column.iter().fold(ends, |(low, high), &v| (low.min(v), high.max(v)))
        };
        let found = self.columns.iter().find(|column| {
            let (a, b) = (range(&self.a, column.features.start), range(&self.b, column.features.start));
            !column.categorical && (a.1 < b.0 || b.1 < a.0)
        });
        found.map(|column| column.name.clone())
    }
}

/// Sampling errors from batches.
struct Intervals<'a> {
    batches: &'a [Credit],
    confidence: f64,
}

impl<'a> Intervals<'a> {
    fn new(batches: &'a [Credit], config: &ShiftConfig) -> Self {
        Self { batches, confidence: config.confidence }
    }

    fn standard_error(&self, of: impl Fn(&Credit) -> f64) -> Option<f64> {
        let count = self.batches.len() as f64;
        if self.batches.is_empty() {
            return None;
        }
        let mean = self.batches.iter().map(&of).sum::<f64>() / count;
        let squares = self.batches.iter().map(|batch| (of(batch) - mean).powi(2)).sum::<f64>();
        Some((squares / (count - 1.0) / count).sqrt())
    }

    fn quantile(&self, tail: f64) -> f64 {
        quantile(1.0 - tail / 2.0, self.batches.len().saturating_sub(1))
    }

    fn estimate(&self, value: f64, of: impl Fn(&Credit) -> f64) -> Estimate {
        let t = self.quantile(1.0 - self.confidence);
        Estimate { value, interval: self.standard_error(of).map(|error| Interval::new(value, error, t)) }
    }

    /// Whether a number differs from 0, at a level shared among so many.
    fn differs(&self, value: f64, of: impl Fn(&Credit) -> f64, among: usize) -> bool {
        let t = self.quantile((1.0 - self.confidence) / among.max(1) as f64);
        let error = self.standard_error(of);
        error.is_some_and(|error| value != 0.0 && !Interval::new(value, error, t).covers(0.0))
    }
}
