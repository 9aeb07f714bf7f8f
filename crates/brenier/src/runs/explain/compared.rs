//! A part of a run in which inputs are compared with a population: each with the flow and the rows of its own pair.

use std::ops::Range;

use ndarray::{ArrayView2, Axis};

use super::way::{Shown, with_stills};
use super::{Part, Question};
use crate::Result;
use crate::attribute::{Context, Method};
use crate::compare::Comparison;
use crate::path::Path;

/// Explains the inputs of a part, for all rounds of targets. Inputs of one pair of populations go together.
pub(super) fn explain(
    question: &Question,
    comparison: &Comparison,
    method: &Method,
    rows: ArrayView2<f64>,
    range: Range<usize>,
    rounds: &[Vec<usize>],
) -> Result<Part> {
    let places = comparison.places(rows)?;
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (row, &place) in places.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| *known == place) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((place, vec![row])),
        }
    }
    let mut found: Vec<Vec<Option<Shown>>> = vec![vec![None; rows.nrows()]; rounds.len()];
    for (place, group) in &groups {
        let chosen = rows.select(Axis(0), group);
        let alone =
            Context { baselines: None, first_example: range.start + group[0], ..question.context.clone() };
        let context = comparison.context(*place, method, &alone)?;
        let numbers: Vec<usize> = group.iter().map(|row| range.start + row).collect();
        // The method counts from the first of the group.
        let number = |example: usize| numbers.get(example - numbers[0]).copied().unwrap_or(example);
        for (targets, found) in rounds.iter().zip(&mut found) {
            let targets: Vec<usize> = group.iter().map(|&row| targets[row]).collect();
            let (explanations, paths) = method
                .explain_with_paths(question.score, chosen.view(), &targets, &context)
                .map_err(|error| error.numbered(number))?;
            let mut certified = Vec::with_capacity(explanations.len());
            for mut explanation in explanations {
                explanation.certificate.example = number(explanation.certificate.example);
                certified.push(comparison.certify(*place, method, question.score, explanation)?);
            }
            let paths: Vec<&dyn Path> = paths.iter().map(|path| path.as_ref()).collect();
            for (&row, shown) in group.iter().zip(with_stills(question, certified, &paths)?) {
                found[row] = Some(shown);
            }
        }
    }
    let mut by_input = Vec::with_capacity(rows.nrows() * rounds.len());
    for row in 0..rows.nrows() {
        by_input.extend(found.iter_mut().filter_map(|round| round[row].take()));
    }
    let (explanations, stills) = by_input.into_iter().unzip();
    Ok(Part { inputs: range, explanations, stills, traces: None })
}
