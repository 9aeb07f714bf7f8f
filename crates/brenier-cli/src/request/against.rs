//! Why this and not that: what inputs are compared with, as it is typed.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use brenier::compare::{Against, Comparison, Route};
use brenier::data::{Dataset, OpenOptions, Population};
use brenier::engine::EngineConfig;
use brenier::flow::{ClassFlows, OnnxFlow, Reversed};
use brenier::runs::explain::Inputs;
use brenier::{ValuePredictor, VelocityField};
use clap::Args;

use super::targets::class_index;
use crate::output::print_progress;

/// Features beyond which a covariance does not fit into memory.
const MANY: usize = 8192;
/// Inputs that can stand for their own population.
const ENOUGH: usize = 30;
/// What stands for the class of `--against` where `--contrast` names none.
const LIKE_AGAINST: &str = "that of --against";

/// The comparison
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Why this and not that")]
pub(crate) struct AgainstArgs {
    /// Compare with a population: a class of the labelled --background, 'others' for all its other classes, or a file or
    /// folder of rows. Each input is carried to its counterpart there: along --flow, or without one by optimal transport
    /// between two fitted Gaussians
    #[arg(long, value_name = "CLASS|others|DATA", conflicts_with_all = ["baseline", "path", "traces"])]
    pub(crate) against: Option<String>,
    /// The population that inputs belong to: a class of --background, or a file or folder; the class that the model takes
    /// each for where not given
    #[arg(long, value_name = "CLASS|DATA", requires = "against")]
    among: Option<String>,
    /// Compare with the nearest rows of that population, without a flow: nearest-ig with so many references
    #[arg(long, value_name = "K", requires = "against", conflicts_with_all = ["flow", "neighbours", "method"])]
    pub(crate) nearest: Option<usize>,
    /// Explain the score minus that of another class, by default the one of --against: --contrast or --contrast=CLASS
    #[arg(long, value_name = "CLASS", num_args = 0..=1, require_equals = true, default_missing_value = LIKE_AGAINST)]
    contrast: Option<String>,
}

impl AgainstArgs {
    /// The class whose score is taken from all others.
    pub(crate) fn contrast(&self, outputs: usize, classes: &[String]) -> Result<Option<usize>> {
        let Some(typed) = &self.contrast else { return Ok(None) };
        let class = match (typed.as_str(), &self.against) {
            (LIKE_AGAINST, Some(against)) => against,
            (LIKE_AGAINST, None) => bail!(
                "--contrast names no class, and there is no --against to take it from\nhint: say --contrast=CLASS"
            ),
            (named, _) => named,
        };
        let found = class_index(class, outputs, classes);
        found.map(Some).with_context(|| format!("'{class}' is no class to contrast with"))
    }

    /// Whether the model is asked for differences of scores.
    pub(crate) fn has_contrast(&self) -> bool {
        self.contrast.is_some()
    }

    /// What a reader of the report must know.
    pub(crate) fn facts(&self) -> Vec<(String, String)> {
        let against = self.against.as_deref().unwrap_or_default();
        let contrast =
            self.contrast.as_deref().map(|class| if class == LIKE_AGAINST { against } else { class });
        let given = [
            ("compared with", self.against.clone()),
            ("inputs belong to", self.among.clone()),
            ("scores", contrast.map(|class| format!("minus that of '{class}'"))),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
    }

    /// What results depend on.
    pub(crate) fn in_words(&self) -> Vec<(String, String)> {
        let given = [
            ("what inputs are compared with, as typed", &self.against),
            ("the population of the inputs", &self.among),
            ("the contrast", &self.contrast),
        ];
        // Files enter by their rows, wherever they lie.
        let said = |value: &String| match Path::new(value).exists() {
            true => "a file".to_string(),
            false => value.clone(),
        };
        given
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_string(), said(value.as_ref()?))))
            .collect()
    }
}

/// What a comparison is made of.
pub(crate) struct Parts<'a> {
    pub(crate) background: Option<&'a Dataset>,
    pub(crate) flow: Option<Direction<'a>>,
    pub(crate) between: Option<(&'a ClassFlows, &'a EngineConfig)>,
    pub(crate) model: &'a ValuePredictor,
    pub(crate) classes: &'a [String],
    pub(crate) inputs: &'a dyn Inputs,
    pub(crate) options: &'a OpenOptions,
}

/// A flow in the direction in which it is needed.
pub(crate) enum Direction<'a> {
    AsIs(&'a OnnxFlow),
    Turned(Reversed<&'a OnnxFlow>),
}

impl<'a> Direction<'a> {
    /// The flow from the population that is compared with.
    pub(crate) fn of(flow: &'a OnnxFlow, against: &str) -> Result<Direction<'a>> {
        let about = flow.metadata();
        let named =
            |class: &Option<String>| class.as_ref().is_some_and(|class| class.eq_ignore_ascii_case(against));
        let start = about.from_class.clone().or_else(|| about.reference.clone());
        match start.as_deref() {
            Some("standard-normal" | "uniform") => bail!(
                "the flow starts from noise, not from '{against}'\nhint: train one that does: brenier train DATA \
                 --from-class '{against}' --to-class CLASS, or leave --flow out"
            ),
            _ if named(&about.from_class) => Ok(Direction::AsIs(flow)),
            _ if named(&about.to_class) => Ok(Direction::Turned(Reversed(flow))),
            Some(other) if about.from_class.is_some() => bail!(
                "the flow leads from '{other}' to '{}', and '{against}' is neither\nhint: compare with one of them, or \
                 leave --flow out",
                about.to_class.as_deref().unwrap_or("the data")
            ),
            _ => Ok(Direction::AsIs(flow)),
        }
    }

    fn field(&self) -> &dyn VelocityField {
        match self {
            Direction::AsIs(flow) => *flow,
            Direction::Turned(flow) => flow,
        }
    }
}

impl AgainstArgs {
    /// The comparison that was asked for; says aloud how it is made.
    pub(crate) fn comparison<'a>(&self, parts: &'a Parts<'a>) -> Result<Option<Comparison<'a>>> {
        let Some(against) = &self.against else { return Ok(None) };
        let features = parts.model.shape().iter().product::<usize>();
        let route = match (&parts.flow, parts.between) {
            (Some(flow), _) => Route::Flow(flow.field()),
            (None, Some((flows, engine))) => Route::Classes(flows, engine),
            (None, None) if features > MANY && self.nearest.is_none() => bail!(
                "inputs have {features} features, and the covariance of so many does not fit into memory\nhint: compare \
                 with the nearest rows (--nearest 20), or give a flow (--flow)"
            ),
            (None, None) => Route::default(),
        };
        let (comparison, population, own) = match self.population(against, parts)? {
            Typed::Class if self.among.is_none() => {
                let data = labelled(parts, against)?;
                let which = if against == OTHERS { Against::Others } else { Against::Class(against.clone()) };
                let outputs = (parts.classes, parts.model.outputs());
                let made = Comparison::by_prediction(data, &which, parts.model, outputs, route)?;
                (made, against.clone(), "the class that the model takes each input for".to_string())
            }
            Typed::Class if against == OTHERS => {
                bail!("--among makes no difference to --against others\nhint: leave one of them out")
            }
            Typed::Class => {
                let data = labelled(parts, against)?;
                let population = Population::of_class(data, against)?;
                self.between(population, parts, route)?
            }
            Typed::Rows(population) => self.between(*population, parts, route)?,
        };
        let way = match (self.nearest, &parts.flow) {
            (Some(count), _) => format!("the {count} nearest rows"),
            (None, Some(_)) => "the flow".to_string(),
            (None, None) if parts.between.is_some() => "the flow between classes".to_string(),
            (None, None) => "optimal transport between two fitted Gaussians (no flow is given)".to_string(),
        };
        print_progress(&format!("comparing {own} with '{population}' by {way}"));
        Ok(Some(comparison))
    }

    fn between<'a>(
        &self,
        population: Population,
        parts: &'a Parts<'a>,
        route: Route<'a>,
    ) -> Result<(Comparison<'a>, String, String)> {
        let own = self.own(&population, parts)?;
        if population.is_same_as(&own) {
            print_progress(&format!(
                "notice: '{}' and '{}' are the same rows: nothing differs, and all credit will be 0",
                population.name(),
                own.name()
            ));
        }
        let class = class_index(population.name(), parts.model.outputs(), parts.classes).ok();
        let names = (population.name().to_string(), format!("rows of '{}'", own.name()));
        let made = Comparison::between(population, &own, route)?;
        Ok((made.seen_by(parts.model).with_class(class, parts.classes), names.0, names.1))
    }

    /// The population that inputs belong to.
    fn own(&self, against: &Population, parts: &Parts) -> Result<Population> {
        match (&self.among, parts.background) {
            (Some(among), _) => match self.population(among, parts)? {
                Typed::Class => Ok(Population::of_class(labelled(parts, among)?, among)?),
                Typed::Rows(rows) => Ok(*rows),
            },
            (None, Some(background)) => Ok(Population::new(background.origin(), background.clone())?),
            (None, None) if parts.inputs.count() >= ENOUGH => {
                let rows = parts.inputs.rows(0..parts.inputs.count())?.mapv(|value| value as f32);
                let data = Dataset::from_rows("the inputs", against.rows().shape(), rows.view())?;
                let data = data.with_columns(against.rows().columns().to_vec());
                Ok(Population::new("the inputs", data)?)
            }
            (None, None) => bail!(
                "{} inputs are too few to tell which population they belong to\nhint: give rows like them with --among \
                 DATA",
                parts.inputs.count()
            ),
        }
    }

    /// What a word stands for: a class of the background, or rows of a file.
    fn population(&self, word: &str, parts: &Parts) -> Result<Typed> {
        if word == OTHERS {
            labelled(parts, word)?;
            return Ok(Typed::Class);
        }
        let class = parts.background.map(|data| Population::of_class(data, word));
        match class {
            Some(Ok(_)) => Ok(Typed::Class),
            other if Path::new(word).exists() => {
                drop(other);
                let rows = Population::open(word, parts.options, parts.background)?;
                Ok(Typed::Rows(Box::new(rows)))
            }
            Some(Err(error)) if parts.background.is_some_and(|data| data.labels().is_some()) => {
                Err(error).with_context(|| format!("'{word}' is neither a class of the data nor a file"))
            }
            _ => bail!(
                "there is no file '{word}', and no labelled data in which it could be a class\nhint: give a file or folder \
                 of rows, or labelled data with --background (and --label for a table)"
            ),
        }
    }
}

/// What stands for all other classes.
const OTHERS: &str = "others";

enum Typed {
    Class,
    Rows(Box<Population>),
}

fn labelled<'a>(parts: &Parts<'a>, word: &str) -> Result<&'a Dataset> {
    let hint = "hint: give labelled data with --background (and --label for a table)";
    match parts.background {
        Some(data) if data.labels().is_some() => Ok(data),
        Some(data) => bail!("'{word}' needs classes, and {} has no labels\n{hint}", data.origin()),
        None => bail!("'{word}' needs data with classes, and none are given\n{hint}"),
    }
}
