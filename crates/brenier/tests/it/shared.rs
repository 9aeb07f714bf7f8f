//! Curves, random arrays and counting scores used by several tests.

use std::cell::{Cell, RefCell};

use brenier::data::synthetic::TanhSum;
use brenier::{Path, PathEvidence, Result, Score};
use ndarray::{Array1, Array2, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub(crate) fn normal(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Array2::from_shape_fn((rows, columns), |_| StandardNormal.sample(&mut rng))
}

pub(crate) fn smooth_score(features: usize, seed: u64) -> TanhSum {
    let numbers = normal(features + 1, features, seed);
    let amplitudes = numbers.row(0).to_owned();
    TanhSum::new(amplitudes, 0.5 * &numbers.slice(ndarray::s![1.., ..])).unwrap()
}

/// A smooth curve that is neither straight nor of constant speed: a line plus loops that vanish at the ends.
pub(crate) struct Curve {
    pub from: Array1<f64>,
    pub to: Array1<f64>,
    pub loops: Array1<f64>,
}

impl Curve {
    pub(crate) fn random(features: usize, seed: u64) -> Self {
        let numbers = normal(3, features, seed);
        Self {
            from: numbers.row(0).to_owned(),
            to: numbers.row(1).to_owned(),
            loops: numbers.row(2).to_owned(),
        }
    }
}

impl Path for Curve {
    fn at(&self, t: f64) -> Array1<f64> {
        let mut x = (1.0 - t) * &self.from + t * &self.to;
        for (i, amplitude) in self.loops.iter().enumerate() {
            x[i] += amplitude * (std::f64::consts::PI * (1 + i % 3) as f64 * t).sin();
        }
        x
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        let mut v = &self.to - &self.from;
        for (i, amplitude) in self.loops.iter().enumerate() {
            let w = std::f64::consts::PI * (1 + i % 3) as f64;
            v[i] += amplitude * w * (w * t).cos();
        }
        v
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: "curve".into(), ..PathEvidence::default() }
    }
}

/// Counts what passes through a score.
pub(crate) struct Counting<S> {
    pub score: S,
    pub gradients: Cell<usize>,
    pub values: Cell<usize>,
    pub largest_batch: Cell<usize>,
    pub targets: RefCell<Vec<usize>>,
}

impl<S> Counting<S> {
    pub(crate) fn new(score: S) -> Self {
        Self {
            score,
            gradients: Cell::new(0),
            values: Cell::new(0),
            largest_batch: Cell::new(0),
            targets: RefCell::new(Vec::new()),
        }
    }

    fn saw(&self, x: &ArrayView2<f64>, targets: &[usize]) {
        self.largest_batch.set(self.largest_batch.get().max(x.nrows()));
        self.targets.borrow_mut().extend(targets);
    }
}

impl<S: Score> Score for Counting<S> {
    fn shape(&self) -> &[usize] {
        self.score.shape()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        self.saw(&x, targets);
        self.values.set(self.values.get() + x.nrows());
        self.score.values(x, targets)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        self.saw(&x, targets);
        self.gradients.set(self.gradients.get() + x.nrows());
        self.score.gradients(x, targets)
    }
}

/// The slope of log error over log size by least squares.
pub(crate) fn slope(sizes: &[usize], errors: &[f64]) -> f64 {
    let x: Vec<f64> = sizes.iter().map(|&n| (n as f64).ln()).collect();
    let y: Vec<f64> = errors.iter().map(|e| e.ln()).collect();
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mx, my) = (mean(&x), mean(&y));
    let rise: f64 = x.iter().zip(&y).map(|(a, b)| (a - mx) * (b - my)).sum();
    rise / x.iter().map(|a| (a - mx).powi(2)).sum::<f64>()
}
