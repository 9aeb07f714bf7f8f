//! `brenier explain`: credit for a model's score, by one method or by several.

mod failures;
pub(crate) mod maps;
mod one_run;
pub(crate) mod page;
mod paths;
mod pulse;
mod reasons;
pub(crate) mod record;
mod table;
mod together;
mod work;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::Watched;
use brenier::attribute::{Method, Setting};
use brenier::compare::Comparison;
use brenier::data::{Column, OpenOptions};
use brenier::report::{Report, ResultFormat, save_by_input, save_glance, save_reasons};
use brenier::runs::explain::{Provenance, Question, Shard, Way};
use clap::{Args, ValueEnum};

pub(crate) use self::failures::{Incomplete, tell_failures};
use self::maps::MapArgs;
use self::paths::given_paths;
use self::pulse::Pulse;
use self::reasons::ReasonsArgs;
use self::record::Record;
use self::work::Work;
use crate::data_args::{DataArgs, DataPart};
use crate::engine_args::EngineArgs;
use crate::output::{Format, expect_writable, print_data, print_notices, print_progress};
use crate::request::{
    AgainstArgs, Direction, Loaded, MethodArgs, ModelArgs, Named, NamedArgs, Networks, Parts, ScoringArgs,
    Sources, Surroundings, expect_evaluated_model, refuse_for_floats, several_targets, targets, with_methods,
};
use crate::verbs::report::SHOWN;

/// Credit of every feature for a model's score
#[derive(Debug, Args)]
#[command(after_help = with_methods("Examples:
  brenier explain -m model.onnx inputs.npy
  brenier explain -m model.onnx inputs.npy --baseline mean.npy --tolerance 1e-4 -o out
  brenier explain -m model.onnx inputs.npy --target 3 --steps 50 --rule left
  brenier explain -m model.onnx -f flow.onnx inputs.npy -o out
  brenier explain -m model.onnx cat.png dog.jpg --resize 32x32
  brenier explain -m model.onnx cat.jpg --model-size 224x224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225
  brenier explain -m model.onnx boots.png --targets top2 --method ig,occlusion -o out --overlay
  brenier explain -m model.onnx boots.png --target coat --minus shirt
  brenier explain -m segments.onnx street.png --target 5,:,: --reduce mean
  brenier explain -m model.onnx people.csv --label class --limit 10
  brenier explain --config explain.toml inputs.npy
  brenier explain -m model.onnx inputs.npy --method ig,smoothgrad,grad-cam -o out
  brenier explain -m model.onnx inputs.npy --method expected-gradients --background train.npz
  brenier explain -m model.onnx inputs.npy --method kernel-shap --groups patches:8x8 --samples 2000
  brenier explain -m forest.onnx rows.npy --method tree-shap --background train.csv
  brenier explain -m xgboost.json declined.csv --against approved.csv --among all.csv
  brenier explain -m model.onnx boots.png --background fashion/ --against sneaker --contrast -o out
  brenier explain -m model.onnx declined.csv --against approved.csv --among all.csv
  brenier explain -m model.onnx declined.csv --against approved.csv --among all.csv --reasons 4 -o out
  brenier explain -m model.onnx -f a.onnx -f b.onnx -f c.onnx inputs.npy -o out
  brenier explain -m model.onnx inputs.npy --path points.npy
  brenier explain -m other.onnx inputs.npy --traces traces.npz
  brenier explain -m model.onnx --input image=photos/ --input age=people.csv:age --resize 32x32
  brenier explain -m bert.onnx --input tokens.npz --explain input_ids
  brenier explain -m model.onnx inputs.npy --at layer3
  brenier explain -m bert.onnx --tokenizer tokenizer.json --text 'a fine film' --text 'a waste of time'
  brenier explain -m bert.onnx --tokenizer tokenizer.json reviews.csv:review --baseline mask -o out
  brenier explain -m model.onnx rows.npy -o out --shard 2/8 --keep-going
  brenier explain -m model.onnx rows.npy -o out --output-format parquet"))]
pub(crate) struct Explain {
    /// What to explain: images, folders, .npy or .npz arrays (the first axis is the example), rows of tables; with
    /// --tokenizer text files or TABLE:COLUMN
    #[arg(required_unless_present_any = ["input", "text"], value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    named: NamedArgs,
    #[command(flatten)]
    model: ModelArgs,
    /// The score to explain: 'predicted', a class by index or name, or one for each input (0,2,1); of an output with several
    /// axes a place for each of them (3,10,12), or ':' for all of one that --reduce puts together (5,:,:)
    #[arg(long, value_name = "CLASS", default_value = "predicted", allow_hyphen_values = true)]
    target: String,
    /// Explain several scores of every input: all, top3 for the three highest, or classes with commas between
    #[arg(long, value_name = "all|topN|CLASSES", conflicts_with = "target")]
    targets: Option<String>,
    #[command(flatten)]
    scoring: ScoringArgs,
    /// The method, or several with commas between: transport where there is a flow, else ig
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "path")]
    method: Vec<String>,
    #[command(flatten)]
    settings: MethodArgs,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    reasons: ReasonsArgs,
    /// Compare the rows of a table by the levels of one of its columns, in glance.html
    #[arg(long, value_name = "COLUMN", requires = "output")]
    by: Option<String>,
    /// Follow straight pieces through the points of an .npy file ([points, ...]); for one input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "baseline", "flow"])]
    path: Option<PathBuf>,
    /// Follow saved traces, one for each input (with --flow, traces.npz is written to the output folder)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "flow"])]
    traces: Option<PathBuf>,
    /// Folder for explanations.npz, explanations.jsonl, report.html and heat maps of images
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write explanations.npz and explanations.jsonl, or a row for each explanation into explanations.parquet
    #[arg(long, value_enum, default_value_t = OutputFormat::Npz, requires = "output")]
    output_format: OutputFormat,
    /// Draw heat maps over the input in grey
    #[arg(long, requires = "output")]
    overlay: bool,
    #[command(flatten)]
    maps: MapArgs,
    /// Replace results that are in the folder already
    #[arg(long)]
    force: bool,
    /// Explain one shard of the inputs, such as 2/8, into DIR/shards/2-of-8; 'brenier merge DIR' joins all of them
    #[arg(long, value_name = "I/N", requires = "output")]
    shard: Option<Shard>,
    /// Leave out inputs that cannot be explained, list them in failures.jsonl, and exit with 3 where there are some
    #[arg(long, requires = "output")]
    keep_going: bool,
    /// How the summary is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Which split of the data is explained; default: train
    #[arg(long, value_enum)]
    part: Option<DataPart>,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// How explanations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Arrays, and a certificate a line
    Npz,
    /// A table with lists of credit
    Parquet,
}

impl OutputFormat {
    fn format(self) -> ResultFormat {
        match self {
            OutputFormat::Npz => ResultFormat::Npz,
            OutputFormat::Parquet => ResultFormat::Parquet,
        }
    }
}

/// Rows from which on a table is shown at a glance.
const GLANCED: usize = 10;
/// The folder of shards, in that of the results.
pub(crate) const SHARDS: &str = "shards";
/// Explanations that are printed one by one although they are in files too.
const LINES: usize = 24;

/// What a command asks: everything is loaded, nothing is explained yet.
pub(crate) struct Asked<'a> {
    pub(crate) question: Question<'a>,
    pub(crate) ways: Vec<Way<'a>>,
    /// What results depend on besides inputs, targets and methods, by name.
    pub(crate) made_from: Vec<(String, String)>,
    inputs: &'a Sources,
    named: Option<&'a Named>,
    classes: &'a [String],
    pulse: &'a Pulse,
}

/// Explains; `words` are what was typed, which is kept with the results so that they can be verified.
pub(crate) fn run(args: &Explain, words: &[OsString]) -> Result<()> {
    ask(args, |asked| {
        let Asked { question, ways, made_from, inputs, named, classes, pulse } = asked;
        if let Some(folder) = args.results() {
            expect_evaluated_model(&folder, &made_from)?;
        }
        let mut work = Work::new(args, pulse, &question, made_from)?.with_columns(inputs.columns());
        let reasons = args.reasons.config(&inputs.columns())?;
        let results = args.results();
        args.maps.expect_images(question.score.shape(), results.is_some())?;
        if args.shard.is_some() && question.score.inputs().is_some() {
            bail!(
                "--shard takes models with one input\nhint: leave --shard out; with --input or --at a run is explained as a whole"
            );
        }
        let folders: Vec<(String, PathBuf)> = ways
            .iter()
            .zip(args.method_names())
            .filter_map(|(_, name)| Some((name.clone(), folder(results.as_ref()?, &name, ways.len()))))
            .collect();
        // What would be refused is refused before the first method has run.
        for (way, (_, folder)) in ways.iter().zip(&folders) {
            work.check(way, folder)?;
        }
        if let Some(folder) = &results {
            expect_writable(folder)?;
            one_run::make_room(folder, &folders, args.force)?;
        }
        for (i, way) in ways.iter().enumerate() {
            work.explain(way, folders.get(i).map(|(_, folder)| folder.as_path()))?;
        }
        // What speaks of all inputs together is made of all shards together.
        let whole = if args.shard.is_none() { &folders[..] } else { &[] };
        if let Some(packed) = question.score.inputs() {
            for (_, folder) in whole {
                print_progress(&format!("wrote {}", save_by_input(folder, packed)?.display()));
            }
        }
        let printed = match &reasons {
            Some(config) => work.reasons(config, classes)?,
            None => work.printed(classes)?,
        };
        for (name, folder) in whole {
            args.glance(name, folder, &inputs.columns(), work.explanations())?;
        }
        if let Some(config) = &reasons {
            for (_, folder) in whole {
                for file in save_reasons(folder, config, &inputs.columns(), classes)? {
                    print_progress(&format!("wrote {}", file.display()));
                }
            }
        }
        let failures = work.failures();
        if let Some(folder) = &results {
            Record::new(words)?.save(folder)?;
            let report = Report {
                features: inputs.features(),
                columns: inputs.columns(),
                inputs: question.score.inputs().cloned(),
                tokens: named.map_or_else(Default::default, |named| named.tokens.clone()),
                classes: classes.to_vec(),
                ..Report::default()
            };
            let about = (&question.provenance, args.maps.show(report));
            page::describe(args, folder, &folders, inputs.len(), about)?;
            match args.shard {
                // Pages are drawn of all shards together.
                Some(shard) => finish(shard, folder)?,
                None => page::draw(folder, &folders, question.score.shape(), args.overlay)?,
            }
        }
        print_data(&printed)?;
        tell_failures(&failures)
    })
}

/// Loads all that a command names, and hands on what it asks.
pub(crate) fn ask<T>(args: &Explain, then: impl FnOnce(Asked) -> Result<T>) -> Result<T> {
    let against = &args.against;
    let (names, settings) = asked_for(args);
    let elsewhere: &[Setting] = if against.against.is_some() { &[Setting::Data] } else { &[] };
    let methods = settings.methods(&names, args.traces.is_some(), elsewhere)?;
    if against.against.is_some() && !methods.iter().any(|method| Comparison::is_used_by(method.spec())) {
        bail!(
            "--against makes no difference to {}\nhint: leave --method out, or choose transport, transport-line, \
             nearest-ig or expected-gradients",
            names.join(", ")
        );
    }
    refuse_for_floats(&args.inputs, args.data_args.not_for_floats().or(args.part.map(|_| "--part")))?;
    let part = args.part.unwrap_or(DataPart::Train).into();
    let options = OpenOptions { part, ..args.data_args.options() };
    let needs_gradients = args.path.is_some() || methods.iter().any(Method::needs_gradients);
    let networks = Networks::load(&args.settings.flow, &args.engine);
    let named = args.named.read(&args.inputs, &args.model, &options, &args.engine, settings.baseline())?;
    if let (Some(flag), true) = (args.not_for_named(), named.is_some()) {
        bail!(
            "{flag} is for a model with one input\nhint: leave it out, or explain that input alone with a model exported for it"
        );
    }
    let scored = args.model.scored(args.scoring.scoring(&args.target, &args.model, &args.engine)?);
    let model = load(args, &scored, &options, needs_gradients, named.as_ref())?;
    print_notices(model.values().notices());
    methods.iter().try_for_each(|method| method.spec().fits(model.score()))?;
    let classes = scored.class_names(model.values())?;
    let options = args.model.bind(&model, options, args.settings.background())?;
    let opened = match &named {
        Some(_) => None,
        None => Some(Sources::open(&args.inputs, &options, model.values())?),
    };
    let inputs = match (&named, &opened) {
        (Some(named), _) => &named.sources,
        (None, Some(opened)) => opened,
        (None, None) => bail!("there are no inputs"),
    };
    args.model.tell_of_units(inputs)?;
    let targets = match &args.targets {
        Some(several) => several_targets(several, model.values(), &classes)?,
        None => targets(scored.target(&args.target), model.values(), &classes, inputs.len())?,
    };
    let (settings, baselines) = match &named {
        Some(named) => settings.named_baselines(named, &options, inputs.len())?,
        None => (settings, None),
    };
    let surroundings =
        Surroundings::read(&settings, networks, &options, model.values(), inputs)?.with_baselines(baselines);
    let flow = match (&against.against, surroundings.flows.as_slice()) {
        (Some(_), [_, ..]) if surroundings.between.is_some() => {
            bail!("--against takes one flow\nhint: give one --flow, or none")
        }
        (Some(population), [flow]) => Some(Direction::of(flow, population)?),
        (Some(_), [_, _, ..]) => bail!("--against takes one flow\nhint: give one --flow, or none"),
        _ => None,
    };
    if against.against.is_none() {
        surroundings.refuse_between()?;
    }
    let engine = args.engine.config();
    let parts = Parts {
        background: surroundings.background.as_ref(),
        flow,
        between: surroundings.between.as_ref().map(|flows| (flows, &engine)),
        model: model.values(),
        classes: &classes,
        inputs,
        options: &OpenOptions { limit: None, ..options.clone() },
    };
    let comparison = against.comparison(&parts)?;
    if comparison.is_none() {
        tell_of_zeros(args, &methods, inputs);
    }
    let shown = if args.output.is_some() && model.with_gradients().is_some() { SHOWN } else { 0 };
    let pulse = Pulse::default();
    let tell = |rows| pulse.tell(rows);
    let score = Watched::new(model.score(), &tell);
    let question = Question {
        score: &score,
        inputs,
        targets,
        context: surroundings.context(model.with_gradients()),
        stills: shown,
        provenance: provenance(&model, &surroundings),
        comparison: comparison.as_ref(),
    };
    let given =
        methods.iter().map(|method| given_paths(args, method, inputs.len())).collect::<Result<Vec<_>>>()?;
    let ways: Vec<Way> = methods
        .iter()
        .zip(&given)
        .map(|(method, given)| given.as_ref().map_or(Way::Method(method), |given| given.way()))
        .collect();
    let made_from = made_from(args, &scored, &model, &surroundings)?;
    then(Asked { question, ways, made_from, inputs, named: named.as_ref(), classes: &classes, pulse: &pulse })
}

impl Explain {
    /// The methods that were asked for, by their names in folders.
    fn method_names(&self) -> Vec<String> {
        let (names, settings) = asked_for(self);
        let elsewhere = [Setting::Data];
        let methods = settings.methods(&names, self.traces.is_some(), &elsewhere).unwrap_or_default();
        methods.iter().map(Method::name).collect()
    }

    /// The first flag that speaks of one input, where one was given.
    fn not_for_named(&self) -> Option<&'static str> {
        let given = [
            ("--against", self.against.against.is_some()),
            ("--path", self.path.is_some()),
            ("--traces", self.traces.is_some()),
            ("--background", self.settings.background().is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(flag, _)| flag)
    }

    /// The table at a glance, where there are rows enough for one, or it is asked for.
    fn glance(&self, method: &str, folder: &Path, columns: &[Column], rows: usize) -> Result<()> {
        if columns.is_empty() || rows < GLANCED && self.by.is_none() {
            return match &self.by {
                Some(by) => {
                    bail!("--by {by} needs rows of a table, with names of columns\nhint: give a .csv file")
                }
                None => Ok(()),
            };
        }
        let title = format!("{} by {method}", self.model.model.display());
        for file in save_glance(folder, &title, columns, self.by.as_deref())? {
            print_progress(&format!("wrote {}", file.display()));
        }
        Ok(())
    }

    /// The folder of all results. That of a shard has another name until it is whole.
    fn results(&self) -> Option<PathBuf> {
        let (output, Some(shard)) = (self.output.as_ref()?, self.shard) else { return self.output.clone() };
        let shards = output.join(SHARDS);
        let whole = shard.folder(&shards);
        Some(if whole.exists() { whole } else { shard.unfinished(&shards) })
    }
}

/// One method writes into the folder itself, several into a folder each.
fn folder(results: &Path, name: &str, methods: usize) -> PathBuf {
    if methods == 1 { results.to_owned() } else { results.join(name) }
}

/// Gives a finished shard the name that says so.
fn finish(shard: Shard, folder: &Path) -> Result<()> {
    let whole = shard.folder(folder.parent().unwrap_or(folder));
    if whole != folder {
        std::fs::rename(folder, &whole).with_context(|| format!("cannot write {}", whole.display()))?;
    }
    print_progress(&format!("shard {shard} is whole: {}", whole.display()));
    Ok(())
}

/// The methods by name, and their settings.
fn asked_for(args: &Explain) -> (Vec<String>, MethodArgs) {
    let followed = !args.settings.flow.is_empty() || args.traces.is_some();
    let mut settings = args.settings.clone();
    let default = match (args.against.nearest, &args.against.against) {
        (Some(count), _) => {
            settings.neighbours = Some(count);
            "nearest-ig"
        }
        (None, Some(_)) => "transport",
        (None, None) if followed => "transport",
        (None, None) => "ig",
    };
    let names = if args.method.is_empty() { vec![default.to_string()] } else { args.method.clone() };
    let settings = settings.for_text(&args.named.text, &names);
    (names, settings)
}

/// The model, with the contrast that was asked for.
fn load(
    args: &Explain,
    model: &ModelArgs,
    options: &OpenOptions,
    needs_gradients: bool,
    named: Option<&Named>,
) -> Result<Loaded> {
    let model_args = match named {
        Some(named) => named.model(model),
        None => model.for_inputs(&args.inputs, options)?,
    };
    Loaded::load_with(&model_args, &args.engine, needs_gradients, |model| {
        if !args.against.has_contrast() {
            return Ok(None);
        }
        let classes = args.model.class_names(model)?;
        args.against.contrast(model.outputs(), &classes)
    })
}

/// A row of zeros is hardly ever what the rows of a table should be compared with.
fn tell_of_zeros(args: &Explain, methods: &[Method], inputs: &Sources) {
    let from_zero = |method: &&Method| {
        method.spec().uses(Setting::Baseline) && method.name().starts_with("ig")
            || method.name() == "deeplift"
    };
    let given = args.settings.has_baseline() || args.path.is_some();
    if let Some(method) = methods.iter().find(from_zero)
        && !given
        && !inputs.features().is_empty()
    {
        print_progress(&format!(
            "notice: {} compares with a row of zeros, which means nothing for most tables; compare with rows instead: \
             --against DATA, or --background DATA --baseline mean",
            method.name()
        ));
    }
}

/// What results depend on besides inputs, targets and methods, by name.
fn made_from(
    args: &Explain,
    scored: &ModelArgs,
    model: &Loaded,
    surroundings: &Surroundings,
) -> Result<Vec<(String, String)>> {
    let mut facts = scored.made_from(model, &args.settings)?;
    facts.extend(surroundings.made_from());
    facts.extend(args.against.in_words());
    Ok(facts)
}

/// What the results are made from.
fn provenance(model: &Loaded, surroundings: &Surroundings) -> Provenance {
    let engine = model.values().engine();
    Provenance {
        engine: Some(engine.described()),
        model: Some(model.hash().to_string()),
        flows: surroundings.network_hashes(),
    }
}
