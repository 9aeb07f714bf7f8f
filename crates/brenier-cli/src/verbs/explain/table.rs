//! The summary for people: a line for each explanation, or for each method where that would be too many.

use std::fmt::Write;

use anyhow::Result;
use brenier::data::Column;
use brenier::report::credit_by_column;
use brenier::{Certificate, Explanation, PackedInput, PackedInputs, Role, Verdict};

use crate::wording::flags;

/// What is said of one method: a few numbers for each explanation.
pub(super) struct Summary {
    pub(super) method: String,
    residuals: Vec<f64>,
    gradients: usize,
    warned: usize,
    first_reason: Option<String>,
    /// What there is to say where nothing warns, other than that all pass.
    otherwise: Option<&'static str>,
    pub(super) explanations: usize,
    /// The lines, as long as there are few enough to be printed.
    lines: Vec<Line>,
    most_lines: usize,
}

struct Line {
    example: usize,
    target: usize,
    score: f64,
    reference: Option<f64>,
    credit: Option<f64>,
    residual: Option<f64>,
    gradients: usize,
    scores: usize,
    verdict: String,
}

impl Summary {
    /// Of a method, with so many lines at most.
    pub(super) fn new(method: String, most_lines: usize) -> Summary {
        Summary {
            method,
            residuals: Vec::new(),
            gradients: 0,
            warned: 0,
            first_reason: None,
            otherwise: None,
            explanations: 0,
            lines: Vec::new(),
            most_lines,
        }
    }

    pub(super) fn add(&mut self, certificates: &[Certificate]) {
        for c in certificates {
            let word = c.verdict.in_words();
            let reasons: Vec<String> =
                c.verdict.reasons().iter().map(|reason| reason.worded(flags)).collect();
            let verdict = match reasons.as_slice() {
                [] => word.to_string(),
                reasons => format!("{word}: {}", reasons.join("; ")),
            };
            match &c.verdict {
                Verdict::Warn { .. } => {
                    self.warned += 1;
                    self.first_reason = self.first_reason.take().or_else(|| reasons.first().cloned());
                }
                Verdict::NotCalibrated { .. } | Verdict::NoCheck => self.otherwise = Some(word),
                Verdict::Pass => {}
            }
            let residual = c.completeness.and_then(|c| c.relative_residual);
            self.residuals.extend(residual);
            self.gradients += c.gradient_evaluations;
            self.explanations += 1;
            if self.lines.len() < self.most_lines {
                self.lines.push(Line {
                    example: c.example,
                    target: c.target,
                    score: c.score,
                    reference: c.completeness.map(|c| c.reference_score),
                    credit: c.completeness.map(|c| c.credit_sum),
                    residual,
                    gradients: c.gradient_evaluations,
                    scores: c.score_evaluations,
                    verdict,
                });
            }
        }
    }
}

/// A line for each explanation; with the method's name where there are several, and the class's where it has one.
pub(super) fn text(runs: &[Summary], classes: &[String]) -> Result<String> {
    let mut out = String::new();
    let width = match runs {
        [_] => 0,
        many => many.iter().map(|run| run.method.len()).max().unwrap_or(0) + 2,
    };
    let target = |target: usize| classes.get(target).cloned().unwrap_or_else(|| target.to_string());
    let longest =
        runs.iter().flat_map(|run| &run.lines).map(|line| target(line.target).chars().count()).max();
    let wide = longest.unwrap_or(0).max("target".len());
    write!(out, "{:width$}", if width > 0 { "method" } else { "" })?;
    writeln!(
        out,
        "{:>7}  {:>wide$}  {:>11}  {:>11}  {:>11}  {:>9}  {:>9}  {:>7}  verdict",
        "example", "target", "score", "reference", "credit", "residual", "gradients", "scores"
    )?;
    for (run, line) in runs.iter().flat_map(|run| run.lines.iter().map(move |line| (run, line))) {
        write!(out, "{:width$}", if width > 0 { run.method.as_str() } else { "" })?;
        let number = |value: Option<f64>| value.map_or("-".to_string(), |v| format!("{v:.5}"));
        writeln!(
            out,
            "{:>7}  {:>wide$}  {:>11.5}  {:>11}  {:>11}  {:>9}  {:>9}  {:>7}  {}",
            line.example,
            target(line.target),
            line.score,
            number(line.reference),
            number(line.credit),
            percent(line.residual),
            line.gradients,
            line.scores,
            line.verdict,
        )?;
    }
    Ok(out)
}

fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_string(), |part| format!("{:.3} %", 100.0 * part))
}

/// A line for each method: how many explanations pass, and why the others do not.
pub(super) fn by_method(runs: &[Summary]) -> Result<String> {
    let mut out = String::new();
    let width = runs.iter().map(|run| run.method.len()).max().unwrap_or(0).max("method".len());
    writeln!(
        out,
        "{:width$}  {:>8}  {:>15}  {:>9}  verdict",
        "method", "examples", "median residual", "gradients"
    )?;
    for run in runs {
        let mut residuals = run.residuals.clone();
        residuals.sort_by(f64::total_cmp);
        let residual = percent(residuals.get(residuals.len() / 2).copied());
        let gradients = run.gradients as f64 / run.explanations.max(1) as f64;
        let verdict = match &run.first_reason {
            None => run.otherwise.unwrap_or("all pass").to_string(),
            Some(reason) => format!("{} warn, the first: {reason}", run.warned),
        };
        let count = run.explanations;
        writeln!(out, "{:width$}  {count:>8}  {residual:>15}  {gradients:>9.0}  {verdict}", run.method)?;
    }
    Ok(out)
}

/// Columns of a row that are named, those with the most credit.
const NAMED: usize = 4;

/// What an explanation says of the columns of its row: `debt = 31.2 -1.20, city = Oslo +0.51`.
pub(super) fn by_column(columns: &[Column], explanation: &Explanation) -> Option<String> {
    let mut credit = credit_by_column(columns, explanation);
    if credit.is_empty() {
        return None;
    }
    credit.sort_by(|a, b| b.credit.abs().total_cmp(&a.credit.abs()));
    let (first, more) = credit.split_at(credit.len().min(NAMED));
    let mut parts: Vec<String> =
        first.iter().map(|c| format!("{} = {} {:+.4}", c.name, c.value, c.credit)).collect();
    if !more.is_empty() {
        let rest: f64 = more.iter().map(|c| c.credit).sum();
        parts.push(format!("{} more {rest:+.4}", more.len()));
    }
    let certificate = &explanation.certificate;
    Some(format!("{:>7}  {}: {}", certificate.example, certificate.method, parts.join(", ")))
}

/// What an explanation says of the inputs of a model: `image +0.7100, age -0.2000, mask held`.
pub(super) fn by_input(inputs: &PackedInputs, explanation: &Explanation) -> String {
    let one = |input: &PackedInput| match input.role {
        Role::Held => format!("{} held", input.name),
        Role::Explained => {
            let total: f64 = input.range.clone().map(|feature| explanation.values[feature]).sum();
            format!("{} {total:+.4}", input.embeds.as_ref().unwrap_or(&input.name))
        }
    };
    let certificate = &explanation.certificate;
    let parts: Vec<String> = match by_word(inputs, explanation) {
        Some(words) => vec![words],
        None => inputs.inputs.iter().map(one).collect(),
    };
    format!("{:>7}  {}: {}", certificate.example, certificate.method, parts.join(", "))
}

/// What an explanation says of the words of a text, those with the most credit: `marmalade +3.21, a -0.10, 7 more +0.02`.
fn by_word(inputs: &PackedInputs, explanation: &Explanation) -> Option<String> {
    let text = explanation.certificate.text.as_ref()?;
    let credit = inputs.of_tokens(&text.input, explanation.values.view())?;
    let mut words: Vec<(&str, f64)> =
        text.by_word(&credit).map(|(word, credit)| (word.text.as_str(), credit)).collect();
    words.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let (first, more) = words.split_at(words.len().min(NAMED));
    let mut parts: Vec<String> = first.iter().map(|(word, credit)| format!("{word} {credit:+.4}")).collect();
    if !more.is_empty() {
        parts.push(format!("{} more {:+.4}", more.len(), more.iter().map(|(_, credit)| credit).sum::<f64>()));
    }
    // Other inputs that are explained, besides.
    let others = inputs.explained().filter(|input| input.embeds.as_ref() != Some(&text.input));
    parts.extend(others.map(|input| {
        let total: f64 = input.range.clone().map(|feature| explanation.values[feature]).sum();
        format!("{} {total:+.4}", input.embeds.as_ref().unwrap_or(&input.name))
    }));
    Some(parts.join(", "))
}

/// The credit of columns or inputs, a line for each explanation.
pub(super) fn credit(by: &str, lines: &[String]) -> String {
    match lines {
        [] => String::new(),
        lines if by != "input" => format!("\ncredit by {by}, most first\n{}\n", lines.join("\n")),
        lines => format!("\ncredit by {by}\n{}\n", lines.join("\n")),
    }
}
