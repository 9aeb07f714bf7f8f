//! `brenier train DATA -o run/`: a flow, a diffusion model or a classifier from data.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::classify::{Augment, ClassifierConfig, MlpClassifierConfig, ResnetConfig};
use brenier::data::{Constants, Dataset, OpenOptions, ScalingConfig};
use brenier::flow::{Coupling, MlpConfig, NetworkConfig, Objective, UnetConfig};
use brenier::runs::{ClassifierRun, FlowRun, Outcome, ReferenceKind, train_classifier, train_generator};
use brenier::train::TrainConfig;
use clap::{Args, ValueEnum};
use onnx_grad::Model;

use crate::args::Format;
use crate::data_args::DataArgs;
use crate::engine_args::EngineArgs;
use crate::output::{print_data, print_progress};
use crate::progress::{RunProgress, StopKey};

/// Train a flow from a reference distribution to data, or something to explain
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier train fashion-mnist/ -o run                       a rectified flow from noise to images
  brenier train table.csv --label income -o run             the same for a table
  brenier train ill.csv --reference healthy.csv -o run      from one data set to another
  brenier train cifar10/ -o run --coupling ot --group 64    minibatch optimal transport
  brenier train cifar10/ -o diffusion --objective ddpm      the diffusion baseline
  brenier train cifar10/ -o model --objective classify --flip --shift 4
  brenier train cifar10/ -o run --resume                    go on with a run that was stopped")]
pub(crate) struct Train {
    /// The data: a folder of images, IDX or CIFAR files, or a csv, parquet, npy or npz file
    data: PathBuf,
    /// The run's folder
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// What to learn
    #[arg(long, value_enum, default_value = "flow")]
    objective: Goal,
    /// Go on with the run in the folder
    #[arg(long)]
    resume: bool,
    /// The distribution at time 0: normal, uniform, or a second data set
    #[arg(long, value_name = "normal|uniform|DATA", default_value = "normal")]
    reference: String,
    /// Which reference point goes with which example
    #[arg(long, value_enum, default_value = "independent")]
    coupling: Couple,
    /// Pairs of a batch that are assigned together by --coupling ot; the whole batch where not given
    #[arg(long, value_name = "N")]
    group: Option<usize>,
    /// Held-out data; a part of DATA where not given
    #[arg(long, value_name = "DATA")]
    held_out: Option<PathBuf>,
    /// The part of DATA to train on, where it does not come in parts
    #[arg(long, value_name = "FRACTION", default_value_t = 0.9)]
    train_fraction: f64,
    /// Images: mirror them at random (classify)
    #[arg(long)]
    flip: bool,
    /// Images: move them by up to so many pixels (classify)
    #[arg(long, value_name = "PIXELS", default_value_t = 0)]
    shift: usize,
    /// Keep features that never vary, which are refused otherwise
    #[arg(long)]
    keep_constants: bool,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    training: TrainingArgs,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Say nothing on the way
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Goal {
    /// The velocity of a rectified flow
    Flow,
    /// The noise of a diffusion model
    Ddpm,
    /// The class of each row
    Classify,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Couple {
    /// Any with any
    Independent,
    /// The best assignment within the batch
    Ot,
}

/// The network
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Network")]
pub(crate) struct NetworkArgs {
    /// mlp, unet, resnet, or an ONNX file to begin from; what suits the data where not given
    #[arg(long, value_name = "mlp|unet|resnet|FILE")]
    network: Option<String>,
    /// Units or channels
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// Residual blocks
    #[arg(long, value_name = "N")]
    blocks: Option<usize>,
    /// Channels of each level as multiples of the width, such as 1,2,2 (unet, resnet)
    #[arg(long, value_name = "MULTIPLES", value_delimiter = ',')]
    levels: Option<Vec<usize>>,
    /// Work on squares of so many pixels a side (unet)
    #[arg(long, value_name = "PIXELS")]
    patch: Option<usize>,
}

/// The training
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArgs {
    /// Optimiser steps
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Rows per step
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// The highest learning rate
    #[arg(long, value_name = "RATE")]
    learning_rate: Option<f64>,
    /// Decay of weights per step and unit of learning rate
    #[arg(long, value_name = "RATE")]
    weight_decay: Option<f64>,
    /// Rows that a program sees at once; part of the result
    #[arg(long, value_name = "N")]
    micro_batch: Option<usize>,
    /// Seed of everything that is drawn
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Keep the network every so many steps
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    keep_every: u64,
    /// Store weights in 16 bits: half the size, rounded to three digits
    #[arg(long)]
    half_weights: bool,
    /// Write a checkpoint every so many steps
    #[arg(long, value_name = "STEPS", default_value_t = 200)]
    checkpoint_every: u64,
}

impl TrainingArgs {
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn half_weights(&self) -> bool {
        self.half_weights
    }

    /// What the flags mean, over the defaults for these data.
    pub(crate) fn config(&self, data: &Dataset, engine: &EngineArgs) -> TrainConfig {
        let (steps, batch, learning_rate) =
            if data.is_images() { (5000, 64, 1e-3) } else { (4000, 256, 2e-3) };
        let steps = self.steps.unwrap_or(steps);
        TrainConfig {
            steps,
            warmup_steps: (steps / 10).min(200),
            batch: self.batch.unwrap_or(batch.min(data.len())),
            learning_rate: self.learning_rate.unwrap_or(learning_rate),
            weight_decay: self.weight_decay.unwrap_or(0.0),
            micro_batch: self.micro_batch,
            seed: self.seed,
            keep_every: self.keep_every,
            checkpoint_every: self.checkpoint_every,
            log_every: 10,
            engine: engine.config(),
            ..TrainConfig::default()
        }
    }
}

pub(crate) fn run(args: &Train) -> Result<()> {
    refuse_to_overwrite(&args.output, args.resume)?;
    let options = args.data_args.options();
    let (data, held_out) = open(args, &options)?;
    print_progress(&format!(
        "{} rows to train on, {} held out, each of shape {:?}",
        data.len(),
        held_out.len(),
        data.shape()
    ));
    let training = args.training.config(&data, &args.engine);
    let constants = if args.keep_constants { Constants::Keep } else { Constants::Refuse };
    let scaling = ScalingConfig { constants, ..ScalingConfig::default() };
    let start = args.network.model()?;
    let mut progress = RunProgress::new(StopKey::listen()?, args.quiet);
    let mut watch = |event| progress.show(event);
    let outcome = match args.objective {
        Goal::Classify => {
            let run = ClassifierRun {
                network: args.network.classifier(data.shape())?,
                augment: Augment { flip: args.flip, shift: args.shift },
                smoothing: 0.05,
                scaling,
                half_weights: args.training.half_weights(),
                training,
            };
            train_classifier(&data, &held_out, start, &run, &args.output, &mut watch)?.0
        }
        Goal::Flow | Goal::Ddpm => {
            let (kind, rows) = reference(&args.reference, &options, &data)?;
            let objective = if args.objective == Goal::Flow { Objective::Flow } else { Objective::Ddpm };
            if objective == Objective::Ddpm && kind != ReferenceKind::StandardNormal {
                bail!(
                    "a diffusion model starts from Gaussian noise, not from '{}'\nhint: leave out --reference, or train a flow",
                    args.reference
                );
            }
            let coupling = match args.coupling {
                Couple::Independent => Coupling::Independent,
                Couple::Ot => Coupling::OptimalTransport { group: args.group.unwrap_or(training.batch) },
            };
            let network = args.network.flow(data.shape())?;
            let half_weights = args.training.half_weights();
            let run =
                FlowRun { objective, network, reference: kind, coupling, scaling, half_weights, training };
            train_generator(&data, &held_out, rows.as_ref(), start, &run, &args.output, &mut watch)?.outcome
        }
    };
    report(&outcome, &args.output, args.format)
}

/// The data in two parts.
fn open(args: &Train, options: &OpenOptions) -> Result<(Dataset, Dataset)> {
    match &args.held_out {
        None => Ok(Dataset::open_split(&args.data, options, args.train_fraction, args.training.seed)?),
        Some(path) => {
            let data = Dataset::open(&args.data, options)?;
            let held = OpenOptions { limit: None, ..options.clone() }.like(&data);
            let held_out = Dataset::open(path, &held)?;
            Ok((data, held_out))
        }
    }
}

/// The distribution at time 0, with its rows where it is a data set.
pub(crate) fn reference(
    name: &str,
    options: &OpenOptions,
    data: &Dataset,
) -> Result<(ReferenceKind, Option<Dataset>)> {
    match name {
        "normal" => Ok((ReferenceKind::StandardNormal, None)),
        "uniform" => Ok((ReferenceKind::Uniform, None)),
        path => {
            let rows = Dataset::open(Path::new(path), &options.clone().like(data))
                .with_context(|| format!("cannot use '{path}' as the reference"))?;
            Ok((ReferenceKind::Data, Some(rows)))
        }
    }
}

pub(crate) fn refuse_to_overwrite(folder: &Path, resume: bool) -> Result<()> {
    let begun = folder.join("run.json").exists();
    if begun && !resume {
        bail!(
            "{} holds a run already\nhint: go on with it by --resume, or choose another folder",
            folder.display()
        );
    }
    if resume && !begun {
        bail!("{} holds no run to go on with\nhint: leave out --resume", folder.display());
    }
    Ok(())
}

/// Prints how a run ended.
pub(crate) fn report(outcome: &Outcome, folder: &Path, format: Format) -> Result<()> {
    if format == Format::Json {
        return print_data(&format!("{}\n", serde_json::to_string(outcome)?));
    }
    let Some(file) = &outcome.file else {
        return print_data(&format!(
            "stopped after step {}\nhint: go on with the same command and --resume\n",
            outcome.step
        ));
    };
    let mut text = format!("{}\n", folder.join(file).display());
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:32} {value}\n"));
    if let Some(loss) = outcome.loss {
        line("training loss", format!("{loss:.5}"));
    }
    if let Some(accuracy) = outcome.accuracy {
        line("held-out accuracy", format!("{:.2} %", 100.0 * accuracy));
    }
    if let Some(q) = &outcome.quality {
        if let Some(loss) = q.held_out_loss {
            line("held-out loss", format!("{loss:.5}"));
        }
        line("straightness (1 is straight)", format!("{:.4}", q.straightness));
        line(
            "round-trip error, median (worst)",
            format!("{:.2e} ({:.2e})", q.relative_round_trip_error, q.worst_relative_round_trip_error),
        );
        line(
            "sliced Wasserstein (of the data)",
            format!("{:.4} ({:.4})", q.sliced_wasserstein, q.sliced_wasserstein_of_data),
        );
        line("velocity evaluations per path", format!("{:.0}", q.velocity_evaluations));
    }
    print_data(&text)
}

impl NetworkArgs {
    /// The file to begin from, where the name is one.
    fn model(&self) -> Result<Option<Model>> {
        match self.network.as_deref() {
            None | Some("mlp" | "unet" | "resnet") => Ok(None),
            Some(file) if !Path::new(file).exists() => {
                bail!("there is no network '{file}'\nhint: choose mlp, unet or resnet, or give an ONNX file")
            }
            Some(file) => Ok(Some(Model::load(file)?)),
        }
    }

    fn flow(&self, shape: &[usize]) -> Result<Option<NetworkConfig>> {
        let kind = self.network.as_deref().unwrap_or(if shape.len() == 3 { "unet" } else { "mlp" });
        Ok(match kind {
            "mlp" => {
                self.refuse_levels("mlp")?;
                let d = MlpConfig::default();
                let (width, blocks) = (self.width.unwrap_or(d.width), self.blocks.unwrap_or(d.blocks));
                Some(NetworkConfig::Mlp(MlpConfig { width, blocks, ..d }))
            }
            "unet" => {
                let d = UnetConfig::default();
                Some(NetworkConfig::Unet(UnetConfig {
                    width: self.width.unwrap_or(d.width),
                    blocks: self.blocks.unwrap_or(d.blocks),
                    multipliers: self.levels.clone().unwrap_or(d.multipliers.clone()),
                    patch: self.patch.unwrap_or(d.patch),
                    ..d
                }))
            }
            "resnet" => bail!("a resnet classifies\nhint: flows are learned by mlp or unet"),
            _ => None,
        })
    }

    fn classifier(&self, shape: &[usize]) -> Result<Option<ClassifierConfig>> {
        let kind = self.network.as_deref().unwrap_or(if shape.len() == 3 { "resnet" } else { "mlp" });
        Ok(match kind {
            "mlp" => {
                self.refuse_levels("mlp")?;
                let d = MlpClassifierConfig::default();
                let (width, blocks) = (self.width.unwrap_or(d.width), self.blocks.unwrap_or(d.blocks));
                Some(ClassifierConfig::Mlp(MlpClassifierConfig { width, blocks }))
            }
            "resnet" => {
                let d = ResnetConfig::default();
                Some(ClassifierConfig::Resnet(ResnetConfig {
                    width: self.width.unwrap_or(d.width),
                    blocks: self.blocks.unwrap_or(d.blocks),
                    multipliers: self.levels.clone().unwrap_or(d.multipliers.clone()),
                    ..d
                }))
            }
            "unet" => bail!("a unet does not classify\nhint: use mlp or resnet"),
            _ => None,
        })
    }

    fn refuse_levels(&self, network: &str) -> Result<()> {
        if self.levels.is_some() || self.patch.is_some() {
            bail!("--levels and --patch mean nothing to the {network}\nhint: leave them out");
        }
        Ok(())
    }
}
