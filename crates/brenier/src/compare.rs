//! Why this and not that: an input compared with a population.
//!
//! ```text
//! x, of population B   ->   x0, its counterpart in population A   ->   credit for f(x) - f(x0) along the way
//! ```
//!
//! The counterpart is found by optimal transport from A to B, so it is the member of A that the input would most easily have
//! been: what the two populations share stays as it is, and features that the transport leaves alone get no credit,
//! whatever the model. Three ways lead there ([`Route`]): the closed form between two fitted Gaussians, a flow that was
//! trained for it, or the real rows of A, for methods that take their references from data.
//!
//! A [`Comparison`] knows both populations of every input, gives methods the flow and the data to work with, and adds to
//! every certificate what can be said of the comparison itself.

mod evidence;
mod membership;
mod pair;

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayView2};

use self::pair::Pair;
use crate::attribute::{ComparisonLimits, Context, Explanation, Method, MethodSpec, Need, Setting};
use crate::data::{Dataset, Population};
use crate::engine::EngineConfig;
use crate::error::{Error, Remedy, Result};
use crate::field::VelocityField;
use crate::flow::ClassFlows;
use crate::predictor::Outputs;
use crate::ranking::highest;
use crate::score::Score;
use crate::transport::{GaussianConfig, Shrinkage};

/// How inputs are carried to the population that they are compared with.
#[derive(Clone, Copy)]
pub enum Route<'a> {
    /// Optimal transport between two fitted Gaussians, in closed form.
    Gaussian(GaussianConfig),
    /// A flow that carries the population to the one that inputs belong to.
    Flow(&'a dyn VelocityField),
    /// A flow between all classes, of which that between the two populations is taken.
    Classes(&'a ClassFlows, &'a EngineConfig),
}

impl Default for Route<'_> {
    /// Gaussians, their covariances shrunk as held-out rows ask for.
    fn default() -> Self {
        Route::Gaussian(GaussianConfig { shrinkage: Shrinkage::HeldOut, ..GaussianConfig::default() })
    }
}

/// What inputs are compared with.
pub struct Comparison<'a> {
    pairs: Vec<Option<Pair>>,
    /// What the populations were taken from, and how.
    sources: Vec<Dataset>,
    asked: String,
    belongs: Belongs<'a>,
    route: Route<'a>,
    limits: ComparisonLimits,
    /// The names of the model's outputs, where it has names.
    classes: Vec<String>,
    model: Option<&'a dyn Outputs>,
}

/// To which population an input belongs: the place of its pair.
enum Belongs<'a> {
    One,
    /// That of the class with the highest score.
    Predicted(&'a dyn Outputs),
}

/// What a class of labelled data is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// A class, by its name or number.
    Class(String),
    /// All rows of other classes than the input's.
    Others,
}

impl<'a> Comparison<'a> {
    /// Compares inputs of one population with another.
    ///
    /// # Errors
    /// Populations that cannot be compared.
    pub fn between(against: Population, own: &Population, route: Route<'a>) -> Result<Self> {
        let own = own.aligned_with(&against)?;
        let sources = vec![against.rows().clone(), own.rows().clone()];
        let asked = format!("{} {}", against.name(), own.name());
        let pair = Pair::new(against, own, None, false);
        Ok(Self { sources, asked, ..Self::new(vec![Some(pair)], Belongs::One, route) })
    }

    /// Compares each input, as a member of the class that the model takes it for, with a class of labelled data, or with
    /// all others. `classes` are the names of the model's outputs; without names, its outputs are the data's classes
    /// in order.
    ///
    /// # Errors
    /// Data without labels, a class that there is not, outputs that cannot be told from the data's classes.
    pub fn by_prediction(
        data: &Dataset,
        against: &Against,
        model: &'a dyn Outputs,
        (classes, outputs): (&[String], usize),
        route: Route<'a>,
    ) -> Result<Self> {
        let of_output = labels_of_outputs(data, classes, outputs)?;
        let output_of: BTreeMap<&str, usize> =
            of_output.iter().enumerate().filter_map(|(i, label)| Some((label.as_deref()?, i))).collect();
        let named = match against {
            Against::Class(class) => Some(Population::of_class(data, class)?),
            Against::Others => None,
        };
        let mut pairs = Vec::with_capacity(outputs);
        for (output, label) in of_output.iter().enumerate() {
            // A class with too few rows is missed where an input is taken for it.
            let own = label.as_deref().and_then(|label| Population::of_class(data, label).ok());
            pairs.push(match (own, &named) {
                (None, _) => None,
                (Some(own), Some(named)) => {
                    let there = output_of.get(named.name()).copied();
                    Some(Pair::new(named.clone(), own, there, there == Some(output)))
                }
                (Some(own), None) => {
                    let others = Population::others(data, own.name())?;
                    Some(Pair::new(others, own, None, false).other_than(output))
                }
            });
        }
        let comparison = Self {
            sources: vec![data.clone()],
            asked: format!("{against:?} {classes:?}"),
            classes: classes.to_vec(),
            ..Self::new(pairs, Belongs::Predicted(model), route)
        };
        Ok(comparison.seen_by(model))
    }

    fn new(pairs: Vec<Option<Pair>>, belongs: Belongs<'a>, route: Route<'a>) -> Self {
        let limits = ComparisonLimits::default();
        let (sources, asked) = (Vec::new(), String::new());
        Self { pairs, sources, asked, belongs, route, limits, classes: Vec::new(), model: None }
    }

    /// The same, with a model that is asked what it takes references for.
    pub fn seen_by(self, model: &'a dyn Outputs) -> Self {
        Self { model: Some(model), ..self }
    }

    /// The same with the model's class that stands for the population compared with, and the names of its outputs.
    pub fn with_class(mut self, class: Option<usize>, classes: &[String]) -> Self {
        self.pairs.iter_mut().flatten().for_each(|pair| pair.set_class(class));
        self.classes = classes.to_vec();
        self
    }

    /// What results depend on, for a run that goes on where it was stopped.
    pub fn fingerprint(&self) -> String {
        let sources: Vec<String> = self.sources.iter().map(Dataset::fingerprint).collect();
        let route = match self.route {
            Route::Gaussian(config) => format!("{config:?}"),
            Route::Flow(_) => "a flow".to_string(),
            Route::Classes(..) => "a flow between classes".to_string(),
        };
        crate::fingerprint(format!("{route} {} {sources:?}", self.asked).as_bytes())
    }

    /// The place of the pair of populations of each row.
    pub(crate) fn places(&self, rows: ArrayView2<f64>) -> Result<Vec<usize>> {
        match &self.belongs {
            Belongs::One => Ok(vec![0; rows.nrows()]),
            Belongs::Predicted(model) => Ok(best(&model.outputs(rows)?)),
        }
    }

    /// What a method has to work with for inputs of a place: the flow from the population that they are compared with,
    /// where it follows one, and its rows as data.
    ///
    /// # Errors
    /// A class without rows, and populations that no map can be fitted to.
    pub(crate) fn context<'b>(
        &'b self,
        place: usize,
        method: &Method,
        context: &'b Context<'b>,
    ) -> Result<Context<'b>> {
        let pair = self.pair(place)?;
        let flows: Vec<&dyn VelocityField> = match self.route {
            _ if !method.spec().needs(Need::Flow) => Vec::new(),
            _ if pair.is_one_population() => vec![pair.still()],
            Route::Flow(flow) => vec![flow],
            Route::Classes(flows, engine) => vec![pair.flow(flows, engine)?],
            Route::Gaussian(config) => vec![pair.map(config)?],
        };
        Ok(Context { data: Some(pair.against().rows()), flows, ..context.reborrow() })
    }

    /// Whether a method compares with the population: it follows the flow, or takes all its references from the rows.
    pub fn is_used_by(spec: &MethodSpec) -> bool {
        (spec.needs(Need::Flow) || spec.needs(Need::Data)) && !spec.uses(Setting::Baseline)
    }

    /// Adds to the certificate of an explanation what can be said of the comparison.
    pub(crate) fn certify(
        &self,
        place: usize,
        method: &Method,
        score: &dyn Score,
        explanation: Explanation,
    ) -> Result<Explanation> {
        let pair = self.pair(place)?;
        let along = method.spec().needs(Need::Flow);
        let way = match self.route {
            _ if !along => "rows of the population, as the method takes them",
            Route::Gaussian(_) => "optimal transport between two fitted Gaussians",
            Route::Flow(_) => "a flow",
            Route::Classes(..) => "a flow between classes",
        };
        let seen = |x0: ArrayView2<f64>| -> Result<Option<usize>> {
            let Some(model) = self.model else { return Ok(None) };
            Ok(best(&model.outputs(x0)?).first().copied())
        };
        let found = pair.evidence(way, score, &explanation, (&self.classes, &seen))?;
        let certificate = explanation.certificate.compared(found, &self.limits);
        Ok(Explanation { certificate, ..explanation })
    }

    fn pair(&self, place: usize) -> Result<&Pair> {
        self.pairs.get(place).and_then(Option::as_ref).ok_or_else(|| Error::Comparison {
            reason: format!(
                "the model takes an input for class '{}', of which the data have fewer than two rows",
                self.classes.get(place).cloned().unwrap_or_else(|| place.to_string())
            ),
            remedy: Remedy::SayPopulation,
        })
    }
}

/// The output with the highest score of each row.
fn best(scores: &Array2<f64>) -> Vec<usize> {
    scores.rows().into_iter().map(|row| highest(row.iter().copied()).unwrap_or(0)).collect()
}

/// The class of the data that each output stands for.
fn labels_of_outputs(data: &Dataset, classes: &[String], outputs: usize) -> Result<Vec<Option<String>>> {
    data.require_labels()?;
    let labels = data.classes();
    if classes.len() == outputs {
        let named: Vec<Option<String>> =
            classes.iter().map(|class| labels.iter().find(|label| *label == class).cloned()).collect();
        if named.iter().any(Option::is_some) {
            return Ok(named);
        }
    }
    if labels.len() == outputs {
        return Ok(labels.iter().cloned().map(Some).collect());
    }
    Err(Error::Comparison {
        reason: format!(
            "the model has {outputs} outputs and {} has {} classes, and their names do not tell which is which",
            data.origin(),
            labels.len()
        ),
        remedy: Remedy::NameClassesOrSayPopulation,
    })
}
