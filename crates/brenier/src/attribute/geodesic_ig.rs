//! Geodesic IG: the path integral along a way through the data that avoids where the score is steep.
//!
//! ```text
//! cost(i, j) = |x_i - x_j| |grad f((x_i + x_j) / 2)|       (Salek et al., 2025)
//! ```
//!
//! The path is the cheapest way from the baseline to the input in a graph of nearest neighbours. With the
//! Euclidean metric the score does not enter and the way only keeps to the data, as in Enhanced Integrated
//! Gradients (Jha et al., 2020). With the model's metric the path depends on the score, so credit is not
//! linear in it. Along the way, credit is the ordinary path integral and sums to the score's change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use super::integrated_gradients::requests;
use super::rows::{Row, check_inputs, stream_gradients};
use super::spec::{Explainer, MethodPage, MethodSpec, Need, Setting};
use super::{
    Allocation, Baseline, Context, Explanation, Meaning, Method, Sampling, Settings, WithPaths, boxed,
};
use crate::path::{JoinedGraph, NeighbourGraph, Polyline};
use crate::predictor::Score;
use crate::{Error, Result, error};

/// What makes a way long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeodesicMetric {
    /// Length times the norm of the score's gradient.
    #[default]
    Model,
    /// Length alone.
    Euclidean,
}

/// Geodesic IG on a graph of nearest neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeodesicIg {
    /// Where the path starts.
    pub baseline: Baseline,
    /// To how many of its nearest a point is joined.
    pub neighbours: usize,
    /// Rows of the data that become points of the graph, at most; drawn by the seed where there are more.
    pub points: usize,
    /// What makes a way long.
    pub metric: GeodesicMetric,
    /// How credit is given along the way.
    pub allocation: Allocation,
    /// Seed of the rows, and of a baseline that is drawn.
    pub seed: u64,
}

impl Default for GeodesicIg {
    /// From zero through 500 rows with 10 neighbours each, under the model's metric.
    fn default() -> Self {
        Self {
            baseline: Baseline::Zero,
            neighbours: 10,
            points: 500,
            metric: GeodesicMetric::Model,
            allocation: Allocation::default(),
            seed: 0,
        }
    }
}

impl GeodesicIg {
    /// The name on the command line and in certificates.
    pub const NAME: &'static str = "geodesic-ig";

    /// Explains each row of `inputs`: under the model's metric a gradient for every edge of the graph, once for
    /// each target, and then as many as the rule needs.
    ///
    /// # Errors
    /// If the context has no data, or no way through them leads from the baseline to the input.
    pub fn explain(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        Ok(self.explain_with_paths(score, inputs, targets, context)?.0)
    }

    /// As [`GeodesicIg::explain`], with the ways through the data.
    pub fn explain_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<(Vec<Explanation>, Vec<Polyline>)> {
        check_inputs(score, inputs, targets)?;
        if self.points == 0 {
            return Err(Error::Zero { what: "the number of points" });
        }
        let data = context.require_data(Self::NAME)?;
        error::expect_shape("a row of the data", score.shape(), data.shape())?;
        let baselines = self.baseline.of(inputs, score.shape(), self.seed, context)?;
        let mut rows: Vec<usize> = data.shuffled_order(self.seed).into_iter().take(self.points).collect();
        rows.sort_unstable();
        let graph = NeighbourGraph::new(data.rows_f64(&rows)?, self.neighbours)?;
        let mut known: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut ways = Vec::with_capacity(targets.len());
        let mut spent = Vec::with_capacity(targets.len());
        for (example, &target) in targets.iter().enumerate() {
            let joined = graph.joined(baselines.row(example), inputs.row(example))?;
            let extra = self.steepness(score, &joined, joined.extra_edges(), example, target)?;
            let inner = match known.entry(target) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    entry.insert(self.steepness(score, &joined, graph.edges(), example, target)?)
                }
            };
            ways.push(joined.shortest(inner, &extra)?);
            spent.push(match self.metric {
                GeodesicMetric::Model => inner.len() + extra.len(),
                GeodesicMetric::Euclidean => 0,
            });
        }
        let drawn = self.baseline == Baseline::Noise || data.len() > self.points;
        let mut explanations = self.allocation.explain_all(Self::NAME, score, &requests(&ways, targets))?;
        for (explanation, spent) in explanations.iter_mut().zip(spent) {
            explanation.certificate.gradient_evaluations += spent;
            if drawn {
                explanation.certificate.sampling = Some(Sampling::new(self.seed, 1, None));
            }
        }
        Ok((explanations, ways))
    }

    /// How steep the score is in the middle of each edge.
    fn steepness(
        &self,
        score: &dyn Score,
        joined: &JoinedGraph,
        edges: &[(usize, usize)],
        example: usize,
        target: usize,
    ) -> Result<Vec<f64>> {
        if self.metric == GeodesicMetric::Euclidean {
            return Ok(vec![1.0; edges.len()]);
        }
        let mut norms = Vec::with_capacity(edges.len());
        let rows = edges.iter().map(|&(i, j)| {
            let state = (&joined.point(i) + &joined.point(j)) * 0.5;
            Ok(Row { example, target, time: 0.5, state, tag: () })
        });
        stream_gradients(score, rows, |_, _, gradient| norms.push(gradient.dot(&gradient).sqrt()))?;
        Ok(norms)
    }
}

impl GeodesicIg {
    const PLAIN: MethodSpec = MethodSpec {
        name: Self::NAME,
        aliases: &["geodesic-integrated-gradients"],
        help: "path through the data that avoids where the score is steep",
        needs: &[Need::Gradients, Need::Data],
        uses: &[Setting::Baseline, Setting::Neighbours, Setting::Rule, Setting::Seed, Setting::Data],
        meaning: Meaning::Credit,
        build: |settings| build(settings.path_integral(), settings),
        page: MethodPage {
            credit: "path integral along the cheapest way through the data",
            sums_to: "$f(x)-f(b)$",
            cost: "as the tolerance needs, or $K$; and one for each edge",
            use_it: "for small data with a clear shape",
            refuses: "a run without background data; data with a gap between baseline and input",
        },
    };

    pub(super) const SPECS: &'static [MethodSpec] = &[
        Self::PLAIN,
        Self::PLAIN.with_idgi(
            "geodesic-ig+idgi",
            &[Setting::Baseline, Setting::Neighbours, Setting::Steps, Setting::Seed, Setting::Data],
            |settings| build(settings.idgi(), settings),
        ),
    ];
}

impl Explainer for GeodesicIg {
    fn spec(&self) -> &'static MethodSpec {
        self.allocation.spec(Self::SPECS)
    }

    fn run(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<Vec<Explanation>> {
        self.explain(score, inputs, targets, context)
    }

    fn run_with_paths(
        &self,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        context: &Context,
    ) -> Result<WithPaths> {
        Ok(boxed(self.explain_with_paths(score, inputs, targets, context)?))
    }
}

fn build(allocation: Allocation, settings: &Settings) -> Method {
    let default = GeodesicIg::default();
    let baseline = settings.baseline.unwrap_or_default();
    let neighbours = settings.neighbours.unwrap_or(default.neighbours);
    GeodesicIg { baseline, neighbours, allocation, seed: settings.seed, ..default }.into()
}
