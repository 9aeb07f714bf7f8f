//! `brenier reproduce NAME`: a table or figure of the paper.

mod images;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use brenier::Store;
use brenier::engine::{EngineConfig, EngineKind};
use brenier_paper::{
    ActionConfig, AdditiveConfig, BenchmarkConfig, CompletenessConfig, ConvergenceConfig, Figure,
    GaussianConfig, MismatchConfig, NamedFlow, NaturalConfig, PlantedConfig, QualitativeConfig,
    ReferencesConfig, RotatedConfig, Row, Scale, StabilityConfig, Subject, Table, TrainedSubjectConfig,
    XaiTrisConfig, action, additive, benchmark, completeness, convergence, field_mismatch, gaussian,
    kept_checkpoints, natural, planted, qualitative, references, rotated_gaussian, stability,
    train_checkpoints, train_subject, xai_tris,
};
use clap::{Args, ValueEnum};

use self::images::{ImageArgs, Images};
use crate::output::{self, Format};

/// Reproduce a table or figure of the paper
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier reproduce additive
  brenier reproduce gaussian --scale quick -o out
  brenier reproduce completeness --data cifar10/
  brenier reproduce benchmark --data cifar10/ --faces ORL_faces/ -o results
  brenier reproduce convergence --data cifar10/ --run run/ -o results
  brenier reproduce planted --data cifar10/ -o results --scale full
  brenier reproduce xai-tris -o results --scale full
  brenier reproduce references --data cifar10/ -o results --scale full
  brenier reproduce natural --data mnist/ --pair 4:9 --pair 3:8 -o results --scale full")]
pub(crate) struct Reproduce {
    /// Which one
    name: Experiment,
    /// How the table is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Folder for the table (JSON) and the figures (SVG); what is finished is kept in it, and taken from it when
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
    /// How many examples are explained; default: as many as the scale has
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    examples: Option<u64>,
    /// How large it is
    #[arg(long, value_enum, default_value = "quick")]
    scale: Size,
    /// The engine that trains and explains: rten or ort
    #[arg(long, default_value_t = EngineKind::Rten)]
    engine: EngineKind,
    #[command(flatten)]
    images: ImageArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// Few examples, one seed and short trainings: minutes, to see that it works
    Quick,
    /// As in the paper: hours
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
    /// Section 5.2: completeness residual over the number of steps, for the paper's rule and ours
    Completeness,
    /// Section 5.3: action and agreement across seeds of 1-RF, 2-RF and OT-coupled flows, trained here
    Stability,
    /// Section 5.3: attribution error against field error over the checkpoints of a training
    Convergence,
    /// Section 5.4: methods by metrics on images, and on faces
    Benchmark,
    /// Appendix F.4: action along sampled paths
    Action,
    /// Figure 2: inputs and heat maps of every method
    Qualitative,
    /// Methods ranked by a planted truth, on images and tables
    Planted,
    /// XAI-TRIS: methods ranked by a planted truth on tetrominoes, against the other class, 8x8
    XaiTris,
    /// Planted patches: what to compare with, noise, data, images without the patch or the other class
    References,
    /// Images of one class against another (--pair), by optimal transport between two Gaussians, to be looked at
    Natural,
    /// All of them but 'natural', which needs pairs of classes
    All,
}

impl Experiment {
    /// Those that 'all' stands for.
    const EACH: [Experiment; 13] = [
        Experiment::Additive,
        Experiment::Gaussian,
        Experiment::RotatedGaussian,
        Experiment::FieldMismatch,
        Experiment::Completeness,
        Experiment::Action,
        Experiment::Qualitative,
        Experiment::Convergence,
        Experiment::Stability,
        Experiment::Benchmark,
        Experiment::Planted,
        Experiment::XaiTris,
        Experiment::References,
    ];
}

/// Runs the experiment, prints its table and writes its files.
pub(crate) fn run(args: &Reproduce) -> Result<()> {
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    }
    let mut session = Session::new(args);
    let table = if args.name == Experiment::All {
        let mut rows = Vec::new();
        for experiment in Experiment::EACH {
            let table = session.finish(experiment)?;
            let named = |row: Row| Row { method: format!("{}: {}", table.name, row.method), ..row };
            rows.extend(table.rows.into_iter().map(named));
        }
        Table { name: "all".into(), scale: session.scale.name().into(), rows }
    } else {
        session.finish(args.name)?
    };
    match args.format {
        Format::Json => output::print_data(&format!("{}\n", serde_json::to_string(&table)?)),
        Format::Text => output::print_data(&text(&table)),
    }
}

/// What experiments share: where parts are kept, and what was read.
struct Session<'a> {
    args: &'a Reproduce,
    scale: Scale,
    engine: EngineConfig,
    store: Store,
    /// Read when the first experiment asks for it.
    images: Option<Images>,
}

impl<'a> Session<'a> {
    fn new(args: &'a Reproduce) -> Session<'a> {
        let store = match &args.output {
            Some(folder) => Store::in_folder(folder.join("parts")),
            None => Store::nowhere(),
        };
        let engine = EngineConfig { kind: args.engine, ..EngineConfig::default() };
        Session { args, scale: args.scale.into(), engine, store, images: None }
    }

    /// Runs one experiment and writes its files.
    fn finish(&mut self, experiment: Experiment) -> Result<Table> {
        let (table, figures) = match experiment {
            Experiment::Additive | Experiment::Gaussian | Experiment::RotatedGaussian => {
                self.synthetic(experiment)?
            }
            Experiment::FieldMismatch | Experiment::XaiTris => self.synthetic(experiment)?,
            _ => self.on_images(experiment)?,
        };
        if let Some(folder) = &self.args.output {
            write_files(folder, &table, &figures)?;
        }
        Ok(table)
    }

    /// Experiments that need nothing but a seed.
    fn synthetic(&self, experiment: Experiment) -> Result<(Table, Vec<Figure>)> {
        let Session { args, scale, engine, store, .. } = self;
        let mut tell = |line: &str| output::print_progress(line);
        Ok(match experiment {
            Experiment::Gaussian => {
                let mut config = GaussianConfig::at(*scale, engine);
                (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
                gaussian(&config, store, &mut tell)?
            }
            Experiment::RotatedGaussian => {
                let mut config = RotatedConfig::at(*scale, engine);
                (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
                rotated_gaussian(&config, store, &mut tell)?
            }
            Experiment::FieldMismatch => {
                let mut config = MismatchConfig::at(*scale, engine);
                (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
                field_mismatch(&config, store, &mut tell)?
            }
            Experiment::XaiTris => {
                let mut config = XaiTrisConfig::at(*scale);
                (config.first_seed, config.seeds) = (args.seed, args.seeds.unwrap_or(config.seeds));
                config.examples = args.examples.map_or(config.examples, |n| n as usize);
                let store = store.within(&format!("xai-tris-{}", scale.name()));
                xai_tris(&config, engine, &store, &mut tell)?
            }
            _ => additive(&AdditiveConfig { seed: args.seed, ..AdditiveConfig::default() })?,
        })
    }

    /// Experiments on images; each keeps its parts in a folder of its own.
    fn on_images(&mut self, experiment: Experiment) -> Result<(Table, Vec<Figure>)> {
        let (args, scale, seed) = (self.args, self.scale, self.args.seed);
        let mut tell = |line: &str| output::print_progress(line);
        let name =
            experiment.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
        let store = self.store.within(&format!("{name}-{}", scale.name()));
        let count = |of_scale: usize| args.examples.map_or(of_scale, |n| n as usize);
        if experiment == Experiment::Planted {
            // This one and the next explain no model of the user's.
            let mut config = PlantedConfig::at(scale);
            (config.examples, config.seed) = (count(config.examples), seed);
            let backgrounds = args.images.open_data()?.0;
            return Ok(planted(&backgrounds, &config, &self.engine, &store, &mut tell)?);
        }
        if experiment == Experiment::References {
            let mut config = ReferencesConfig::at(scale);
            (config.examples, config.seed) = (count(config.examples), seed);
            let backgrounds = args.images.open_data()?.0;
            return Ok(references(&backgrounds, &config, &self.engine, &store, &mut tell)?);
        }
        if experiment == Experiment::Natural {
            let mut config = NaturalConfig { pairs: args.images.pairs.clone(), ..NaturalConfig::at(scale) };
            (config.examples, config.seed) = (count(config.examples), seed);
            let (train, held_out) = args.images.open_data()?;
            let network = args.images.model.as_ref().map(onnx_grad::Model::load).transpose()?;
            return Ok(natural(&train, &held_out, network, &config, &self.engine, &store, &mut tell)?);
        }
        let images = match &mut self.images {
            Some(images) => images,
            empty => empty.insert(args.images.open(&self.engine)?),
        };
        let subject = images.subject();
        Ok(match experiment {
            Experiment::Completeness => {
                let config =
                    CompletenessConfig { examples: count(CompletenessConfig::at(scale).examples), seed };
                completeness(&subject, &config, &store, &mut tell)?
            }
            Experiment::Action => {
                let config = ActionConfig { examples: count(ActionConfig::at(scale).examples), seed };
                action(&subject, &config)?
            }
            Experiment::Stability => {
                let mut config = StabilityConfig::at(scale, &self.engine);
                config.seeds = args.seeds.unwrap_or(config.seeds);
                (config.examples, config.seed) = (count(config.examples), seed);
                stability(&subject, &config, &store, &mut tell)?
            }
            Experiment::Convergence => {
                let mut config = ConvergenceConfig::at(scale);
                (config.examples, config.seed) = (count(config.examples), seed);
                let checkpoints = match &args.images.run {
                    Some(run) => kept_checkpoints(&run.join("kept"), &self.engine)?,
                    None => {
                        let (train, held_out) = (&images.train, &images.held_out);
                        train_checkpoints(train, held_out, &config, &self.engine, &store, &mut tell)?
                    }
                };
                convergence(&subject, &checkpoints, &config, &store, &mut tell)?
            }
            Experiment::Benchmark => {
                let mut config = BenchmarkConfig::at(scale);
                (config.examples, config.seed) = (count(config.examples), seed);
                with_faces(args, &self.engine, &subject, &config, &store)?
            }
            _ => {
                let mut config = QualitativeConfig::at(scale);
                (config.examples, config.seed) = (count(config.examples), seed);
                qualitative(&subject, &config, &mut tell)?
            }
        })
    }
}

/// The benchmark on images, and on faces where there are some.
fn with_faces(
    args: &Reproduce,
    engine: &EngineConfig,
    subject: &Subject,
    config: &BenchmarkConfig,
    store: &Store,
) -> Result<(Table, Vec<Figure>)> {
    let mut tell = |line: &str| output::print_progress(line);
    let Some((train, held_out)) = args.images.open_faces(args.scale.into())? else {
        tell("faces are left out: none are given with --faces");
        return Ok(benchmark(std::slice::from_ref(subject), config, store, &mut tell)?);
    };
    let training = TrainedSubjectConfig { augment: true, ..TrainedSubjectConfig::at(args.scale.into()) };
    let made = train_subject(&train, &held_out, &training, engine, &store.within("trained"), &mut tell)?;
    tell(&format!("faces: the classifier gets {:.3} of held-out faces right", made.accuracy));
    let faces = Subject {
        name: "faces",
        model: &made.model,
        train: &train,
        held_out: &held_out,
        flows: vec![NamedFlow { name: "1-RF", flow: &made.flow }],
        diffusion: None,
        identity: made.identity.clone(),
    };
    Ok(benchmark(&[subject.clone(), faces], config, store, &mut tell)?)
}

fn write_files(folder: &Path, table: &Table, figures: &[Figure]) -> Result<()> {
    let write = |file: PathBuf, text: &str| {
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        output::print_progress(&format!("wrote {}", file.display()));
        Ok::<(), anyhow::Error>(())
    };
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
        "{:method$}  {:metric$}  {:>11}  {:>11}  {:>11}  {:>5}  {:>8}",
        "method", "metric", "mean", "+- 95 %", "std", "n", "paper"
    );
    for row in &table.rows {
        let paper = row.paper.map_or("-".to_owned(), number);
        _ = writeln!(
            text,
            "{:method$}  {:metric$}  {:>11}  {:>11}  {:>11}  {:>5}  {paper:>8}",
            row.method,
            row.metric,
            number(row.mean),
            row.half_width.map_or("-".to_owned(), number),
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
