//! The mean of several explanations of one input, with standard errors.

use super::moments::Moments;
use super::{Certificate, Completeness, Explanation, Verdict};

/// The mean of what several flows or references, `what` each is called, say of one input and one target. What one of them
/// warns of is said with its number.
pub(super) fn mean_of(members: &[&Explanation], what: &str) -> Explanation {
    let first = members[0];
    let count = members.len() as f64;
    let mut moments = Moments::new(first.values.len());
    members.iter().for_each(|member| moments.push(member.values.view()));
    let values = moments.mean();
    let sum = |pick: fn(&Certificate) -> usize| members.iter().map(|m| pick(&m.certificate)).sum::<usize>();
    let references = members.iter().filter_map(|m| m.certificate.completeness.map(|c| c.reference_score));
    let reference_score = references.sum::<f64>() / count;
    let reasons: Vec<String> = members
        .iter()
        .enumerate()
        .flat_map(|(i, member)| match &member.certificate.verdict {
            Verdict::Pass => Vec::new(),
            Verdict::Warn { reasons } => {
                reasons.iter().map(|reason| format!("{what} {i}: {reason}")).collect()
            }
        })
        .collect();
    let score = first.certificate.score;
    Explanation {
        shape: first.shape.clone(),
        reference: None,
        input: first.input.clone(),
        standard_errors: moments.mean_error(),
        certificate: Certificate {
            verdict: if reasons.is_empty() { Verdict::Pass } else { Verdict::Warn { reasons } },
            completeness: Some(Completeness::new(values.sum(), reference_score, score)),
            gradient_evaluations: sum(|c| c.gradient_evaluations),
            score_evaluations: sum(|c| c.score_evaluations),
            path: None,
            ..first.certificate.clone()
        },
        values,
    }
}
