//! The mean of several explanations of one input, with standard errors.

use super::moments::Moments;
use super::{Certificate, Checks, Completeness, Explanation};

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
    let checks = Checks::of_several(members.iter().map(|member| &member.certificate.checks), what);
    let score = first.certificate.score;
    Explanation {
        shape: first.shape.clone(),
        reference: None,
        input: first.input.clone(),
        standard_errors: moments.mean_error(),
        certificate: Certificate {
            verdict: checks.verdict(),
            checks,
            completeness: Some(Completeness::new(values.sum(), reference_score, score)),
            gradient_evaluations: sum(|c| c.gradient_evaluations),
            score_evaluations: sum(|c| c.score_evaluations),
            path: None,
            ..first.certificate.clone()
        },
        values,
    }
}
