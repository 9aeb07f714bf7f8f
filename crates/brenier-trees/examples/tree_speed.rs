//! How fast scores, path credit and Shapley values of an ensemble are; `scripts/tree-speed` compares them with others.
//!
//!     cargo run --release -p brenier-trees --example tree_speed -- MODEL ROWS BACKGROUND ROUNDS
//!
//! MODEL is an XGBoost or LightGBM file; ROWS and BACKGROUND hold plain float64 numbers, row by row. Prints seconds a line, by name, as
//! each round ends.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use brenier_trees::Ensemble;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, rows, background, rounds] = given.as_slice() else {
        return Err("give MODEL ROWS BACKGROUND ROUNDS".into());
    };
    let bytes = std::fs::read(model)?;
    let ensemble = match model.ends_with(".txt") {
        true => Ensemble::from_lightgbm(&String::from_utf8_lossy(&bytes))?,
        false => Ensemble::from_xgboost(&bytes)?,
    };
    let numbers = |file: &String| -> std::io::Result<Vec<f64>> {
        Ok(std::fs::read(file)?.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
    };
    let (rows, background) = (numbers(rows)?, numbers(background)?);
    let few = (rows.len() / ensemble.features()).min(1000);
    let from = background[..ensemble.features()].repeat(few);
    let some = &rows[..few * ensemble.features()];
    let outputs = vec![0; few];
    for _ in 0..rounds.parse()? {
        let began = Instant::now();
        std::hint::black_box(ensemble.scores(&rows)?);
        println!("scores {}", began.elapsed().as_secs_f64());
        let began = Instant::now();
        std::hint::black_box(ensemble.line_credit(&from, some, &outputs)?);
        println!("line {}", began.elapsed().as_secs_f64());
        let began = Instant::now();
        let (some, outputs) = (&some[..few.min(100) * ensemble.features()], &outputs[..few.min(100)]);
        std::hint::black_box(ensemble.shapley_values(some, &background, outputs)?);
        println!("shapley {}", began.elapsed().as_secs_f64());
    }
    Ok(())
}
