//! How fast scores, path credit and Shapley values of an ensemble are; `scripts/tree-speed` compares them with others.
//!
//!     cargo run --release -p brenier-trees --example tree_speed -- MODEL ROWS BACKGROUND LINES SHAPLEY
//!
//! MODEL is an XGBoost or LightGBM file; ROWS and BACKGROUND hold plain float64 numbers, row by row. Prints seconds of CPU time, of all threads
//! together, by name: of scores of all rows, of straight lines to the first LINES, and of Shapley values of the first SHAPLEY. Linux only.
#![allow(clippy::print_stdout)]

use brenier_trees::Ensemble;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let [model, rows, background, lines, shapley] = given.as_slice() else {
        return Err("give MODEL ROWS BACKGROUND LINES SHAPLEY".into());
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
    let (lines, shapley): (usize, usize) = (lines.parse()?, shapley.parse()?);
    let from = background[..ensemble.features()].repeat(lines);
    let first = |count: usize| &rows[..count * ensemble.features()];
    measured("scores", || ensemble.scores(&rows).map(drop))?;
    measured("line", || ensemble.line_credit(&from, first(lines), &vec![0; lines]).map(drop))?;
    measured("shapley", || {
        ensemble.shapley_values(first(shapley), &background, &vec![0; shapley]).map(drop)
    })?;
    Ok(())
}

/// Repeats work until it has taken half a second, since the clock has a hundred ticks in one; prints the mean.
fn measured(
    name: &str,
    mut work: impl FnMut() -> brenier_trees::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let (began, mut times) = (cpu_ticks()?, 0);
    while cpu_ticks()? - began < 50 {
        work()?;
        times += 1;
    }
    println!("{name} {}", (cpu_ticks()? - began) as f64 / 100.0 / f64::from(times));
    Ok(())
}

/// Hundredths of a second of CPU time that this process has used.
fn cpu_ticks() -> Result<u64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let field = |i: usize| fields.get(i).and_then(|text| text.parse::<u64>().ok()).ok_or("no ticks");
    Ok(field(11)? + field(12)?)
}
