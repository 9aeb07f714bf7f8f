//! Credit along the lines between matched rows, added up by column.

use std::ops::Range;

use ndarray::{Array1, ArrayView2};

use crate::attribute::{PathIntegral, Request};
use crate::path::Line;
use crate::score::Score;
use crate::transport::MatchedPair;
use crate::{Result, error};

/// Lines that are explained at a time: of each, only its part of the sums is kept.
const LINES: usize = 256;

/// The credit of each column, and the mean scores that it accounts for.
pub(super) struct Credit {
    pub(super) columns: Vec<f64>,
    pub(super) mean_from: f64,
    pub(super) mean_to: f64,
    pub(super) gradients: usize,
}

pub(super) fn credit(
    score: &dyn Score,
    target: usize,
    (a, b): (ArrayView2<f64>, ArrayView2<f64>),
    pairs: &[MatchedPair],
    columns: &[Range<usize>],
    integral: &PathIntegral,
) -> Result<Credit> {
    let mut features: Array1<f64> = Array1::zeros(a.ncols());
    let mut gradients = 0;
    for part in pairs.chunks(LINES) {
        // A row that stays where it is changes nothing.
        let moved: Vec<&MatchedPair> = part.iter().filter(|p| a.row(p.from) != b.row(p.to)).collect();
        let lines: Result<Vec<Line>> = moved.iter().map(|p| Line::new(a.row(p.from), b.row(p.to))).collect();
        let lines = lines?;
        let requests: Vec<Request> =
            lines.iter().zip(&moved).map(|(path, p)| Request { example: p.from, path, target }).collect();
        for (explanation, pair) in integral.explain_all(score, &requests)?.iter().zip(&moved) {
            features.scaled_add(pair.weight, &explanation.values);
            gradients += explanation.certificate.gradient_evaluations;
        }
    }
    Ok(Credit {
        columns: columns.iter().map(|range| range.clone().map(|i| features[i]).sum()).collect(),
        mean_from: mean_score(score, target, a, integral.micro_batch)?,
        mean_to: mean_score(score, target, b, integral.micro_batch)?,
        gradients,
    })
}

fn mean_score(score: &dyn Score, target: usize, rows: ArrayView2<f64>, at_once: usize) -> Result<f64> {
    let mut sum = 0.0;
    let mut first = 0;
    for part in rows.axis_chunks_iter(ndarray::Axis(0), at_once.max(1)) {
        let values = score.values(part, &vec![target; part.nrows()])?;
        error::expect_shape("the score's values", &[part.nrows()], values.shape())?;
        for (i, value) in values.iter().enumerate() {
            error::expect_finite("score", first + i, 1.0, [value])?;
            sum += value;
        }
        first += part.nrows();
    }
    Ok(sum / rows.nrows() as f64)
}
