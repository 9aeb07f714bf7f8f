//! `brenier reproduce NAME`: a table or figure of the paper.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use brenier::engine::{EngineConfig, EngineKind};
use brenier::experiments::{
    AdditiveConfig, Figure, GaussianConfig, MismatchConfig, RotatedConfig, Scale, Store, Table, additive,
    field_mismatch, gaussian, rotated_gaussian,
};
use clap::{Args, ValueEnum};

use crate::args::Format;
use crate::output;

/// Reproduce a table or figure of the paper
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier reproduce additive
  brenier reproduce gaussian --scale quick -o out
  brenier reproduce gaussian --seeds 3 --engine ort --format json -o out")]
pub(crate) struct Reproduce {
    /// Which one
    name: Experiment,
    /// How the table is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Folder for the table (JSON) and the figures (SVG); finished seeds are kept in it, and taken from it when
    /// the same is asked again
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Seeds over which is averaged, from the first on, where something is trained; as many as the scale has
    /// where not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
    /// How much is trained, where something is
    #[arg(long, value_enum, default_value = "full")]
    scale: Size,
    /// The engine that trains: rten or ort
    #[arg(long, default_value_t = EngineKind::Rten)]
    engine: EngineKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// One seed and short trainings: to see that it works
    Quick,
    /// As in the paper
    Full,
}

impl From<Size> for Scale {
    fn from(size: Size) -> Scale {
        match size {
            Size::Quick => Scale::Quick,
            Size::Full => Scale::Full,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Experiment {
    /// Appendix F.1: credit of a sum of sines against its exact value, for every quadrature rule
    Additive,
    /// Appendix F.2: rectified flows of three levels and with optimal coupling between Gaussians, d = 10
    Gaussian,
    /// The same for covariances with different axes, where straight is not optimal: d = 2 and d = 10
    RotatedGaussian,
    /// Appendix F.3: attribution error against field error, and neighbourhoods along the path, d = 10
    FieldMismatch,
}

/// Runs the experiment, prints its table and writes its files.
pub(crate) fn run(args: &Reproduce) -> Result<()> {
    let engine = EngineConfig { kind: args.engine, ..EngineConfig::default() };
    let store = match &args.output {
        Some(folder) => Store::in_folder(folder.join("parts")),
        None => Store::nowhere(),
    };
    let mut progress = |line: &str| output::print_progress(line);
    let (table, figures) = match args.name {
        Experiment::Additive => additive(&AdditiveConfig { seed: args.seed, ..AdditiveConfig::default() })?,
        Experiment::Gaussian => {
            let mut config = GaussianConfig::at(args.scale.into(), &engine);
            (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
            gaussian(&config, &store, &mut progress)?
        }
        Experiment::RotatedGaussian => {
            let mut config = RotatedConfig::at(args.scale.into(), &engine);
            (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
            rotated_gaussian(&config, &store, &mut progress)?
        }
        Experiment::FieldMismatch => {
            let mut config = MismatchConfig::at(args.scale.into(), &engine);
            (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
            field_mismatch(&config, &store, &mut progress)?
        }
    };
    if let Some(folder) = &args.output {
        write_files(folder, &table, &figures)?;
    }
    match args.format {
        Format::Json => output::print_data(&format!("{}\n", serde_json::to_string(&table)?)),
        Format::Text => output::print_data(&text(&table)),
    }
}

fn write_files(folder: &Path, table: &Table, figures: &[Figure]) -> Result<()> {
    let write = |file: PathBuf, text: &str| {
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        output::print_progress(&format!("wrote {}", file.display()));
        Ok::<(), anyhow::Error>(())
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    write(
        folder.join(format!("{}.json", table.name)),
        &format!("{}\n", serde_json::to_string_pretty(table)?),
    )?;
    figures.iter().try_for_each(|figure| write(folder.join(&figure.file), &figure.svg))
}

/// The table for people: aligned columns, `-` where the paper has no figure.
fn text(table: &Table) -> String {
    let method = table.rows.iter().map(|row| row.method.len()).max().unwrap_or(0);
    let metric = table.rows.iter().map(|row| row.metric.len()).max().unwrap_or(0);
    let mut text = format!("{} ({})\n\n", table.name, table.scale);
    // Writing to a string cannot fail.
    _ = writeln!(
        text,
        "{:method$}  {:metric$}  {:>11}  {:>11}  {:>5}  {:>8}",
        "method", "metric", "mean", "std", "n", "paper"
    );
    for row in &table.rows {
        let paper = row.paper.map_or("-".to_owned(), number);
        _ = writeln!(
            text,
            "{:method$}  {:metric$}  {:>11}  {:>11}  {:>5}  {paper:>8}",
            row.method,
            row.metric,
            number(row.mean),
            number(row.std),
            row.n,
        );
    }
    text
}

/// Four significant places; powers of ten only where they are needed.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        format!("{value:.4}")
    } else {
        format!("{value:.3e}")
    }
}
