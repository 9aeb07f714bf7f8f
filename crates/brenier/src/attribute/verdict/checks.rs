//! The parts of a verdict, and how they come together.

use serde::{Deserialize, Serialize};

use super::Verdict;
use crate::error::Notice;

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
        reasons: Vec<Notice>,
    },
    /// It is not.
    Warn {
        /// What is wrong, with its values.
        reasons: Vec<Notice>,
    },
}

impl Check {
    pub(super) fn of<R: Into<Notice>>(reasons: Vec<R>) -> Check {
        let reasons: Vec<Notice> = reasons.into_iter().map(Into::into).collect();
        if reasons.is_empty() { Check::Pass } else { Check::Warn { reasons } }
    }

    pub(super) fn reasons_mut(&mut self) -> Option<&mut Vec<Notice>> {
        match self {
            Check::Warn { reasons } | Check::NotCalibrated { reasons } => Some(reasons),
            Check::Pass | Check::NotApplicable => None,
        }
    }

    /// The worse of two, with the reasons of both where they are alike.
    pub(super) fn and(self, other: Check) -> Check {
        let joined = |mut a: Vec<Notice>, b: Vec<Notice>| {
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
                Check::Warn { reasons: reasons.iter().map(|reason| reason.said_of(what)).collect() }
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
    pub(super) fn parts_mut(&mut self) -> [&mut Check; 5] {
        let Checks { accounting, path, reference, sampling, comparison } = self;
        [accounting, path, reference, sampling, comparison]
    }

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
    pub(in crate::attribute) fn of_several<'a>(
        members: impl Iterator<Item = &'a Checks>,
        what: &str,
    ) -> Checks {
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
