//! Aumann-Shapley credit along any path: the one integrator behind Integrated Gradients, transport-geodesic
//! credit and every other path method.
//!
//! ```text
//! Phi_i(f, gamma) = int_0^1 d_i f(gamma(t)) gamma_i'(t) dt        (Eq. as_path)
//! ```
//!
//! By the paper's uniqueness theorem this is the only rule that satisfies the fixed-path axioms, so there is
//! nothing to configure but the numerics. Nodes of all examples and targets stream through the score in
//! micro-batches; of each only its contribution to the sum is kept. The sum of an explanation runs in the
//! order of its own nodes, so it does not depend on the size of the micro-batches or on what shares them.

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};

use super::adaptive::Adaptive;
use super::rule::{FixedRule, Weight};
use super::segments::{Visited, disagreement};
use super::{Certificate, Completeness, Explanation, Limits, PathCertificate, Rule, tree_path};
use crate::path::{Path, geometry};
use crate::score::{Score, ScoreStream};
use crate::{Error, Result, error};

/// Steps of the grid on which the certificate's action and straightness are measured.
const GEOMETRY_STEPS: usize = 50;

/// The integrator's settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PathIntegral {
    /// The quadrature rule.
    pub rule: Rule,
    /// The largest batch that the score is given, in rows.
    pub micro_batch: usize,
    /// When a certificate warns.
    pub limits: Limits,
}

/// One explanation to make: a path and the output to explain along it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The example's number, for certificates and errors.
    pub example: usize,
    /// The path that ends at the example.
    pub path: &'a dyn Path,
    /// The output to explain.
    pub target: usize,
}

impl PathIntegral {
    /// A rule with micro-batches of 32 rows and the usual limits.
    pub fn new(rule: Rule) -> Self {
        Self { rule, micro_batch: 32, limits: Limits::default() }
    }

    /// Explains one output along one path.
    ///
    /// ```
    /// use brenier::{Line, PathIntegral, Rule, ScoreFn};
    /// use ndarray::array;
    ///
    /// // f(x) = x0 * x1: along the diagonal both features share the credit.
    /// let score = ScoreFn::new(&[2], |x, _| (x[0] * x[1], array![x[1], x[0]]));
    /// let path = Line::new(array![0.0, 0.0].view(), array![2.0, 3.0].view())?;
    /// let explanation = PathIntegral::new(Rule::adaptive(1e-3)).explain(&score, &path, 0)?;
    /// assert!((explanation.values[0] - 3.0).abs() < 1e-12 && (explanation.values[1] - 3.0).abs() < 1e-12);
    /// # Ok::<(), brenier::Error>(())
    /// ```
    pub fn explain(&self, score: &dyn Score, path: &dyn Path, target: usize) -> Result<Explanation> {
        let mut explanations = self.explain_targets(score, path, &[target])?;
        Ok(explanations.remove(0))
    }

    /// Explains several outputs along one path, which is made once: it does not depend on the target.
    pub fn explain_targets(
        &self,
        score: &dyn Score,
        path: &dyn Path,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let requests: Vec<_> = targets.iter().map(|&target| Request { example: 0, path, target }).collect();
        self.explain_all(score, &requests)
    }

    /// Explains a batch: path `i` with target `i`.
    pub fn explain_batch<P: Path>(
        &self,
        score: &dyn Score,
        paths: &[P],
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        error::expect_shape("the list of targets", &[paths.len()], &[targets.len()])?;
        let requests: Vec<_> = paths
            .iter()
            .zip(targets)
            .enumerate()
            .map(|(example, (path, &target))| Request { example, path, target })
            .collect();
        self.explain_all(score, &requests)
    }

    /// Explains any mixture of paths and targets, in the order of the requests.
    ///
    /// # Errors
    /// A setting of 0, a path that does not fit the score, and the first score or gradient that is not finite,
    /// with its example, time and feature.
    pub fn explain_all(&self, score: &dyn Score, requests: &[Request]) -> Result<Vec<Explanation>> {
        self.rule.check()?;
        if self.micro_batch == 0 {
            return Err(Error::Setting {
                name: "the micro-batch",
                value: "0".into(),
                needs: "a batch has at least one row",
                hint: "32 is the default".into(),
            });
        }
        for request in requests {
            let (reference, input) = request.path.ends();
            error::expect_shape("the path's reference", &[score.features()], reference.shape())?;
            error::expect_shape("the path's input", &[score.features()], input.shape())?;
        }
        if let Some(trees) = score.trees() {
            return tree_path::explain_all(self, score, trees, requests);
        }
        let sums = match self.rule {
            Rule::Adaptive { tolerance, max_gradients, map_tolerance } => {
                self.adaptive(score, requests, (tolerance, map_tolerance), max_gradients)?
            }
            _ => self.fixed(score, requests)?,
        };
        Ok(requests.iter().zip(sums).map(|(request, sum)| self.certify(score, request, sum)).collect())
    }

    fn fixed(&self, score: &dyn Score, requests: &[Request]) -> Result<Vec<Sum>> {
        let mut sums: Vec<_> = requests.iter().map(|_| Sum::zero(score.features())).collect();
        let mut batch = Batch::new(score, requests, self.micro_batch);
        for (i, request) in requests.iter().enumerate() {
            let rule = FixedRule::new(self.rule, &request.path.corners())?;
            sums[i].used = self.rule.name().to_owned();
            for k in 0..rule.count() {
                let node = rule.node(k);
                batch.push(i, node.time, Some(node.weight))?;
                batch.flush_full(&mut |row, value, gradient| {
                    sums[row.request].add(requests, row, value, gradient)
                })?;
            }
        }
        batch.flush(&mut |row, value, gradient| sums[row.request].add(requests, row, value, gradient))?;
        // Where the rule has no node at an end of the path, its score takes an evaluation of its own.
        for (end, time) in [(0, 0.0), (1, 1.0)] {
            for i in 0..requests.len() {
                if sums[i].ends[end].is_none() {
                    batch.push(i, time, None)?;
                    sums[i].score_evaluations += 1;
                }
                batch.flush_values_full(&mut |row, value| sums[row.request].ends[end] = Some(value))?;
            }
            batch.flush_values(&mut |row, value| sums[row.request].ends[end] = Some(value))?;
        }
        for sum in &mut sums {
            if let [Some(first), Some(last)] = sum.ends {
                sum.disagreement = disagreement(self.rule, &mut sum.visited, (first, last));
            }
        }
        Ok(sums)
    }

    fn adaptive(
        &self,
        score: &dyn Score,
        requests: &[Request],
        tolerances: (f64, Option<f64>),
        max_gradients: usize,
    ) -> Result<Vec<Sum>> {
        let mut sums = Vec::with_capacity(requests.len());
        // Each path asks for a handful of nodes at a time: several of them together fill a micro-batch.
        let abreast = (self.micro_batch / 8).max(1);
        for group in requests.chunks(abreast) {
            let mut batch = Batch::new(score, group, self.micro_batch);
            let mut ends = vec![(0.0, 0.0); group.len()];
            for i in 0..group.len() {
                batch.push(i, 0.0, None)?;
                batch.flush_values_full(&mut |row, value| row.store_end(value, &mut ends))?;
                batch.push(i, 1.0, None)?;
                batch.flush_values_full(&mut |row, value| row.store_end(value, &mut ends))?;
            }
            batch.flush_values(&mut |row, value| row.store_end(value, &mut ends))?;
            let mut states: Vec<_> = group
                .iter()
                .zip(&ends)
                .map(|(request, &ends)| Adaptive::new(request.path, ends, tolerances, max_gradients))
                .collect();
            loop {
                let mut found: Vec<Vec<(f64, Array1<f64>)>> = states.iter().map(|_| Vec::new()).collect();
                for (i, state) in states.iter().enumerate() {
                    for time in state.wanted() {
                        batch.push(i, time, None)?;
                        batch.flush_full(&mut |row, value, gradient| {
                            found[row.request].push((value, gradient.to_owned()))
                        })?;
                    }
                }
                batch.flush(&mut |row, value, gradient| {
                    found[row.request].push((value, gradient.to_owned()))
                })?;
                if found.iter().all(|nodes| nodes.is_empty()) {
                    break;
                }
                for (state, found) in states.iter_mut().zip(found) {
                    if !found.is_empty() {
                        state.absorb(found);
                    }
                }
            }
            sums.extend(states.into_iter().zip(ends).map(|(state, ends)| {
                let scale = state.scale();
                let size = state.credit.dot(&state.credit).sqrt();
                let map_error = if state.map_error == 0.0 { 0.0 } else { state.map_error / size };
                Sum {
                    map_error: Some(map_error),
                    disagreement: Some(if scale == 0.0 { 0.0 } else { state.disagreement / scale }),
                    credit: state.credit,
                    visited: Vec::new(),
                    ends: [Some(ends.0), Some(ends.1)],
                    gradient_evaluations: state.gradients,
                    score_evaluations: 2,
                    used: state.used,
                }
            }));
        }
        Ok(sums)
    }

    fn certify(&self, score: &dyn Score, request: &Request, sum: Sum) -> Explanation {
        let ends = (sum.ends[0].unwrap_or(f64::NAN), sum.ends[1].unwrap_or(f64::NAN));
        let rule = (self.rule, sum.used.as_str(), sum.disagreement, sum.map_error);
        let mut explanation = certify(score, request, sum.credit, ends, rule, &self.limits);
        explanation.certificate.gradient_evaluations = sum.gradient_evaluations;
        explanation.certificate.score_evaluations = sum.score_evaluations;
        explanation
    }
}

/// An explanation along a path: credit, the scores at both ends, and the rule with what was used of it, by how
/// much its segments disagree and how far the map is from the converged one.
pub(super) fn certify(
    score: &dyn Score,
    request: &Request,
    credit: Array1<f64>,
    (reference_score, input_score): (f64, f64),
    (rule, used, relative_disagreement, relative_map_error): (Rule, &str, Option<f64>, Option<f64>),
    limits: &Limits,
) -> Explanation {
    let (reference, input) = request.path.ends();
    let (kinetic_action, straightness) = geometry(request.path, GEOMETRY_STEPS);
    let evidence = request.path.evidence();
    let certificate = Certificate {
        completeness: Some(Completeness::new(credit.sum(), reference_score, input_score)),
        path: Some(PathCertificate {
            rule,
            rule_used: used.to_owned(),
            relative_disagreement,
            relative_map_error,
            kinetic_action,
            geometric_path_straightness: straightness.is_finite().then_some(straightness),
            evidence: evidence.clone(),
        }),
        ..Certificate::new(&evidence.kind, request.example, request.target, input_score)
    };
    Explanation {
        values: credit,
        shape: score.shape().to_vec(),
        reference: Some(reference),
        input,
        standard_errors: None,
        certificate: certificate.judged(limits),
    }
}

/// The credit of one request as it grows.
struct Sum {
    credit: Array1<f64>,
    ends: [Option<f64>; 2],
    gradient_evaluations: usize,
    score_evaluations: usize,
    disagreement: Option<f64>,
    map_error: Option<f64>,
    /// What a rule of fixed size saw at its nodes.
    visited: Vec<Visited>,
    used: String,
}

impl Sum {
    fn zero(features: usize) -> Self {
        Self {
            credit: Array1::zeros(features),
            ends: [None; 2],
            gradient_evaluations: 0,
            score_evaluations: 0,
            disagreement: None,
            map_error: None,
            visited: Vec::new(),
            used: String::new(),
        }
    }

    /// `Phi += grad f(gamma(t_k)) * dx_k`, coordinatewise.
    fn add(&mut self, requests: &[Request], row: &Row, value: f64, gradient: ArrayView1<f64>) {
        let path = requests[row.request].path;
        let weight = match &row.weight {
            Some(Weight::Tangent(weight)) => *weight * path.derivative(row.time),
            Some(Weight::Differences(scale, terms)) => {
                let mut difference = Array1::zeros(gradient.len());
                for &(coefficient, time) in terms {
                    difference.scaled_add(coefficient, &path.at(time));
                }
                difference * *scale
            }
            None => return,
        };
        let part = &weight * &gradient;
        let width = row.weight.as_ref().map_or(0.0, Weight::width);
        self.visited.push(Visited { time: row.time, score: value, credit: part.sum(), width });
        self.credit.zip_mut_with(&part, |credit, part| *credit += part);
        self.gradient_evaluations += 1;
        if row.time == 0.0 {
            self.ends[0] = Some(value);
        } else if row.time == 1.0 {
            self.ends[1] = Some(value);
        }
    }
}

/// A row of a micro-batch: whose it is, where on the path, and what to do with its gradient.
struct Row {
    request: usize,
    time: f64,
    weight: Option<Weight>,
}

impl Row {
    fn store_end(&self, value: f64, ends: &mut [(f64, f64)]) {
        if self.time == 0.0 { ends[self.request].0 = value } else { ends[self.request].1 = value }
    }
}

/// Points of paths on their way through the score, at most a micro-batch of them.
struct Batch<'a> {
    requests: &'a [Request<'a>],
    stream: ScoreStream<'a, Row>,
}

impl<'a> Batch<'a> {
    fn new(score: &'a dyn Score, requests: &'a [Request<'a>], most: usize) -> Self {
        Self { requests, stream: ScoreStream::new(score, most) }
    }

    fn push(&mut self, request: usize, time: f64, weight: Option<Weight>) -> Result<()> {
        let asked = &self.requests[request];
        let state = asked.path.at(time);
        error::expect_finite("state", asked.example, time, &state)?;
        self.stream.push(asked.target, Row { request, time, weight }, |_, mut to| to.assign(&state));
        Ok(())
    }

    fn flush_full(&mut self, sink: &mut dyn FnMut(&Row, f64, ArrayView1<f64>)) -> Result<()> {
        if self.stream.is_full() { self.flush(sink) } else { Ok(()) }
    }

    fn flush(&mut self, sink: &mut dyn FnMut(&Row, f64, ArrayView1<f64>)) -> Result<()> {
        let requests = self.requests;
        self.stream.gradients(|row, value, gradient| {
            check_value(&requests[row.request], row.time, value)?;
            error::expect_finite("gradient", requests[row.request].example, row.time, gradient)?;
            sink(&row, value, gradient);
            Ok(())
        })
    }

    fn flush_values_full(&mut self, sink: &mut dyn FnMut(&Row, f64)) -> Result<()> {
        if self.stream.is_full() { self.flush_values(sink) } else { Ok(()) }
    }

    fn flush_values(&mut self, sink: &mut dyn FnMut(&Row, f64)) -> Result<()> {
        let requests = self.requests;
        self.stream.values(|row, value| {
            check_value(&requests[row.request], row.time, value)?;
            sink(&row, value);
            Ok(())
        })
    }
}

fn check_value(request: &Request, time: f64, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    let place = format!("output {}", request.target);
    Err(Error::NonFinite { what: "score", example: request.example, time, place, value })
}
