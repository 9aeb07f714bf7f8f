//! `brenier calibrate FLOW DATA`: what is ordinary for a flow, kept in its file.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use brenier::VelocityField;
use brenier::calibrate::{CalibrateConfig, calibrate, save_calibrated};
use brenier::calibration::Calibration;
use brenier::data::{Dataset, Population};
use brenier::flow::{FlowMetadata, OnnxFlow};
use clap::Args;

use crate::data_args::DataArgs;
use crate::engine_args::EngineArgs;
use crate::output::{Format, expect_writable, print_data};
use crate::progress::{RunProgress, StopKey, Stopped};
use crate::request::flow_file;
use crate::run_args::calibration_lines;

/// Calibrate a flow with held-out rows, so that certificates can tell which inputs are unusual for it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier calibrate run fashion-mnist/              by the rows that training held out
  brenier calibrate theirs.onnx mine.npy --unseen   by all rows: the flow has seen none of them
  brenier calibrate flow.onnx data.csv -o calibrated.onnx --rows 200")]
pub(crate) struct Calibrate {
    /// The flow: a run's folder or an ONNX file
    flow: PathBuf,
    /// The data that the flow was trained on, or others like them
    data: PathBuf,
    /// Where to write the flow with its calibration; default: into its own file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The most rows to use; more are better
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rows: usize,
    /// The flow was trained on no row of DATA: use all of them
    #[arg(long)]
    unseen: bool,
    /// The part of DATA that the flow was trained on, where they do not come in parts
    #[arg(long, value_name = "FRACTION", default_value_t = 0.9, conflicts_with = "unseen")]
    train_fraction: f64,
    /// The seed that the flow was trained with: it says which rows were held out
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Calibrate) -> Result<()> {
    let file = flow_file(&args.flow)?;
    let flow = OnnxFlow::load(&file, &args.engine.config())?;
    let (trained_on, held_out) = open(args, flow.metadata())?;
    if held_out.shape() != flow.shape() {
        bail!(
            "{} has rows of shape {:?}, but the flow was trained on {:?}\nhint: give data like those that the flow was \
             trained on",
            args.data.display(),
            held_out.shape(),
            flow.shape()
        );
    }
    let output = args.output.as_ref().unwrap_or(&file);
    expect_writable(
        output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    )?;
    let config = CalibrateConfig { rows: args.rows, seed: args.seed, ..CalibrateConfig::default() };
    let mut progress = RunProgress::new(StopKey::listen()?);
    let found = calibrate(&flow, &held_out, &trained_on, &config, &mut |done, total| {
        progress.advance("calibrating", done as u64, total as u64, "");
        progress.go_on()
    })?;
    let Some(calibration) = found else {
        return Err(anyhow!(Stopped(
            "stopped: the flow is as it was\nhint: start again, with fewer --rows if it takes too long"
                .to_string()
        )));
    };
    save_calibrated(&flow, calibration.clone(), output)?;
    print(args, output, &calibration)
}

/// What the flow was trained on, and what it was not.
fn open(args: &Calibrate, metadata: &FlowMetadata) -> Result<(Dataset, Dataset)> {
    let options = args.data_args.options();
    let (data, held_out) = if args.unseen {
        let all = Dataset::open(&args.data, &options)?;
        (all.clone(), all)
    } else {
        Dataset::open_split(&args.data, &options, args.train_fraction, args.seed)?
    };
    match &metadata.to_class {
        Some(class) if !held_out.classes().is_empty() => {
            let of_class =
                |data: &Dataset| -> Result<Dataset> { Ok(Population::of_class(data, class)?.rows().clone()) };
            Ok((of_class(&data)?, of_class(&held_out)?))
        }
        _ => Ok((data, held_out)),
    }
}

fn print(args: &Calibrate, output: &std::path::Path, calibration: &Calibration) -> Result<()> {
    if args.format == Format::Json {
        let about = serde_json::json!({
            "file": output,
            "rows": calibration.rows,
            "quality": calibration.quality,
            "objection": calibration.quality.objection(),
        });
        return print_data(&format!("{about}\n"));
    }
    let mut text = format!("{}\n", output.display());
    for (name, value) in calibration_lines(calibration.rows, &calibration.quality) {
        text.push_str(&format!("  {name:32} {value}\n"));
    }
    print_data(&text)
}
