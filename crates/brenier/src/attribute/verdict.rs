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

use serde::{Deserialize, Serialize};

use super::{
    Certificate, ComparisonCertificate, ComparisonLimits, Completeness, Explanation, PathCertificate, Rule,
};
use crate::calibration::Ordinary;

/// Whether the explanation can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check that applies is within its limit.
    Pass,
    /// Some are not.
    Warn {
        /// Which, with their values, in words.
        reasons: Vec<String>,
    },
    /// Nothing is wrong, but nobody has looked at the flow.
    NotCalibrated {
        /// Why, and what to do, in words.
        reasons: Vec<String>,
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
    pub fn reasons(&self) -> &[String] {
        match self {
            Verdict::Warn { reasons } | Verdict::NotCalibrated { reasons } => reasons,
            Verdict::Pass | Verdict::NoCheck => &[],
        }
    }
}

/// One part of a verdict.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Check {
    /// There is nothing to ask.
    #[default]
    NotApplicable,
    /// It is as it should be.
    Pass,
    /// It cannot be said.
    NotCalibrated {
        /// Why, and what to do.
        reasons: Vec<String>,
    },
    /// It is not.
    Warn {
        /// What is wrong, with its values.
        reasons: Vec<String>,
    },
}

impl Check {
    fn of(reasons: Vec<String>) -> Check {
        if reasons.is_empty() { Check::Pass } else { Check::Warn { reasons } }
    }

    /// The worse of two, with the reasons of both where they are alike.
    fn and(self, other: Check) -> Check {
        let joined = |mut a: Vec<String>, b: Vec<String>| {
            a.extend(b);
            a
        };
        match (self, other) {
            (Check::Warn { reasons: a }, Check::Warn { reasons: b }) => Check::Warn { reasons: joined(a, b) },
            (warn @ Check::Warn { .. }, _) | (_, warn @ Check::Warn { .. }) => warn,
            (open @ Check::NotCalibrated { .. }, _) | (_, open @ Check::NotCalibrated { .. }) => open,
            (Check::Pass, _) | (_, Check::Pass) => Check::Pass,
            (Check::NotApplicable, Check::NotApplicable) => Check::NotApplicable,
        }
    }

    /// The same, its reasons said of this.
    fn said_of(self, what: &str) -> Check {
        match self {
            Check::Warn { reasons } => {
                Check::Warn { reasons: reasons.iter().map(|reason| format!("{what}: {reason}")).collect() }
            }
            other => other,
        }
    }
}

/// The parts of a verdict.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Checks {
    /// Does credit sum to the score's change?
    pub accounting: Check,
    /// Does the way lead back to the input?
    pub path: Check,
    /// Are input, way and reference ordinary for the flow, and is the flow any good?
    pub reference: Check,
    /// Is the credit larger than what the draws leave open?
    pub sampling: Check,
    /// Is the reference what the input should be compared with?
    pub comparison: Check,
}

impl Checks {
    fn parts(&self) -> [&Check; 5] {
        [&self.accounting, &self.path, &self.reference, &self.sampling, &self.comparison]
    }

    /// All of them together.
    pub fn verdict(&self) -> Verdict {
        let (mut warned, mut open) = (Vec::new(), Vec::new());
        for part in self.parts() {
            match part {
                Check::Warn { reasons } => warned.extend(reasons.iter().cloned()),
                Check::NotCalibrated { reasons } => open.extend(reasons.iter().cloned()),
                Check::Pass | Check::NotApplicable => {}
            }
        }
        if !warned.is_empty() {
            Verdict::Warn { reasons: warned }
        } else if !open.is_empty() {
            Verdict::NotCalibrated { reasons: open }
        } else if self.parts().contains(&&Check::Pass) {
            Verdict::Pass
        } else {
            Verdict::NoCheck
        }
    }

    /// What several explanations of one input say, each under its number among `what`.
    pub(super) fn of_several<'a>(members: impl Iterator<Item = &'a Checks>, what: &str) -> Checks {
        let mut all = Checks::default();
        for (i, member) in members.enumerate() {
            let name = format!("{what} {i}");
            let Checks { accounting, path, reference, sampling, comparison } = member.clone();
            all = Checks {
                accounting: all.accounting.and(accounting.said_of(&name)),
                path: all.path.and(path.said_of(&name)),
                reference: all.reference.and(reference.said_of(&name)),
                sampling: all.sampling.and(sampling.said_of(&name)),
                comparison: all.comparison.and(comparison.said_of(&name)),
            };
        }
        all
    }
}

/// The limits beyond which a certificate warns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Relative completeness residual, for rules of fixed size. The adaptive rule is held to its tolerance.
    pub residual: f64,
    /// Round-trip error, relative to the distance between reference and input.
    pub round_trip: f64,
    /// Standard deviations by which a reference may be out of the ordinary, for fields that are formulas.
    pub reference_deviation: f64,
}

/// Standard errors above this part of the credit leave it open.
const SAMPLING_LIMIT: f64 = 0.25;

impl Default for Limits {
    /// 5 % residual (the Integrated Gradients paper's advice), 0.5 % round trip, 4 standard deviations.
    fn default() -> Self {
        Self { residual: 0.05, round_trip: 0.005, reference_deviation: 4.0 }
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
            let mut reasons: Vec<String> = completeness.objection(limit, drawn).into_iter().collect();
            reasons.extend(self.path.as_ref().and_then(|path| path.disagreement(limit)));
            Check::of(reasons)
        });
        let path = self.path.as_ref().map_or(Check::NotApplicable, |path| path.round_trip(limits));
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
                "the draws leave {} of the credit open, above the limit of {}: draw more samples",
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
            None => Some(
                "the score is the same at both ends, so there is no change to explain: choose another target or reference"
                    .to_owned(),
            ),
            _ => None,
        }
    }

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
    fn disagreement(&self, limit: f64) -> Option<String> {
        let disagreement = self.relative_disagreement.filter(|&d| d > limit)?;
        let remedy = match self.rule {
            Rule::Adaptive { .. } => "allow more gradients",
            _ => "take more steps",
        };
        Some(format!(
            "segments disagree by {}, above the limit of {}: {remedy}",
            percent(disagreement),
            percent(limit)
        ))
    }

    fn round_trip(&self, limits: &Limits) -> Check {
        let Some(error) = self.evidence.relative_round_trip_error else { return Check::NotApplicable };
        if error <= limits.round_trip {
            return Check::Pass;
        }
        let remedy = match self.evidence.kind.as_str() {
            "ddim" => "take more steps (--inversion-steps)",
            _ => "tighten the solver (--solver-tolerance)",
        };
        Check::of(vec![format!(
            "run forward from the reference, the flow misses the input by {:.2} % of the way: {remedy}",
            100.0 * error
        )])
    }

    fn reference(&self, limits: &Limits, preference: Option<String>) -> Check {
        let flows = ["trace", "chord", "ddim"];
        if !flows.contains(&self.evidence.kind.as_str()) {
            return Check::NotApplicable;
        }
        let judged = match &self.evidence.ordinary {
            Some(Ordinary::NotCalibrated { reason }) => Check::NotCalibrated {
                reasons: vec![format!(
                    "{reason}: calibrate it with rows that it was not trained on (brenier calibrate)"
                )],
            },
            Some(Ordinary::Calibrated { standing, quality }) => {
                let mut reasons: Vec<String> = quality.objection().into_iter().collect();
                if standing.is_rare() {
                    reasons.push(format!("unlike the flow's data: {}", standing.in_words()));
                }
                Check::of(reasons)
            }
            None => match self.evidence.reference_deviation {
                Some(z) if z.is_nan() || z.abs() > limits.reference_deviation => Check::of(vec![format!(
                    "the reference lies {z:.1} standard deviations off what the flow starts from: the input is unlike the \
                     flow's training data, or the flow is not trained enough"
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
mod tests {
    use super::*;
    use crate::calibration::{FlowQuality, Standing};
    use crate::path::PathEvidence;

    fn path(evidence: PathEvidence) -> PathCertificate {
        PathCertificate {
            rule: Rule::adaptive(1e-3),
            rule_used: "bisection".into(),
            relative_disagreement: None,
            kinetic_action: 1.0,
            geometric_path_straightness: None,
            evidence,
        }
    }

    #[test]
    fn a_round_trip_that_does_not_close_names_the_setting_that_closes_it() {
        for (kind, remedy) in [("trace", "--solver-tolerance"), ("ddim", "--inversion-steps")] {
            let trip = |error| {
                let error = Some(error);
                path(PathEvidence {
                    kind: kind.into(),
                    relative_round_trip_error: error,
                    ..PathEvidence::default()
                })
                .round_trip(&Limits::default())
            };
            assert_eq!(trip(0.003), Check::Pass);
            let Check::Warn { reasons } = trip(0.03) else { panic!("3 % pass") };
            assert!(reasons[0].contains("3.00 %") && reasons[0].contains(remedy), "{reasons:?}");
        }
    }

    #[test]
    fn the_reference_is_judged_by_the_calibration_or_not_at_all() {
        let judged = |share, gain| {
            let standing = Standing { share, furthest: vec![("the speed at time 0.5".into(), -7.25)] };
            let quality = FlowQuality { gain: Some(gain), ..FlowQuality::default() };
            let ordinary = Some(Ordinary::Calibrated { standing, quality });
            // The norm alone would warn.
            let far = Some(-30.0);
            let kind = "trace".into();
            path(PathEvidence { kind, ordinary, reference_deviation: far, ..PathEvidence::default() })
                .reference(&Limits::default(), None)
        };
        assert_eq!(judged(0.5, 0.4), Check::Pass);
        let Check::Warn { reasons } = judged(0.001, 0.4) else { panic!("a rare trace passes") };
        assert!(reasons[0].contains("the speed at time 0.5: 7.2 standard deviations below"), "{reasons:?}");
        assert!(matches!(judged(0.5, -2.0), Check::Warn { .. }));
        let ordinary = Some(Ordinary::NotCalibrated { reason: "the flow was never calibrated".into() });
        let open = path(PathEvidence { kind: "trace".into(), ordinary, ..PathEvidence::default() });
        assert!(matches!(open.reference(&Limits::default(), None), Check::NotCalibrated { .. }));
        let line = path(PathEvidence { kind: "line".into(), ..PathEvidence::default() });
        assert_eq!(line.reference(&Limits::default(), Some("higher".into())), Check::NotApplicable);
    }

    #[test]
    fn the_verdict_is_the_worst_of_its_parts() {
        let warn = || Check::Warn { reasons: vec!["wrong".into()] };
        let open = || Check::NotCalibrated { reasons: vec!["unknown".into()] };
        let verdict = |accounting, reference| {
            Checks { accounting, reference, ..Checks::default() }.verdict().in_words()
        };
        assert_eq!(Checks::default().verdict(), Verdict::NoCheck);
        assert_eq!(verdict(Check::Pass, Check::NotApplicable), "pass");
        assert_eq!(verdict(Check::Pass, open()), "not calibrated");
        assert_eq!(verdict(warn(), open()), "warn");
        let members = [
            Checks { accounting: Check::Pass, reference: open(), ..Checks::default() },
            Checks { accounting: warn(), reference: Check::Pass, ..Checks::default() },
        ];
        let all = Checks::of_several(members.iter(), "flow");
        assert_eq!(all.accounting, Check::Warn { reasons: vec!["flow 1: wrong".into()] });
        assert_eq!(all.reference, open());
    }
}
