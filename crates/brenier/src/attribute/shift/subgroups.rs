//! A shift within subgroups, and what comes from their sizes.
//!
//! With shares `p_g`, `q_g` of group `g` in A and B and its mean scores `a_g`, `b_g`,
//!
//! ```text
//! mean f(B) - mean f(A) = sum_g w_g (b_g - a_g) + sum_g (q_g - p_g) (m_g - m),    w_g = (p_g + q_g) / 2,  m_g = (a_g + b_g) / 2
//! ```
//!
//! exactly: a change within the groups, and one because groups grew and shrank (Kitagawa, 1955). `m` is the middle of the
//! two mean scores: it changes no sum, and a group that grew then counts by how far its score is from the others'.
//! Rows are matched inside their group only, so `b_g - a_g` is credited to columns by a shift of its own. A group that one
//! population lacks has nothing to be matched with: all of it is a change of sizes, with the mean score that is known.
//!
//! Batches are cut from all rows, not group by group, so that intervals know that sizes are estimates too. Where a batch
//! lacks a group on one side, there is no interval for it.

use serde::{Deserialize, Serialize};

use super::credit::mean_score;
use super::{
    Credit, Estimate, Findings, Intervals, Movements, Remark, Rows, Shift, ShiftConfig, Side, check,
    column_shift, columns, remarks, varying, whole,
};
use crate::data::{ColumnKind, Dataset, Population, columns_with_features};
use crate::error::{self, DataError, Remedy, Result};
use crate::score::Score;
use crate::transport::units;
use ndarray::Axis;

/// Which subgroup each row of two populations belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subgroups {
    /// What groups are told apart by, such as a column's name.
    pub by: String,
    /// The groups' names.
    pub names: Vec<String>,
    /// The group of each row of the first population.
    pub from: Vec<usize>,
    /// The group of each row of the second.
    pub to: Vec<usize>,
}

impl Subgroups {
    /// By a column of categories that both tables have.
    ///
    /// # Errors
    /// If one of them has no such column, or it holds numbers.
    pub fn by_column(name: &str, from: &Population, to: &Population) -> Result<Self> {
        let to = to.aligned_with(from)?;
        let data = from.rows();
        let found = columns_with_features(data.columns()).find(|(column, _)| column.name == name);
        let Some((column, features)) = found else {
            let known = data.columns().iter().map(|column| column.name.clone()).collect();
            return Err(
                DataError::NoColumn { path: data.origin().into(), name: name.to_owned(), known }.into()
            );
        };
        let ColumnKind::Categorical { values } = &column.kind else {
            return Err(DataError::Column {
                path: data.origin().into(),
                column: name.to_owned(),
                reason: "holds numbers, and subgroups are made by a column of categories".into(),
                hint: Remedy::CategoricalColumn,
            }
            .into());
        };
        let groups = |rows: &Dataset| -> Vec<usize> {
            let of_row = |row: usize| {
                let mut group = 0;
                rows.for_each_value(row, |feature, value| {
                    if features.contains(&feature) && value > 0.5 {
                        group = feature - features.start;
                    }
                });
                group
            };
            (0..rows.len()).map(of_row).collect()
        };
        Ok(Self { by: name.to_owned(), names: values.clone(), from: groups(data), to: groups(to.rows()) })
    }

    /// By the labels of both, which are joined by the names of their classes.
    ///
    /// # Errors
    /// If one of them has no labels.
    pub fn by_labels(by: &str, from: &Dataset, to: &Dataset) -> Result<Self> {
        let mut names = from.classes().to_vec();
        names.extend(to.classes().iter().filter(|class| !from.classes().contains(class)).cloned());
        let of = |data: &Dataset| -> Result<Vec<usize>> {
            let place = |class: &String| names.iter().position(|name| name == class).unwrap_or(0);
            let places: Vec<usize> = data.classes().iter().map(place).collect();
            Ok(data.require_labels()?.into_iter().map(|label| places[label]).collect())
        };
        let (from, to) = (of(from)?, of(to)?);
        Ok(Self { by: by.to_owned(), names, from, to })
    }
}

/// A shift within subgroups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupedShift {
    /// What groups are told apart by.
    pub by: String,
    /// All rows together. The credit of its columns is what they did within groups; with [`GroupedShift::sizes`] it sums
    /// to the change.
    pub whole: Shift,
    /// The change within groups, weighted by their mean shares.
    pub within: Estimate,
    /// The change because groups grew and shrank.
    pub sizes: Estimate,
    /// Every group that has rows.
    pub groups: Vec<GroupShift>,
}

/// What a subgroup had to do with the change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupShift {
    /// Its name.
    pub name: String,
    /// Its share of the first population.
    pub share_from: f64,
    /// Its share of the second.
    pub share_to: f64,
    /// The part of the change that comes from its own change of size.
    pub sizes: Estimate,
    /// Its part of the change within groups: its weight times its own change.
    pub within: Estimate,
    /// Why its own mean score moved; nothing where one population has no rows of it.
    pub shift: Option<Shift>,
}

/// As [`shift`](super::shift), with rows matched inside their subgroups only; `watch` hears which part of the work is done.
///
/// # Errors
/// As [`shift`](super::shift), and groups that are not one for each row.
pub fn shift_by(
    score: &dyn Score,
    target: usize,
    (from, to): (&Population, &Population),
    groups: &Subgroups,
    config: &ShiftConfig,
    watch: &mut dyn FnMut(f64),
) -> Result<GroupedShift> {
    check(config)?;
    let to = &to.aligned_with(from)?;
    let (a, b) = (from.rows(), to.rows());
    error::expect_shape("a row of the populations", score.shape(), a.shape())?;
    error::expect_shape("the groups of the first population", &[a.len()], &[groups.from.len()])?;
    error::expect_shape("the groups of the second population", &[b.len()], &[groups.to.len()])?;
    let (unit, x, y, columns) = (units(a, b)?, whole(a)?, whole(b)?, columns(a));
    let rows = Rows { score, target, a: x.view(), b: y.view(), unit: &unit, columns: &columns, config };
    let all = |n: usize| (0..n).collect::<Vec<_>>();
    let found = rows.parts(groups, &all(a.len()), &all(b.len()), &mut |part| watch(0.5 * part))?;
    let cut = rows.batches();
    let mut batches = Vec::with_capacity(cut.len());
    for (k, (of_a, of_b)) in cut.iter().enumerate() {
        let mut inner = |part: f64| watch(0.5 + 0.5 * (k as f64 + part) / cut.len() as f64);
        batches.push(rows.parts(groups, of_a, of_b, &mut inner)?);
    }
    let intervals = Intervals::new(&batches, config.confidence);
    let movements = Movements::new(x.view(), y.view(), config.exchanges, config.matching.seed);
    let listed = columns.iter().enumerate().map(|(j, column)| {
        let (value, of) = (found.column(j), |batch: &Parts| Some(batch.column(j)));
        let differs = intervals.differs(value, of, columns.len());
        column_shift(column, intervals.estimate(value, of), differs, &movements, &rows)
    });
    let sizes = intervals.estimate(found.sizes(), |batch| Some(batch.sizes()));
    let credit_sum = found.sizes() + (0..columns.len()).map(|j| found.column(j)).sum::<f64>();
    let gradients = |parts: &Parts| parts.groups.iter().map(Part::gradients).sum::<usize>();
    let mut whole = Shift {
        from: Side::new(from, found.means().0),
        to: Side::new(to, found.means().1),
        target,
        change: intervals.estimate(found.change(), |batch| Some(batch.change())),
        credit_sum,
        residual: (credit_sum - found.change()).abs(),
        columns: listed.collect(),
        shape: a.shape().to_vec(),
        examples: Vec::new(),
        remarks: Vec::new(),
        mean_squared_distance: found.groups.iter().map(|part| part.weight() * part.distance).sum::<f64>()
            / varying(&unit),
        blocks: found.groups.iter().map(|part| part.blocks).max().unwrap_or(0),
        gradient_evaluations: gradients(&found) + batches.iter().map(gradients).sum::<usize>(),
        config: *config,
    };
    whole.remarks = remarks::remarks(&whole, Findings::of(&rows, from.is_same_as(to), a.shape()));
    let mut listed = Vec::new();
    for (g, part) in found.groups.iter().enumerate().filter(|(_, part)| part.p + part.q > 0.0) {
        let name = groups.names.get(g).cloned().unwrap_or_else(|| g.to_string());
        if part.credit.is_none() {
            let side = if part.p > 0.0 { &whole.from } else { &whole.to };
            let population = side.name.clone();
            whole.remarks.push(Remark::OneSided { group: name.clone(), population });
        }
        listed.push(GroupShift {
            share_from: part.p,
            share_to: part.q,
            sizes: intervals
                .estimate(part.sizes(found.middle()), |batch| Some(batch.groups[g].sizes(batch.middle()))),
            within: intervals.estimate(part.within(), |batch| Some(batch.groups[g].within())),
            shift: part.credit.as_ref().map(|credit| {
                let place = Place { g, name: &name, groups, batches: &batches };
                rows.group_shift(credit, part, &place, (from, to))
            }),
            name,
        });
    }
    Ok(GroupedShift {
        by: groups.by.clone(),
        within: intervals.estimate(found.within(), |batch| Some(batch.within())),
        sizes,
        groups: listed,
        whole,
    })
}

/// A group among others.
struct Place<'a> {
    g: usize,
    name: &'a str,
    groups: &'a Subgroups,
    batches: &'a [Parts],
}

/// All groups of some rows.
struct Parts {
    groups: Vec<Part>,
}

/// One group of some rows.
struct Part {
    /// Its shares of the two populations, and its mean scores there; 0 where it has no rows.
    p: f64,
    q: f64,
    a: f64,
    b: f64,
    /// What its rows were matched to; nothing where one population has none.
    credit: Option<Credit>,
    distance: f64,
    blocks: usize,
}

impl Part {
    /// `w_g`; 0 where one population has no rows of it.
    fn weight(&self) -> f64 {
        if self.credit.is_some() { 0.5 * (self.p + self.q) } else { 0.0 }
    }

    fn within(&self) -> f64 {
        self.weight() * (self.b - self.a)
    }

    fn sizes(&self, middle: f64) -> f64 {
        let score = match (&self.credit, self.p > 0.0) {
            (Some(_), _) => 0.5 * (self.a + self.b),
            (None, true) => self.a,
            (None, false) => self.b,
        };
        if self.p + self.q > 0.0 { (self.q - self.p) * (score - middle) } else { 0.0 }
    }

    fn gradients(&self) -> usize {
        self.credit.as_ref().map_or(0, |credit| credit.gradients)
    }
}

impl Parts {
    /// The mean scores of both populations.
    fn means(&self) -> (f64, f64) {
        let sum = |of: fn(&Part) -> f64| self.groups.iter().map(of).sum::<f64>();
        (sum(|part| part.p * part.a), sum(|part| part.q * part.b))
    }

    fn change(&self) -> f64 {
        let (a, b) = self.means();
        b - a
    }

    fn middle(&self) -> f64 {
        let (a, b) = self.means();
        0.5 * (a + b)
    }

    fn within(&self) -> f64 {
        self.groups.iter().map(Part::within).sum()
    }

    fn sizes(&self) -> f64 {
        let middle = self.middle();
        self.groups.iter().map(|part| part.sizes(middle)).sum()
    }

    /// The credit of a column within groups.
    fn column(&self, j: usize) -> f64 {
        let of = |part: &Part| part.credit.as_ref().map_or(0.0, |credit| part.weight() * credit.columns[j]);
        self.groups.iter().map(of).sum()
    }
}

impl Rows<'_> {
    /// Every group of some rows, matched by itself.
    fn parts(
        &self,
        groups: &Subgroups,
        of_a: &[usize],
        of_b: &[usize],
        watch: &mut dyn FnMut(f64),
    ) -> Result<Parts> {
        let count = groups.names.len();
        let mut found = Vec::with_capacity(count);
        let mut done = 0.0;
        for g in 0..count {
            let of = |rows: &[usize], group: &[usize]| -> Vec<usize> {
                rows.iter().copied().filter(|&row| group[row] == g).collect()
            };
            let (rows_a, rows_b) = (of(of_a, &groups.from), of(of_b, &groups.to));
            let p = rows_a.len() as f64 / of_a.len() as f64;
            let q = rows_b.len() as f64 / of_b.len() as f64;
            let mean = |rows: ndarray::Array2<f64>| match rows.nrows() {
                0 => Ok(0.0),
                _ => mean_score(self.score, self.target, rows.view(), self.config.integral.micro_batch),
            };
            found.push(if rows_a.is_empty() || rows_b.is_empty() {
                let a = mean(self.a.select(Axis(0), &rows_a))?;
                let b = mean(self.b.select(Axis(0), &rows_b))?;
                Part { p, q, a, b, credit: None, distance: 0.0, blocks: 0 }
            } else {
                let mut inner = |part: f64| watch(done + 0.5 * (p + q) * part);
                let (credit, matching) = self.credit(&rows_a, &rows_b, 0, &mut inner)?;
                let (a, b, distance) = (credit.mean_from, credit.mean_to, matching.optimality.cost);
                Part { p, q, a, b, credit: Some(credit), distance, blocks: matching.blocks }
            });
            done += 0.5 * (p + q);
            watch(done.min(1.0));
        }
        Ok(Parts { groups: found })
    }

    /// A group's own shift, with intervals from the batches that have it on both sides.
    fn group_shift(
        &self,
        credit: &Credit,
        part: &Part,
        place: &Place,
        (from, to): (&Population, &Population),
    ) -> Shift {
        let g = place.g;
        let chosen =
            |group: &[usize]| -> Vec<usize> { (0..group.len()).filter(|&row| group[row] == g).collect() };
        let (of_a, of_b) = (chosen(&place.groups.from), chosen(&place.groups.to));
        let (x, y) = (self.a.select(Axis(0), &of_a), self.b.select(Axis(0), &of_b));
        let intervals = Intervals::new(place.batches, self.config.confidence);
        let movements = Movements::new(x.view(), y.view(), self.config.exchanges, self.config.matching.seed);
        let columns = self.columns.iter().enumerate().map(|(j, column)| {
            let (value, of) = (credit.columns[j], |batch: &Parts| {
                batch.groups[g].credit.as_ref().map(|credit| credit.columns[j])
            });
            let differs = intervals.differs(value, of, self.columns.len());
            column_shift(column, intervals.estimate(value, of), differs, &movements, self)
        });
        let side = |population: &Population, rows: usize, mean_score| {
            let name = format!("{}, {}", population.name(), place.name);
            Side { name, rows, mean_score }
        };
        let (credit_sum, change) = (credit.columns.iter().sum::<f64>(), part.b - part.a);
        let mut found = Shift {
            from: side(from, of_a.len(), part.a),
            to: side(to, of_b.len(), part.b),
            target: self.target,
            change: intervals.estimate(change, |batch| {
                let part = &batch.groups[g];
                part.credit.as_ref().map(|_| part.b - part.a)
            }),
            credit_sum,
            residual: (credit_sum - change).abs(),
            columns: columns.collect(),
            shape: vec![self.a.ncols()],
            examples: Vec::new(),
            remarks: Vec::new(),
            mean_squared_distance: part.distance / varying(self.unit),
            blocks: part.blocks,
            gradient_evaluations: credit.gradients,
            config: *self.config,
        };
        let within = Rows { a: x.view(), b: y.view(), ..*self };
        found.remarks = remarks::remarks(&found, Findings::of(&within, x == y, &[]));
        // Batches are cut from all rows: a group needs more of its own to be in each of them.
        for remark in &mut found.remarks {
            if let Remark::NoIntervals { rows, needed } = remark
                && *rows >= *needed
            {
                *needed = (5 * *needed).max(*rows + 1);
            }
        }
        found
    }
}
