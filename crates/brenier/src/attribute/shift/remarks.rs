//! What a reader of a shift must know before the numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Shift;
use super::rows::Rows;

/// Rows below which the method was not tested.
const TESTED_ROWS: usize = 300;
/// Columns cancel each other where the sizes of their credit sum to more than so many times the change.
const CANCELLING: f64 = 5.0;
/// The part of the change that the integration may leave.
const BALANCE: f64 = 1e-2;

/// A finding about a whole shift. Its words are one sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Remark {
    /// Both populations are the same rows.
    Same,
    /// The interval of the change covers 0.
    NoChange {
        /// The lower end.
        low: f64,
        /// The upper end.
        high: f64,
    },
    /// Columns cancel each other.
    Cancelling {
        /// `sum |credit| / |change|`.
        ratio: f64,
    },
    /// Fewer rows than the method was tested with.
    FewRows {
        /// Of the smaller population.
        rows: usize,
    },
    /// Too few rows for intervals.
    NoIntervals {
        /// Of the smaller population.
        rows: usize,
        /// What would do.
        needed: usize,
    },
    /// A column in which the populations do not overlap.
    Apart {
        /// Its name.
        column: String,
    },
    /// Columns that never vary.
    Constant {
        /// Their names.
        columns: Vec<String>,
    },
    /// A table with more features than rows.
    ManyColumns {
        /// Features of a row.
        features: usize,
        /// Of the smaller population.
        rows: usize,
    },
    /// A subgroup that only one of the populations has.
    OneSided {
        /// The subgroup.
        group: String,
        /// The population that has it.
        population: String,
    },
    /// The integration left a part of the change.
    OutOfBalance {
        /// `|credit_sum - change| / |change|`.
        relative_residual: f64,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::Same => {
                write!(f, "both populations are the same rows: nothing moved, and all credit is 0")
            }
            Remark::NoChange { low, high } => write!(
                f,
                "the mean score may not have moved at all (interval {low:.4} to {high:.4}): columns are not ranked"
            ),
            Remark::Cancelling { ratio } => write!(
                f,
                "columns cancel each other: the sizes of their credit sum to {ratio:.1} times the change, so read \
                 them together"
            ),
            Remark::FewRows { rows } => {
                write!(f, "{rows} rows are few: intervals were tested with {TESTED_ROWS} rows and more")
            }
            Remark::NoIntervals { rows, needed } => write!(
                f,
                "{rows} rows are too few for intervals, which need {needed}: the credit may be chance"
            ),
            Remark::Apart { column } => write!(
                f,
                "the populations do not overlap in column '{column}': between them the model is asked about rows that \
                 neither has"
            ),
            Remark::Constant { columns } => {
                let (first, more) = columns.split_at(columns.len().min(5));
                let names: Vec<String> = first.iter().map(|name| format!("'{name}'")).collect();
                let more = match more.len() {
                    0 => String::new(),
                    count => format!(" and {count} more"),
                };
                write!(f, "no row differs from another in {}{more}: no credit goes there", names.join(", "))
            }
            Remark::ManyColumns { features, rows } => write!(
                f,
                "there are more features ({features}) than rows ({rows}): matched rows are far apart, and credit leaks \
                 into columns that did not move"
            ),
            Remark::OneSided { group, population } => write!(
                f,
                "only '{population}' has rows of '{group}': they count as a change of the groups' sizes"
            ),
            Remark::OutOfBalance { relative_residual } => write!(
                f,
                "credit misses the change by {:.2} %: tighten the tolerance of the integration",
                100.0 * relative_residual
            ),
        }
    }
}

/// What the rows themselves say.
pub(super) struct Findings {
    same: bool,
    apart: Option<String>,
    constant: Vec<String>,
    /// Features and rows, of a table with more of the first.
    wide: Option<(usize, usize)>,
}

impl Findings {
    pub(super) fn of(rows: &Rows, same: bool, shape: &[usize]) -> Self {
        let (features, least) = (rows.a.ncols(), rows.a.nrows().min(rows.b.nrows()));
        let wide = (shape.len() == 1 && features > least).then_some((features, least));
        // Pixels at the border of an image hardly ever vary, and nobody wonders.
        let constant = if shape.len() == 1 { rows.constant() } else { Vec::new() };
        Self { same, apart: rows.apart(), constant, wide }
    }
}

pub(super) fn remarks(shift: &Shift, findings: Findings) -> Vec<Remark> {
    if findings.same {
        return vec![Remark::Same];
    }
    let mut remarks = Vec::new();
    let rows = shift.from.rows.min(shift.to.rows);
    match shift.change.interval {
        None => remarks.push(Remark::NoIntervals { rows, needed: 2 * shift.config.batches }),
        Some(_) if rows < TESTED_ROWS => remarks.push(Remark::FewRows { rows }),
        Some(_) => {}
    }
    if let Some(interval) = shift.change.interval.filter(|interval| interval.covers(0.0)) {
        remarks.push(Remark::NoChange { low: interval.low, high: interval.high });
    }
    let change = shift.change.value.abs();
    let sizes: f64 = shift.columns.iter().map(|column| column.credit.value.abs()).sum();
    if change > 0.0 && sizes > CANCELLING * change {
        remarks.push(Remark::Cancelling { ratio: sizes / change });
    }
    // Against what columns did, so that a change near 0 is no reproach to the integration.
    if shift.residual > BALANCE * change.max(0.1 * sizes) {
        remarks.push(Remark::OutOfBalance { relative_residual: shift.residual / change });
    }
    remarks.extend(findings.apart.map(|column| Remark::Apart { column }));
    if !findings.constant.is_empty() {
        remarks.push(Remark::Constant { columns: findings.constant });
    }
    remarks.extend(findings.wide.map(|(features, rows)| Remark::ManyColumns { features, rows }));
    remarks
}
