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
mod intervals;
mod movement;
mod remarks;
mod rows;
mod subgroups;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::credit::Credit;
use self::intervals::Intervals;
pub use self::intervals::{Estimate, Interval};
use self::movement::Movements;
use self::remarks::Findings;
pub use self::remarks::Remark;
use self::rows::{ColumnOf, Rows, columns, whole};
pub use self::subgroups::{GroupShift, GroupedShift, Subgroups, shift_by};
use super::{PathIntegral, Rule};
use crate::data::Population;
use crate::score::Score;
use crate::transport::{MatchConfig, units};
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
    /// Matched pairs that are kept, those with the largest change of the score.
    pub examples: usize,
}

impl Default for ShiftConfig {
    /// Ten batches, 95 % intervals, 99 exchanges, eight examples; each line to 1e-3 of its own change.
    fn default() -> Self {
        let rule = Rule::Adaptive { tolerance: 1e-3, max_gradients: 400, map_tolerance: None };
        Self {
            matching: MatchConfig::default(),
            integral: PathIntegral { micro_batch: 256, ..PathIntegral::new(rule) },
            batches: 10,
            confidence: 0.95,
            exchanges: 99,
            examples: 8,
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
    /// The shape of a row.
    pub shape: Vec<usize>,
    /// The matched pairs with the largest change of the score, largest first.
    pub examples: Vec<MatchedExample>,
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

/// A matched pair with its own credit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatchedExample {
    /// The row of the first population.
    pub from: usize,
    /// Its name.
    pub from_name: String,
    /// The row of the second population.
    pub to: usize,
    /// Its name.
    pub to_name: String,
    /// The part of the mass that goes this way.
    pub weight: f64,
    /// How much the score changes from the one to the other.
    pub change: f64,
    /// The part of each column.
    pub credit: Vec<f64>,
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
    shift_watched(score, target, from, to, config, &mut |_| {})
}

/// As [`shift`]; `watch` hears now and then which part of the work is done, from 0 to 1.
///
/// # Errors
/// As [`shift`].
pub fn shift_watched(
    score: &dyn Score,
    target: usize,
    from: &Population,
    to: &Population,
    config: &ShiftConfig,
    watch: &mut dyn FnMut(f64),
) -> Result<Shift> {
    check(config)?;
    let to = &to.aligned_with(from)?;
    let (a, b) = (from.rows(), to.rows());
    error::expect_shape("a row of the populations", score.shape(), a.shape())?;
    let (unit, x, y, columns) = (units(a, b)?, whole(a)?, whole(b)?, columns(a));
    let rows = Rows { score, target, a: x.view(), b: y.view(), unit: &unit, columns: &columns, config };
    let all = |n: usize| (0..n).collect::<Vec<_>>();
    let (found, matching) =
        rows.credit(&all(a.len()), &all(b.len()), config.examples, &mut |part| watch(0.5 * part))?;
    let parts = rows.batches();
    let mut batches = Vec::with_capacity(parts.len());
    for (k, (of_a, of_b)) in parts.iter().enumerate() {
        let mut inner = |part: f64| watch(0.5 + 0.5 * (k as f64 + part) / parts.len() as f64);
        batches.push(rows.credit(of_a, of_b, 0, &mut inner)?.0);
    }
    let intervals = Intervals::new(&batches, config.confidence);
    let movements = Movements::new(x.view(), y.view(), config.exchanges, config.matching.seed);
    let listed = columns
        .iter()
        .enumerate()
        .map(|(j, column)| {
            let of = |batch: &Credit| Some(batch.columns[j]);
            let differs = intervals.differs(found.columns[j], of, columns.len());
            column_shift(column, intervals.estimate(found.columns[j], of), differs, &movements, &rows)
        })
        .collect();
    let change = found.mean_to - found.mean_from;
    let mut result = Shift {
        from: Side::new(from, found.mean_from),
        to: Side::new(to, found.mean_to),
        target,
        change: intervals.estimate(change, |batch| Some(batch.mean_to - batch.mean_from)),
        credit_sum: found.columns.iter().sum(),
        residual: (found.columns.iter().sum::<f64>() - change).abs(),
        columns: listed,
        shape: a.shape().to_vec(),
        examples: examples(&found, from, to),
        remarks: Vec::new(),
        mean_squared_distance: matching.optimality.cost / varying(&unit),
        blocks: matching.blocks,
        gradient_evaluations: found.gradients + batches.iter().map(|batch| batch.gradients).sum::<usize>(),
        config: *config,
    };
    let findings = Findings::of(&rows, from.is_same_as(to), a.shape());
    result.remarks = remarks::remarks(&result, findings);
    Ok(result)
}

fn check(config: &ShiftConfig) -> Result<()> {
    if config.batches < 2 || !(config.confidence > 0.0 && config.confidence < 1.0) {
        return Err(crate::Error::Setting {
            name: "the intervals",
            value: format!("{} batches and a confidence of {}", config.batches, config.confidence),
            needs: "there must be two batches at the least, and a confidence between 0 and 1",
            hint: "10 batches and 0.95 are the defaults".into(),
        });
    }
    Ok(())
}

impl Side {
    fn new(population: &Population, mean_score: f64) -> Self {
        Self { name: population.name().to_owned(), rows: population.rows().len(), mean_score }
    }
}

/// The number of features that vary, 1 at the least.
fn varying(unit: &ndarray::Array1<f64>) -> f64 {
    unit.iter().filter(|u| **u > 0.0).count().max(1) as f64
}

fn column_shift(
    column: &ColumnOf,
    credit: Estimate,
    significant: bool,
    movements: &Movements,
    rows: &Rows,
) -> ColumnShift {
    let moved = movements.of(column, rows.unit);
    ColumnShift {
        name: column.name.clone(),
        features: column.features.clone(),
        credit,
        significant,
        moved: moved.distance,
        moved_by_chance: moved.by_chance,
        mean_difference: moved.mean_difference,
    }
}

fn examples(found: &Credit, from: &Population, to: &Population) -> Vec<MatchedExample> {
    let example = |strong: &credit::Strong| MatchedExample {
        from: strong.pair.from,
        from_name: from.rows().name(strong.pair.from),
        to: strong.pair.to,
        to_name: to.rows().name(strong.pair.to),
        weight: strong.pair.weight,
        change: strong.change,
        credit: strong.columns.clone(),
    };
    found.strongest.iter().map(example).collect()
}
