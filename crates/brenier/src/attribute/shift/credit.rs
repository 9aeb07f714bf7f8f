//! Credit along the lines between matched rows, added up by column.

use std::ops::Range;

use ndarray::{Array1, ArrayView2};

use crate::attribute::{PathIntegral, Request};
use crate::path::Line;
use crate::score::{Score, ScoreStream};
use crate::transport::MatchedPair;
use crate::{Result, error};

/// Lines that are explained at a time: of each, only its part of the sums is kept.
const LINES: usize = 256;

/// What is credited: rows of both populations, which goes with which, and how.
pub(super) struct Lines<'a> {
    pub(super) a: ArrayView2<'a, f64>,
    pub(super) b: ArrayView2<'a, f64>,
    pub(super) pairs: &'a [MatchedPair],
    pub(super) columns: &'a [Range<usize>],
    pub(super) integral: &'a PathIntegral,
    /// Pairs that are kept, those with the largest change.
    pub(super) strongest: usize,
}

/// The credit of each column, and the mean scores that it accounts for.
pub(super) struct Credit {
    pub(super) columns: Vec<f64>,
    pub(super) mean_from: f64,
    pub(super) mean_to: f64,
    pub(super) gradients: usize,
    /// The pairs with the largest change, largest first.
    pub(super) strongest: Vec<Strong>,
}

/// A pair and its own credit.
pub(super) struct Strong {
    pub(super) pair: MatchedPair,
    pub(super) change: f64,
    pub(super) columns: Vec<f64>,
}

pub(super) fn credit(
    score: &dyn Score,
    target: usize,
    lines: &Lines,
    watch: &mut dyn FnMut(f64),
) -> Result<Credit> {
    let (a, b) = (lines.a, lines.b);
    let mut features: Array1<f64> = Array1::zeros(a.ncols());
    let by_column = |values: &Array1<f64>| -> Vec<f64> {
        lines.columns.iter().map(|range| range.clone().map(|i| values[i]).sum()).collect()
    };
    let (mut gradients, mut strongest, mut done) = (0, Vec::new(), 0);
    for part in lines.pairs.chunks(LINES) {
        // A row that stays where it is changes nothing.
        let moved: Vec<&MatchedPair> = part.iter().filter(|p| a.row(p.from) != b.row(p.to)).collect();
        let paths: Result<Vec<Line>> = moved.iter().map(|p| Line::new(a.row(p.from), b.row(p.to))).collect();
        let paths = paths?;
        let requests: Vec<Request> =
            paths.iter().zip(&moved).map(|(path, p)| Request { example: p.from, path, target }).collect();
        for (explanation, pair) in lines.integral.explain_all(score, &requests)?.iter().zip(&moved) {
            features.scaled_add(pair.weight, &explanation.values);
            gradients += explanation.certificate.gradient_evaluations;
            if lines.strongest > 0 {
                let change = explanation.values.sum();
                strongest.push(Strong { pair: **pair, change, columns: by_column(&explanation.values) });
            }
        }
        // The first of equals stays, whatever the size of a part.
        strongest.sort_by(|x: &Strong, y| y.change.abs().total_cmp(&x.change.abs()));
        strongest.truncate(lines.strongest);
        done += part.len();
        watch(done as f64 / lines.pairs.len() as f64);
    }
    Ok(Credit {
        columns: by_column(&features),
        mean_from: mean_score(score, target, a, lines.integral.micro_batch)?,
        mean_to: mean_score(score, target, b, lines.integral.micro_batch)?,
        gradients,
        strongest,
    })
}

pub(super) fn mean_score(
    score: &dyn Score,
    target: usize,
    rows: ArrayView2<f64>,
    at_once: usize,
) -> Result<f64> {
    let mut stream = ScoreStream::new(score, at_once);
    let mut sum = 0.0;
    let mut add = |example: usize, value: f64| {
        error::expect_finite("score", example, 1.0, [&value])?;
        sum += value;
        Ok(())
    };
    for (example, row) in rows.rows().into_iter().enumerate() {
        if stream.push(target, example, |_, mut to| to.assign(&row)) {
            stream.values(&mut add)?;
        }
    }
    stream.values(&mut add)?;
    Ok(sum / rows.nrows() as f64)
}
