//! How the score's change along a path is shared out among the features: a choice that comes after the path.
//!
//! The path integral is the one rule that satisfies the axioms. IDGI is another, offered for comparison on the
//! same paths.

use ndarray::{ArrayView2, s};
use serde::{Deserialize, Serialize};

use super::idgi::SUFFIX;
use super::integrated_gradients::requests;
use super::rows::MICRO_BATCH;
use super::{Explanation, Idgi, MethodSpec, PathIntegral, Request, Rule};
use crate::Result;
use crate::path::Path;
use crate::predictor::Score;

/// How credit is given along a path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "allocation", rename_all = "kebab-case")]
pub enum Allocation {
    /// The path integral with this rule: linear in the score.
    PathIntegral {
        /// The quadrature rule.
        rule: Rule,
    },
    /// Each step's change in proportion to the squared gradient: not linear in the score.
    Idgi {
        /// Number of steps.
        steps: usize,
    },
}

impl Default for Allocation {
    /// The path integral to a relative tolerance of 1e-3.
    fn default() -> Self {
        Allocation::PathIntegral { rule: Rule::adaptive(1e-3) }
    }
}

impl Allocation {
    /// Explains any mixture of paths and targets under the name of a method.
    pub fn explain_all(
        &self,
        method: &str,
        score: &dyn Score,
        requests: &[Request],
    ) -> Result<Vec<Explanation>> {
        let mut explanations = match *self {
            Allocation::PathIntegral { rule } => PathIntegral::new(rule).explain_all(score, requests)?,
            Allocation::Idgi { steps } => Idgi { steps, ..Idgi::default() }.explain_all(score, requests)?,
        };
        for explanation in &mut explanations {
            explanation.certificate.method = self.name(method);
        }
        Ok(explanations)
    }

    /// Explains rows along the paths that `make` makes for them, a micro-batch at a time: it hands the paths to the
    /// function that it is given when they can be followed, and returns them when they are complete. Then they go
    /// to `keep`.
    pub(super) fn explain_traced<P>(
        &self,
        method: &str,
        score: &dyn Score,
        inputs: ArrayView2<f64>,
        targets: &[usize],
        make: impl Fn(ArrayView2<f64>, &mut dyn FnMut(&[&dyn Path])) -> Result<Vec<P>>,
        keep: &mut dyn FnMut(Vec<P>),
    ) -> Result<Vec<Explanation>> {
        let mut explanations = Vec::with_capacity(targets.len());
        for first in (0..targets.len()).step_by(MICRO_BATCH) {
            let last = (first + MICRO_BATCH).min(targets.len());
            // What goes wrong along a path knows its example's number in the run, what goes wrong before does not.
            let mut followed = Ok(());
            let made = make(inputs.slice(s![first..last, ..]), &mut |paths| {
                let mut requests = requests(paths, &targets[first..last]);
                requests.iter_mut().for_each(|request| request.example += first);
                followed = self.explain_all(method, score, &requests).map(|found| explanations.extend(found));
            });
            let paths = made.map_err(|e| e.counted_from(first))?;
            followed?;
            keep(paths);
        }
        Ok(explanations)
    }

    /// The name of a path method with this allocation, such as `ig` or `ig+idgi`.
    pub fn name(&self, method: &str) -> String {
        match self {
            Allocation::PathIntegral { .. } => method.to_string(),
            Allocation::Idgi { .. } => format!("{method}{SUFFIX}"),
        }
    }

    /// Of a path method's two specs the one of this allocation.
    pub(super) fn spec(&self, specs: &'static [MethodSpec]) -> &'static MethodSpec {
        match self {
            Allocation::PathIntegral { .. } => &specs[0],
            Allocation::Idgi { .. } => &specs[1],
        }
    }
}
