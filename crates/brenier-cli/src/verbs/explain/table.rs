//! The summary for people: a line for each explanation, or for each method where that would be too many.

use std::fmt::Write;

use anyhow::Result;
use brenier::Verdict;

use super::Run;

/// A line for each explanation; with the method's name where there are several, and the class's where it has one.
pub(super) fn text(runs: &[Run], classes: &[String]) -> Result<String> {
    let mut out = String::new();
    let width = match runs {
        [_] => 0,
        many => many.iter().map(|run| run.name.len()).max().unwrap_or(0) + 2,
    };
    let target = |target: usize| classes.get(target).cloned().unwrap_or_else(|| target.to_string());
    let explained = runs.iter().flat_map(|run| &run.explanations);
    let longest = explained.map(|e| target(e.certificate.target).chars().count()).max();
    let wide = longest.unwrap_or(0).max("target".len());
    write!(out, "{:width$}", if width > 0 { "method" } else { "" })?;
    writeln!(
        out,
        "{:>7}  {:>wide$}  {:>11}  {:>11}  {:>11}  {:>9}  {:>9}  {:>7}  verdict",
        "example", "target", "score", "reference", "credit", "residual", "gradients", "scores"
    )?;
    let lines = runs.iter().flat_map(|run| run.explanations.iter().map(move |e| (run, &e.certificate)));
    for (run, c) in lines {
        write!(out, "{:width$}", if width > 0 { run.name.as_str() } else { "" })?;
        let number = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.5}"));
        let reference = number(c.completeness.map(|c| c.reference_score));
        let credit = number(c.completeness.map(|c| c.credit_sum));
        let residual = c.completeness.and_then(|c| c.relative_residual);
        let residual = residual.map_or("-".to_string(), |r| format!("{:.3} %", 100.0 * r));
        let verdict = match &c.verdict {
            Verdict::Pass => "pass".to_string(),
            Verdict::Warn { reasons } => format!("warn: {}", reasons.join("; ")),
        };
        writeln!(
            out,
            "{:>7}  {:>wide$}  {:>11.5}  {reference:>11}  {credit:>11}  {residual:>9}  {:>9}  {:>7}  {verdict}",
            c.example,
            target(c.target),
            c.score,
            c.gradient_evaluations,
            c.score_evaluations
        )?;
    }
    Ok(out)
}

/// A line for each method: how many explanations pass, and why the others do not.
pub(super) fn by_method(runs: &[Run]) -> Result<String> {
    let mut out = String::new();
    let width = runs.iter().map(|run| run.name.len()).max().unwrap_or(0).max("method".len());
    writeln!(
        out,
        "{:width$}  {:>8}  {:>15}  {:>9}  verdict",
        "method", "examples", "median residual", "gradients"
    )?;
    for run in runs {
        let certificates: Vec<_> = run.explanations.iter().map(|e| &e.certificate).collect();
        let mut residuals: Vec<f64> =
            certificates.iter().filter_map(|c| c.completeness?.relative_residual).collect();
        residuals.sort_by(f64::total_cmp);
        let residual =
            residuals.get(residuals.len() / 2).map_or("-".to_string(), |r| format!("{:.3} %", 100.0 * r));
        let gradients: usize = certificates.iter().map(|c| c.gradient_evaluations).sum();
        let gradients = gradients as f64 / certificates.len().max(1) as f64;
        let warned: Vec<&Vec<String>> = certificates
            .iter()
            .filter_map(|c| match &c.verdict {
                Verdict::Pass => None,
                Verdict::Warn { reasons } => Some(reasons),
            })
            .collect();
        let verdict = match warned.first().and_then(|reasons| reasons.first()) {
            None => "all pass".to_string(),
            Some(reason) => format!("{} warn, the first: {reason}", warned.len()),
        };
        let count = certificates.len();
        writeln!(out, "{:width$}  {count:>8}  {residual:>15}  {gradients:>9.0}  {verdict}", run.name)?;
    }
    Ok(out)
}
