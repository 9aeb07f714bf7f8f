//! Do the intervals of a shift cover the truth as often as they say?
//!
//!     cargo run --release --example shift_coverage [shifts]
//!
//! Each shift moves two of six dependent columns by increasing maps (by a constant, in scale, in the tail); the truth is
//! the credit along the planted moves over 200,000 rows. Printed: how often 95 % intervals cover it, over all columns, for
//! the worst column, and for the total; how often the column with the most credit is the right one; and what is left of
//! the balance.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

#[path = "../tests/common/planted_shift.rs"]
mod planted_shift;

use std::time::Instant;

use brenier::attribute::{ShiftConfig, shift};

use self::planted_shift::{COLUMNS, PlantedShift, score};

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
}
