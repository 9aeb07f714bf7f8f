//! The methods by name, and one way to call them all.
//!
//! ```text
//! method (settings) + score + inputs + targets + context  ->  an explanation for each input
//! ```
//!
//! A [`Method`] is a plain value: it can be written to a file and compared. What a method needs besides the
//! score, and not every method does, is in the [`Context`]: data, baselines, flows, the model as a graph.

use std::str::FromStr;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::{
    Absence, Allocation, Baseline, BlurIg, Coalitions, Ddim, Deconvnet, ExpectedGradients, Explanation,
    GeodesicIg, GradCam, Gradient, GradientInput, GradientShap, Grouping, GuidedBackprop, GuidedIg,
    IntegratedGradients, KernelShap, Lime, Occlusion, Rise, Rule, ShapleyValues, SmoothGrad, Smoothing,
    StepCredit, Transport,
};
use crate::data::Dataset;
use crate::flow::{NoisePredictor, VelocityField};
use crate::path::{Path, Solver, TraceConfig};
use crate::predictor::{OnnxPredictor, Score};
use crate::{Error, Result, nearest_name};

/// A method with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Method {
    // One gradient.
    /// The gradient.
    Gradient(Gradient),
    /// Gradient times input.
    GradientInput(GradientInput),
    /// Guided Backpropagation.
    GuidedBackprop(GuidedBackprop),
    /// The deconvolutional network.
    Deconvnet(Deconvnet),
    /// Grad-CAM.
    GradCam(GradCam),
    // Gradients at many points.
    /// SmoothGrad, SmoothGrad-squared and VarGrad.
    #[serde(rename = "smoothgrad")]
    SmoothGrad(SmoothGrad),
    /// Expected Gradients.
    ExpectedGradients(ExpectedGradients),
    /// GradientSHAP.
    GradientShap(GradientShap),
    // Gradients along a path.
    /// Integrated Gradients.
    #[serde(rename = "ig")]
    IntegratedGradients(IntegratedGradients),
    /// Guided Integrated Gradients.
    GuidedIg(GuidedIg),
    /// Blur IG.
    BlurIg(BlurIg),
    /// Geodesic IG.
    GeodesicIg(GeodesicIg),
    /// The DDIM trajectory of a diffusion model.
    Ddim(Ddim),
    /// The trace of a flow, or of several.
    Transport(Transport),
    // Scores without gradients.
    /// KernelSHAP.
    KernelShap(KernelShap),
    /// Exact Shapley values.
    ShapleyValues(ShapleyValues),
    /// Occlusion.
    Occlusion(Occlusion),
    /// RISE.
    Rise(Rise),
    /// LIME.
    Lime(Lime),
}

/// What the numbers that a method gives to features mean. Metrics need to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Meaning {
    /// What a feature has done for the score, in units of the score: positive for, negative against.
    #[default]
    Credit,
    /// How much the score changes with a feature, per unit of the feature. The sign says in which direction the
    /// feature would have to move, not whether it speaks for the score.
    Sensitivity,
}

/// What methods need besides the score. Each says in words what it misses.
#[derive(Default, Clone)]
pub struct Context<'a> {
    /// Rows to take means, references and neighbours from.
    pub data: Option<&'a Dataset>,
    /// Baselines that the user gives, one row or one for each input.
    pub baselines: Option<ArrayView2<'a, f64>>,
    /// The flows to follow.
    pub flows: Vec<&'a dyn VelocityField>,
    /// The diffusion model to follow.
    pub diffusion: Option<&'a NoisePredictor>,
    /// The model behind the score, for methods that look inside.
    pub model: Option<&'a OnnxPredictor>,
    /// The number of the first input in the run. An example's draws follow from its number in the run, so a run that
    /// is cut into chunks draws the same.
    pub first_example: usize,
}

/// Explanations, and the path of each where there is one to look at.
pub type WithPaths = (Vec<Explanation>, Vec<Box<dyn Path>>);

impl Context<'_> {
    /// The data, or a refusal that says who wants them.
    pub(crate) fn require_data(&self, method: &str) -> Result<&Dataset> {
        self.data.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it needs rows of data, and none are given".to_string(),
            remedy: "give data of the kind that the model was trained on (--background DATA)",
        })
    }

    fn require_model(&self, method: &str) -> Result<&OnnxPredictor> {
        self.model.ok_or_else(|| Error::Method {
            method: method.to_string(),
            reason: "it looks inside a model, and the score is a closure".to_string(),
            remedy: "explain an ONNX model, or use a method that needs gradients only, such as 'ig'",
        })
    }
}

/// What is common to the settings of many methods. What is not given is each method's own default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Number of draws.
    pub samples: Option<usize>,
    /// Size of the noise; of the input's range for SmoothGrad, in the input's units for GradientSHAP.
    pub noise: Option<f64>,
    /// Where a path starts.
    pub baseline: Option<Baseline>,
    /// The quadrature rule.
    pub rule: Option<Rule>,
    /// Number of steps of methods that have no choice of rule.
    pub steps: Option<usize>,
    /// The layer of Grad-CAM.
    pub layer: Option<String>,
    /// Number of nearest neighbours.
    pub neighbours: Option<usize>,
    /// Local error that the solver of a trace may make.
    pub solver_tolerance: Option<f64>,
    /// Number of steps in which DDIM inverts an input.
    pub inversion_steps: Option<usize>,
    /// What stands in for features that are left out; the baseline where not given.
    pub absence: Option<Absence>,
    /// Which features are left out together.
    pub groups: Option<Grouping>,
    /// The window of occlusion, along every axis of the input.
    pub window: Option<Vec<usize>>,
    /// The steps of that window.
    pub stride: Option<Vec<usize>>,
    /// Seed of all draws.
    pub seed: u64,
}

/// The names of all methods. A path method with `+idgi` shares credit out by IDGI.
const NAMES: &[&str] = &[
    Gradient::NAME,
    GradientInput::NAME,
    GuidedBackprop::NAME,
    Deconvnet::NAME,
    GradCam::NAME,
    "smoothgrad",
    "smoothgrad-squared",
    "vargrad",
    ExpectedGradients::NAME,
    GradientShap::NAME,
    IntegratedGradients::NAME,
    "ig+idgi",
    GuidedIg::NAME,
    "guided-ig+idgi",
    BlurIg::NAME,
    "blur-ig+idgi",
    GeodesicIg::NAME,
    "geodesic-ig+idgi",
    Ddim::NAME,
    "ddim+idgi",
    Transport::NAME,
    "transport+idgi",
    KernelShap::NAME,
    ShapleyValues::NAME,
    Occlusion::NAME,
    Rise::NAME,
    Lime::NAME,
];

impl Method {
    /// The names of all methods.
    pub fn names() -> &'static [&'static str] {
        NAMES
    }

    /// A method by its name.
    ///
    /// # Errors
    /// If there is none of this name; the nearest one is suggested.
    pub fn new(name: &str, settings: &Settings) -> Result<Method> {
        let (path, idgi) = match name.strip_suffix("+idgi") {
            Some(path) => (path, true),
            None => (name, false),
        };
        let seed = settings.seed;
        let baseline = settings.baseline.unwrap_or_default();
        let allocation = match (idgi, settings.rule) {
            (true, _) => Allocation::Idgi { steps: settings.steps.unwrap_or(50) },
            (false, Some(rule)) => Allocation::PathIntegral { rule },
            (false, None) => Allocation::default(),
        };
        let absence = settings.absence.unwrap_or(Absence::Baseline(baseline));
        let groups = settings.groups.clone().unwrap_or_default();
        let smooth = |smoothing: Smoothing| {
            let default = SmoothGrad::default();
            let samples = settings.samples.unwrap_or(default.samples);
            let noise = settings.noise.unwrap_or(default.noise);
            Method::SmoothGrad(SmoothGrad { smoothing, samples, noise, seed })
        };
        if !NAMES.contains(&name) {
            let nearest = nearest_name(name, NAMES).unwrap_or_default();
            return Err(Error::UnknownMethod { found: name.to_string(), nearest, known: NAMES.to_vec() });
        }
        Ok(match path {
            Gradient::NAME => Method::Gradient(Gradient {}),
            GradientInput::NAME => Method::GradientInput(GradientInput {}),
            GuidedBackprop::NAME => Method::GuidedBackprop(GuidedBackprop {}),
            Deconvnet::NAME => Method::Deconvnet(Deconvnet {}),
            GradCam::NAME => Method::GradCam(GradCam { layer: settings.layer.clone() }),
            "smoothgrad-squared" => smooth(Smoothing::Square),
            "vargrad" => smooth(Smoothing::Variance),
            ExpectedGradients::NAME => {
                let samples = settings.samples.unwrap_or(ExpectedGradients::default().samples);
                Method::ExpectedGradients(ExpectedGradients { samples, seed })
            }
            GradientShap::NAME => {
                let default = GradientShap::default();
                let samples = settings.samples.unwrap_or(default.samples);
                let noise = settings.noise.unwrap_or(default.noise);
                Method::GradientShap(GradientShap { samples, noise, seed })
            }
            IntegratedGradients::NAME => {
                Method::IntegratedGradients(IntegratedGradients { baseline, allocation, seed })
            }
            GuidedIg::NAME => {
                let default = GuidedIg::default();
                let steps = settings.steps.unwrap_or(default.steps);
                let credit = if idgi { StepCredit::Idgi } else { default.credit };
                Method::GuidedIg(GuidedIg { baseline, steps, credit, seed, ..default })
            }
            BlurIg::NAME => Method::BlurIg(BlurIg { allocation, ..BlurIg::default() }),
            GeodesicIg::NAME => {
                let default = GeodesicIg::default();
                let neighbours = settings.neighbours.unwrap_or(default.neighbours);
                Method::GeodesicIg(GeodesicIg { baseline, neighbours, allocation, seed, ..default })
            }
            Ddim::NAME => {
                let inversion_steps = settings.inversion_steps.unwrap_or(Ddim::default().inversion_steps);
                Method::Ddim(Ddim { inversion_steps, allocation })
            }
            Transport::NAME => {
                let solver = settings.solver_tolerance.map_or(Solver::default(), Solver::adaptive);
                let trace = TraceConfig { solver, ..TraceConfig::default() };
                Method::Transport(Transport { trace, allocation })
            }
            KernelShap::NAME => {
                let coalitions =
                    settings.samples.map_or(Coalitions::Usual, |count| Coalitions::Sampled { count });
                Method::KernelShap(KernelShap { groups, absence, coalitions, seed, ..KernelShap::default() })
            }
            ShapleyValues::NAME => {
                Method::ShapleyValues(ShapleyValues { groups, absence, ..ShapleyValues::default() })
            }
            Occlusion::NAME => {
                let (window, stride) = (settings.window.clone(), settings.stride.clone());
                Method::Occlusion(Occlusion { window, stride, absence, ..Occlusion::default() })
            }
            Rise::NAME => {
                let samples = settings.samples.unwrap_or(Rise::default().samples);
                Method::Rise(Rise { samples, absence, seed, ..Rise::default() })
            }
            Lime::NAME => {
                let samples = settings.samples.unwrap_or(Lime::default().samples);
                Method::Lime(Lime { groups, absence, samples, seed, ..Lime::default() })
            }
            _ => smooth(Smoothing::Mean),
        })
    }

    /// The name on the command line and in certificates.
    pub fn name(&self) -> String {
        match self {
            Method::Gradient(_) => Gradient::NAME.to_string(),
            Method::GradientInput(_) => GradientInput::NAME.to_string(),
            Method::GuidedBackprop(_) => GuidedBackprop::NAME.to_string(),
            Method::Deconvnet(_) => Deconvnet::NAME.to_string(),
            Method::GradCam(_) => GradCam::NAME.to_string(),
            Method::SmoothGrad(method) => method.name().to_string(),
            Method::ExpectedGradients(_) => ExpectedGradients::NAME.to_string(),
            Method::GradientShap(_) => GradientShap::NAME.to_string(),
            Method::IntegratedGradients(method) => method.allocation.name(IntegratedGradients::NAME),
            Method::GuidedIg(method) if method.credit == StepCredit::Idgi => "guided-ig+idgi".to_string(),
            Method::GuidedIg(_) => GuidedIg::NAME.to_string(),
            Method::BlurIg(method) => method.allocation.name(BlurIg::NAME),
            Method::GeodesicIg(method) => method.allocation.name(GeodesicIg::NAME),
            Method::Ddim(method) => method.allocation.name(Ddim::NAME),
            Method::Transport(method) => method.allocation.name(Transport::NAME),
            Method::KernelShap(_) => KernelShap::NAME.to_string(),
            Method::ShapleyValues(_) => ShapleyValues::NAME.to_string(),
            Method::Occlusion(_) => Occlusion::NAME.to_string(),
            Method::Rise(_) => Rise::NAME.to_string(),
            Method::Lime(_) => Lime::NAME.to_string(),
        }
    }

    /// Whether the method asks for gradients; one that does not works with any model that gives scores.
    pub fn needs_gradients(&self) -> bool {
        !matches!(
            self,
            Method::KernelShap(_)
                | Method::ShapleyValues(_)
                | Method::Occlusion(_)
                | Method::Rise(_)
                | Method::Lime(_)
        )
    }

    /// What the numbers of this method mean: derivatives are sensitivities, all else is credit. The maps of
    /// Grad-CAM and RISE are no shares of the score either, but positive where they speak for it.
    pub fn meaning(&self) -> Meaning {
        match self {
            Method::Gradient(_)
            | Method::GuidedBackprop(_)
            | Method::Deconvnet(_)
            | Method::SmoothGrad(_) => Meaning::Sensitivity,
            _ => Meaning::Credit,
        }
    }

    /// Which of the [`Settings`] and of the [`Context`] make a difference to this method.
    pub fn takes(&self) -> &'static [&'static str] {
        match self {
            Method::Gradient(_) | Method::GradientInput(_) => &[],
            Method::GuidedBackprop(_) | Method::Deconvnet(_) => &["model"],
            Method::GradCam(_) => &["layer", "model"],
            Method::SmoothGrad(_) => &["samples", "noise", "seed"],
            Method::ExpectedGradients(_) => &["samples", "seed", "data"],
            Method::GradientShap(_) => &["samples", "noise", "seed", "data"],
            Method::IntegratedGradients(_) => &["baseline", "rule", "steps", "seed", "data"],
            Method::GuidedIg(_) => &["baseline", "steps", "seed", "data"],
            Method::BlurIg(_) => &["rule", "steps"],
            Method::GeodesicIg(_) => &["baseline", "rule", "steps", "neighbours", "seed", "data"],
            Method::Ddim(_) => &["rule", "steps", "flows", "inversion steps"],
            Method::Transport(_) => &["rule", "steps", "flows", "solver tolerance"],
            Method::KernelShap(_) | Method::Lime(_) => {
                &["samples", "baseline", "absence", "groups", "seed", "data"]
            }
            Method::ShapleyValues(_) => &["baseline", "absence", "groups", "seed", "data"],
            Method::Occlusion(_) => &["baseline", "absence", "window", "seed", "data"],
            Method::Rise(_) => &["samples", "baseline", "absence", "seed", "data"],
        }
    }

    /// Explains each row of `inputs` (`[examples, features]`) for its target.
    ///
    /// # Errors
    /// What the method cannot do, in one sentence, and the first value that is not finite, with its place.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        let part = self.explain_part(score, inputs, targets, context).map(|part| (part, Vec::new()));
        Ok(counted_from(context.first_example, part)?.0)
    }

    /// As [`Method::explain`], with examples counted from 0.
    fn explain_part(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        match self {
            Method::Gradient(method) => method.explain(score, inputs, targets),
            Method::GradientInput(method) => method.explain(score, inputs, targets),
            Method::GuidedBackprop(method) => {
                method.explain(context.require_model(GuidedBackprop::NAME)?, inputs, targets)
            }
            Method::Deconvnet(method) => {
                method.explain(context.require_model(Deconvnet::NAME)?, inputs, targets)
            }
            Method::GradCam(method) => method.explain(context.require_model(GradCam::NAME)?, inputs, targets),
            Method::SmoothGrad(method) => method.explain(score, inputs, targets, context),
            Method::ExpectedGradients(method) => method.explain(score, inputs, targets, context),
            Method::GradientShap(method) => method.explain(score, inputs, targets, context),
            Method::IntegratedGradients(method) => method.explain(score, inputs, targets, context),
            Method::GuidedIg(method) => method.explain(score, inputs, targets, context),
            Method::BlurIg(method) => method.explain(score, inputs, targets),
            Method::GeodesicIg(method) => method.explain(score, inputs, targets, context),
            Method::Ddim(method) => method.explain(score, inputs, targets, context),
            Method::Transport(method) => method.explain(score, inputs, targets, context),
            Method::KernelShap(method) => method.explain(score, inputs, targets, context),
            Method::ShapleyValues(method) => method.explain(score, inputs, targets, context),
            Method::Occlusion(method) => method.explain(score, inputs, targets, context),
            Method::Rise(method) => method.explain(score, inputs, targets, context),
            Method::Lime(method) => method.explain(score, inputs, targets, context),
        }
    }
}

impl Method {
    /// As [`Method::explain`], with the path of each explanation where the method follows one that can be looked at
    /// again; otherwise with none. Guided IG makes its path as it goes and keeps no point of it, and the mean over
    /// several flows has no single path.
    ///
    /// # Errors
    /// As [`Method::explain`].
    pub fn explain_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        counted_from(context.first_example, self.part_with_paths(score, inputs, targets, context))
    }

    /// As [`Method::explain_with_paths`], with examples counted from 0.
    fn part_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        fn boxed<P: Path + 'static>((explanations, paths): (Vec<Explanation>, Vec<P>)) -> WithPaths {
            (explanations, paths.into_iter().map(|path| Box::new(path) as Box<dyn Path>).collect())
        }
        Ok(match self {
            Method::IntegratedGradients(m) => boxed(m.explain_with_paths(score, inputs, targets, context)?),
            Method::BlurIg(method) => boxed(method.explain_with_paths(score, inputs, targets)?),
            Method::GeodesicIg(method) => boxed(method.explain_with_paths(score, inputs, targets, context)?),
            Method::Ddim(method) => {
                let mut paths = Vec::new();
                let keep = &mut |part| paths.extend(part);
                boxed((method.explain_and_keep(score, inputs, targets, context, keep)?, paths))
            }
            Method::Transport(method) if context.flows.len() == 1 => {
                boxed(method.explain_with_traces(score, inputs, targets, context.flows[0])?)
            }
            _ => (self.explain_part(score, inputs, targets, context)?, Vec::new()),
        })
    }
}

/// Examples of a part under their numbers in the run, in certificates as in errors.
fn counted_from(first: usize, part: Result<WithPaths>) -> Result<WithPaths> {
    let (mut explanations, paths) = part.map_err(|error| error.counted_from(first))?;
    explanations.iter_mut().for_each(|explanation| explanation.certificate.example += first);
    Ok((explanations, paths))
}

impl FromStr for Method {
    type Err = Error;

    /// The method of this name with its defaults.
    fn from_str(name: &str) -> Result<Method> {
        Method::new(name, &Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_method_that_knows_its_name_and_survives_a_file() {
        for name in Method::names() {
            let method: Method = name.parse().unwrap();
            assert_eq!(method.name(), *name);
            let json = serde_json::to_string(&method).unwrap();
            assert_eq!(serde_json::from_str::<Method>(&json).unwrap(), method, "{json}");
        }
    }

    #[test]
    fn examples_of_a_part_have_their_numbers_in_the_run_with_paths_and_without() {
        let score = crate::problems::LinearScore::new(ndarray::array![1.0, -2.0], 0.0);
        let inputs = ndarray::array![[1.0, 2.0], [3.0, 4.0]];
        let context = Context { first_example: 5, ..Context::default() };
        for name in ["gradient", "ig"] {
            let method: Method = name.parse().unwrap();
            let plain = method.explain(&score, inputs.view(), &[0, 0], &context).unwrap();
            let (with_paths, _) =
                method.explain_with_paths(&score, inputs.view(), &[0, 0], &context).unwrap();
            let numbers = |all: &[Explanation]| -> Vec<usize> {
                all.iter().map(|explanation| explanation.certificate.example).collect()
            };
            assert_eq!((numbers(&plain), numbers(&with_paths)), (vec![5, 6], vec![5, 6]), "{name}");
        }
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        for (typed, meant) in
            [("smoothgrd", "smoothgrad"), ("gradcam", "grad-cam"), ("IG", "ig"), ("transprot", "transport")]
        {
            let refused = typed.to_lowercase().parse::<Method>();
            match refused {
                Ok(method) => assert_eq!(method.name(), meant),
                Err(error) => {
                    assert!(error.to_string().contains(&format!("did you mean '{meant}'")), "{error}")
                }
            }
        }
    }
}
