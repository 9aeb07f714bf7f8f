//! `brenier shift`: why the mean score of one population differs from that of another.

mod populations;
mod text;

use std::path::PathBuf;

use anyhow::Result;
use brenier::Rule;
use brenier::attribute::{Shift, ShiftConfig, shift_by, shift_watched};
use brenier::data::OpenOptions;
use brenier::report::{ShiftReport, ShiftResult};
use brenier::transport::MatchConfig;
use clap::Args;

use self::populations::{PopulationArgs, Read};
use crate::data_args::{DataArgs, DataPart};
use crate::engine_args::EngineArgs;
use crate::output::{Format, expect_writable, print_data, print_notices, print_progress};
use crate::progress::{Gauge, PATIENCE};
use crate::request::{Loaded, ModelArgs, expect_fitting, one_target, tell_of_columns};

/// Why the mean score differs between two populations
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier shift 2024.csv 2025.csv -m model.onnx --label approved
  brenier shift 2024.csv 2025.csv -m model.onnx --label approved --by region -o out
  brenier shift people.csv --from-class no --to-class yes --label income -m model.onnx --target yes
  brenier shift before/ after/ -m model.onnx --target 3 --resize 32x32 -o out")]
pub(crate) struct ShiftVerb {
    #[command(flatten)]
    populations: PopulationArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// The score whose mean is explained: a class by name or number; the only output where there is one
    #[arg(long, value_name = "CLASS")]
    target: Option<String>,
    /// Tell subgroups apart by this column: rows are matched inside them only, and what comes from their sizes is
    /// shown by itself
    #[arg(long, value_name = "COLUMN")]
    by: Option<String>,
    /// Integrate along each line until credit and score agree to this part of the line's change
    #[arg(long, value_name = "TOLERANCE", default_value_t = 1e-3)]
    tolerance: f64,
    /// Disjoint batches from which intervals are estimated
    #[arg(long, value_name = "N", default_value_t = 10)]
    batches: usize,
    /// The part of intervals that cover the truth
    #[arg(long, value_name = "PART", default_value_t = 0.95)]
    confidence: f64,
    /// Seed of batches, of blocks in which many rows are matched, and of random exchanges
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Folder for shift.json, shift.csv and shift.svg; of images mean-map.png and examples.svg as well
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace results that are in the folder already
    #[arg(long)]
    force: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Which split of the data
    #[arg(long, value_enum, default_value = "train")]
    part: DataPart,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &ShiftVerb) -> Result<()> {
    args.populations.check()?;
    let config = config(args)?;
    let options = OpenOptions { part: args.part.into(), ..args.data_args.options() };
    let typed = args.model.for_inputs(args.populations.files(), &options)?;
    let model = Loaded::load(&typed, &args.engine, true).map_err(without_gradient)?;
    print_notices(model.values().notices());
    let classes = args.model.class_names(model.values())?;
    let target = one_target(args.target.as_deref(), model.values(), &classes)?;
    let options = args.model.bind(&model, options, None)?;
    let Read { from, to, groups } = args.populations.read(&options, args.by.as_deref())?;
    tell_of_columns(from.rows(), !options.columns.is_empty());
    if to.rows().origin() != from.rows().origin() {
        tell_of_columns(to.rows(), true);
    }
    expect_fitting(from.rows(), model.values())?;
    if let Some(folder) = &args.output {
        expect_writable(folder)?;
    }
    let mut gauge = Gauge::new("shift", 100, 0, PATIENCE);
    let rows = format!("{} and {} rows", from.rows().len(), to.rows().len());
    let mut watch = |part: f64| gauge.set((100.0 * part) as u64, &rows);
    let score = model.score();
    let result = match &groups {
        None => ShiftResult::Whole(shift_watched(score, target, &from, &to, &config, &mut watch)?),
        Some(groups) => {
            ShiftResult::Grouped(shift_by(score, target, (&from, &to), groups, &config, &mut watch)?)
        }
    };
    drop(gauge);
    let engine = model.values().engine();
    let report = ShiftReport {
        version: env!("CARGO_PKG_VERSION").to_string(),
        model: args.model.model.display().to_string(),
        model_hash: model.hash().to_string(),
        engine: engine.described(),
        target_name: classes.get(target).cloned(),
        columns: from.rows().columns().to_vec(),
        caveat: Shift::CAVEAT.to_string(),
        result,
    };
    if let Some(folder) = &args.output {
        for file in report.save(folder, args.force, (&from, &to))? {
            print_progress(&format!("wrote {}", file.display()));
        }
    }
    print_data(&match args.format {
        Format::Text => text::text(&report)?,
        Format::Json => report.json()?,
    })
}

/// What is said of a model that has no gradient: other verbs have methods that need none, this one has not.
fn without_gradient(error: anyhow::Error) -> anyhow::Error {
    let reason = match error.downcast_ref::<brenier::Error>() {
        Some(brenier::Error::Graph(onnx_grad::Error::NoGradient { reason, .. })) => reason,
        Some(brenier::Error::Predictor { reason, .. }) if reason.contains("operator") => reason,
        _ => return error,
    };
    anyhow::anyhow!(
        "the model has no gradient, and a shift is the integral of one: {reason}\nhint: give a model of ONNX's own \
         operators that can be differentiated; brenier inspect names what stands in the way"
    )
}

fn config(args: &ShiftVerb) -> Result<ShiftConfig> {
    if !(args.tolerance > 0.0 && args.tolerance.is_finite()) {
        anyhow::bail!(
            "the tolerance {} is not above 0\nhint: 1e-3 is the default, 1e-5 takes a few times as long",
            args.tolerance
        );
    }
    let mut config = ShiftConfig {
        matching: MatchConfig { seed: args.seed, ..MatchConfig::default() },
        batches: args.batches,
        confidence: args.confidence,
        ..ShiftConfig::default()
    };
    if let Rule::Adaptive { tolerance, .. } = &mut config.integral.rule {
        *tolerance = args.tolerance;
    }
    Ok(config)
}
