//! Shifts that are planted in known columns, with the credit that an infinite sample would have.
// Shared by a test and an example, neither of which uses all of it.
#![allow(dead_code, unreachable_pub)]

use std::f64::consts::PI;

use brenier::data::{Dataset, Population};
use brenier::{ScoreFn, gauss_legendre};
use ndarray::{Array1, Array2, ArrayView1};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

pub const COLUMNS: usize = 6;

/// A smooth score in which columns act together.
pub fn value_and_gradient(x: ArrayView1<f64>) -> (f64, Array1<f64>) {
    let mut gradient = Array1::zeros(COLUMNS);
    // tanh(a . x) + 0.5 sin(x0) x1 + 0.2 x2 x3 + 0.3 x4: x5 only acts through tanh.
    let weights = [0.6, -0.4, 0.5, 0.3, -0.2, 0.4];
    let inner = (0..COLUMNS).map(|j| weights[j] * x[j]).sum::<f64>().tanh();
    for j in 0..COLUMNS {
        gradient[j] = (1.0 - inner * inner) * weights[j];
    }
    gradient[0] += 0.5 * x[0].cos() * x[1];
    gradient[1] += 0.5 * x[0].sin();
    gradient[2] += 0.2 * x[3];
    gradient[3] += 0.2 * x[2];
    gradient[4] += 0.3;
    (inner + 0.5 * x[0].sin() * x[1] + 0.2 * x[2] * x[3] + 0.3 * x[4], gradient)
}

pub fn score() -> ScoreFn<impl Fn(ArrayView1<f64>, usize) -> (f64, Array1<f64>)> {
    ScoreFn::new(&[COLUMNS], |x, _| value_and_gradient(x))
}

/// An increasing map of some columns.
pub struct PlantedShift {
    /// Which map each column is moved by.
    kinds: [u8; COLUMNS],
    size: f64,
}

impl PlantedShift {
    /// Two columns are moved, each in its own way: by a constant, in its scale, or in its tail only.
    pub fn draw(seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut kinds = [0; COLUMNS];
        let first = rng.random_range(0..COLUMNS);
        let second = (first + rng.random_range(1..COLUMNS)) % COLUMNS;
        kinds[first] = rng.random_range(1..=3);
        kinds[second] = rng.random_range(1..=3);
        Self { kinds, size: 0.3 + 0.5 * rng.random::<f64>() }
    }

    pub fn moves(&self, column: usize) -> bool {
        self.kinds[column] > 0
    }

    fn apply(&self, mut x: Array1<f64>) -> Array1<f64> {
        for (v, kind) in x.iter_mut().zip(self.kinds) {
            *v = match kind {
                1 => *v + self.size,
                2 => *v * (1.0 + self.size),
                3 => *v + 2.0 * self.size * (*v - 0.5).max(0.0),
                _ => *v,
            };
        }
        x
    }

    /// Rows of the first population; columns depend on each other, and some are not normal.
    fn row(rng: &mut ChaCha8Rng) -> Array1<f64> {
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        let common = normal();
        let mut x = Array1::from_shape_fn(COLUMNS, |_| 0.8 * normal() + 0.6 * common);
        x[3] = (0.5 * x[3]).exp() - 1.0;
        x[5] = (PI * 0.5 * x[5]).sin() + 0.3 * x[5];
        x
    }

    /// Two independent samples; the second before and after it is moved.
    pub fn samples((n, k): (usize, usize), seed: u64) -> (Array2<f64>, Array2<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut sample = |count: usize| {
            let mut rows = Array2::zeros((count, COLUMNS));
            rows.rows_mut().into_iter().for_each(|mut row| row.assign(&Self::row(&mut rng)));
            rows
        };
        (sample(n), sample(k))
    }

    /// The same rows, moved.
    pub fn moved(&self, rows: &Array2<f64>) -> Array2<f64> {
        let mut moved = rows.clone();
        for mut row in moved.rows_mut() {
            let there = self.apply(row.to_owned());
            row.assign(&there);
        }
        moved
    }

    /// Two independent samples, the second moved.
    pub fn populations(&self, rows: (usize, usize), seed: u64) -> (Population, Population) {
        let (a, b) = Self::samples(rows, seed);
        (population("before", &a), population("after", &self.moved(&b)))
    }

    /// The credit along the planted moves, over so many rows.
    pub fn truth(&self, rows: usize, seed: u64) -> Array1<f64> {
        let (still, _) = Self::samples((rows, 0), seed);
        mean_credit(&still, &self.moved(&still))
    }
}

/// Rows under a name.
pub fn population(name: &str, rows: &Array2<f64>) -> Population {
    let rows = rows.mapv(|v| v as f32);
    Population::new(name, Dataset::from_rows(name, &[COLUMNS], rows.view()).unwrap()).unwrap()
}

/// The mean credit along the lines from each row to the one beside it.
pub fn mean_credit(from: &Array2<f64>, to: &Array2<f64>) -> Array1<f64> {
    let rule = gauss_legendre(8);
    let mut credit = Array1::zeros(COLUMNS);
    for (x, y) in from.rows().into_iter().zip(to.rows()) {
        let way = &y - &x;
        for &(t, weight) in &rule {
            let (_, gradient) = value_and_gradient((&x + &(t * &way)).view());
            credit.scaled_add(weight / from.nrows() as f64, &(&gradient * &way));
        }
    }
    credit
}
