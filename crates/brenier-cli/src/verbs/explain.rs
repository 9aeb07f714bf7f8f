//! `brenier explain`: credit for a model's score along a path that ends at each input.

use std::fmt::Write;
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::flow::OnnxFlow;
use brenier::report::save_explanations;
use brenier::{
    Explanation, Line, OnnxPredictor, Path, PathIntegral, Polyline, PredictorConfig, Request, Rule, Score,
    Trace, TraceConfig, VelocityField, Verdict, fingerprint, fingerprint_row, load_traces, save_traces,
    trace,
};
use clap::Args;
use ndarray::{Array2, ArrayD, Axis};

use crate::args::Format;
use crate::engine_args::EngineArgs;
use crate::output::{print_data, print_progress};

/// Credit of every feature for a model's score, along a path that ends at each input
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier explain -m model.onnx inputs.npy
  brenier explain -m model.onnx inputs.npy --baseline mean.npy --tolerance 1e-4 -o out
  brenier explain -m model.onnx inputs.npy --target 3 --steps 50 --rule left
  brenier explain -m model.onnx -f flow.onnx inputs.npy -o out
  brenier explain -m model.onnx inputs.npy --path points.npy
  brenier explain -m other.onnx inputs.npy --traces traces.npz")]
pub(crate) struct Explain {
    /// The inputs as an .npy file; the first axis is the example
    inputs: PathBuf,
    /// The ONNX model to explain
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,
    /// What to explain: 'predicted', a class index, or one for each input (0,2,1)
    #[arg(long, default_value = "predicted")]
    target: String,
    /// Where the straight path starts: 'zero', or an .npy file with one reference or one for each input
    #[arg(long, default_value = "zero", value_name = "zero|FILE")]
    baseline: String,
    /// Follow straight pieces through the points of an .npy file ([points, ...]); for one input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["traces", "baseline"])]
    path: Option<PathBuf>,
    /// Follow a flow backward from each input: an ONNX file with inputs x and t and output v
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["path", "traces", "baseline"])]
    flow: Option<PathBuf>,
    /// Follow saved traces, one for each input (with --flow, traces.npz is written to the output folder)
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    traces: Option<PathBuf>,
    /// Integrate until credit and score agree to this relative tolerance
    #[arg(long, value_name = "TOLERANCE", conflicts_with_all = ["rule", "steps"])]
    tolerance: Option<f64>,
    /// The quadrature rule: left (the paper's), right, midpoint, trapezoid, simpson, gauss-legendre, adaptive
    #[arg(long)]
    rule: Option<String>,
    /// Steps (or nodes) of the rule
    #[arg(long, value_name = "K")]
    steps: Option<usize>,
    /// The output to explain, by name; the first where not given
    #[arg(long, value_name = "NAME")]
    output_name: Option<String>,
    /// The shape of one input where the file leaves it open, such as 3,224,224
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    input_shape: Option<Vec<usize>>,
    /// Explain probabilities as they are, not the logits before a final Softmax or Sigmoid
    #[arg(long)]
    keep_softmax: bool,
    /// Folder for explanations.npz and explanations.jsonl
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Replace results that are in the folder already
    #[arg(long)]
    force: bool,
    /// How the summary is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    engine: EngineArgs,
}

pub(crate) fn run(args: &Explain) -> Result<()> {
    let rule = rule(args)?;
    if let Some(folder) = &args.output {
        refuse_to_overwrite(folder, args.force)?;
    }
    let config = PredictorConfig {
        engine: args.engine.config(),
        output: args.output_name.clone(),
        input_shape: args.input_shape.clone(),
        keep_final_activation: args.keep_softmax,
        ..PredictorConfig::default()
    };
    let predictor = OnnxPredictor::load(&args.model, &config)?;
    for notice in predictor.notices() {
        print_progress(&format!("notice: {notice}"));
    }
    let inputs = rows(&args.inputs, &predictor)?;
    let targets = targets(&args.target, &predictor, &inputs)?;
    let paths = paths(args, &predictor, &inputs)?;
    let requests: Vec<Request> = paths
        .iter()
        .zip(&targets)
        .enumerate()
        .map(|(example, (path, &target))| Request { example, path: path.as_ref(), target })
        .collect();
    let mut explanations = PathIntegral::new(rule).explain_all(&predictor, &requests)?;
    let model_hash = file_hash(Some(&args.model))?;
    let flow_hash = file_hash(args.flow.as_deref())?;
    for explanation in &mut explanations {
        let engine = predictor.engine();
        let certificate = &mut explanation.certificate;
        certificate.engine = Some(format!("{} {}", engine.name(), engine.version()));
        certificate.model_hash.clone_from(&model_hash);
        certificate.flow_hash.clone_from(&flow_hash);
        certificate.input_hash = Some(fingerprint_row(explanation.input.view()));
    }
    if let Some(folder) = &args.output {
        save_explanations(folder, &explanations)?;
        print_progress(&format!("wrote {}", folder.join("explanations.npz").display()));
        print_progress(&format!("wrote {}", folder.join("explanations.jsonl").display()));
    }
    match args.format {
        Format::Text => print_data(&text(&explanations)?),
        Format::Json => {
            let certificates: Vec<_> = explanations.iter().map(|e| &e.certificate).collect();
            print_data(&format!("{}\n", serde_json::to_string(&certificates)?))
        }
    }
}

/// What the result was made from.
fn file_hash(file: Option<&FilePath>) -> Result<Option<String>> {
    let read = |file: &FilePath| {
        let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(fingerprint(&bytes))
    };
    file.map(read).transpose()
}

fn refuse_to_overwrite(folder: &FilePath, force: bool) -> Result<()> {
    let file = folder.join("explanations.npz");
    if file.exists() && !force {
        bail!("{} exists already\nhint: choose another folder, or replace it with --force", file.display());
    }
    Ok(())
}

/// `--tolerance` is what a user says; `--rule` and `--steps` are for those who know.
fn rule(args: &Explain) -> Result<Rule> {
    let name =
        args.rule.as_deref().unwrap_or(if args.steps.is_some() { "gauss-legendre" } else { "adaptive" });
    let steps = args.steps.unwrap_or(50);
    Ok(match name {
        "left" => Rule::Left { steps },
        "right" => Rule::Right { steps },
        "midpoint" => Rule::Midpoint { steps },
        "trapezoid" => Rule::Trapezoid { steps },
        "simpson" => Rule::Simpson { steps },
        "gauss-legendre" => Rule::GaussLegendre { nodes: steps },
        "adaptive" => match (args.steps, Rule::adaptive(args.tolerance.unwrap_or(1e-3))) {
            (Some(max_gradients), Rule::Adaptive { tolerance, .. }) => {
                Rule::Adaptive { tolerance, max_gradients }
            }
            (_, rule) => rule,
        },
        other => bail!(
            "there is no rule '{other}'\nhint: choose left, right, midpoint, trapezoid, simpson, gauss-legendre or adaptive"
        ),
    })
}

/// An array of float32 or float64.
fn read_array(file: &FilePath) -> Result<ArrayD<f64>> {
    let single = match ndarray_npy::read_npy::<_, ArrayD<f64>>(file) {
        Ok(array) => return Ok(array),
        Err(ndarray_npy::ReadNpyError::WrongDescriptor(_)) => ndarray_npy::read_npy::<_, ArrayD<f32>>(file),
        Err(error) => Err(error),
    };
    let array = single.with_context(|| format!("cannot read {} as an array of floats", file.display()))?;
    Ok(array.mapv(f64::from))
}

/// The rows of a file, flat; one example without its axis counts as a batch of one.
fn rows(file: &FilePath, predictor: &OnnxPredictor) -> Result<Array2<f64>> {
    let mut array = read_array(file)?;
    let shape = Score::shape(predictor);
    if array.shape() == shape {
        array = array.insert_axis(Axis(0));
    }
    if array.shape().get(1..) != Some(shape) {
        let fits: Vec<String> = shape.iter().map(ToString::to_string).collect();
        bail!(
            "{} has shape {:?}, but the model takes [N, {}]\nhint: the first axis is the example, and images are \
             channels first",
            file.display(),
            array.shape(),
            fits.join(", ")
        );
    }
    let count = array.shape()[0];
    if count == 0 {
        bail!("{} holds no examples", file.display());
    }
    let flat = array
        .to_shape((count, predictor.features()))
        .with_context(|| format!("cannot flatten {}", file.display()))?
        .to_owned();
    if let Some(((row, feature), value)) = flat.indexed_iter().find(|(_, value)| !value.is_finite()) {
        bail!(
            "{} holds {value} in example {row}, feature {feature}\nhint: fill or drop missing values first",
            file.display()
        );
    }
    Ok(flat)
}

/// One target for each input.
fn targets(text: &str, predictor: &OnnxPredictor, inputs: &Array2<f64>) -> Result<Vec<usize>> {
    let count = inputs.nrows();
    if text == "predicted" {
        let shape: Vec<usize> =
            std::iter::once(count).chain(Score::shape(predictor).iter().copied()).collect();
        let batch = inputs.mapv(|v| v as f32).into_shape_with_order(shape)?;
        let scores = predictor.scores(batch.view())?;
        let best = |row: ndarray::ArrayView1<f64>| {
            row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i)
        };
        return Ok(scores.rows().into_iter().map(best).collect());
    }
    let parse = |part: &str| {
        part.trim().parse::<usize>().with_context(|| {
            format!("'{part}' is not a target\nhint: say 'predicted', a class index, or one for each input (0,2,1)")
        })
    };
    let listed = text.split(',').map(parse).collect::<Result<Vec<usize>>>()?;
    if let Some(wrong) = listed.iter().find(|&&target| target >= predictor.outputs()) {
        bail!(
            "target {wrong} is out of range: the model has {} outputs, numbered from 0",
            predictor.outputs()
        );
    }
    match listed.as_slice() {
        [one] => Ok(vec![*one; count]),
        many if many.len() == count => Ok(listed),
        many => bail!("{} targets are given for {count} inputs\nhint: give one, or one for each", many.len()),
    }
}

/// A path that ends at each input.
fn paths(args: &Explain, predictor: &OnnxPredictor, inputs: &Array2<f64>) -> Result<Vec<Box<dyn Path>>> {
    if let Some(file) = &args.traces {
        let traces = load_traces(file)?;
        if traces.len() != inputs.nrows() {
            let file = file.display();
            bail!("{file} holds {} traces, but there are {} inputs", traces.len(), inputs.nrows());
        }
        return Ok(traces.into_iter().map(|trace| Box::new(trace) as Box<dyn Path>).collect());
    }
    if let Some(file) = &args.flow {
        return Ok(follow(args, file, inputs)?.into_iter().map(|t| Box::new(t) as Box<dyn Path>).collect());
    }
    if let Some(file) = &args.path {
        if inputs.nrows() != 1 {
            bail!("--path is for one input, but {} holds {}", args.inputs.display(), inputs.nrows());
        }
        return Ok(vec![Box::new(Polyline::read(file)?)]);
    }
    let baselines = match args.baseline.as_str() {
        "zero" => Array2::zeros((1, inputs.ncols())),
        file => rows(FilePath::new(file), predictor)?,
    };
    if baselines.nrows() != 1 && baselines.nrows() != inputs.nrows() {
        let (found, wanted) = (baselines.nrows(), inputs.nrows());
        bail!(
            "{} holds {found} references for {wanted} inputs\nhint: give one, or one for each",
            args.baseline
        );
    }
    let line = |i: usize| -> Result<Box<dyn Path>> {
        let reference = baselines.row(if baselines.nrows() == 1 { 0 } else { i });
        Ok(Box::new(Line::new(reference, inputs.row(i))?))
    };
    (0..inputs.nrows()).map(line).collect()
}

/// The trace of a flow from each input back to its reference; saved, since it serves other models as well.
fn follow(args: &Explain, file: &FilePath, inputs: &Array2<f64>) -> Result<Vec<Trace>> {
    let flow = OnnxFlow::load(file, &args.engine.config())?;
    if flow.features() != inputs.ncols() {
        bail!(
            "the flow {} is for inputs of shape {:?}, which do not fit the model's\nhint: use a flow that was trained \
             on this model's data",
            file.display(),
            flow.shape()
        );
    }
    let traces = trace(&flow, inputs.view(), &TraceConfig::default())?;
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let saved = folder.join("traces.npz");
        save_traces(&saved, &traces)?;
        print_progress(&format!("wrote {}", saved.display()));
    }
    Ok(traces)
}

fn text(explanations: &[Explanation]) -> Result<String> {
    let mut out = String::new();
    writeln!(
        out,
        "{:>7}  {:>6}  {:>11}  {:>11}  {:>11}  {:>9}  {:>9}  verdict",
        "example", "target", "score", "reference", "credit", "residual", "gradients"
    )?;
    for explanation in explanations {
        let c = &explanation.certificate;
        let number = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.5}"));
        let reference = number(c.completeness.map(|c| c.reference_score));
        let credit = number(c.completeness.map(|c| c.credit_sum));
        let residual = c.completeness.and_then(|c| c.relative_residual);
        let residual = residual.map_or("-".to_string(), |r| format!("{:.3} %", 100.0 * r));
        let verdict = match &c.verdict {
            Verdict::Pass => "pass".to_string(),
            Verdict::Warn { reasons } => format!("warn: {}", reasons.join("; ")),
        };
        writeln!(
            out,
            "{:>7}  {:>6}  {:>11.5}  {reference:>11}  {credit:>11}  {residual:>9}  {:>9}  {verdict}",
            c.example, c.target, c.score, c.gradient_evaluations
        )?;
    }
    Ok(out)
}
