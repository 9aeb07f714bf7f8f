//! What is known of a method before it runs: one value, in the method's own file.
//!
//! Names, help, the tables of `docs/methods.md` and the lists of the tests are read off these values, and tests hold
//! what they say (needs, settings) against what the methods do. The registry itself is in `method.rs`.

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::{Context, Explanation, Method, Settings, WithPaths};
use crate::predictor::Score;
use crate::registry::{Named, markdown_table};
use crate::{Error, Result};

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

/// What a method cannot do without, whatever its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Gradients of the score. A method without this need works with any model that gives scores.
    Gradients,
    /// Gradients of the score, or trees, whose jumps along a path are known exactly.
    GradientsOrTrees,
    /// A score that is a sum of decision trees.
    Trees,
    /// The model as a graph, to look inside; a closure will not do.
    Model,
    /// Rows of data.
    Data,
    /// A flow.
    Flow,
    /// A diffusion model.
    Diffusion,
    /// Inputs that are images.
    Image,
}

impl Need {
    /// What is needed, in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Need::Gradients => "gradients",
            Need::GradientsOrTrees => "gradients, or trees",
            Need::Trees => "trees",
            Need::Model => "an ONNX model",
            Need::Data => "rows of data",
            Need::Flow => "a flow",
            Need::Diffusion => "a diffusion model",
            Need::Image => "images",
        }
    }
}

/// What a user can give that makes a difference to some methods: the [`Settings`] one by one, and data and flows of
/// the [`Context`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// [`Settings::samples`].
    Samples,
    /// [`Settings::noise`].
    Noise,
    /// [`Settings::baseline`].
    Baseline,
    /// [`Settings::rule`].
    Rule,
    /// [`Settings::steps`].
    Steps,
    /// [`Settings::layer`].
    Layer,
    /// [`Settings::lrp_rule`].
    LrpRule,
    /// [`Settings::neighbours`].
    Neighbours,
    /// [`Settings::solver_tolerance`].
    SolverTolerance,
    /// [`Settings::inversion_steps`].
    InversionSteps,
    /// [`Settings::absence`](field@Settings::absence).
    Absence,
    /// [`Settings::groups`].
    Groups,
    /// [`Settings::window`].
    Window,
    /// [`Settings::stride`].
    Stride,
    /// [`Settings::seed`].
    Seed,
    /// Rows of data, for means, references, neighbours or expectations.
    Data,
    /// Flows, or a diffusion model.
    Flow,
}

/// What is known of a method before it runs.
#[derive(Debug, Clone, Copy)]
pub struct MethodSpec {
    /// The name on the command line and in certificates.
    pub name: &'static str,
    /// Other names that people know it by, such as the classes of Captum and SHAP.
    pub aliases: &'static [&'static str],
    /// One line for `--help`.
    pub help: &'static str,
    /// What it cannot do without.
    pub needs: &'static [Need],
    /// What makes a difference to it.
    pub uses: &'static [Setting],
    /// What its numbers mean.
    pub meaning: Meaning,
    /// The method with these settings; its own default for what is not given.
    pub build: fn(&Settings) -> Method,
    /// What `docs/methods.md` says of it.
    pub page: MethodPage,
}

/// What `docs/methods.md` says of a method, in Markdown.
#[derive(Debug, Clone, Copy)]
pub struct MethodPage {
    /// The formula of the credit.
    pub credit: &'static str,
    /// What credit sums to.
    pub sums_to: &'static str,
    /// The cost of one explanation.
    pub cost: &'static str,
    /// When to use it.
    pub use_it: &'static str,
    /// What it refuses.
    pub refuses: &'static str,
}

impl MethodSpec {
    /// Whether the method cannot do without this. Of a model without trees, a method that takes gradients or trees needs
    /// gradients.
    pub fn needs(&self, need: Need) -> bool {
        self.needs.contains(&need)
            || (need == Need::Gradients && self.needs.contains(&Need::GradientsOrTrees))
    }

    /// Whether the method works with this score, as far as gradients and trees go.
    ///
    /// # Errors
    /// In one sentence, with the methods that work.
    pub fn fits(&self, score: &dyn Score) -> Result<()> {
        let refused = |reason: &str, remedy: &'static str| {
            Err(Error::Method {
                method: self.name.to_string(),
                reason: reason.to_string(),
                remedy: remedy.into(),
            })
        };
        match score.trees() {
            Some(_) if self.needs.contains(&Need::Gradients) => refused(
                "the model is an ensemble of trees, which has no gradient",
                "use ig, nearest-ig, expected-gradients, transport, transport-line or tree-shap, or a method that needs \
                 scores only, such as kernel-shap",
            ),
            None if self.needs.contains(&Need::Trees) => refused(
                "the model is no ensemble of trees that can be read",
                "use kernel-shap or shapley-values, which need scores only; docs/trees.md says what is read",
            ),
            _ => Ok(()),
        }
    }

    /// Whether this makes a difference to the method.
    pub fn uses(&self, setting: Setting) -> bool {
        self.uses.contains(&setting)
    }
}

impl Named for MethodSpec {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }
}

/// What every method does, behind [`Method`]. Examples are counted from 0; `Method` knows their numbers in the run.
pub(super) trait Explainer {
    /// The spec of the method with these settings.
    fn spec(&self) -> &'static MethodSpec;

    /// About how many rows go through the score for one input of this shape, where that is known before.
    fn evaluations(&self, _shape: &[usize]) -> Option<usize> {
        None
    }

    /// An explanation for each row of `inputs`.
    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>>;

    /// The same with the path of each, for methods whose path can be looked at again.
    fn run_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        Ok((self.run(score, inputs, targets, context)?, Vec::new()))
    }
}

/// The tables of `docs/methods.md` in Markdown: what methods compute, and when to use them.
pub fn method_tables() -> [String; 2] {
    let rows = |cells: fn(&MethodSpec) -> Vec<String>| Method::specs().map(|s| (s.name, cells(s))).collect();
    let computes =
        rows(|MethodSpec { page, .. }| [page.credit, page.sums_to, page.cost].map(str::to_string).to_vec());
    let uses = rows(|MethodSpec { page, needs, .. }| {
        let needs: Vec<&str> = needs.iter().map(|need| need.in_words()).collect();
        let needs = if needs.is_empty() { "scores only".to_string() } else { needs.join(", ") };
        vec![page.use_it.to_string(), needs, page.refuses.to_string()]
    });
    [
        markdown_table(&["name", r"credit $\Phi_i$", "sums to", "cost"], computes),
        markdown_table(&["name", "use it", "it needs", "it refuses"], uses),
    ]
}
