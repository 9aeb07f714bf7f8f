//! What an explanation is: the credit of each feature, and the evidence that it can be trusted.
//!
//! ```text
//! residual = | sum_i Phi_i - (f(x) - reference score) |
//! ```
//!
//! Every method returns the same [`Explanation`]. What not every method has is optional: a reference, a claim
//! that credit sums to the score's change ([`Completeness`]), a path ([`PathCertificate`]), draws
//! ([`Sampling`]). What is absent is not judged: a gradient does not fail for a sum that it never promised.
//!
//! Completeness is necessary, not sufficient: it says that the accounting balances. The certificate therefore
//! also carries how the credit was made and how far it can be trusted, and a verdict in words.

use ndarray::Array1;
use serde::{Deserialize, Serialize};

use super::{Checks, ComparisonCertificate, Rule, Verdict};
use crate::path::PathEvidence;
use crate::text::Tokens;

/// The credit of each feature of one input for one score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The credit of each feature, flat.
    #[serde(with = "flat")]
    pub values: Array1<f64>,
    /// How the features fold back into an image or a row.
    pub shape: Vec<usize>,
    /// What the input is compared with, flat: where the path begins, what replaces removed features. Absent
    /// for methods that compare with nothing, or with many.
    #[serde(with = "maybe_flat")]
    pub reference: Option<Array1<f64>>,
    /// The input, flat.
    #[serde(with = "flat")]
    pub input: Array1<f64>,
    /// The standard error of each feature's credit, flat, where credit is a mean over draws or flows.
    #[serde(with = "maybe_flat")]
    pub standard_errors: Option<Array1<f64>>,
    /// The evidence.
    pub certificate: Certificate,
}

/// The evidence for one explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// The method's name, as on the command line.
    pub method: String,
    /// Which example of the run, counted from 0.
    pub example: usize,
    /// Its name, such as its file, where it has one.
    pub name: Option<String>,
    /// Which output was explained.
    pub target: usize,
    /// All checks together.
    pub verdict: Verdict,
    /// The verdict in its parts. Absent from certificates before format 2.
    #[serde(default)]
    pub checks: Checks,
    /// The form of this certificate: 2 has checks, 3 the map's own error.
    #[serde(default = "first_format")]
    pub format: u32,
    /// The score at the input.
    pub score: f64,
    /// Whether credit sums to the score's change, where the method claims it. In JSON its fields stand beside
    /// the others.
    #[serde(flatten)]
    pub completeness: Option<Completeness>,
    /// Evaluations of the gradient (each gives its score for free).
    pub gradient_evaluations: usize,
    /// Evaluations of the score alone.
    pub score_evaluations: usize,
    /// The path and the quadrature along it, where the method has one path.
    pub path: Option<PathCertificate>,
    /// The draws, where something was drawn.
    pub sampling: Option<Sampling>,
    /// What the input was compared with, where it was compared with a population.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<ComparisonCertificate>,
    /// The tokens of the input, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Tokens>,
    /// The engine that ran the networks.
    pub engine: Option<String>,
    /// Version of this library.
    pub version: String,
    /// Fingerprint of the model.
    pub model_hash: Option<String>,
    /// Fingerprint of the flow.
    pub flow_hash: Option<String>,
    /// Fingerprint of the input.
    pub input_hash: Option<String>,
}

/// The accounting of a method whose credit claims to sum to the score's change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Completeness {
    /// The score at the reference; the mean of the scores for a method with many.
    pub reference_score: f64,
    /// The sum of all credit.
    pub credit_sum: f64,
    /// `|credit_sum - (score - reference_score)|`.
    pub residual: f64,
    /// The residual divided by the score's change; absent when the score does not change at all.
    pub relative_residual: Option<f64>,
}

/// The evidence of a method that integrates along one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathCertificate {
    /// The quadrature rule.
    pub rule: Rule,
    /// What the adaptive rule settled on, in words.
    pub rule_used: String,
    /// Root of the summed squares of the residuals of the path's segments, relative like the residual: those of the
    /// adaptive rule, or between the nodes of a fixed one. The residual may be small because errors cancel; this one
    /// cannot.
    pub relative_disagreement: Option<f64>,
    /// The estimated distance of the map from the converged one, in the Euclidean norm and relative to the map's. The
    /// residual says nothing of it: credit may sum to the score's change and go to the wrong features. Only the adaptive
    /// rule estimates it. Absent from certificates before format 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_map_error: Option<f64>,
    /// Kinetic action of the path on a uniform grid of 50 steps.
    pub kinetic_action: f64,
    /// Length over distance on the same grid; 1 for a straight path. Absent for a path that returns to its start.
    pub geometric_path_straightness: Option<f64>,
    /// How the path came to be. In JSON its fields stand beside the others.
    #[serde(flatten)]
    pub evidence: PathEvidence,
}

/// The evidence of a method that draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// The seed of the run. An input's draws follow from it and the input's values.
    pub seed: u64,
    /// The number of draws for this explanation.
    pub samples: usize,
    /// The mean over the features of the standard error of their credit; absent where it is not estimated.
    pub mean_standard_error: Option<f64>,
    /// Root mean square of the standard errors over that of the credit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_standard_error: Option<f64>,
}

impl Completeness {
    /// The account of this credit for the score's change.
    pub fn new(credit_sum: f64, reference_score: f64, score: f64) -> Self {
        let change = score - reference_score;
        let residual = (credit_sum - change).abs();
        let relative_residual = (change != 0.0).then(|| residual / change.abs());
        Self { reference_score, credit_sum, residual, relative_residual }
    }
}

impl Sampling {
    /// Draws with the standard errors of their mean, where they are estimated.
    pub fn new(seed: u64, samples: usize, standard_errors: Option<&Array1<f64>>) -> Self {
        let mean_standard_error = standard_errors.and_then(|errors| errors.mean());
        Self { seed, samples, mean_standard_error, relative_standard_error: None }
    }
}

/// The form of certificates that are written.
const FORMAT: u32 = 3;

fn first_format() -> u32 {
    1
}

impl Certificate {
    /// A certificate that claims nothing yet but the score at the input.
    pub fn new(method: &str, example: usize, target: usize, score: f64) -> Self {
        Self {
            method: method.to_owned(),
            example,
            name: None,
            target,
            verdict: Verdict::NoCheck,
            checks: Checks::default(),
            format: FORMAT,
            score,
            completeness: None,
            gradient_evaluations: 0,
            score_evaluations: 0,
            path: None,
            sampling: None,
            comparison: None,
            text: None,
            engine: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model_hash: None,
            flow_hash: None,
            input_hash: None,
        }
    }
}

/// Arrays as plain lists of numbers.
mod flat {
    use ndarray::Array1;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(array: &Array1<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        array.as_slice().unwrap_or_default().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Array1<f64>, D::Error> {
        Vec::deserialize(deserializer).map(Array1::from)
    }
}

/// Arrays that may be absent, as plain lists of numbers.
mod maybe_flat {
    use ndarray::Array1;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        array: &Option<Array1<f64>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        array.as_ref().map(|array| array.as_slice().unwrap_or_default()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Array1<f64>>, D::Error> {
        Option::<Vec<f64>>::deserialize(deserializer).map(|list| list.map(Array1::from))
    }
}
