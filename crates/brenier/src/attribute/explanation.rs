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

use super::{ComparisonCertificate, ComparisonLimits, Rule};
use crate::path::PathEvidence;

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
    /// Pass, or warn with the reasons.
    pub verdict: Verdict,
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
    /// Adaptive rule only: root of the summed squares of the segments' own residuals, relative like the
    /// residual. The residual may be small because errors cancel; this one cannot.
    pub relative_disagreement: Option<f64>,
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
    /// The seed of the run. An example's draws follow from it and the example's number.
    pub seed: u64,
    /// The number of draws for this explanation.
    pub samples: usize,
    /// The mean over the features of the standard error of their credit; absent where it is not estimated.
    pub mean_standard_error: Option<f64>,
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
        Self { seed, samples, mean_standard_error: standard_errors.and_then(|errors| errors.mean()) }
    }
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
    /// A certificate that claims nothing yet but the score at the input.
    pub fn new(method: &str, example: usize, target: usize, score: f64) -> Self {
        Self {
            method: method.to_owned(),
            example,
            name: None,
            target,
            verdict: Verdict::Pass,
            score,
            completeness: None,
            gradient_evaluations: 0,
            score_evaluations: 0,
            path: None,
            sampling: None,
            comparison: None,
            engine: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model_hash: None,
            flow_hash: None,
            input_hash: None,
        }
    }

    /// The certificate with the verdict on its numbers under these limits. What is absent is not judged.
    pub fn judged(mut self, limits: &Limits) -> Self {
        let mut reasons = Vec::new();
        let limit = match &self.path {
            Some(PathCertificate { rule: Rule::Adaptive { tolerance, .. }, .. }) => *tolerance,
            _ => limits.residual,
        };
        if let Some(completeness) = &self.completeness {
            reasons.extend(completeness.objection(limit, self.sampling.is_some() && self.path.is_none()));
            // A baseline is somebody's choice; a flow claims that the input comes from its reference.
            let flows = ["trace", "chord", "ddim"];
            if self.path.as_ref().is_some_and(|path| flows.contains(&path.evidence.kind.as_str())) {
                reasons.extend(completeness.preference(self.score));
            }
        }
        if let Some(path) = &self.path {
            reasons.extend(path.objections(limit, limits));
        }
        self.verdict = if reasons.is_empty() { Verdict::Pass } else { Verdict::Warn { reasons } };
        self
    }
}

impl Certificate {
    /// The certificate with a comparison and what speaks against it, after all else that it warns of.
    pub fn compared(mut self, comparison: ComparisonCertificate, limits: &ComparisonLimits) -> Self {
        let objections = comparison.objections(limits);
        if !objections.is_empty() {
            let mut reasons = match self.verdict {
                Verdict::Pass => Vec::new(),
                Verdict::Warn { reasons } => reasons,
            };
            reasons.extend(objections);
            self.verdict = Verdict::Warn { reasons };
        }
        self.comparison = Some(comparison);
        self
    }
}

impl Completeness {
    fn objection(&self, limit: f64, drawn: bool) -> Option<String> {
        let remedy = if drawn { "draw more samples" } else { "take more steps" };
        match self.relative_residual {
            Some(residual) if residual > limit => Some(format!(
                "credit misses the score's change by {}, above the limit of {}: {remedy}",
                percent(residual),
                percent(limit)
            )),
            // What additions round off is no error of the method.
            None if self.residual > 1e-12 * self.reference_score.abs() => Some(format!(
                "the score is the same at both ends, yet credit sums to {:e}: {remedy}",
                self.credit_sum
            )),
            _ => None,
        }
    }
}

impl Completeness {
    /// Credit for a score that the reference has more of is credit against it.
    fn preference(&self, score: f64) -> Option<String> {
        (self.reference_score > score).then(|| {
            format!(
                "the model scores the reference higher than the input ({:.3} against {score:.3}): credit says what \
                 lowers the score",
                self.reference_score
            )
        })
    }
}

/// A part in percent, with as many digits as it takes to be told from 0.
fn percent(part: f64) -> String {
    let value = 100.0 * part;
    if value >= 0.01 { format!("{value:.2} %") } else { format!("{value:.1e} %") }
}

impl PathCertificate {
    fn objections(&self, residual_limit: f64, limits: &Limits) -> Vec<String> {
        let mut reasons = Vec::new();
        if let Some(disagreement) = self.relative_disagreement.filter(|&d| d > residual_limit) {
            reasons.push(format!(
                "segments disagree by {}, above the tolerance of {}: allow more gradients",
                percent(disagreement),
                percent(residual_limit)
            ));
        }
        if let Some(error) = self.evidence.relative_round_trip_error.filter(|&e| e > limits.round_trip) {
            let remedy = match self.evidence.kind.as_str() {
                "ddim" => "take more steps (--inversion-steps)",
                _ => "tighten the solver (--solver-tolerance)",
            };
            reasons.push(format!(
                "run forward from the reference, the flow misses the input by {:.2} % of the way: {remedy}",
                100.0 * error
            ));
        }
        if let Some(z) = self.evidence.reference_deviation.filter(|z| z.abs() > limits.reference_deviation) {
            reasons.push(format!(
                "the reference lies {z:.1} standard deviations off what the flow starts from: the input is \
                 unlike the flow's training data, or the flow is not trained enough"
            ));
        }
        reasons
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_that_does_not_close_names_the_setting_that_closes_it() {
        for (kind, remedy) in [("trace", "--solver-tolerance"), ("ddim", "--inversion-steps")] {
            let evidence = |error| PathEvidence {
                kind: kind.into(),
                relative_round_trip_error: Some(error),
                ..PathEvidence::default()
            };
            let path = |error| PathCertificate {
                rule: Rule::adaptive(1e-3),
                rule_used: "bisection".into(),
                relative_disagreement: None,
                kinetic_action: 1.0,
                geometric_path_straightness: None,
                evidence: evidence(error),
            };
            let limits = Limits::default();
            let reasons = path(0.03).objections(limits.residual, &limits);
            assert!(reasons.len() == 1 && reasons[0].contains("3.00 %"), "{reasons:?}");
            assert!(reasons[0].contains(remedy), "{reasons:?}");
            assert!(path(0.003).objections(limits.residual, &limits).is_empty());
        }
    }
}
