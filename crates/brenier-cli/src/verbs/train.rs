//! `brenier train DATA -o run/`: a flow, a diffusion model or a classifier from data.

mod network;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::classify::Augment;
use brenier::data::{Constants, Dataset, OpenOptions, ScalingConfig};
use brenier::flow::Coupling;
use brenier::runs::{
    ClassifierRun, FlowRun, Goal, ReferenceKind, objectives, train_classifier, train_generator,
};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};

use self::network::NetworkArgs;
use crate::output::print_progress;
use crate::run_args::RunArgs;

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
    /// What to learn
    #[arg(long, default_value = "flow", value_parser = names())]
    objective: String,
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
    run: RunArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Couple {
    /// Any with any
    Independent,
    /// The best assignment within the batch
    Ot,
}

/// The names of all objectives, with their help.
fn names() -> PossibleValuesParser {
    objectives().map(|spec| PossibleValue::new(spec.name).help(spec.help)).collect::<Vec<_>>().into()
}

pub(crate) fn run(args: &Train) -> Result<()> {
    args.run.check_folder()?;
    // The parser lets no other name through.
    let Some(spec) = objectives().find(|spec| spec.name == args.objective) else {
        bail!("there is no objective '{}'", args.objective)
    };
    let options = args.run.data.options();
    let (data, held_out) = open(args, &options)?;
    print_progress(&format!(
        "{} rows to train on, {} held out, each of shape {:?}",
        data.len(),
        held_out.len(),
        data.shape()
    ));
    let training = args.run.training(&data);
    let constants = if args.keep_constants { Constants::Keep } else { Constants::Refuse };
    let scaling = ScalingConfig { constants, ..ScalingConfig::default() };
    let start = args.network.model()?;
    let mut progress = args.run.progress()?;
    let mut watch = |event| progress.show(event);
    let outcome = match spec.goal {
        Goal::Classifier => {
            let run = ClassifierRun {
                network: args.network.classifier(data.shape())?,
                augment: Augment { flip: args.flip, shift: args.shift },
                smoothing: 0.05,
                scaling,
                half_weights: args.run.training.half_weights,
                training,
            };
            train_classifier(&data, &held_out, start, &run, &args.run.output, &mut watch)?.0
        }
        Goal::Generator { objective, any_reference } => {
            let (kind, rows) = reference(&args.reference, &options, &data)?;
            if !any_reference && kind != ReferenceKind::StandardNormal {
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
            let half_weights = args.run.training.half_weights;
            let run =
                FlowRun { objective, network, reference: kind, coupling, scaling, half_weights, training };
            train_generator(&data, &held_out, rows.as_ref(), start, &run, &args.run.output, &mut watch)?
                .outcome
        }
    };
    args.run.report(&outcome)
}

/// The data in two parts.
fn open(args: &Train, options: &OpenOptions) -> Result<(Dataset, Dataset)> {
    match &args.held_out {
        None => {
            Ok(Dataset::open_split(&args.data, options, args.run.train_fraction, args.run.training.seed)?)
        }
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
