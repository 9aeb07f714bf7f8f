//! What an explanation is: the credit of each feature, and the evidence that it can be trusted.
//!
//! ```text
//! residual = | sum_i Phi_i - (f(gamma(1)) - f(gamma(0))) |
//! ```
//!
//! Completeness is necessary, not sufficient: it says that the accounting balances. The certificate therefore
//! also carries how the path was made and how far it can be trusted, and a verdict in words.

use ndarray::Array1;
use serde::{Deserialize, Serialize};

use super::Rule;
use crate::path::PathEvidence;

/// The credit of each feature for the score's change from the reference to the input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The credit of each feature, flat.
    #[serde(with = "flat")]
    pub values: Array1<f64>,
    /// How the features fold back into an image or a row.
    pub shape: Vec<usize>,
    /// Where the path begins, flat.
    #[serde(with = "flat")]
    pub reference: Array1<f64>,
    /// Where it ends: the input, flat.
    #[serde(with = "flat")]
    pub input: Array1<f64>,
    /// The evidence.
    pub certificate: Certificate,
}

/// The evidence for one explanation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Which example of the run, counted from 0.
    pub example: usize,
    /// Which output was explained.
    pub target: usize,
    /// Pass, or warn with the reasons.
    pub verdict: Verdict,
    /// The score at the reference.
    pub reference_score: f64,
    /// The score at the input.
    pub score: f64,
    /// The sum of all credit.
    pub credit_sum: f64,
    /// `|credit_sum - (score - reference_score)|`.
    pub residual: f64,
    /// The residual divided by the score's change; absent when the score does not change at all.
    pub relative_residual: Option<f64>,
    /// Adaptive rule only: root of the summed squares of the segments' own residuals, relative like the
    /// residual. The residual may be small because errors cancel; this one cannot.
    pub relative_disagreement: Option<f64>,
    /// The quadrature rule.
    pub rule: Rule,
    /// What the adaptive rule settled on, in words.
    pub rule_used: String,
    /// Evaluations of the gradient (each gives its score for free).
    pub gradient_evaluations: usize,
    /// Evaluations of the score alone.
    pub score_evaluations: usize,
    /// How the path came to be.
    pub path: PathEvidence,
    /// Kinetic action of the path on a uniform grid of 50 steps.
    pub kinetic_action: f64,
    /// Length over distance on the same grid; 1 for a straight path. Absent for a path that returns to its start.
    pub geometric_path_straightness: Option<f64>,
    /// The seed of the run, where something was drawn.
    pub seed: Option<u64>,
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

/// Whether the explanation can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check is within its limit.
    Pass,
    /// Some are not.
    Warn {
        /// Which, with their values, in words.
        reasons: Vec<String>,
    },
}

/// The limits beyond which a certificate warns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Relative completeness residual, for rules of fixed size. The adaptive rule is held to its tolerance.
    pub residual: f64,
    /// Round-trip error, relative to the distance between reference and input.
    pub round_trip: f64,
    /// Standard deviations by which a reference may be out of the ordinary.
    pub reference_deviation: f64,
}

impl Default for Limits {
    /// 5 % residual (the Integrated Gradients paper's advice), 1 % round trip, 4 standard deviations.
    fn default() -> Self {
        Self { residual: 0.05, round_trip: 0.01, reference_deviation: 4.0 }
    }
}

impl Certificate {
    /// Judges the numbers of the certificate against the limits.
    pub(crate) fn judge(&self, limits: &Limits) -> Verdict {
        let mut reasons = Vec::new();
        let residual_limit = match self.rule {
            Rule::Adaptive { tolerance, .. } => tolerance,
            _ => limits.residual,
        };
        match self.relative_residual {
            Some(residual) if residual > residual_limit => reasons.push(format!(
                "credit misses the score's change by {:.2} %, above the limit of {:.2} %: take more steps",
                100.0 * residual,
                100.0 * residual_limit
            )),
            None if self.residual > 0.0 => reasons.push(format!(
                "the score is the same at both ends, yet credit sums to {:e}: take more steps",
                self.credit_sum
            )),
            _ => {}
        }
        if let Some(disagreement) = self.relative_disagreement.filter(|&d| d > residual_limit) {
            reasons.push(format!(
                "segments disagree by {:.2} %, above the tolerance of {:.2} %: allow more gradients",
                100.0 * disagreement,
                100.0 * residual_limit
            ));
        }
        if let Some(error) = self.path.relative_round_trip_error.filter(|&e| e > limits.round_trip) {
            reasons.push(format!(
                "run forward from the reference, the flow misses the input by {:.2} % of the way: tighten the solver",
                100.0 * error
            ));
        }
        if let Some(z) = self.path.reference_deviation.filter(|z| z.abs() > limits.reference_deviation) {
            reasons.push(format!(
                "the reference lies {z:.1} standard deviations off what the flow starts from: the input is \
                 unlike the flow's training data, or the flow is not trained enough"
            ));
        }
        if reasons.is_empty() { Verdict::Pass } else { Verdict::Warn { reasons } }
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
