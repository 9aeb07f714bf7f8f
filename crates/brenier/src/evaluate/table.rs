//! Methods by metrics: the table that people compare methods with.
//!
//! ```text
//! for every chunk of examples, for every method:  explanations -> Cases -> a number for each metric and example
//! a cell = mean, deviation and 95 % interval over the examples
//! ```
//!
//! Examples go through in small chunks, so memory does not grow with their number. A finished chunk of a method is
//! kept in a [`Store`] the moment it is there, and a run that is started again takes what is kept: it ends with the
//! same table to the last bit, because numbers come back from JSON to the bit, a metric looks at each example by
//! itself, and draws follow from an example's number in the run. Chunks are outside and methods inside, so that a
//! stopped run has all methods on the same examples. Several machines can share the chunks ([`shard`]).

pub(super) mod shard;

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use ndarray::{Array2, ArrayView2, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::collected::{Chunk, Collected};
use super::{Cases, Comparable, Direction, Lead, Metric, MetricNeed, Summary, explain_with};
use crate::attribute::{Context, Explanation, Method, Need};
use crate::path::Path;
use crate::predictor::Score;
use crate::store::Store;
use crate::{Error, Result, error, fingerprint};

/// Examples that are explained together.
pub const CHUNK: usize = 8;

/// The numbers of so many of the rows, drawn by the seed and ascending; of all where there are no more.
pub fn draw_examples(rows: usize, count: usize, seed: u64) -> Vec<usize> {
    if rows <= count {
        return (0..rows).collect();
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut drawn = rand::seq::index::sample(&mut rng, rows, count).into_vec();
    drawn.sort_unstable();
    drawn
}

/// What methods are compared on.
pub struct Evaluation<'a> {
    /// The score that is explained.
    pub score: &'a dyn Score,
    /// The inputs, `[examples, features]`.
    pub inputs: ArrayView2<'a, f64>,
    /// The output that is explained, for each input.
    pub targets: &'a [usize],
    /// What methods need besides. Paths are held against its first flow; given baselines are one row or one for each
    /// input.
    pub context: Context<'a>,
    /// The features that truly decide, `[examples, features]`, where they are known.
    pub truth: Option<ArrayView2<'a, bool>>,
    /// The metrics.
    pub metrics: &'a [Metric],
    /// Whether metrics that apply to none of the methods are left out; they are refused otherwise.
    pub leave_out: bool,
}

/// What has been done of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Chunks of methods that are finished, those of earlier sessions among them.
    pub parts: usize,
    /// Chunks of methods in all.
    pub of: usize,
    /// Whether this one was there already.
    pub kept: bool,
}

/// Methods by metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricTable {
    /// Examples that were explained.
    pub examples: usize,
    /// The metrics, in the order of the cells.
    pub metrics: Vec<MetricColumn>,
    /// A row for each method.
    pub rows: Vec<MethodRow>,
    /// Metrics that nobody asked for by name and that apply to none of the methods, with the reason.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
}

/// The heading of a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricColumn {
    /// The metric's name.
    pub name: String,
    /// Which values are the better ones.
    pub direction: Direction,
    /// Which method is the best, and whether that can be told from chance.
    #[serde(default = "Lead::unknown")]
    pub lead: Lead,
}

/// What a method scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodRow {
    /// The method's name.
    pub method: String,
    /// A cell for each metric.
    pub cells: Vec<Cell>,
    /// Gradient evaluations for an example, on average.
    pub gradients: f64,
    /// Evaluations of the score alone for an example, on average.
    pub scores: f64,
}

/// One metric of one method.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// Over the examples for which it is defined.
    Measured(Summary),
    /// Why there is no number: the method has no path, or the metric is defined for none of the examples.
    Absent(String),
}

impl Cell {
    /// The numbers, where there are some.
    pub fn summary(&self) -> Option<&Summary> {
        match self {
            Cell::Measured(summary) => Some(summary),
            Cell::Absent(_) => None,
        }
    }
}

impl Evaluation<'_> {
    /// Scores every method on every example. `made_from` says by name what the store's parts are made from besides
    /// the inputs and the metrics, such as the fingerprints of files; `watch` is told of every finished part. None
    /// where the watch broke off: what is finished is in the store.
    ///
    /// # Errors
    /// What methods and metrics say; a store with parts of another run; a metric that no method can be scored by.
    pub fn run(
        &self,
        methods: &[Method],
        store: &Store,
        made_from: &[(String, String)],
        watch: &mut dyn FnMut(Done) -> ControlFlow<()>,
    ) -> Result<Option<MetricTable>> {
        self.check(methods)?;
        let _lock = store.claim(&self.claim(made_from))?;
        let mut rows: Vec<Collected> = methods.iter().map(|_| Collected::new(self.metrics.len())).collect();
        let heading = self.heading(methods);
        let mut done = Done { parts: 0, of: self.chunks() * methods.len(), kept: false };
        for range in self.ranges() {
            for (method, row) in methods.iter().zip(&mut rows) {
                row.add(self.kept_chunk(method, &range, store, &mut done)?);
                if watch(done).is_break() && done.parts < done.of {
                    return Ok(None);
                }
            }
            if range.start == 0 && !self.leave_out {
                heading.refuse_empty_columns(&rows)?;
            }
        }
        Ok(Some(heading.table(rows)))
    }

    /// The examples of each chunk.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let count = self.inputs.nrows();
        (0..count).step_by(CHUNK).map(move |first| first..(first + CHUNK).min(count))
    }

    /// A chunk of a method: the one that was kept, or a new one.
    fn kept_chunk(
        &self,
        method: &Method,
        range: &Range<usize>,
        store: &Store,
        done: &mut Done,
    ) -> Result<Chunk> {
        done.kept = true;
        let name = format!("{}-{:05}", method.name(), range.start);
        let chunk = store.part(&name, &(method, self.metrics, range), || {
            done.kept = false;
            self.chunk(method, range.clone())
        })?;
        done.parts += 1;
        Ok(chunk)
    }

    fn heading(&self, methods: &[Method]) -> Heading {
        let column = |metric: &Metric| HeadingColumn {
            name: metric.name().to_string(),
            direction: metric.direction(),
            comparable: metric.comparable(),
        };
        Heading {
            examples: self.inputs.nrows(),
            methods: methods.iter().map(Method::name).collect(),
            metrics: self.metrics.iter().map(column).collect(),
            leave_out: self.leave_out,
        }
    }

    fn check(&self, methods: &[Method]) -> Result<()> {
        let expected = [self.targets.len(), self.score.features()];
        error::expect_shape("the inputs", &expected, self.inputs.shape())?;
        if let Some(truth) = &self.truth {
            error::expect_shape("the mask of true features", &expected, truth.shape())?;
        }
        let counts = [
            (self.inputs.nrows(), "the number of examples"),
            (methods.len(), "the number of methods"),
            (self.metrics.len(), "the number of metrics"),
        ];
        match counts.into_iter().find(|(count, _)| *count == 0) {
            Some((_, what)) => Err(Error::Zero { what }),
            None => Ok(()),
        }
    }

    /// What the parts of this run are made from.
    fn claim(&self, made_from: &[(String, String)]) -> BTreeMap<String, String> {
        let mut about: BTreeMap<String, String> = made_from.iter().cloned().collect();
        let mut bytes: Vec<u8> = self.inputs.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.extend(self.targets.iter().flat_map(|target| (*target as u64).to_le_bytes()));
        bytes.extend(self.truth.iter().flatten().map(|true_| u8::from(*true_)));
        about.insert("the count of examples".to_string(), self.inputs.nrows().to_string());
        about.insert("the fingerprint of inputs and targets".to_string(), fingerprint(&bytes));
        if let Some(baselines) = &self.context.baselines {
            let bytes: Vec<u8> = baselines.iter().flat_map(|value| value.to_le_bytes()).collect();
            about.insert("the fingerprint of the baselines".to_string(), fingerprint(&bytes));
        }
        about.insert("the version".to_string(), env!("CARGO_PKG_VERSION").to_string());
        about
    }

    /// Explains a few examples by a method and scores what comes out.
    fn chunk(&self, method: &Method, range: Range<usize>) -> Result<Chunk> {
        let inputs = self.inputs.slice(s![range.clone(), ..]);
        let targets = &self.targets[range.clone()];
        let context = self.context_of(&range);
        let (explanations, paths) = method.explain_with_paths(self.score, inputs, targets, &context)?;
        let members = self.members(method, &range, &context)?;
        let again = Context { draw_as: Some(inputs), ..context.reborrow() };
        let explain = explain_with(method, &again);
        let cases = Cases {
            meaning: method.meaning(),
            context: context.reborrow(),
            paths: paths.iter().map(|path| path.as_ref() as &dyn Path).collect(),
            truth: self.truth.map(|truth| truth.slice_move(s![range.clone(), ..])),
            explain: Some(&*explain),
            ..Cases::of(self.score, &explanations)?
        };
        // Stability is that of the flows one by one, not that of their mean.
        let by_flow = members.split_first().map(|(first, others)| Cases {
            values: first.clone(),
            repeats: others.iter().map(|values| values.view()).collect(),
            ..cases.clone()
        });
        let mut scores = Vec::with_capacity(self.metrics.len());
        for metric in self.metrics {
            let cases = match (&by_flow, across_seeds(metric)) {
                (Some(by_flow), true) => by_flow,
                _ => &cases,
            };
            scores.push(match metric.missing(cases) {
                Some(reason) => Err(reason.to_string()),
                None => Ok(finite(metric, range.start, metric.scores(cases)?)?),
            });
        }
        let sum = |count: fn(&Explanation) -> usize| explanations.iter().map(count).sum();
        Ok(Chunk {
            scores,
            gradients: sum(|e| e.certificate.gradient_evaluations),
            evaluations: sum(|e| e.certificate.score_evaluations),
        })
    }

    /// The context of a chunk: its own baselines, and its place in the run.
    fn context_of(&self, range: &Range<usize>) -> Context<'_> {
        let baselines = self.context.baselines.as_ref().map(|rows| match rows.nrows() {
            1 => rows.view(),
            _ => rows.slice(s![range.clone(), ..]),
        });
        Context { baselines, first_example: range.start, ..self.context.clone() }
    }

    /// Where a method follows several flows and a metric compares seeds: what each flow says by itself.
    fn members(&self, method: &Method, range: &Range<usize>, context: &Context) -> Result<Vec<Array2<f64>>> {
        let several = method.spec().needs(Need::Flow) && context.flows.len() > 1;
        if !several || !self.metrics.iter().any(across_seeds) {
            return Ok(Vec::new());
        }
        let inputs = self.inputs.slice(s![range.clone(), ..]);
        let alone = |flow| {
            let context = Context { flows: vec![flow], ..context.clone() };
            explain_with(method, &context)(self.score, context.model, inputs, &self.targets[range.clone()])
        };
        context.flows.iter().map(|&flow| alone(flow)).collect()
    }
}

/// What a table has to say besides its numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Heading {
    examples: usize,
    methods: Vec<String>,
    metrics: Vec<HeadingColumn>,
    leave_out: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct HeadingColumn {
    name: String,
    direction: Direction,
    comparable: Comparable,
}

impl Heading {
    /// The table of what all chunks have given.
    fn table(&self, rows: Vec<Collected>) -> MetricTable {
        let empty: Vec<Option<&str>> =
            (0..self.metrics.len()).map(|k| Some(nowhere(&rows, k)?.as_str())).collect();
        let named = |k: usize, reason: &str| (self.metrics[k].name.clone(), reason.to_string());
        let left_out =
            empty.iter().enumerate().filter_map(|(k, reason)| Some(named(k, (*reason)?))).collect();
        let kept: Vec<usize> = (0..self.metrics.len()).filter(|&k| empty[k].is_none()).collect();
        let column = |&k: &usize| {
            let scores: Vec<(String, &[Option<f64>])> = self
                .methods
                .iter()
                .zip(&rows)
                .map(|(method, row)| (method.clone(), row.scores[k].as_slice()))
                .collect();
            let HeadingColumn { name, direction, comparable } = &self.metrics[k];
            let lead = Lead::of(*direction, *comparable, &scores);
            MetricColumn { name: name.clone(), direction: *direction, lead }
        };
        let metrics = kept.iter().map(column).collect();
        let methods = self.methods.iter().zip(rows);
        let rows = methods.map(|(method, row)| row.finish(method.clone(), self.examples, &kept)).collect();
        MetricTable { examples: self.examples, metrics, rows, left_out }
    }

    /// A metric that is defined for no method is a mistake of whoever asked for it.
    fn refuse_empty_columns(&self, rows: &[Collected]) -> Result<()> {
        for (k, metric) in self.metrics.iter().enumerate() {
            if let Some(reason) = nowhere(rows, k) {
                return Err(Error::Metric {
                    metric: metric.name.clone(),
                    reason: format!("{reason}, and this holds for all {} methods", rows.len()),
                    remedy: "leave the metric out, or give what it needs".into(),
                });
            }
        }
        Ok(())
    }
}

/// Why the first method does not have a metric, where none has it.
fn nowhere(rows: &[Collected], metric: usize) -> Option<&String> {
    let reasons: Option<Vec<&String>> = rows.iter().map(|row| row.absent[metric].as_ref()).collect();
    reasons?.first().copied()
}

/// Whether a metric compares explanations by other seeds.
fn across_seeds(metric: &Metric) -> bool {
    metric.spec().needs(MetricNeed::Seeds)
}

/// Refuses a number that no table and no file could hold.
fn finite(metric: &Metric, first: usize, scores: Vec<Option<f64>>) -> Result<Vec<Option<f64>>> {
    match scores.iter().position(|score| score.is_some_and(|value| !value.is_finite())) {
        None => Ok(scores),
        Some(place) => Err(Error::Metric {
            metric: metric.name().to_string(),
            reason: format!("it is {:?} for example {}", scores[place], first + place),
            remedy: "look at this example with 'explain', or leave the metric out".into(),
        }),
    }
}

#[cfg(test)]
mod tests;
