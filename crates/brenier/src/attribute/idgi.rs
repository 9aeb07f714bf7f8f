//! IDGI: important direction gradient integration, another way to share out the score's change along a path.
//!
//! ```text
//! Phi_i = sum_k  g_ki^2 / |g_k|^2  (f(x_{k+1}) - f(x_k)),    g_k = grad f(x_k)      (Yang et al., 2023)
//! ```
//!
//! Each step's own change of the score goes to the features in proportion to the squared gradient at its start,
//! whichever way they moved. So credit sums to the score's change exactly, by construction: here completeness
//! is no evidence of anything. It is not linear in the score, it credits features that do not move at all, and
//! its limit for many steps is no path integral. A step in which the score changes although its gradient is
//! zero cannot be shared out; what it leaves shows in the residual.

use ndarray::{Array1, ArrayView1};
use serde::{Deserialize, Serialize};

use super::path_integral::certify;
use super::rows::{Row, stream_gradients, stream_values};
use super::spec::{MethodPage, MethodSpec, Setting};
use super::{Explanation, Limits, Method, Request, Rule, Settings};
use crate::predictor::Score;
use crate::{Result, error};

/// The settings of IDGI.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Idgi {
    /// Number of steps.
    pub steps: usize,
    /// When a certificate warns.
    pub limits: Limits,
}

impl Default for Idgi {
    /// 50 steps.
    fn default() -> Self {
        Self { steps: 50, limits: Limits::default() }
    }
}

impl Idgi {
    /// Explains any mixture of paths and targets; `steps` gradient evaluations each.
    pub fn explain_all(&self, score: &dyn Score, requests: &[Request]) -> Result<Vec<Explanation>> {
        let steps = self.steps;
        Rule::Left { steps }.check()?;
        for request in requests {
            let (reference, input) = request.path.ends();
            error::expect_shape("the path's reference", &[score.features()], reference.shape())?;
            error::expect_shape("the path's input", &[score.features()], input.shape())?;
        }
        let row = |i: usize, k: usize| {
            let request = &requests[i];
            let time = k as f64 / steps as f64;
            let state = request.path.at(time);
            Ok(Row { example: request.example, target: request.target, time, state, tag: i })
        };
        let mut credit: Vec<Array1<f64>> = requests.iter().map(|_| Array1::zeros(score.features())).collect();
        let mut ends = vec![(0.0, 0.0); requests.len()];
        // Rows come path by path, so one step is open at a time but for the last of each path.
        let mut open: Vec<Option<Step>> = requests.iter().map(|_| None).collect();
        let rows = (0..requests.len()).flat_map(|i| (0..steps).map(move |k| row(i, k)));
        stream_gradients(score, rows, |row, value, gradient| {
            match open[row.tag].take() {
                Some(step) => step.close(value, &mut credit[row.tag]),
                None => ends[row.tag].0 = value,
            }
            open[row.tag] = Some(Step::new(value, gradient));
        })?;
        stream_values(score, (0..requests.len()).map(|i| row(i, steps)), |row, value| {
            ends[row.tag].1 = value;
            if let Some(step) = open[row.tag].take() {
                step.close(value, &mut credit[row.tag]);
            }
        })?;
        Ok(requests
            .iter()
            .zip(credit)
            .zip(ends)
            .map(|((request, credit), ends)| {
                let rule = (Rule::Left { steps }, "idgi", None, None);
                let mut explanation = certify(score, request, credit, ends, rule, &self.limits);
                explanation.certificate.gradient_evaluations = steps;
                explanation.certificate.score_evaluations = 1;
                explanation
            })
            .collect())
    }
}

/// A step whose end is not known yet: how its change will be shared out.
pub(super) struct Step {
    value: f64,
    shares: Array1<f64>,
}

impl Step {
    pub(super) fn new(value: f64, gradient: ArrayView1<f64>) -> Self {
        let squares = gradient.mapv(|g| g * g);
        let total = squares.sum();
        Self { value, shares: if total > 0.0 { squares / total } else { squares } }
    }

    pub(super) fn close(self, value: f64, credit: &mut Array1<f64>) {
        credit.scaled_add(value - self.value, &self.shares);
    }
}

/// What a path's name ends in where its credit is by IDGI.
pub(super) const SUFFIX: &str = "+idgi";

impl MethodSpec {
    /// The same path under another name, with credit by IDGI.
    pub(super) const fn with_idgi(
        self,
        name: &'static str,
        uses: &'static [Setting],
        build: fn(&Settings) -> Method,
    ) -> MethodSpec {
        MethodSpec {
            name,
            aliases: &[],
            help: "the same path with each step's change shared out by squared gradients (IDGI)",
            uses,
            build,
            page: MethodPage {
                credit: r"$\sum_k g_{ki}^2/\lvert g_k\rvert^2\,(f(x_{k+1})-f(x_k))$ on the same path",
                sums_to: "the same, by construction",
                cost: "$K$ = 50 (`guided-ig`: 200)",
                use_it: "to compare with papers",
                refuses: "no steps; what the path refuses",
            },
            ..self
        }
    }
}
