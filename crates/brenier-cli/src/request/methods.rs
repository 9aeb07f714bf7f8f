//! Which methods were asked for, with what settings.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::Rule;
use brenier::attribute::{Absence, Baseline, LrpRule, Method, MethodSpec, Need, Setting, Settings};
use brenier::data::OpenOptions;
use clap::Args;
use ndarray::Array2;

use super::groups::grouping;
use super::named::Named;
use super::text::TextArgs;
use crate::data_args::count;

/// Background rows over which an expectation is taken.
const BACKGROUND_ROWS: usize = 100;

/// Settings of the methods
#[derive(Debug, Clone, Args)]
pub(crate) struct MethodArgs {
    /// The baseline: where a path starts, or what replaces removed features. zero, a number such as 0.5, mean (of --background),
    /// blur, noise, an .npy file with one row or one each, or background: the expectation over up to 100 of its rows
    #[arg(long, value_name = "zero|NUMBER|mean|blur|noise|background|FILE", allow_negative_numbers = true)]
    pub(super) baseline: Option<String>,
    /// Data like the model's training data, for means, references and neighbours; without --baseline, methods without
    /// gradients replace removed features by its rows
    #[arg(long, value_name = "DATA")]
    pub(super) background: Option<PathBuf>,
    /// Number of draws, for methods that draw at random
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    samples: Option<usize>,
    /// Size of the noise: a fraction of the input's range (smoothgrad), or in its units (gradient-shap)
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// The layer of grad-cam, by the name of its node or value; default: the last convolution
    #[arg(long, value_name = "NAME")]
    layer: Option<String>,
    /// How layers share relevance in lrp: epsilon-gamma (default), epsilon-plus, epsilon-plus-flat,
    /// epsilon-gamma-box:LOW,HIGH, epsilon-alpha2-beta1, epsilon-alpha2-beta1-flat; or one rule for all layers: epsilon,
    /// gamma, z-plus, alpha-beta, flat, w-square, some with a number (epsilon:0.25)
    #[arg(long, value_name = "RULE")]
    lrp_rule: Option<LrpRule>,
    /// Number of nearest neighbours: in the graph of geodesic-ig, references of nearest-ig
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) neighbours: Option<usize>,
    /// Local error that the solver of a trace may make, relative and absolute; default: 1e-5
    #[arg(long, value_name = "TOLERANCE", allow_negative_numbers = true)]
    solver_tolerance: Option<f64>,
    /// Number of steps in which ddim inverts an input; default: 50
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    inversion_steps: Option<usize>,
    /// Features that are removed together: each, patches:8x8, superpixels:50, columns:3-5,9-12, or an .npy file of numbers. Default:
    /// superpixels of images for kernel-shap and lime, else each feature by itself
    #[arg(long, value_name = "GROUPS")]
    groups: Option<String>,
    /// The window of occlusion along every axis of an input, such as 3,8,8
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    window: Option<Vec<usize>>,
    /// Steps of the window; default: half of it
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    stride: Option<Vec<usize>>,
    /// Seed of everything that is drawn
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Follow a flow backward from each input: an ONNX file with inputs x and t and output v. Given several
    /// times: the mean over the flows, with standard errors. For ddim: a diffusion model
    #[arg(short, long, value_name = "FILE")]
    pub(crate) flow: Vec<PathBuf>,
    /// Integrate until all credit sums to the score's change, to this relative tolerance
    #[arg(long, value_name = "TOLERANCE", conflicts_with_all = ["rule", "steps"], allow_negative_numbers = true)]
    tolerance: Option<f64>,
    /// Integrate until the map is this near to the converged map, relative to its size: 1e-2 for 1 %. --tolerance is about
    /// the sum of all credit only
    #[arg(long, value_name = "TOLERANCE", conflicts_with_all = ["rule", "steps"], allow_negative_numbers = true)]
    map_tolerance: Option<f64>,
    /// The most gradients to take for --tolerance and --map-tolerance; the certificate warns if they do not suffice; default: 2000
    #[arg(long, value_name = "N", conflicts_with_all = ["rule", "steps"], value_parser = count, allow_negative_numbers = true)]
    max_gradients: Option<usize>,
    /// The quadrature rule: left (the paper's), right, midpoint, trapezoid, simpson, gauss-legendre, adaptive
    #[arg(long)]
    rule: Option<String>,
    /// Steps (or nodes) of the rule
    #[arg(long, value_name = "K", value_parser = count, allow_negative_numbers = true)]
    steps: Option<usize>,
}

impl MethodArgs {
    /// The methods of these names, with the settings that were given; `traced` where traces stand in for a flow.
    /// What is taken `elsewhere` may be given even if no method takes it.
    pub(crate) fn methods(
        &self,
        names: &[String],
        traced: bool,
        elsewhere: &[Setting],
    ) -> Result<Vec<Method>> {
        let adaptive =
            self.tolerance.is_some() || self.map_tolerance.is_some() || self.max_gradients.is_some();
        let given_rule = self.rule.is_some() || self.steps.is_some() || adaptive;
        let background_named = self.baseline.as_deref() == Some(BACKGROUND);
        let averaged = background_named || (self.baseline.is_none() && self.background.is_some());
        let settings = Settings {
            samples: self.samples,
            noise: self.noise,
            baseline: self.baseline.as_deref().and_then(baseline),
            rule: given_rule.then(|| self.rule()).transpose()?,
            steps: self.steps,
            layer: self.layer.clone(),
            lrp_rule: self.lrp_rule,
            neighbours: self.neighbours,
            solver_tolerance: self.solver_tolerance,
            inversion_steps: self.inversion_steps,
            absence: averaged.then_some(Absence::Background { rows: BACKGROUND_ROWS }),
            groups: self.groups.as_deref().map(grouping).transpose()?,
            window: self.window.clone(),
            stride: self.stride.clone(),
            seed: self.seed,
        };
        let methods = names
            .iter()
            .map(|name| Method::new(name.trim(), &settings))
            .collect::<brenier::Result<Vec<_>>>()?;
        for (i, method) in methods.iter().enumerate() {
            if methods[..i].iter().any(|other| other.name() == method.name()) {
                bail!("the method '{}' is given twice", method.name());
            }
        }
        // An option that changes nothing is a mistake.
        if traced && self.solver_tolerance.is_some() {
            bail!(
                "--solver-tolerance makes no difference to saved traces\nhint: give the flow they were made with (--flow)"
            );
        }
        let given = [
            ("--samples", Setting::Samples, self.samples.is_some()),
            ("--noise", Setting::Noise, self.noise.is_some()),
            ("--baseline", Setting::Baseline, self.baseline.is_some() && !background_named),
            ("--baseline background", Setting::Absence, background_named),
            ("--groups", Setting::Groups, self.groups.is_some()),
            ("--window", Setting::Window, self.window.is_some()),
            ("--stride", Setting::Stride, self.stride.is_some()),
            ("--layer", Setting::Layer, self.layer.is_some()),
            ("--lrp-rule", Setting::LrpRule, self.lrp_rule.is_some()),
            ("--neighbours", Setting::Neighbours, self.neighbours.is_some()),
            ("--solver-tolerance", Setting::SolverTolerance, self.solver_tolerance.is_some()),
            ("--inversion-steps", Setting::InversionSteps, self.inversion_steps.is_some()),
            ("--background", Setting::Data, self.background.is_some()),
            ("--rule", Setting::Rule, self.rule.is_some()),
            ("--tolerance", Setting::Rule, self.tolerance.is_some()),
            ("--map-tolerance", Setting::Rule, self.map_tolerance.is_some()),
            ("--max-gradients", Setting::Rule, self.max_gradients.is_some()),
            ("--steps", Setting::Steps, self.steps.is_some()),
            ("--flow", Setting::Flow, !self.flow.is_empty()),
            ("--traces", Setting::Flow, traced),
        ];
        let from_mean = self.baseline.as_deref() == Some("mean");
        // Columns are bound to those of a table, whatever the methods do with its rows.
        let binds = self.background.as_deref().is_some_and(is_table);
        for (option, setting, given) in given {
            // A rule has steps, too. Rows of data may be there for a baseline only.
            let used = |method: &Method| {
                let spec = method.spec();
                let by_baseline = spec.uses(Setting::Baseline) && !spec.needs(Need::Data);
                match setting {
                    Setting::Steps => spec.uses(Setting::Steps) || spec.uses(Setting::Rule),
                    Setting::Data if by_baseline && spec.uses(setting) => {
                        binds || from_mean || averaged && spec.uses(Setting::Absence)
                    }
                    _ => spec.uses(setting),
                }
            };
            if given && !elsewhere.contains(&setting) && !methods.iter().any(used) {
                if setting == Setting::Data && methods.iter().any(|method| method.spec().uses(setting)) {
                    bail!(
                        "--background makes no difference to {} without --baseline mean\nhint: add --baseline mean, or leave \
                         --background out",
                        names.join(", ")
                    );
                }
                bail!(
                    "{option} makes no difference to {}\nhint: leave it out, or choose another method",
                    names.join(", ")
                );
            }
        }
        Ok(methods)
    }

    /// The same without the file of references by name, and those.
    pub(crate) fn named_baselines(
        self,
        named: &Named,
        options: &OpenOptions,
        count: usize,
    ) -> Result<(MethodArgs, Option<Array2<f64>>)> {
        if let Some(rows) = named.no_text() {
            return Ok((MethodArgs { baseline: None, ..self }, Some(rows)));
        }
        let file = self.baseline.clone().filter(|file| baseline(file) == Some(Baseline::Given));
        let file = file.filter(|file| constant(file).is_none());
        let Some(file) = file else { return Ok((self, None)) };
        let rows = named.baselines(&file, options, count)?;
        Ok((MethodArgs { baseline: None, ..self }, Some(rows)))
    }

    /// The same where inputs are text, for which baselines have names of their own.
    pub(crate) fn for_text(self, text: &TextArgs, names: &[String]) -> MethodArgs {
        let takes_one = |name: &String| {
            let method = Method::new(name.trim(), &Settings::default());
            method.is_ok_and(|method| method.spec().uses(Setting::Baseline))
        };
        let used = self.background.is_none() && names.iter().any(takes_one);
        MethodArgs { baseline: text.baseline(self.baseline, used), ..self }
    }

    /// Where a path starts, as it was said.
    pub(crate) fn baseline(&self) -> Option<&str> {
        self.baseline.as_deref()
    }

    /// Whether it is said where a path starts.
    pub(crate) fn has_baseline(&self) -> bool {
        self.baseline.is_some()
    }

    /// Data of the model's kind, where they are given.
    pub(crate) fn background(&self) -> Option<&Path> {
        self.background.as_deref()
    }

    /// The file of baselines, where one is given.
    pub(crate) fn baseline_file(&self) -> Option<PathBuf> {
        let file = |name: &&String| baseline(name) == Some(Baseline::Given) && constant(name).is_none();
        self.baseline.as_ref().filter(file).map(PathBuf::from)
    }

    /// Takes data and baselines from elsewhere, where a place is given.
    pub(crate) fn take_files(&mut self, background: Option<PathBuf>, baseline: Option<PathBuf>) {
        self.background = background.or(self.background.take());
        self.baseline = baseline.map(|file| file.to_string_lossy().into_owned()).or(self.baseline.take());
    }

    /// Whether data of the model's kind are given.
    pub(crate) fn has_background(&self) -> bool {
        self.background.is_some()
    }

    /// The kind of baseline that was named; a file enters by its rows.
    pub(crate) fn baseline_in_words(&self) -> Option<String> {
        let name = self.baseline.as_deref()?;
        let is_file = baseline(name) == Some(Baseline::Given) && constant(name).is_none();
        Some(if is_file { "given" } else { name }.to_string())
    }

    /// Adaptive to `--tolerance`, unless `--rule` or `--steps` is given.
    pub(crate) fn rule(&self) -> Result<Rule> {
        let name =
            self.rule.as_deref().unwrap_or(if self.steps.is_some() { "gauss-legendre" } else { "adaptive" });
        if name != "adaptive" {
            return fixed_rule(name, self.steps.unwrap_or(50), "gauss-legendre or adaptive");
        }
        Ok(Rule::Adaptive {
            tolerance: self.tolerance.unwrap_or(1e-3),
            max_gradients: self.max_gradients.or(self.steps).unwrap_or(2000),
            map_tolerance: self.map_tolerance,
        })
    }
}

/// A rule with so many steps or nodes; `last` ends the list of what there is.
pub(crate) fn fixed_rule(name: &str, steps: usize, last: &str) -> Result<Rule> {
    Rule::fixed(name, steps).with_context(|| {
        format!("there is no rule '{name}'\nhint: choose left, right, midpoint, trapezoid, simpson, {last}")
    })
}

/// Text for `--help` with the list of methods below it.
pub(crate) fn with_methods(text: &str) -> String {
    // A path with IDGI is said once for all.
    let single = || Method::specs().filter(|spec| !spec.name.contains('+'));
    let combined: Vec<&str> =
        Method::specs().map(|spec| spec.name).filter(|name| name.contains('+')).collect();
    let width = single().map(|spec| spec.name.len()).max().unwrap_or(0);
    let lines = |chosen: fn(&MethodSpec) -> bool| -> String {
        let chosen = single().filter(|spec| chosen(spec));
        chosen.map(|spec| format!("  {:width$}  {}\n", spec.name, spec.help)).collect()
    };
    format!(
        "{text}\n\nMethods:\n{}  {}: the same paths, credit by IDGI\n\nFor trees, beside ig, nearest-ig, \
         expected-gradients, transport and transport-line, which are exact for them:\n{}\nMethods without gradients, for \
         any model:\n{}",
        lines(|spec| spec.needs(Need::Gradients)),
        combined.join(", "),
        lines(|spec| spec.needs(Need::Trees)),
        lines(|spec| !spec.needs(Need::Gradients) && !spec.needs(Need::Trees)).trim_end()
    )
}

/// Whether a file is a table, by its name.
fn is_table(file: &Path) -> bool {
    let name = file.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    [".csv", ".tsv", ".parquet", ".pq"].iter().any(|end| name.ends_with(end))
}

/// What is said instead of a baseline to average over the background.
const BACKGROUND: &str = "background";

/// What a baseline's name stands for; anything else is a file. The background is no baseline.
pub(crate) fn baseline(name: &str) -> Option<Baseline> {
    match name {
        BACKGROUND => None,
        "zero" => Some(Baseline::Zero),
        "mean" => Some(Baseline::Mean),
        "blur" => Some(Baseline::Blur { sigma: None }),
        "noise" => Some(Baseline::Noise),
        _ => Some(Baseline::Given),
    }
}

/// The number that all features of a baseline are; nothing where a file has this name.
pub(super) fn constant(name: &str) -> Option<f64> {
    let number = name.parse().ok().filter(|number: &f64| number.is_finite());
    number.filter(|_| !Path::new(name).exists())
}
