//! Two populations, with what is made of them when it is first asked for: the map, the members, the typical scores.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use ndarray::{Array1, Array2, ArrayView2};

use super::membership::Membership;
use crate::data::{Dataset, Population};
use crate::engine::EngineConfig;
use crate::error::{Result, expect_finite};
use crate::field::{StraightStarts, VelocityField};
use crate::flow::{ClassFlows, OnnxFlow};
use crate::score::{Score, ScoreStream};
use crate::transport::{GaussianConfig, GaussianMap, units};

/// Rows of each population over which its typical score is taken.
const TYPICAL: usize = 256;
/// Rows that a score sees at a time.
const AT_ONCE: usize = 64;

pub(super) struct Pair {
    against: Population,
    own: Population,
    unit: OnceLock<Array1<f64>>,
    /// The output that stands for the population compared with, or the one that it must not be.
    pub(super) class: Option<Wanted>,
    same_class: bool,
    same_rows: OnceLock<bool>,
    still: Still,
    map: OnceLock<GaussianMap>,
    flow: OnceLock<OnnxFlow>,
    membership: OnceLock<Membership>,
    typical: Mutex<BTreeMap<usize, f64>>,
}

/// What a model should take a reference for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    This(usize),
    OtherThan(usize),
}

impl Pair {
    pub(super) fn new(against: Population, own: Population, class: Option<usize>, same_class: bool) -> Self {
        Self {
            still: Still { shape: against.rows().shape().to_vec() },
            against,
            own,
            unit: OnceLock::new(),
            class: class.map(Wanted::This),
            same_class,
            same_rows: OnceLock::new(),
            map: OnceLock::new(),
            flow: OnceLock::new(),
            membership: OnceLock::new(),
            typical: Mutex::default(),
        }
    }

    pub(super) fn other_than(mut self, class: usize) -> Self {
        self.class = Some(Wanted::OtherThan(class));
        self
    }

    pub(super) fn set_class(&mut self, class: Option<usize>) {
        self.class = class.map(Wanted::This);
    }

    pub(super) fn against(&self) -> &Population {
        &self.against
    }

    pub(super) fn own(&self) -> &Population {
        &self.own
    }

    /// The unit of each feature.
    pub(super) fn unit(&self) -> Result<&Array1<f64>> {
        made_once(&self.unit, || units(self.against.rows(), self.own.rows()))
    }

    /// Whether the input's own class is the one that it is compared with.
    pub(super) fn same_class(&self) -> bool {
        self.same_class
    }

    /// Whether there is nothing between the two: they are the same class, or the same rows.
    pub(super) fn is_one_population(&self) -> bool {
        self.same_class || *self.same_rows.get_or_init(|| self.against.is_same_as(&self.own))
    }

    /// The field between a population and itself.
    pub(super) fn still(&self) -> &dyn VelocityField {
        &self.still
    }

    /// The map that carries the population compared with to the input's.
    ///
    /// # Errors
    /// Populations that no map can be fitted to.
    pub(super) fn map(&self, config: GaussianConfig) -> Result<&dyn VelocityField> {
        let (from, to) = (self.against.rows(), self.own.rows());
        let map = made_once(&self.map, || {
            let map = GaussianMap::fit(from, to, &config)?;
            Ok(match bounds(from, to) {
                Some((low, high)) => map.with_bounds(low, high),
                None => map,
            })
        })?;
        Ok(map)
    }

    /// The flow that carries the population compared with to the input's, out of one between all classes.
    ///
    /// # Errors
    /// Populations that are no classes of the flow.
    pub(super) fn flow(&self, flows: &ClassFlows, engine: &EngineConfig) -> Result<&dyn VelocityField> {
        let others = matches!(self.class, Some(Wanted::OtherThan(_)));
        let from = (!others).then(|| self.against.name());
        let flow = made_once(&self.flow, || flows.flow(from, self.own.name(), engine))?;
        Ok(flow)
    }

    pub(super) fn membership(&self) -> Result<&Membership> {
        let unit = self.unit()?;
        made_once(&self.membership, || Membership::new(self.against.rows(), unit))
    }

    /// The mean score of the input's population minus that of the other.
    pub(super) fn typical_change(&self, score: &dyn Score, target: usize) -> Result<f64> {
        let known = self.typical.lock().map(|known| known.get(&target).copied()).unwrap_or(None);
        if let Some(known) = known {
            return Ok(known);
        }
        let change =
            mean_score(score, target, self.own.rows())? - mean_score(score, target, self.against.rows())?;
        if let Ok(mut known) = self.typical.lock() {
            known.insert(target, change);
        }
        Ok(change)
    }
}

/// What is in a cell, made where it is empty.
fn made_once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(known) = cell.get() {
        return Ok(known);
    }
    // Whoever came first has made the same.
    let made = make()?;
    Ok(cell.get_or_init(|| made))
}

/// Between which numbers values of images lie; nothing is said of tables.
fn bounds(a: &Dataset, b: &Dataset) -> Option<(f64, f64)> {
    if !a.is_images() {
        return None;
    }
    let mut bounds = (f64::INFINITY, f64::NEG_INFINITY);
    for data in [a, b] {
        for row in 0..data.len() {
            data.for_each_value(row, |_, value| {
                let value = f64::from(value);
                bounds = (bounds.0.min(value), bounds.1.max(value));
            });
        }
    }
    Some(bounds)
}

fn mean_score(score: &dyn Score, target: usize, data: &Dataset) -> Result<f64> {
    let rows = spread(data.len(), TYPICAL);
    let mut stream = ScoreStream::new(score, AT_ONCE);
    let mut sum = 0.0;
    let mut add = |row: usize, value: f64| {
        expect_finite("score", row, 1.0, [&value])?;
        sum += value;
        Ok(())
    };
    for part in rows.chunks(AT_ONCE) {
        for (&row, state) in part.iter().zip(data.rows_f64(part)?.rows()) {
            if stream.push(target, row, |_, mut to| to.assign(&state)) {
                stream.values(&mut add)?;
            }
        }
    }
    stream.values(&mut add)?;
    Ok(sum / rows.len() as f64)
}

/// At most so many of the numbers below `count`, spread evenly.
pub(super) fn spread(count: usize, most: usize) -> Vec<usize> {
    let taken = count.min(most);
    (0..taken).map(|i| i * count / taken).collect()
}

/// A field in which nothing moves: a population compared with itself.
struct Still {
    shape: Vec<usize>,
}

impl VelocityField for Still {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn velocity(&self, x: ArrayView2<f64>, _times: &[f64]) -> Result<Array2<f64>> {
        Ok(Array2::zeros(x.raw_dim()))
    }

    fn normal_coordinates(&self, _x: ArrayView2<f64>) -> Option<Array2<f64>> {
        None
    }

    fn straight_starts(&self, x: ArrayView2<f64>) -> Option<Result<StraightStarts>> {
        Some(Ok(StraightStarts { states: x.to_owned(), misses: Array1::zeros(x.nrows()), clipped: None }))
    }
}
