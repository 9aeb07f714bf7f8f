//! `brenier explain`: credit for a model's score, by one method or by several.

mod page;
mod paths;
pub(crate) mod record;
mod table;
mod work;

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use brenier::attribute::{Method, Setting};
use brenier::compare::Comparison;
use brenier::data::OpenOptions;
use brenier::report::Report;
use brenier::runs::explain::{Provenance, Question, Way};
use clap::Args;

use self::paths::given_paths;
use self::record::Record;
use self::work::Work;
use crate::data_args::{DataArgs, DataPart};
use crate::engine_args::EngineArgs;
use crate::output::{Format, expect_writable, print_data, print_progress};
use crate::request::{
    AgainstArgs, Direction, Loaded, MethodArgs, ModelArgs, Networks, Parts, Sources, Surroundings,
    refuse_for_floats, several_targets, targets, with_methods,
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
  brenier explain -m model.onnx people.csv --label class --limit 10
  brenier explain --config explain.toml inputs.npy
  brenier explain -m model.onnx inputs.npy --method ig,smoothgrad,grad-cam -o out
  brenier explain -m model.onnx inputs.npy --method expected-gradients --background train.npz
  brenier explain -m model.onnx inputs.npy --method kernel-shap --groups patches:8x8 --samples 2000
  brenier explain -m forest.onnx rows.npy --method tree-shap --background train.csv
  brenier explain -m xgboost.json declined.csv --against approved.csv --among all.csv
  brenier explain -m model.onnx boots.png --background fashion/ --against sneaker --contrast -o out
  brenier explain -m model.onnx declined.csv --against approved.csv --among all.csv
  brenier explain -m model.onnx -f a.onnx -f b.onnx -f c.onnx inputs.npy -o out
  brenier explain -m model.onnx inputs.npy --path points.npy
  brenier explain -m other.onnx inputs.npy --traces traces.npz"))]
pub(crate) struct Explain {
    /// What to explain: images, folders, .npy or .npz arrays (the first axis is the example), rows of tables
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// The score to explain: 'predicted', a class by index or name, or one for each input (0,2,1)
    #[arg(long, value_name = "CLASS", default_value = "predicted", allow_hyphen_values = true)]
    target: String,
    /// Explain several scores of every input: all, top3 for the three highest, or classes with commas between
    #[arg(long, value_name = "all|topN|CLASSES", conflicts_with = "target")]
    targets: Option<String>,
    /// The method, or several with commas between: transport where there is a flow, else ig
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "path")]
    method: Vec<String>,
    #[command(flatten)]
    settings: MethodArgs,
    #[command(flatten)]
    against: AgainstArgs,
    /// Follow straight pieces through the points of an .npy file ([points, ...]); for one input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "baseline", "flow"])]
    path: Option<PathBuf>,
    /// Follow saved traces, one for each input (with --flow, traces.npz is written to the output folder)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["baseline", "flow"])]
    traces: Option<PathBuf>,
    /// Folder for explanations.npz, explanations.jsonl, report.html and heat maps of images
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Draw heat maps over the input in grey
    #[arg(long, requires = "output")]
    overlay: bool,
    /// Replace results that are in the folder already
    #[arg(long)]
    force: bool,
    /// How the summary is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Which part of data that come in two is explained; train where not given
    #[arg(long, value_enum)]
    part: Option<DataPart>,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Explanations that are printed one by one although they are in files too.
const LINES: usize = 24;

/// What a command asks: everything is loaded, nothing is explained yet.
pub(crate) struct Asked<'a> {
    pub(crate) question: Question<'a>,
    pub(crate) ways: Vec<Way<'a>>,
    /// What results depend on besides inputs, targets and methods, by name.
    pub(crate) made_from: Vec<(String, String)>,
    inputs: &'a Sources,
    classes: &'a [String],
}

/// Explains; `words` are what was typed, which is kept with the results so that they can be verified.
pub(crate) fn run(args: &Explain, words: &[OsString]) -> Result<()> {
    ask(args, |asked| {
        let Asked { question, ways, made_from, inputs, classes } = asked;
        let mut work = Work::new(args, &question, made_from)?.with_columns(inputs.columns());
        let folders: Vec<(String, PathBuf)> = ways
            .iter()
            .zip(args.method_names())
            .filter_map(|(_, name)| Some((name.clone(), args.folder(&name, ways.len())?)))
            .collect();
        // What would be refused is refused before the first method has run.
        for (way, (_, folder)) in ways.iter().zip(&folders) {
            work.check(way, folder)?;
        }
        if let Some(folder) = &args.output {
            expect_writable(folder)?;
        }
        for (i, way) in ways.iter().enumerate() {
            work.explain(way, folders.get(i).map(|(_, folder)| folder.as_path()))?;
        }
        let printed = work.printed(classes)?;
        if let Some(folder) = &args.output {
            Record::new(words)?.save(folder)?;
            let report = Report {
                features: inputs.features(),
                columns: inputs.columns(),
                classes: classes.to_vec(),
                ..Report::default()
            };
            let about = (&question.provenance, report);
            page::draw(args, folder, &folders, inputs.len(), question.score, about)?;
        }
        print_data(&printed)
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
    let model = load(args, &options, needs_gradients)?;
    for notice in model.values().notices() {
        print_progress(&format!("notice: {notice}"));
    }
    methods.iter().try_for_each(|method| method.spec().fits(model.score()))?;
    let classes = args.model.class_names(model.values())?;
    let options = args.model.bind(&model, options, args.settings.background())?;
    let inputs = Sources::open(&args.inputs, &options, model.values())?;
    let targets = match &args.targets {
        Some(several) => several_targets(several, model.values(), &classes)?,
        None => targets(&args.target, model.values(), &classes, inputs.len())?,
    };
    let surroundings = Surroundings::read(&settings, networks, &options, model.values(), &inputs)?;
    let flow = match (&against.against, surroundings.flows.as_slice()) {
        (Some(population), [flow]) => Some(Direction::of(flow, population)?),
        (Some(_), [_, _, ..]) => bail!("--against takes one flow\nhint: give one --flow, or none"),
        _ => None,
    };
    let parts = Parts {
        background: surroundings.background.as_ref(),
        flow,
        model: model.values(),
        classes: &classes,
        inputs: &inputs,
        options: &OpenOptions { limit: None, ..options.clone() },
    };
    let comparison = against.comparison(&parts)?;
    if comparison.is_none() {
        tell_of_zeros(args, &methods, &inputs);
    }
    let shown = if args.output.is_some() && model.with_gradients().is_some() { SHOWN } else { 0 };
    let question = Question {
        score: model.score(),
        inputs: &inputs,
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
    let made_from = made_from(args, &model, &surroundings)?;
    then(Asked { question, ways, made_from, inputs: &inputs, classes: &classes })
}

impl Explain {
    /// The methods that were asked for, by their names in folders.
    fn method_names(&self) -> Vec<String> {
        let (names, settings) = asked_for(self);
        let elsewhere = [Setting::Data];
        let methods = settings.methods(&names, self.traces.is_some(), &elsewhere).unwrap_or_default();
        methods.iter().map(Method::name).collect()
    }

    /// One method writes into the folder itself, several into a folder each.
    fn folder(&self, name: &str, methods: usize) -> Option<PathBuf> {
        self.output.as_ref().map(|folder| if methods == 1 { folder.clone() } else { folder.join(name) })
    }
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
    (names, settings)
}

/// The model, with the contrast that was asked for.
fn load(args: &Explain, options: &OpenOptions, needs_gradients: bool) -> Result<Loaded> {
    let model_args = args.model.for_inputs(&args.inputs, options)?;
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
fn made_from(args: &Explain, model: &Loaded, surroundings: &Surroundings) -> Result<Vec<(String, String)>> {
    let mut facts = args.model.made_from(model, &args.settings)?;
    facts.extend(surroundings.made_from());
    facts.extend(args.against.in_words());
    Ok(facts)
}

/// What the results are made from.
fn provenance(model: &Loaded, surroundings: &Surroundings) -> Provenance {
    let engine = model.values().engine();
    Provenance {
        engine: Some(format!("{} {}", engine.name(), engine.version())),
        model: Some(model.hash().to_string()),
        flows: surroundings.network_hashes(),
    }
}
