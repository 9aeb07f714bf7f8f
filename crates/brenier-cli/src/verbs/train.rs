//! `brenier train DATA -o run/`: a flow, a diffusion model or a classifier from data.

mod network;

use std::path::PathBuf;

use anyhow::{Result, bail};
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
use crate::reference_args::{Reference, ReferenceArgs};
use crate::run_args::RunArgs;

/// Train a flow from a reference distribution to data, or something to explain
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier train fashion-mnist/ -o run                       a rectified flow from noise to images
  brenier train table.csv --label income -o run             the same for a table
  brenier train ill.csv --reference healthy.csv -o run      from one data set to another
  brenier train fashion-mnist/ --from-class 'T-shirt/top' --to-class Pullover -o run
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
    #[command(flatten)]
    reference: ReferenceArgs,
    /// Which reference point goes with which example; ot where the reference is data, independent otherwise
    #[arg(long, value_enum)]
    coupling: Option<Couple>,
    /// Pairs that are assigned together by --coupling ot, also more than a batch; 1024 where the reference is data, the
    /// batch otherwise
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
    /// The best assignment within groups
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
    if matches!(spec.goal, Goal::Classifier) && args.reference.is_given() {
        bail!("a classifier has no reference\nhint: leave out {}, or train a flow", args.reference.flags());
    }
    let options = args.run.data.options();
    let (data, held_out) = open(args, &options)?;
    let (data, held_out, reference) = args.reference.open(data, held_out, &options)?;
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
            let Reference { kind, rows } = reference;
            if !any_reference && kind != ReferenceKind::StandardNormal {
                bail!(
                    "a diffusion model starts from Gaussian noise, not from {}\nhint: leave out --reference and --from-class, or train a flow",
                    args.reference
                );
            }
            let coupling = coupling(args, kind, training.batch)?;
            let network = args.network.flow(data.shape())?;
            let half_weights = args.run.training.half_weights;
            let (from_class, to_class) = args.reference.classes();
            let run = FlowRun {
                objective,
                network,
                reference: kind,
                from_class,
                to_class,
                coupling,
                scaling,
                half_weights,
                calibration_rows: args.run.calibration_rows,
                training,
            };
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

/// Which reference point goes with which example.
fn coupling(args: &Train, kind: ReferenceKind, batch: usize) -> Result<Coupling> {
    let default = if kind == ReferenceKind::Data { Couple::Ot } else { Couple::Independent };
    match (args.coupling.unwrap_or(default), args.group) {
        (Couple::Ot, Some(group)) => Ok(Coupling::OptimalTransport { group }),
        (Couple::Ot, None) if kind == ReferenceKind::Data => Ok(Coupling::BETWEEN_DATA),
        (Couple::Ot, None) => Ok(Coupling::OptimalTransport { group: batch }),
        (Couple::Independent, None) => Ok(Coupling::Independent),
        (Couple::Independent, Some(group)) => {
            bail!(
                "a group of {group} pairs has no meaning for independent pairs\nhint: add --coupling ot, or leave out --group"
            )
        }
    }
}
