//! `brenier evaluate`: methods by metrics on a model and data of the user's own.

mod metrics;
mod sharded;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use brenier::attribute::Method;
use brenier::data::{DataError, OpenOptions};
use brenier::evaluate::{Evaluation, MetricTable, draw_examples};
use brenier::report::{Report, ReportTable};
use brenier::runs::explain::Shard;
use brenier::{Store, Watched};
use clap::{Args, ValueEnum};
use ndarray::{Array2, ArrayD, Axis};

use self::metrics::{MetricArgs, with_metrics};
use crate::data_args::{DataArgs, DataPart, count};
use crate::engine_args::EngineArgs;
use crate::output::{expect_writable, print_data, print_notices, print_progress};
use crate::progress::{RunProgress, StopKey, Stopped};
use crate::request::{
    Loaded, MethodArgs, ModelArgs, Networks, Sources, Surroundings, expect_explained_model,
    refuse_for_floats, targets,
};
use crate::verbs::report::SHOWN;

/// Methods by metrics, for a model and data of your own
#[derive(Debug, Args)]
#[command(after_help = with_metrics("Examples:
  brenier evaluate -m model.onnx images/ -n 50
  brenier evaluate -m model.onnx -f flow.onnx cifar10/ --methods ig,smoothgrad,transport -o out
  brenier evaluate -m model.onnx -f flow.onnx cifar10/ --metrics fce,gps,deletion-zero --format latex
  brenier evaluate -m model.onnx -f a.onnx -f b.onnx cifar10/ --methods transport --metrics ssim,rank-correlation
  brenier evaluate -m model.onnx rows.npy --truth deciding.npy --metrics mass-accuracy,pointing-game
  brenier evaluate -m model.onnx images/ -o out --shard 2/8

A run into a folder that was stopped, by Ctrl-C or otherwise, goes on with the same command, and ends with the same
table."))]
pub(crate) struct Evaluate {
    /// What to explain: images, folders, .npy or .npz arrays (the first axis is the example), rows of tables
    #[arg(required = true, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// The methods, with commas between; default: a choice of common ones
    #[arg(long, visible_alias = "method", value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,
    #[command(flatten)]
    metrics: MetricArgs,
    /// How many examples, drawn by the seed; default: 200, or all if there are fewer
    #[arg(short = 'n', long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    examples: Option<usize>,
    /// What to explain: 'predicted', a class index, or one for each example (0,2,1)
    #[arg(long, default_value = "predicted", allow_hyphen_values = true)]
    target: String,
    #[command(flatten)]
    settings: MethodArgs,
    /// Folder for the table (JSON, CSV, LaTeX), report.html and what is finished so far
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace an evaluation of something else in the folder
    #[arg(long, requires = "output")]
    force: bool,
    /// Evaluate one shard of the examples, such as 2/8, into DIR/shards/2-of-8; 'brenier merge DIR' makes the table of all
    #[arg(long, value_name = "I/N", requires = "output")]
    shard: Option<Shard>,
    /// How the table is printed
    #[arg(long, value_enum, default_value = "text")]
    format: TableFormat,
    /// Which split: train, test or all; default: test, or all rows of data without a test split
    #[arg(long, value_enum)]
    part: Option<DataPart>,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Examples where their number is not given.
const EXAMPLES: usize = 200;

/// How a table of methods by metrics is printed
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Aligned columns for people
    Text,
    /// Every number in full
    Json,
    /// A line for each method and metric
    Csv,
    /// For the booktabs package
    Latex,
}

pub(crate) fn run(args: &Evaluate) -> Result<()> {
    if let Some(part) = args.part {
        return evaluate(args, part);
    }
    match evaluate(args, DataPart::Test) {
        Err(error) if has_no_test_part(&error) => {
            print_progress(
                "notice: the data have no test split, so all rows are used; give --part train to leave out this notice",
            );
            evaluate(args, DataPart::Train)
        }
        done => done,
    }
}

/// Whether the data were asked for a split that they do not have; this is found before any work is done.
fn has_no_test_part(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(brenier::Error::Data(DataError::NoPart { .. })))
}

fn evaluate(args: &Evaluate, part: DataPart) -> Result<()> {
    let names = args.method_names();
    let elsewhere = args.metrics.uses();
    let methods = args.settings.methods(&names, false, &elsewhere)?;
    let needs_gradients = methods.iter().any(Method::needs_gradients);
    refuse_for_floats(&args.data, args.data_args.not_for_floats().or(args.part.map(|_| "--part")))?;
    let options = OpenOptions { part: part.into(), ..args.data_args.options() };
    let networks = Networks::load(&args.settings.flow, &args.engine);
    let model = Loaded::load(&args.model.for_inputs(&args.data, &options)?, &args.engine, needs_gradients)?;
    print_notices(model.values().notices());
    methods.iter().try_for_each(|method| method.spec().fits(model.score()))?;
    let options = args.model.bind(&model, options, args.settings.background())?;
    let sources = Sources::open(&args.data, &options, model.values())?;
    if args.examples == Some(0) {
        bail!("-n is 0\nhint: 200 examples give intervals that tell methods apart");
    }
    if let Some(asked) = args.examples.filter(|asked| *asked > sources.len()) {
        print_progress(&format!(
            "notice: -n asks for {asked} examples, but there are {}: all are taken",
            sources.len()
        ));
    }
    let chosen = draw_examples(sources.len(), args.examples.unwrap_or(EXAMPLES), args.settings.seed);
    let inputs = sources.some(&chosen)?;
    args.model.tell_of_units(&inputs.view())?;
    let targets = args.targets(&model, sources.len(), &inputs, &chosen)?;
    let surroundings =
        Surroundings::read(&args.settings, networks, &options, model.values(), &inputs.view())?;
    surroundings.refuse_between()?;
    let truth = args
        .metrics
        .truth
        .as_deref()
        .map(|file| mask(file, [sources.len(), inputs.ncols()], &chosen))
        .transpose()?;
    let metrics = args.metrics.metrics(model.score().shape(), &surroundings, args.settings.seed)?;
    let stop = StopKey::listen()?;
    // A chunk of a slow method takes minutes, and is not waited for.
    let tell = |_| if stop.pressed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let watched = Watched::new(model.score(), &tell);
    let evaluation = Evaluation {
        score: &watched,
        inputs: inputs.view(),
        targets: &targets,
        context: surroundings.context(model.with_gradients()),
        truth: truth.as_ref().map(|mask| mask.view()),
        metrics: &metrics,
        leave_out: args.metrics.leave_out(),
    };
    let facts = args.facts(inputs.nrows());
    if let (Some(shard), Some(output)) = (args.shard, &args.output) {
        let mut made_from = args.model.made_from(&model, &args.settings)?;
        made_from.extend(surroundings.made_from());
        let asked = sharded::Asked { evaluation: &evaluation, methods: &methods, made_from, facts };
        return asked.run(shard, output, args.force, stop);
    }
    let store = match &args.output {
        Some(folder) if args.force => Store::in_folder(folder.join("parts")).replacing(),
        Some(folder) => Store::in_folder(folder.join("parts")),
        None => Store::nowhere(),
    };
    let mut made_from = args.model.made_from(&model, &args.settings)?;
    if let Some(folder) = &args.output {
        expect_explained_model(folder, &made_from)?;
        expect_writable(folder)?;
    }
    let mut progress = RunProgress::new(stop);
    made_from.extend(surroundings.made_from());
    let table = evaluation.run(&methods, &store, &made_from, &mut |done| progress.evaluated(done));
    let Some(table) = unless_stopped(table)? else { return stopped(args.output.as_deref()) };
    if let Some(folder) = &args.output {
        write_files(folder, facts, &table)?;
    }
    print_data(&match args.format {
        TableFormat::Text => table.text(),
        TableFormat::Json => table.json()?,
        TableFormat::Csv => table.csv()?,
        TableFormat::Latex => table.latex(),
    })
}

impl Evaluate {
    fn facts(&self, examples: usize) -> Facts {
        let model = self.model.model.display().to_string();
        let title = format!("Methods by metrics for {model}");
        let mut facts = vec![("model".to_string(), model), ("examples".to_string(), examples.to_string())];
        facts.extend(self.settings.flow.iter().map(|flow| ("flow".to_string(), flow.display().to_string())));
        Facts { title, facts }
    }

    /// The methods that were asked for; default: common methods that need no extra input.
    fn method_names(&self) -> Vec<String> {
        if !self.methods.is_empty() {
            return self.methods.clone();
        }
        let mut names = vec!["gradient-input", "smoothgrad", "ig"];
        if self.settings.has_background() {
            names.push("expected-gradients");
        }
        if !self.settings.flow.is_empty() {
            names.push("transport");
        }
        names.into_iter().map(str::to_string).collect()
    }

    /// The target of each chosen row; a list has one for every row of the data.
    fn targets(
        &self,
        model: &Loaded,
        total: usize,
        inputs: &Array2<f64>,
        chosen: &[usize],
    ) -> Result<Vec<usize>> {
        let classes = self.model.class_names(model.values())?;
        let listed: Vec<&str> = self.target.split(',').collect();
        let text = match listed.len() {
            1 => self.target.clone(),
            many if many == total => chosen.iter().map(|&row| listed[row]).collect::<Vec<_>>().join(","),
            many => bail!("{many} targets are given for {total} examples\nhint: give one, or one for each"),
        };
        let targets = targets(&text, model.values(), &classes, inputs.nrows())?;
        Ok(targets.of(inputs.view(), 0..inputs.nrows())?.concat())
    }
}

/// What is known to decide, of the rows that were chosen.
fn mask(file: &Path, [rows, features]: [usize; 2], chosen: &[usize]) -> Result<Array2<bool>> {
    brenier::data::expect_honest_npy(file)?;
    let found: ArrayD<bool> = match ndarray_npy::read_npy(file) {
        Ok(found) => found,
        // Masks of images are often bytes.
        Err(_) => ndarray_npy::read_npy::<_, ArrayD<u8>>(file)
            .with_context(|| {
                format!(
                    "cannot read {} as an array of booleans, or of bytes of which 0 is false\nhint: save mask.astype(bool)",
                    file.display()
                )
            })?
            .mapv(|byte| byte != 0),
    };
    let shape = found.shape().to_vec();
    let flat = found.into_shape_with_order((rows, features)).ok().with_context(|| {
        format!(
            "{} has shape {shape:?}, but there are {rows} examples of {features} features\nhint: give true or false for every \
             feature of every example of DATA",
            file.display()
        )
    })?;
    Ok(flat.select(Axis(0), chosen))
}

/// What the report says of a run.
pub(crate) struct Facts {
    pub(crate) title: String,
    pub(crate) facts: Vec<(String, String)>,
}

/// The table in every form, and the report.
pub(crate) fn write_files(folder: &Path, facts: Facts, table: &MetricTable) -> Result<()> {
    let Facts { title, facts } = facts;
    let report = Report { title, facts, metrics: Some(ReportTable::from(table)), ..Report::default() };
    report.save_description(folder)?;
    let files = [
        ("evaluation.json", table.json()?),
        ("evaluation.csv", table.csv()?),
        ("evaluation.tex", table.latex()),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        print_progress(&format!("wrote {}", file.display()));
    }
    // Explanations that are in the folder are shown with it.
    let page = folder.join("report.html");
    Report::open(folder, SHOWN)?.save(&page)?;
    print_progress(&format!("wrote {}", page.display()));
    Ok(())
}

/// Nothing where the run was stopped, be it amid a chunk.
fn unless_stopped<T>(found: brenier::Result<Option<T>>) -> Result<Option<T>> {
    match found {
        Err(brenier::Error::Stopped) => Ok(None),
        found => Ok(found?),
    }
}

/// What is said to somebody who stopped the run.
fn stopped<T>(folder: Option<&Path>) -> Result<T> {
    Err(anyhow!(Stopped(match folder {
        Some(folder) => format!(
            "stopped before the table was finished\nhint: what is done is in {}; the same command goes on",
            folder.join("parts").display()
        ),
        None => "stopped before the table was finished, and nothing is kept\nhint: with -o DIR a run can be continued"
            .to_string(),
    })))
}

impl RunProgress {
    /// Shows how far an evaluation is. What an earlier session did is no measure of this one's speed.
    fn evaluated(&mut self, done: brenier::evaluate::Done) -> ControlFlow<()> {
        if !done.kept {
            self.advance("evaluating", done.parts as u64, done.of as u64, "");
        }
        self.go_on()
    }
}
