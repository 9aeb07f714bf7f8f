//! The verdict on an explanation, in parts.
//!
//! | part | what is asked |
//! |---|---|
//! | accounting | does credit sum to the score's change, all along the path and not only in total? |
//! | path | does the way lead back to the input? |
//! | reference | are input, way and reference ordinary for the flow, and is the flow any good? |
//! | sampling | is the credit larger than what the draws leave open? |
//! | comparison | is the reference a member of the population that the input is compared with? |
//!
//! What a method does not promise is not judged, and where nothing is judged the verdict is that no check applies.

mod checks;

use serde::{Deserialize, Serialize};

use super::{
    Certificate, ComparisonCertificate, ComparisonLimits, Completeness, Explanation, PathCertificate, Rule,
};
use crate::calibration::Ordinary;
use crate::error::{Notice, Remedy};
use crate::path::LatentLine;
pub use checks::{Check, Checks};

/// Whether the explanation can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check that applies is within its limit.
    Pass,
    /// Some are not.
    Warn {
        /// Which, with their values, in words.
        reasons: Vec<Notice>,
    },
    /// Nothing is wrong, but nobody has looked at the flow.
    NotCalibrated {
        /// Why, and what to do, in words.
        reasons: Vec<Notice>,
    },
    /// The method promises nothing that could be checked.
    NoCheck,
}

impl Verdict {
    /// In two words at the most.
    pub fn in_words(&self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::Warn { .. } => "warn",
            Verdict::NotCalibrated { .. } => "not calibrated",
            Verdict::NoCheck => "no check applies",
        }
    }

    /// What there is to say beside that.
    pub fn reasons(&self) -> &[Notice] {
        match self {
            Verdict::Warn { reasons } | Verdict::NotCalibrated { reasons } => reasons,
            Verdict::Pass | Verdict::NoCheck => &[],
        }
    }
}

impl Verdict {
    fn reasons_mut(&mut self) -> Option<&mut Vec<Notice>> {
        match self {
            Verdict::Warn { reasons } | Verdict::NotCalibrated { reasons } => Some(reasons),
            Verdict::Pass | Verdict::NoCheck => None,
        }
    }
}

/// The limits beyond which a certificate warns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Relative completeness residual, for rules of fixed size. The adaptive rule is held to its tolerance.
    pub residual: f64,
    /// Round-trip error, relative to the distance between reference and input.
    pub round_trip: f64,
    /// Flow consistency error, relative to the kinetic action: the part of the speed by which steps of a fiftieth of the way
    /// differ from the flow's velocity, squared.
    #[serde(default = "usual_consistency")]
    pub consistency: f64,
    /// Standard deviations by which a reference may be out of the ordinary, for fields that are formulas.
    pub reference_deviation: f64,
}

fn usual_consistency() -> f64 {
    Limits::default().consistency
}

/// Standard errors above this part of the credit leave it open.
const SAMPLING_LIMIT: f64 = 0.25;

impl Default for Limits {
    /// 5 % residual (the Integrated Gradients paper's advice), 0.5 % round trip, 1 % flow consistency error, 4 standard
    /// deviations.
    fn default() -> Self {
        Self { residual: 0.05, round_trip: 0.005, consistency: 0.01, reference_deviation: 4.0 }
    }
}

impl Certificate {
    /// The certificate with the verdict on its numbers under these limits. What is absent is not judged.
    pub fn judged(self, limits: &Limits) -> Self {
        let limit = match &self.path {
            Some(PathCertificate { rule: Rule::Adaptive { tolerance, .. }, .. }) => *tolerance,
            _ => limits.residual,
        };
        let accounting = self.completeness.map_or(Check::NotApplicable, |completeness| {
            let drawn = self.sampling.is_some() && self.path.is_none();
            let adaptive = matches!(&self.path, Some(PathCertificate { rule: Rule::Adaptive { .. }, .. }));
            let remedy = match (drawn, adaptive) {
                (true, _) => "draw more samples".into(),
                (false, true) => Remedy::MoreGradients,
                (false, false) => "take more steps".into(),
            };
            let mut reasons: Vec<Notice> = completeness.objection(limit, remedy).into_iter().collect();
            reasons.extend(self.path.as_ref().and_then(|path| path.disagreement(limit)));
            reasons.extend(self.path.as_ref().and_then(PathCertificate::map_error));
            Check::of(reasons)
        });
        let path = self
            .path
            .as_ref()
            .map_or(Check::NotApplicable, |path| path.round_trip(limits).and(path.follows(limits)));
        let reference = self.path.as_ref().map_or(Check::NotApplicable, |path| {
            // A baseline is somebody's choice; a flow claims that the input comes from its reference.
            let preference = self.completeness.and_then(|completeness| completeness.preference(self.score));
            path.reference(limits, preference)
        });
        self.with_checks(|checks| Checks { accounting, path, reference, ..checks })
    }

    /// The certificate of credit that sums by construction.
    pub(super) fn balanced(self) -> Self {
        self.with_checks(|checks| Checks { accounting: Check::Pass, ..checks })
    }

    /// The certificate with a comparison and what speaks against it, after all else that it warns of.
    pub fn compared(self, comparison: ComparisonCertificate, limits: &ComparisonLimits) -> Self {
        let judged = Check::of(comparison.objections(limits));
        // The population's own members say whether the reference is ordinary.
        let known = comparison.membership.is_some();
        // Nothing differs, and that is said already.
        let itself = comparison.member_itself;
        let certificate = self.with_checks(|checks| Checks {
            reference: match checks.reference {
                Check::NotCalibrated { .. } if known => Check::NotApplicable,
                other => other,
            },
            accounting: if itself { Check::NotApplicable } else { checks.accounting },
            comparison: judged,
            ..checks
        });
        Self { comparison: Some(comparison), ..certificate }
    }

    /// The certificate with somebody's words for remedies.
    pub fn worded(mut self, words: impl Fn(&Remedy) -> String) -> Self {
        let parts = self.checks.parts_mut().into_iter().filter_map(Check::reasons_mut);
        for reason in parts.chain(self.verdict.reasons_mut()).flatten() {
            *reason = reason.worded(&words).into();
        }
        self
    }

    fn with_checks(mut self, change: impl FnOnce(Checks) -> Checks) -> Self {
        self.checks = change(std::mem::take(&mut self.checks));
        self.verdict = self.checks.verdict();
        self
    }
}

impl Explanation {
    /// The explanation with its draws held against its credit.
    pub(super) fn draws_judged(mut self) -> Self {
        let (Some(errors), Some(sampling)) = (&self.standard_errors, &mut self.certificate.sampling) else {
            return self;
        };
        let size = |values: &ndarray::Array1<f64>| values.dot(values).sqrt();
        let (open, credit) = (size(errors), size(&self.values));
        let relative = if open == 0.0 { 0.0 } else { open / credit };
        sampling.relative_standard_error = Some(relative);
        let reasons = if relative <= SAMPLING_LIMIT {
            Vec::new()
        } else {
            vec![format!(
                "the standard errors of the draws are {} of the credit, above the limit of {}: draw more samples",
                percent(relative),
                percent(SAMPLING_LIMIT)
            )]
        };
        self.certificate =
            self.certificate.with_checks(|checks| Checks { sampling: Check::of(reasons), ..checks });
        self
    }
}

impl Completeness {
    fn objection(&self, limit: f64, remedy: Remedy) -> Option<Notice> {
        match self.relative_residual {
            Some(residual) if residual > limit => Some(Notice::with(
                format!(
                    "credit misses the score's change by {}, above the limit of {}",
                    percent(residual),
                    percent(limit)
                ),
                remedy,
            )),
            // What additions round off is no error of the method.
            None if self.residual > 1e-12 * self.reference_score.abs() => {
                let what = format!(
                    "the score of the reference equals that of the input, but credit sums to {:e}",
                    self.credit_sum
                );
                Some(Notice::with(what, remedy))
            }
            None => Some(Notice::with(
                "the score of the reference equals that of the input, so there is no change to explain",
                "choose another target or reference".into(),
            )),
            _ => None,
        }
    }

    /// Credit for a score that the reference has more of is credit against it.
    fn preference(&self, score: f64) -> Option<String> {
        (self.reference_score > score).then(|| {
            format!(
                "the model scores the reference higher than the input ({:.3} against {score:.3}), so credit \
                 shows what lowers the score",
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
    fn disagreement(&self, limit: f64) -> Option<Notice> {
        let disagreement = self.relative_disagreement.filter(|&d| d > limit)?;
        let remedy = match self.rule {
            Rule::Adaptive { .. } => Remedy::MoreGradients,
            _ => "take more steps".into(),
        };
        let what = format!(
            "credit misses the score's change on segments of the path by {}, above the limit of {}",
            percent(disagreement),
            percent(limit)
        );
        Some(Notice::with(what, remedy))
    }

    /// The map is judged where somebody asked for it.
    fn map_error(&self) -> Option<Notice> {
        let Rule::Adaptive { map_tolerance: Some(limit), .. } = self.rule else { return None };
        let error = self.relative_map_error.filter(|&error| error > limit)?;
        let what = format!(
            "the map is about {} from the converged one, above the limit of {}",
            percent(error),
            percent(limit)
        );
        Some(Notice::with(what, Remedy::MoreGradients))
    }

    fn round_trip(&self, limits: &Limits) -> Check {
        let Some(error) = self.evidence.relative_round_trip_error else { return Check::NotApplicable };
        if error <= limits.round_trip {
            return Check::Pass;
        }
        let remedy = match self.evidence.kind.as_str() {
            "ddim" => Remedy::MoreInversionSteps,
            _ => Remedy::SmallerSolverTolerance,
        };
        let what = format!(
            "run forward from the reference, the flow ends off the input by {:.2} % of their distance",
            100.0 * error
        );
        Check::of(vec![Notice::with(what, remedy)])
    }

    /// Does the path follow the flow between the times at which the calibration looks at it?
    fn follows(&self, limits: &Limits) -> Check {
        let Some(error) = self.evidence.flow_consistency_error else { return Check::NotApplicable };
        let relative = error / self.kinetic_action;
        // A path that does not move follows a flow that stands still.
        if error == 0.0 || relative <= limits.consistency {
            return Check::Pass;
        }
        let what = format!(
            "steps of the path differ from the flow's velocity (flow consistency error {} of the action, above the limit of \
             {}): the flow changes faster than it can be followed",
            percent(relative),
            percent(limits.consistency)
        );
        let remedy = "straighten it with Reflow, or train it with a lower time frequency";
        Check::of(vec![Notice::with(what, remedy.into())])
    }

    fn reference(&self, limits: &Limits, preference: Option<String>) -> Check {
        // A latent line starts at a baseline: its flow says what is ordinary, and claims nothing of the start.
        let preference = match self.evidence.kind.as_str() {
            "trace" | "chord" | "ddim" => preference,
            LatentLine::KIND => None,
            _ => return Check::NotApplicable,
        };
        let judged = match &self.evidence.ordinary {
            Some(Ordinary::NotCalibrated { reason }) => {
                Check::NotCalibrated { reasons: vec![Notice::with(reason.clone(), Remedy::Calibrate)] }
            }
            Some(Ordinary::Calibrated { standing, quality }) => {
                let mut reasons: Vec<String> = quality.objection().into_iter().collect();
                if standing.is_rare() {
                    reasons.push(format!("unlike the flow's data: {}", standing.in_words()));
                }
                Check::of(reasons)
            }
            None => match self.evidence.reference_deviation {
                Some(z) if z.is_nan() || z.abs() > limits.reference_deviation => Check::of(vec![format!(
                    "the reference is unusual for this flow ({z:.1} standard deviations): the input may be unlike the flow's \
                     training data, or the flow needs more training"
                )]),
                Some(_) => Check::Pass,
                None => Check::NotApplicable,
            },
        };
        match preference {
            Some(reason) => judged.and(Check::of(vec![reason])),
            None => judged,
        }
    }
}

#[cfg(test)]
mod tests;
