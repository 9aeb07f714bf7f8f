//! The summary for people: a line for each explanation.

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
