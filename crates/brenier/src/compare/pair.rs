//! Two populations, with what is made of them when it is first asked for: the map, the members, the typical scores.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use ndarray::{Array1, Array2, ArrayView2};

use super::membership::Membership;
use crate::data::{Dataset, Population};
use crate::error::{Error, Result};
use crate::field::{StraightStarts, VelocityField};
use crate::score::Score;
use crate::transport::{GaussianConfig, GaussianMap, units};

/// Rows of each population over which its typical score is taken.
const TYPICAL: usize = 256;
/// Rows that a score sees at a time.
const AT_ONCE: usize = 64;

pub(super) struct Pair {
    against: Population,
    own: Population,
    unit: Array1<f64>,
    /// The output that stands for the population compared with, or the one that it must not be.
    pub(super) class: Option<Wanted>,
    same_class: bool,
    field: OnceLock<Field>,
    membership: OnceLock<Membership>,
    typical: Mutex<BTreeMap<usize, f64>>,
}

/// What a model should take a reference for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    This(usize),
    OtherThan(usize),
}

enum Field {
    Map(Box<GaussianMap>),
    Still(Still),
}

impl Pair {
    pub(super) fn new(
        against: Population,
        own: Population,
        class: Option<usize>,
        same_class: bool,
    ) -> Result<Self> {
        let unit = units(against.rows(), own.rows())?;
        Ok(Self {
            against,
            own,
            unit,
            class: class.map(Wanted::This),
            same_class,
            field: OnceLock::new(),
            membership: OnceLock::new(),
            typical: Mutex::default(),
        })
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

    pub(super) fn unit(&self) -> &Array1<f64> {
        &self.unit
    }

    /// Whether the input's own class is the one that it is compared with.
    pub(super) fn same_class(&self) -> bool {
        self.same_class
    }

    pub(super) fn fingerprint(&self) -> String {
        let rows = |population: &Population| population.rows().fingerprint();
        format!("{} {} {}", self.against.name(), rows(&self.against), rows(&self.own))
    }

    /// The field that carries the population compared with to the input's.
    pub(super) fn field(&self, config: GaussianConfig) -> Result<&dyn VelocityField> {
        if self.field.get().is_none() {
            let made = self.make_field(config)?;
            // Whoever came first has made the same.
            let _ = self.field.set(made);
        }
        match self.field.get() {
            Some(Field::Map(map)) => Ok(map.as_ref()),
            Some(Field::Still(still)) => Ok(still),
            None => Err(Error::Zero { what: "the number of fields" }),
        }
    }

    fn make_field(&self, config: GaussianConfig) -> Result<Field> {
        let (from, to) = (self.against.rows(), self.own.rows());
        if self.same_class || self.against.is_same_as(&self.own) {
            return Ok(Field::Still(Still { shape: from.shape().to_vec() }));
        }
        let map = GaussianMap::fit(from, to, &config)?;
        let map = match bounds(from, to) {
            Some((low, high)) => map.with_bounds(low, high),
            None => map,
        };
        Ok(Field::Map(Box::new(map)))
    }

    pub(super) fn membership(&self) -> Result<&Membership> {
        if self.membership.get().is_none() {
            let made = Membership::new(self.against.rows(), &self.unit)?;
            let _ = self.membership.set(made);
        }
        self.membership.get().ok_or(Error::Zero { what: "the number of members" })
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
    let mut sum = 0.0;
    for part in rows.chunks(AT_ONCE) {
        sum += score.values(data.rows_f64(part)?.view(), &vec![target; part.len()])?.sum();
    }
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
