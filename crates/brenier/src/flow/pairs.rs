//! Pairs of reference and data, on which a flow is trained.
//!
//! A coupling says which reference point goes with which example:
//!
//! - [`Coupling::Independent`]: any with any. The first rectified flow.
//! - [`Coupling::OptimalTransport`]: within a group of pairs, the assignment with the least total squared
//!   distance (Pooladian et al., 2023; Tong et al., 2023). Larger groups come nearer to optimal transport of
//!   the distributions and cost their third power. A group may be larger than a batch: it is assigned once and
//!   serves one batch after another, and the next one is assigned meanwhile.
//! - [`StoredPairs`]: made by another flow; see [`reflow_pairs`](crate::reflow_pairs).
//!
//! What step `s` sees follows from the seed and `s` alone, so that a run can be resumed anywhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use ndarray::{Array2, ArrayView2, Axis, s};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Scaling};
use crate::error::{EngineError, Error, Result, expect_shape};
use crate::train::{Epochs, Stream, step_rng};
use crate::transport::{assign, squared_distances};

/// Training examples, flat.
pub trait Rows: Sync {
    /// The shape of one example.
    fn shape(&self) -> &[usize];

    /// The number of examples.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies example `index` into a slice of as many numbers as an example has.
    fn copy(&self, index: usize, into: &mut [f32]) -> Result<()>;
}

/// Examples in memory: a matrix, a row each, with the shape that a row stands for.
#[derive(Debug, Clone)]
pub struct MatrixRows<'a> {
    rows: ArrayView2<'a, f32>,
    shape: Vec<usize>,
}

impl<'a> MatrixRows<'a> {
    /// Takes a matrix `[examples, features]`.
    pub fn new(rows: ArrayView2<'a, f32>, shape: &[usize]) -> Result<Self> {
        let features: usize = shape.iter().product();
        expect_shape("the training data", &[rows.nrows(), features], rows.shape())?;
        if let Some(((example, feature), &value)) = rows.indexed_iter().find(|(_, v)| !v.is_finite()) {
            return Err(Error::NonFinite {
                what: "the training data",
                example,
                time: 1.0,
                place: format!("feature {feature}"),
                value: value.into(),
            });
        }
        Ok(Self { rows, shape: shape.to_vec() })
    }
}

impl Rows for MatrixRows<'_> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn len(&self) -> usize {
        self.rows.nrows()
    }

    fn copy(&self, index: usize, into: &mut [f32]) -> Result<()> {
        into.iter_mut().zip(self.rows.row(index)).for_each(|(to, from)| *to = *from);
        Ok(())
    }
}

/// A data set in the space of a flow: rows are scaled as they are asked for.
#[derive(Debug, Clone)]
pub struct ScaledRows {
    data: Dataset,
    scaling: Scaling,
}

impl ScaledRows {
    /// The rows of a data set, seen through a scaling.
    pub fn new(data: Dataset, scaling: Scaling) -> Result<Self> {
        expect_shape("a row of data", scaling.shape(), data.shape())?;
        Ok(Self { data, scaling })
    }
}

impl Rows for ScaledRows {
    fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    fn len(&self) -> usize {
        self.data.len()
    }

    fn copy(&self, index: usize, into: &mut [f32]) -> Result<()> {
        self.data.for_each_value(index, |feature, value| {
            let (shift, scale) = self.scaling.of(feature);
            into[feature] = ((f64::from(value) - shift) / scale) as f32;
        });
        Ok(())
    }
}

/// Where pairs come from: for every step the same, whoever asks and how often.
pub trait Pairs {
    /// The shape of one example.
    fn shape(&self) -> &[usize];

    /// The pairs of a step: reference and data, `[rows, features]` each.
    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)>;

    /// What a network between classes is told of each pair of the step, `[rows, classes]`; nothing where there are none.
    fn classes(&self, _step: u64, _rows: usize) -> Result<Option<Array2<f32>>> {
        Ok(None)
    }
}

/// The distribution at time 0.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Independent standard normal features.
    StandardNormal,
    /// Features uniform between two numbers.
    Uniform {
        /// The smaller.
        low: f32,
        /// The larger.
        high: f32,
    },
    /// Examples of a second data set.
    Rows(&'a dyn Rows),
}

/// Which reference point goes with which example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Coupling {
    /// Any with any.
    #[default]
    Independent,
    /// The best exact assignment within groups of so many pairs.
    OptimalTransport {
        /// Pairs that are assigned together: a part of a batch, or as many as several batches have.
        group: usize,
    },
}

impl Coupling {
    /// What suits a reference that is data: groups of 1,024. In small groups a row's partner is far from the row it would
    /// have in the whole population, and the flow learns to change what need not change.
    pub const BETWEEN_DATA: Coupling = Coupling::OptimalTransport { group: 1024 };
}

/// References and data, a row for each pair.
type Couples = (Array2<f32>, Array2<f32>);

/// Data coupled with a reference distribution.
pub struct CoupledPairs<'a> {
    data: &'a dyn Rows,
    source: Source<'a>,
    coupling: Coupling,
    seed: u64,
    examples: Epochs,
    references: Option<Epochs>,
    groups: Mutex<Groups>,
}

/// Groups that are larger than a batch. A memory, not a state: what is in a group follows from the seed and its number.
#[derive(Default)]
struct Groups {
    /// The one asked for last.
    last: Option<(u64, Arc<Couples>)>,
    /// The one after it, on its way.
    next: Option<(u64, JoinHandle<Result<Couples>>)>,
}

impl<'a> CoupledPairs<'a> {
    /// Couples data with a reference.
    pub fn new(data: &'a dyn Rows, source: Source<'a>, coupling: Coupling, seed: u64) -> Result<Self> {
        let refuse = |value: String, needs| Error::Setting {
            name: "the training pairs",
            value,
            needs,
            hint: "check the data set and the reference".into(),
        };
        if data.is_empty() {
            return Err(refuse("given no examples".into(), "there is something to learn from"));
        }
        match source {
            Source::Rows(rows) if rows.is_empty() => {
                return Err(refuse("given no reference examples".into(), "the reference is not empty"));
            }
            Source::Rows(rows) => expect_shape("an example of the reference", data.shape(), rows.shape())?,
            Source::Uniform { low, high } if !(low.is_finite() && high.is_finite() && low < high) => {
                return Err(refuse(format!("uniform in {low}..{high}"), "the first is the smaller"));
            }
            _ => {}
        }
        if let Coupling::OptimalTransport { group: 0 } = coupling {
            return Err(Error::Zero { what: "the number of pairs that are assigned together" });
        }
        let examples = Epochs::new(seed, Stream::Data, data.len());
        let references = match source {
            Source::Rows(rows) => Some(Epochs::new(seed, Stream::Reference, rows.len())),
            _ => None,
        };
        Ok(Self { data, source, coupling, seed, examples, references, groups: Mutex::default() })
    }

    /// Pairs of any with any: the `number`th set of so many.
    fn independent(&self, number: u64, rows: usize) -> Result<Couples> {
        let features = self.data.shape().iter().product();
        let mut rng = step_rng(self.seed, Stream::Pairs, number);
        let mut z0 = Array2::zeros((rows, features));
        match self.source {
            Source::StandardNormal => z0.mapv_inplace(|_| StandardNormal.sample(&mut rng)),
            Source::Uniform { low, high } => z0.mapv_inplace(|_| rng.random_range(low..high)),
            Source::Rows(rows) => {
                let indices = self.references.as_ref().map(|r| r.of_step(number, z0.nrows()));
                gather(rows, &indices.unwrap_or_default(), &mut z0)?;
            }
        }
        let mut z1 = Array2::zeros((rows, features));
        gather(self.data, &self.examples.of_step(number, rows), &mut z1)?;
        Ok((z0, z1))
    }

    /// The pairs of a step out of groups that do not fit into a batch: all pairs, group after group, are one line, from
    /// which steps take in turn.
    fn in_groups(&self, step: u64, rows: usize, group: usize) -> Result<Couples> {
        let features = self.data.shape().iter().product();
        let (mut z0, mut z1) = (Array2::zeros((rows, features)), Array2::zeros((rows, features)));
        let mut done = 0;
        while done < rows {
            let place = step * rows as u64 + done as u64;
            let (number, first) = (place / group as u64, (place % group as u64) as usize);
            let couples = self.group(number, group)?;
            let count = (group - first).min(rows - done);
            let (from, to) = (s![first..first + count, ..], s![done..done + count, ..]);
            z0.slice_mut(to).assign(&couples.0.slice(from));
            z1.slice_mut(to).assign(&couples.1.slice(from));
            done += count;
        }
        Ok((z0, z1))
    }

    fn group(&self, number: u64, size: usize) -> Result<Arc<Couples>> {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, couples)) = groups.last.as_ref().filter(|(known, _)| *known == number) {
            return Ok(couples.clone());
        }
        let coupling = Coupling::OptimalTransport { group: size };
        let couples = match groups.next.take() {
            Some((known, work)) if known == number => work.join().map_err(|_| {
                Error::Engine(EngineError::Worker {
                    reason: format!("the assignment of group {number} ended early"),
                })
            })??,
            _ => {
                let (z0, z1) = self.independent(number, size)?;
                couple(coupling, z0, z1)?
            }
        };
        let couples = Arc::new(couples);
        groups.last = Some((number, couples.clone()));
        let (z0, z1) = self.independent(number + 1, size)?;
        groups.next = Some((number + 1, std::thread::spawn(move || couple(coupling, z0, z1))));
        Ok(couples)
    }
}

impl Pairs for CoupledPairs<'_> {
    fn shape(&self) -> &[usize] {
        self.data.shape()
    }

    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)> {
        match self.coupling {
            Coupling::OptimalTransport { group } if !rows.is_multiple_of(group) => {
                self.in_groups(step, rows, group)
            }
            coupling => {
                let (z0, z1) = self.independent(step, rows)?;
                couple(coupling, z0, z1)
            }
        }
    }
}

/// Applies a coupling to a batch of independent pairs.
pub fn couple(coupling: Coupling, z0: Array2<f32>, z1: Array2<f32>) -> Result<(Array2<f32>, Array2<f32>)> {
    expect_shape("the batch of data", z0.shape(), z1.shape())?;
    let Coupling::OptimalTransport { group } = coupling else { return Ok((z0, z1)) };
    if group == 0 || !z0.nrows().is_multiple_of(group) {
        return Err(Error::Setting {
            name: "the number of pairs that are assigned together",
            value: format!("{group}, with a batch of {}", z0.nrows()),
            needs: "the batch must be a multiple of it",
            hint: "256 pairs are a good beginning".into(),
        });
    }
    let mut coupled = Array2::zeros(z1.raw_dim());
    for first in (0..z0.nrows()).step_by(group) {
        let block = s![first..first + group, ..];
        let (from, to) = (z0.slice(block), z1.slice(block));
        let cost = squared_distances(from.mapv(f64::from).view(), to.mapv(f64::from).view())?;
        for (i, j) in assign(cost.view())?.into_iter().enumerate() {
            coupled.row_mut(first + i).assign(&to.row(j));
        }
    }
    Ok((z0, coupled))
}

/// Pairs in memory, such as another flow made; every epoch in another order.
#[derive(Debug, Clone)]
pub struct StoredPairs {
    shape: Vec<usize>,
    references: Array2<f32>,
    data: Array2<f32>,
    order: Epochs,
}

impl StoredPairs {
    /// Row `i` of `references` belongs to row `i` of `data`.
    pub fn new(shape: &[usize], references: Array2<f32>, data: Array2<f32>, seed: u64) -> Result<Self> {
        let features: usize = shape.iter().product();
        expect_shape("the references", &[references.nrows(), features], references.shape())?;
        expect_shape("the data of the pairs", references.shape(), data.shape())?;
        if references.nrows() == 0 {
            return Err(Error::Zero { what: "the number of pairs" });
        }
        let order = Epochs::new(seed, Stream::Data, data.nrows());
        Ok(Self { shape: shape.to_vec(), references, data, order })
    }

    /// The references and the data, row by row.
    pub fn rows(&self) -> (ArrayView2<'_, f32>, ArrayView2<'_, f32>) {
        (self.references.view(), self.data.view())
    }
}

impl Pairs for StoredPairs {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)> {
        let indices = self.order.of_step(step, rows);
        Ok((self.references.select(Axis(0), &indices), self.data.select(Axis(0), &indices)))
    }
}

/// A closure as a source of pairs: from a generator that is seeded for the step, and a number of rows.
pub struct PairsFn<F> {
    shape: Vec<usize>,
    seed: u64,
    function: F,
}

impl<F: Fn(&mut ChaCha8Rng, usize) -> Result<(Array2<f32>, Array2<f32>)>> PairsFn<F> {
    /// Wraps a closure.
    pub fn new(shape: &[usize], seed: u64, function: F) -> Self {
        Self { shape: shape.to_vec(), seed, function }
    }
}

impl<F: Fn(&mut ChaCha8Rng, usize) -> Result<(Array2<f32>, Array2<f32>)>> Pairs for PairsFn<F> {
    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)> {
        (self.function)(&mut step_rng(self.seed, Stream::Pairs, step), rows)
    }
}

fn gather(rows: &dyn Rows, indices: &[usize], into: &mut Array2<f32>) -> Result<()> {
    let mut example = vec![0.0; into.ncols()];
    for (mut row, &index) in into.axis_iter_mut(Axis(0)).zip(indices) {
        rows.copy(index, &mut example)?;
        row.iter_mut().zip(&example).for_each(|(to, from)| *to = *from);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array1;
    use rand::SeedableRng;

    fn data(rows: usize) -> Array2<f32> {
        Array2::from_shape_fn((rows, 2), |(i, j)| (10 * i + j) as f32)
    }

    #[test]
    fn an_epoch_shows_every_example_once_and_steps_can_be_drawn_in_any_order() {
        let data = data(12);
        let rows = MatrixRows::new(data.view(), &[2]).unwrap();
        let pairs = CoupledPairs::new(&rows, Source::StandardNormal, Coupling::Independent, 7).unwrap();
        let steps: Vec<_> = (0..6).map(|step| pairs.draw(step, 4).unwrap()).collect();
        let seen = |steps: &[(Array2<f32>, Array2<f32>)]| {
            let mut seen: Vec<f32> = steps.iter().flat_map(|s| s.1.column(0).to_vec()).collect();
            seen.sort_by(f32::total_cmp);
            seen
        };
        assert_eq!(seen(&steps[..3]), data.column(0).to_vec());
        assert_eq!(seen(&steps[3..]), data.column(0).to_vec());
        assert_ne!(steps[0].1, steps[3].1);
        assert_eq!(pairs.draw(4, 4).unwrap(), steps[4]);
        assert_ne!(steps[0].0, steps[1].0);
    }

    #[test]
    fn optimal_coupling_keeps_the_batch_and_shortens_the_way() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut draw = || Array2::<f32>::zeros((64, 3)).mapv(|_| StandardNormal.sample(&mut rng));
        let (z0, z1): (Array2<f32>, Array2<f32>) = (draw(), draw());
        let cost = |a: &Array2<f32>, b: &Array2<f32>| (a - b).mapv(|v| v * v).sum();
        let (same, coupled) =
            couple(Coupling::OptimalTransport { group: 32 }, z0.clone(), z1.clone()).unwrap();
        assert_eq!(same, z0);
        assert!(cost(&z0, &coupled) < 0.6 * cost(&z0, &z1));
        let sum = |a: &Array2<f32>| -> Array1<f32> { a.sum_axis(Axis(0)) };
        assert!((sum(&coupled) - sum(&z1)).iter().all(|v| v.abs() < 1e-4));
        assert!(couple(Coupling::OptimalTransport { group: 48 }, z0, z1).is_err());
    }

    #[test]
    fn a_group_of_several_batches_is_assigned_as_one_and_can_be_drawn_in_any_order() {
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let mut draw = |rows| Array2::<f32>::zeros((rows, 3)).mapv(|_| StandardNormal.sample(&mut rng));
        let (here, there) = (draw(150), draw(90) + 1.0);
        let rows = |z| MatrixRows::new(z, &[3]).unwrap();
        let (here, there) = (rows(here.view()), rows(there.view()));
        let with = |group| {
            let coupling = Coupling::OptimalTransport { group };
            CoupledPairs::new(&there, Source::Rows(&here), coupling, 5).unwrap()
        };
        let cost = |pairs: &[Couples]| -> f64 {
            pairs.iter().map(|(a, b)| f64::from((a - b).mapv(|v| v * v).sum())).sum()
        };
        let pairs = with(64);
        let steps: Vec<Couples> = (0..8).map(|step| pairs.draw(step, 16).unwrap()).collect();
        // The four batches of a group are one assignment of 64.
        let whole = with(64).draw(0, 64).unwrap();
        assert_eq!(steps[1].0, whole.0.slice(s![16..32, ..]));
        assert!((cost(&steps[..4]) - cost(&[whole])).abs() < 1e-4);
        let small: Vec<Couples> = (0..8).map(|step| with(16).draw(step, 16).unwrap()).collect();
        assert!(cost(&steps) < 0.9 * cost(&small), "{} {}", cost(&steps), cost(&small));
        // A run that goes on elsewhere sees the same, and so does one that looks back.
        assert_eq!(with(64).draw(6, 16).unwrap(), steps[6]);
        assert_eq!(pairs.draw(0, 16).unwrap(), steps[0]);
        // Batches that groups are no multiple of cross from one group to the next.
        let crossing = with(64).draw(2, 24).unwrap();
        assert_eq!(crossing.1.slice(s![..16, ..]), steps[3].1);
        assert_eq!(crossing.1.slice(s![16.., ..]), steps[4].1.slice(s![..8, ..]));
    }

    #[test]
    fn refuses_bad_data() {
        let mut bad = data(3);
        bad[[1, 1]] = f32::NAN;
        let message = MatrixRows::new(bad.view(), &[2]).unwrap_err().to_string();
        assert!(message.contains("example 1") && message.contains("feature 1"), "{message}");
        assert!(MatrixRows::new(data(3).view(), &[3]).is_err());
        let none = data(0);
        let rows = MatrixRows::new(none.view(), &[2]).unwrap();
        assert!(CoupledPairs::new(&rows, Source::StandardNormal, Coupling::Independent, 0).is_err());
    }
}
