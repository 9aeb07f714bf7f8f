//! `brenier train DATA -o run/`: a flow, a diffusion model or a classifier from data.

mod network;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use brenier::classify::Augment;
use brenier::data::{Constants, Dataset, OpenOptions, ScalingConfig};
use brenier::runs::{
    ClassifierRun, FlowRun, Goal, Outcome, ReferenceKind, Watch, objectives, train_classifier,
    train_generator,
};
use brenier::train::TrainConfig;
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
  brenier train fashion-mnist/ --between-classes -o run     one flow between all ten classes
  brenier train cifar10/ -o run --coupling ot --group 64    minibatch optimal transport
  brenier train cifar10/ -o diffusion --objective ddpm      the diffusion baseline
  brenier train cifar10/ -o model --objective classify --flip --shift 4
  brenier train cifar10/ -o run --minutes 5                 as many steps as fit into five minutes here
  brenier train cifar10/ -o run --resume                    go on with a run that was stopped
  brenier train cifar10/ -o run --resume --steps 10000      train a finished run further")]
pub(crate) struct Train {
    /// The data: a folder of images, IDX or CIFAR files, or a csv, parquet, npy or npz file
    data: PathBuf,
    /// What to learn
    #[arg(long, default_value = "flow", value_parser = names())]
    objective: String,
    #[command(flatten)]
    reference: ReferenceArgs,
    /// One flow between all classes of DATA, for 'explain --against CLASS': the network is told from which to which
    #[arg(long, conflicts_with_all = ["reference", "from_class", "to_class"])]
    between_classes: bool,
    /// Which reference point goes with which example; ot where the reference is data, independent otherwise
    #[arg(long, value_enum)]
    coupling: Option<Couple>,
    /// Pairs that are assigned together by --coupling ot, also more than a batch; 1024 where the reference is data, the
    /// batch otherwise
    #[arg(long, value_name = "N")]
    group: Option<usize>,
    /// Held-out data; default: a part of DATA
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
    if args.between_classes && spec.name != "flow" {
        bail!(
            "only a flow leads between classes\nhint: leave out --between-classes, or --objective {}",
            spec.name
        );
    }
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
    let rows = (&data, &held_out);
    let training = args.run.timed(args.run.training(&data), |training, folder, watch| {
        train(args, spec.goal, rows, &reference, training, folder, watch)
    })?;
    let mut progress = args.run.progress()?;
    let mut watch = |event| progress.show(event);
    let outcome = train(args, spec.goal, rows, &reference, training, &args.run.output, &mut watch)?;
    args.run.report(&outcome)
}

/// Trains what was asked for into a folder.
fn train(
    args: &Train,
    goal: Goal,
    (data, held_out): (&Dataset, &Dataset),
    reference: &Reference,
    training: TrainConfig,
    folder: &Path,
    watch: Watch,
) -> Result<Outcome> {
    let constants = if args.keep_constants { Constants::Keep } else { Constants::Refuse };
    let scaling = ScalingConfig { constants, ..ScalingConfig::default() };
    let start = args.network.model()?;
    if args.between_classes && start.is_some() {
        bail!("a flow between classes begins with a network of its own\nhint: choose --network mlp or unet");
    }
    match goal {
        Goal::Classifier => {
            let run = ClassifierRun {
                network: args.network.classifier(data.shape())?,
                augment: Augment { flip: args.flip, shift: args.shift },
                smoothing: 0.05,
                scaling,
                half_weights: args.run.training.half_weights,
                training,
            };
            Ok(train_classifier(data, held_out, start, &run, folder, watch)?.0)
        }
        Goal::Generator { objective, any_reference } => {
            let kind = if args.between_classes { ReferenceKind::Data } else { reference.kind };
            if !any_reference && kind != ReferenceKind::StandardNormal {
                bail!(
                    "a diffusion model starts from Gaussian noise, not from {}\nhint: leave out --reference and --from-class, or train a flow",
                    args.reference
                );
            }
            let optimal = args.coupling.map(|couple| couple == Couple::Ot);
            let (from_class, to_class) = args.reference.classes();
            let run = FlowRun {
                objective,
                network: args.network.flow(data.shape())?,
                reference: kind,
                from_class,
                to_class,
                between_classes: args.between_classes,
                coupling: kind.coupling(optimal, args.group, training.batch)?,
                scaling,
                half_weights: args.run.training.half_weights,
                calibration_rows: args.run.calibration_rows,
                training,
            };
            Ok(train_generator(data, held_out, reference.rows.as_ref(), start, &run, folder, watch)?.outcome)
        }
    }
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
