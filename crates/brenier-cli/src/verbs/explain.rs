//! `brenier explain`: credit for a model's score, by one method or by several.

mod page;
mod parts;
mod paths;
mod table;
mod work;

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::attribute::{Frames, Method};
use brenier::data::OpenOptions;
use brenier::report::{HeatMapGround, Report, save_explanations, save_heat_maps, save_stills};
use brenier::{Explanation, ValuePredictor, fingerprint, fingerprint_row};
use clap::Args;

use self::paths::given_paths;
use self::work::Work;
use crate::data_args::{DataArgs, DataPart};
use crate::engine_args::EngineArgs;
use crate::output::{Format, print_data, print_progress};
use crate::request::{
    Inputs, Loaded, MethodArgs, ModelArgs, Networks, Surroundings, read_inputs, several_targets, targets,
    with_methods,
};

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
  brenier explain -m forest.onnx rows.npy --method shapley-values --background train.csv --engine ort
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
    #[arg(long, value_name = "CLASS", default_value = "predicted")]
    target: String,
    /// Explain several scores of every input: all, top3 for the three highest, or classes with commas between
    #[arg(long, value_name = "all|topN|CLASSES", conflicts_with = "target")]
    targets: Option<String>,
    /// The method, or several with commas between: transport where there is a flow, else ig
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "path")]
    method: Vec<String>,
    #[command(flatten)]
    settings: MethodArgs,
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
    /// Which part of data that come in two is explained
    #[arg(long, value_enum, default_value = "train")]
    part: DataPart,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Explanations that are printed one by one although they are in files too.
const LINES: usize = 24;

/// What one method gave.
struct Run {
    name: String,
    explanations: Vec<Explanation>,
    /// Stills of the paths, for the report.
    stills: Vec<Option<Frames>>,
}

pub(crate) fn run(args: &Explain) -> Result<()> {
    let followed = !args.settings.flow.is_empty() || args.traces.is_some();
    let default = [if followed { "transport" } else { "ig" }.to_string()];
    let names = if args.method.is_empty() { &default[..] } else { &args.method };
    let methods = args.settings.methods(names, args.traces.is_some(), &[])?;
    for name in methods.iter().map(Method::name) {
        if let Some(folder) = folder(args, &name, methods.len()) {
            refuse_to_overwrite(&folder, args.force)?;
        }
    }
    let options = OpenOptions { part: args.part.into(), ..args.data_args.options() };
    let needs_gradients = args.path.is_some() || methods.iter().any(Method::needs_gradients);
    let networks = Networks::load(&args.settings.flow, &args.engine);
    let model = Loaded::load(&args.model.for_inputs(&args.inputs, &options)?, &args.engine, needs_gradients)?;
    for notice in model.values().notices() {
        print_progress(&format!("notice: {notice}"));
    }
    let classes = args.model.class_names(model.values())?;
    let options = OpenOptions { columns: model.columns(), ..options };
    let Inputs { rows: inputs, names, features } = read_inputs(&args.inputs, &options, model.values())?;
    let rounds = match &args.targets {
        Some(several) => several_targets(several, model.values(), &classes, &inputs)?,
        None => vec![targets(&args.target, model.values(), &classes, &inputs)?],
    };
    let surroundings = Surroundings::read(&args.settings, networks, &options, model.values(), inputs.view())?;
    let stills = args.output.is_some() && model.with_gradients().is_some();
    let work = Work { model: &model, surroundings: &surroundings, inputs: &inputs, rounds: &rounds, stills };
    let mut runs = Vec::with_capacity(methods.len());
    for method in &methods {
        let name = method.name();
        let folder = folder(args, &name, methods.len());
        let given = given_paths(args, method, &inputs)?;
        let (mut explanations, stills): (Vec<_>, Vec<_>) =
            work.explain(method, given, folder.as_deref())?.into_iter().unzip();
        sign(args, method, model.values(), &names, &mut explanations)?;
        if let Some(folder) = folder {
            save_explanations(&folder, &explanations)?;
            save_stills(&folder, &stills)?;
            print_progress(&format!("wrote {}", folder.join("explanations.npz").display()));
            print_progress(&format!("wrote {}", folder.join("explanations.jsonl").display()));
        }
        runs.push(Run { name, explanations, stills });
    }
    let lines: usize = runs.iter().map(|run| run.explanations.len()).sum();
    let printed = match args.format {
        Format::Text if args.output.is_some() && lines > LINES => format!(
            "{}\na certificate for each explanation is in explanations.jsonl, and in the report\n",
            table::by_method(&runs)?
        ),
        Format::Text => table::text(&runs, &classes)?,
        Format::Json => {
            let certificates: Vec<_> =
                runs.iter().flat_map(|run| &run.explanations).map(|e| &e.certificate).collect();
            format!("{}\n", serde_json::to_string(&certificates)?)
        }
    };
    if let Some(folder) = &args.output {
        if model.score().shape().len() == 3 {
            write_heat_maps(&folder.join("heatmaps"), &runs, names.len(), args.overlay)?;
        }
        let file = folder.join("report.html");
        let report = Report { features, classes, ..Report::default() };
        let report = page::report(args, runs, names.len(), report).with_metrics_in(folder)?;
        report.save_description(folder)?;
        report.save(&file)?;
        print_progress(&format!("wrote {}", file.display()));
    }
    print_data(&printed)
}

/// A picture for each example, method and target; those of one example by one rule for the scale.
fn write_heat_maps(folder: &FilePath, runs: &[Run], examples: usize, overlay: bool) -> Result<()> {
    let ground = if overlay { HeatMapGround::Input } else { HeatMapGround::Paper };
    let mut count = 0;
    for example in 0..examples {
        let all = runs.iter().flat_map(|run| &run.explanations);
        let of_it: Vec<&Explanation> = all.filter(|e| e.certificate.example == example).collect();
        count += save_heat_maps(folder, &of_it, ground)?.len();
    }
    print_progress(&format!("wrote {count} heat maps into {}", folder.display()));
    Ok(())
}

/// One method writes into the folder itself, several into a folder each.
fn folder(args: &Explain, name: &str, methods: usize) -> Option<PathBuf> {
    args.output.as_ref().map(|folder| if methods == 1 { folder.clone() } else { folder.join(name) })
}

/// Writes into the certificates what the result was made from.
fn sign(
    args: &Explain,
    method: &Method,
    predictor: &ValuePredictor,
    names: &[String],
    explanations: &mut [Explanation],
) -> Result<()> {
    let model_hash = file_hash(&args.model.model)?;
    let flow_hash = match (method, args.settings.flow.as_slice()) {
        (Method::Transport(_) | Method::Ddim(_), [_, ..]) => {
            Some(args.settings.flow.iter().map(|file| file_hash(file)).collect::<Result<Vec<_>>>()?.join(","))
        }
        _ => None,
    };
    let engine = format!("{} {}", predictor.engine().name(), predictor.engine().version());
    for explanation in explanations {
        let certificate = &mut explanation.certificate;
        certificate.engine = Some(engine.clone());
        certificate.model_hash = Some(model_hash.clone());
        certificate.flow_hash.clone_from(&flow_hash);
        certificate.input_hash = Some(fingerprint_row(explanation.input.view()));
        certificate.name = names.get(certificate.example).cloned();
    }
    Ok(())
}

/// The fingerprint of a file.
pub(crate) fn file_hash(file: &FilePath) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(fingerprint(&bytes))
}

fn refuse_to_overwrite(folder: &FilePath, force: bool) -> Result<()> {
    let file = folder.join("explanations.npz");
    if file.exists() && !force {
        bail!("{} exists already\nhint: choose another folder, or replace it with --force", file.display());
    }
    Ok(())
}
