//! `brenier export`: an explanation as an ONNX file.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::attribute::{Baseline, Occlusion, SmoothGrad};
use brenier::data::{Dataset, OpenOptions, Part};
use brenier::export::{Exported, ExportedFacts, ExportedSteps, ExportedTarget, export_with};
use brenier::{OnnxPredictor, Rule, Score, nearest_name};
use clap::{Args, ValueEnum};
use ndarray::{Array2, Axis};

use crate::data_args::DataArgs;
use crate::engine_args::EngineArgs;
use crate::output::{print_data, print_notices};
use crate::request::{Loaded, ModelArgs, baseline, file_hash, fixed_rule, one_target, rows};

/// The methods whose work does not depend on the input.
const METHODS: [&str; 9] = [
    "gradient",
    "gradient-input",
    "guided-backprop",
    "deconvnet",
    "ig",
    "expected-gradients",
    "smoothgrad",
    "grad-cam",
    "occlusion",
];

/// Background rows over which an expectation is taken, where not given.
const ROWS: usize = 10;

/// Write an explanation as an ONNX file that any runtime can run beside the model
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  brenier export -m model.onnx --method ig --steps 50 -o explainer.onnx
  brenier export -m model.onnx --method expected-gradients --background train.npy --samples 10 --steps 8 -o explainer.onnx
  brenier export -m model.onnx --method gradient-input --target input -o explainer.onnx
  brenier export -m model.onnx --method ig --steps 200 --steps-as loop -o explainer.onnx
  brenier export -m model.onnx --method occlusion --window 3,4,4 -o explainer.onnx

The file has the model's own input and the outputs scores, credit, explained (the class), and for ig and
expected-gradients residual. It has no operators but ONNX's own. All steps of a batch run at once: give it few rows at a
time, or take --steps-as loop, where memory is short.")]
pub(crate) struct Export {
    #[command(flatten)]
    model: ModelArgs,
    /// The method: gradient, gradient-input, guided-backprop, deconvnet, ig, expected-gradients, smoothgrad, grad-cam or
    /// occlusion
    #[arg(long, default_value = "ig", value_name = "NAME")]
    method: String,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// What to explain: 'predicted', a class by number or name, or 'input': the file then takes a second input, 'target'
    #[arg(long, default_value = "predicted", allow_negative_numbers = true)]
    target: String,
    /// Where the path of ig starts, and what stands behind the window of occlusion
    #[arg(long, value_name = "zero|mean|FILE")]
    baseline: Option<String>,
    /// Data of the kind the model was trained on, for expected-gradients and for the baseline 'mean'
    #[arg(long, value_name = "DATA")]
    background: Option<PathBuf>,
    /// Noisy copies of smoothgrad (50), or background rows of expected-gradients (10)
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Size of smoothgrad's noise, as a fraction of the input's range
    #[arg(long, value_name = "SIZE")]
    noise: Option<f64>,
    /// The quadrature rule: left, right, midpoint, trapezoid, simpson or gauss-legendre
    #[arg(long)]
    rule: Option<String>,
    /// Steps (or nodes) of the rule; default: 50
    #[arg(long, value_name = "K")]
    steps: Option<usize>,
    /// How the steps of ig, expected-gradients and smoothgrad are taken
    #[arg(long, value_enum, value_name = "WAY")]
    steps_as: Option<StepsAs>,
    /// The layer of grad-cam, by the name of its node or value; the last convolution where not given
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    /// The window of occlusion along every axis of an input, such as 3,8,8
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    window: Option<Vec<usize>>,
    /// Steps of the window; half of it where not given
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    stride: Option<Vec<usize>>,
    /// Seed of what is drawn
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    data_args: DataArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// How steps are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StepsAs {
    /// All at once, as one batch: the default
    Batch,
    /// One after another, in a Loop: memory does not grow with their number
    Loop,
}

pub(crate) fn run(args: &Export) -> Result<()> {
    args.check_method()?;
    let loaded = Loaded::load(&args.model, &args.engine, true)?;
    let Some(model) = loaded.with_gradients() else {
        bail!(
            "{} is a tree ensemble, which has no gradient to export\nhint: explain it with 'brenier explain'",
            args.model.model.display()
        );
    };
    print_notices(model.notices());
    let method = args.exported(model)?;
    let target = args.target(&loaded)?;
    let steps = match args.steps_as {
        Some(StepsAs::Loop) => ExportedSteps::Loop,
        _ => ExportedSteps::Batch,
    };
    let file = export_with(model, &method, target, steps, Some(file_hash(&args.model.model)?))?;
    file.save(&args.output)?;
    let facts = ExportedFacts::of(&file).map(|facts| facts.in_words()).unwrap_or_default();
    print_data(&format!("{}: {facts}\n", args.output.display()))
}

impl Export {
    /// Refuses what cannot be exported, and options that the method does not use.
    fn check_method(&self) -> Result<()> {
        let name = self.method.as_str();
        if !METHODS.contains(&name) {
            let meant =
                nearest_name(name, &METHODS).map(|near| format!("did you mean {near}? ")).unwrap_or_default();
            bail!(
                "'{name}' cannot be exported: its work is not known before it sees an input\nhint: {meant}choose one of {}",
                METHODS.join(", ")
            );
        }
        let path = matches!(name, "ig" | "expected-gradients");
        let given = [
            ("--baseline", self.baseline.is_some(), matches!(name, "ig" | "occlusion")),
            (
                "--background",
                self.background.is_some(),
                name == "expected-gradients" || self.baseline.as_deref() == Some("mean"),
            ),
            ("--samples", self.samples.is_some(), matches!(name, "smoothgrad" | "expected-gradients")),
            ("--noise", self.noise.is_some(), name == "smoothgrad"),
            ("--rule", self.rule.is_some(), path),
            ("--steps", self.steps.is_some(), path),
            ("--steps-as", self.steps_as.is_some(), path || name == "smoothgrad"),
            ("--layer", self.layer.is_some(), name == "grad-cam"),
            ("--window", self.window.is_some(), name == "occlusion"),
            ("--stride", self.stride.is_some(), name == "occlusion"),
        ];
        for (option, given, used) in given {
            if given && !used {
                bail!("{option} makes no difference to {name}\nhint: leave it out, or choose another method");
            }
        }
        Ok(())
    }

    /// The method with its settings.
    fn exported(&self, model: &OnnxPredictor) -> Result<Exported> {
        Ok(match self.method.as_str() {
            "gradient" => Exported::Gradient,
            "gradient-input" => Exported::GradientInput,
            "guided-backprop" => Exported::GuidedBackprop,
            "deconvnet" => Exported::Deconvnet,
            "smoothgrad" => {
                let usual = SmoothGrad::default();
                Exported::SmoothGrad {
                    samples: self.samples.unwrap_or(usual.samples),
                    noise: self.noise.unwrap_or(usual.noise),
                    seed: self.seed,
                }
            }
            "grad-cam" => Exported::GradCam { layer: self.layer.clone() },
            "occlusion" => {
                let (window, stride) = (self.window.clone(), self.stride.clone());
                let config = Occlusion { window, stride, ..Occlusion::default() };
                Exported::Occlusion { config, reference: self.references(model)? }
            }
            _ => Exported::IntegratedGradients { rule: self.rule()?, references: self.references(model)? },
        })
    }

    fn rule(&self) -> Result<Rule> {
        let name = self.rule.as_deref().unwrap_or("gauss-legendre");
        fixed_rule(name, self.steps.unwrap_or(50), "or gauss-legendre; an exported file has no adaptive rule")
    }

    /// What the paths start from.
    fn references(&self, model: &OnnxPredictor) -> Result<Array2<f64>> {
        if self.method == "expected-gradients" {
            let data = self.data("expected-gradients")?;
            let chosen =
                brenier::evaluate::draw_examples(data.len(), self.samples.unwrap_or(ROWS), self.seed);
            return Ok(data.rows_f64(&chosen)?);
        }
        let name = self.baseline.as_deref().unwrap_or("zero");
        match baseline(name) {
            Some(Baseline::Zero) => Ok(Array2::zeros((1, model.features()))),
            Some(Baseline::Mean) => {
                let data = self.data("the baseline 'mean'")?;
                let all: Vec<usize> = (0..data.len()).collect();
                let mean = data.rows_f64(&all)?.mean_axis(Axis(0)).context("the background has no rows")?;
                Ok(mean.insert_axis(Axis(0)))
            }
            Some(Baseline::Given) => {
                let found = rows(Path::new(name), model.values_only())?;
                if found.nrows() != 1 {
                    bail!(
                        "{name} holds {} references\nhint: an exported {} has one; expected-gradients takes several",
                        found.nrows(),
                        self.method
                    );
                }
                Ok(found)
            }
            _ => bail!(
                "the baseline '{name}' depends on the input\nhint: choose zero, mean, or an .npy file with one row"
            ),
        }
    }

    fn data(&self, what: &str) -> Result<Dataset> {
        let Some(path) = &self.background else {
            bail!("{what} needs data of the model's kind\nhint: give them with --background");
        };
        Ok(Dataset::open(path, &OpenOptions { part: Part::Train, ..self.data_args.options() })?)
    }

    /// Which score is explained.
    fn target(&self, model: &Loaded) -> Result<ExportedTarget> {
        match self.target.as_str() {
            "predicted" => Ok(ExportedTarget::Predicted),
            "input" => Ok(ExportedTarget::Input),
            text => {
                let classes = self.model.class_names(model.values())?;
                let class = one_target(Some(text), model.values(), &classes)?;
                Ok(ExportedTarget::Fixed(class))
            }
        }
    }
}
