//! Do the intervals of a shift cover the truth as often as they say?
//!
//!     cargo run --release --example shift_coverage [shifts]
//!
//! Each shift moves two of six dependent columns by increasing maps (by a constant, in scale, in the tail); the truth is
//! the credit along the planted moves over 200,000 rows. Printed: how often 95 % intervals cover it, over all columns, for
//! the worst column, and for the total; how often the column with the most credit is the right one; and what is left of
//! the balance.
//!
//! Then: who finds the columns that moved? The optimal matching, random pairs (Expected Gradients between the two
//! populations), and the difference of mean Shapley values against the first population, exact over all subsets. What a
//! method says of the same rows without the move is subtracted, so that only its own error is left; the truth is the
//! credit of these very rows along the planted moves. Errors are parts of the true change.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/common/planted_shift.rs"]
mod planted_shift;

use std::time::Instant;

use brenier::attribute::{ShiftConfig, shift};
use ndarray::{Array1, Array2, Axis};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use self::planted_shift::{COLUMNS, PlantedShift, mean_credit, population, score, value_and_gradient};

fn main() {
    let shifts: u64 = std::env::args().nth(1).map_or(100, |text| text.parse().unwrap());
    println!(
        "rows          coverage   worst column   total   moved column first   not moved, starred   largest residual   seconds"
    );
    for rows in [(300, 300), (1000, 1000), (1000, 700), (4000, 4000)] {
        let start = Instant::now();
        let mut covered = [0; COLUMNS];
        let (mut total, mut first, mut false_stars, mut still, mut residual) = (0, 0, 0, 0, 0.0f64);
        for seed in 0..shifts {
            let planted = PlantedShift::draw(seed);
            let truth = planted.truth(200_000, 10_000 + seed);
            let (a, b) = planted.populations(rows, seed);
            let config = ShiftConfig { exchanges: 0, ..ShiftConfig::default() };
            let found = shift(&score(), 0, &a, &b, &config).unwrap();
            for (j, column) in found.columns.iter().enumerate() {
                covered[j] += usize::from(column.credit.interval.unwrap().covers(truth[j]));
                if !planted.moves(j) {
                    still += 1;
                    false_stars += usize::from(column.significant);
                }
            }
            total += usize::from(found.change.interval.unwrap().covers(truth.sum()));
            let largest = (0..COLUMNS).max_by(|&i, &j| {
                let size = |j: usize| found.columns[j].credit.value.abs();
                size(i).total_cmp(&size(j))
            });
            first += usize::from(largest.is_some_and(|j| planted.moves(j)));
            residual = residual.max(found.residual / found.change.value.abs().max(0.05));
        }
        let share = |count: usize| count as f64 / shifts as f64;
        println!(
            "{:4} and {:4} {:10.3} {:14.3} {:7.3} {:20.3} {:20.3} {:18.1e} {:9.1}",
            rows.0,
            rows.1,
            share(covered.iter().sum()) / COLUMNS as f64,
            share(covered.iter().copied().min().unwrap()),
            share(total),
            share(first),
            false_stars as f64 / still as f64,
            residual,
            start.elapsed().as_secs_f64()
        );
    }
    compare(shifts);
}

/// Rows of each population, and background rows of Shapley values.
const ROWS: usize = 1000;
const BACKGROUND: usize = 50;
/// Changes below this are no shift to be explained.
const SMALL: f64 = 0.05;

fn compare(shifts: u64) {
    println!("\n{ROWS} rows each, net of what is said without the move");
    println!(
        "method              error median / p90    leak median / p90    moved column first   shifts   seconds"
    );
    type Of = fn(&Array2<f64>, &Array2<f64>, u64) -> Array1<f64>;
    let methods: [(&str, Of); 3] =
        [("matching", matching), ("random pairs", random_pairs), ("difference of SHAP", shap_difference)];
    for (name, of) in methods {
        let start = Instant::now();
        let (mut errors, mut leaks, mut first, mut counted) = (Vec::new(), Vec::new(), 0, 0);
        for seed in 0..shifts {
            let planted = PlantedShift::draw(seed);
            let (a, still) = PlantedShift::samples((ROWS, ROWS), seed);
            let moved = planted.moved(&still);
            let truth = mean_credit(&still, &moved);
            let change = truth.sum().abs();
            if change < SMALL {
                continue;
            }
            let raw = of(&a, &moved, seed);
            let net = &raw - &of(&a, &still, seed);
            let of_column = |j: usize| (net[j] - truth[j]).abs() / change;
            errors.extend((0..COLUMNS).filter(|&j| planted.moves(j)).map(of_column));
            leaks.push((0..COLUMNS).filter(|&j| !planted.moves(j)).map(of_column).sum::<f64>());
            let largest = (0..COLUMNS).max_by(|&i, &j| raw[i].abs().total_cmp(&raw[j].abs()));
            first += usize::from(largest.is_some_and(|j| planted.moves(j)));
            counted += 1;
        }
        let (error, leak) = (quantiles(errors), quantiles(leaks));
        println!(
            "{name:18} {:10.3} / {:5.3} {:12.3} / {:5.3} {:21.3} {counted:8} {:9.1}",
            error.0,
            error.1,
            leak.0,
            leak.1,
            first as f64 / counted as f64,
            start.elapsed().as_secs_f64()
        );
    }
}

/// The median and the 90th percentile.
fn quantiles(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[values.len() * 9 / 10])
}

fn matching(a: &Array2<f64>, b: &Array2<f64>, _: u64) -> Array1<f64> {
    let config = ShiftConfig { exchanges: 0, batches: 2, ..ShiftConfig::default() };
    let found = shift(&score(), 0, &population("a", a), &population("b", b), &config).unwrap();
    found.columns.iter().map(|column| column.credit.value).collect()
}

fn random_pairs(a: &Array2<f64>, b: &Array2<f64>, seed: u64) -> Array1<f64> {
    let mut order: Vec<usize> = (0..b.nrows()).collect();
    order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    mean_credit(a, &b.select(Axis(0), &order))
}

/// Mean Shapley values of `b` less those of `a`, both against rows of `a`.
fn shap_difference(a: &Array2<f64>, b: &Array2<f64>, _: u64) -> Array1<f64> {
    let background = a.slice(ndarray::s![..BACKGROUND, ..]).to_owned();
    mean_shapley(b, &background) - mean_shapley(a, &background)
}

fn mean_shapley(rows: &Array2<f64>, background: &Array2<f64>) -> Array1<f64> {
    let subsets = 1usize << COLUMNS;
    let mut mean = Array1::zeros(COLUMNS);
    let mut mixed = Array1::zeros(COLUMNS);
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    for x in rows.rows() {
        let mut worth = vec![0.0; subsets];
        for z in background.rows() {
            for (subset, worth) in worth.iter_mut().enumerate() {
                (0..COLUMNS).for_each(|j| mixed[j] = if subset >> j & 1 == 1 { x[j] } else { z[j] });
                *worth += value_and_gradient(mixed.view()).0 / background.nrows() as f64;
            }
        }
        for j in 0..COLUMNS {
            for subset in (0..subsets).filter(|subset| subset >> j & 1 == 0) {
                let size = subset.count_ones() as usize;
                let weight = factorial(size) * factorial(COLUMNS - size - 1)
                    / factorial(COLUMNS)
                    / rows.nrows() as f64;
                mean[j] += weight * (worth[subset | 1 << j] - worth[subset]);
            }
        }
    }
    mean
}
