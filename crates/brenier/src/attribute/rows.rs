//! Rows on their way through a score, a micro-batch at a time.
//!
//! Every method that looks at many points asks for them through [`stream_gradients`]: an iterator makes the
//! points one by one, the score sees at most [`MICRO_BATCH`] of them together, and of each answer only what
//! the method adds up is kept. So memory does not grow with the number of samples or steps, and since answers
//! come in the order of the rows, sums do not depend on how the rows were grouped.

use ndarray::{Array1, ArrayView1, ArrayView2};

use crate::score::{Score, ScoreStream};
use crate::{Error, Result, error};

/// The largest batch that a score is given, in rows.
pub(crate) const MICRO_BATCH: usize = 32;

/// A point at which the score is wanted, and what the method knows of it.
pub(crate) struct Row<T> {
    pub(crate) example: usize,
    pub(crate) target: usize,
    /// The time on a path, for messages: 0 at the reference, 1 at the input.
    pub(crate) time: f64,
    pub(crate) state: Array1<f64>,
    pub(crate) tag: T,
}

/// Scores and gradients of all rows, handed to `sink` in their order.
pub(crate) fn stream_gradients<T>(
    score: &dyn Score,
    rows: impl Iterator<Item = Result<Row<T>>>,
    mut sink: impl FnMut(&Row<T>, f64, ArrayView1<f64>),
) -> Result<()> {
    in_batches(score, rows, |stream| {
        stream.gradients(|row, value, gradient| {
            check_value(&row, value)?;
            error::expect_finite("gradient", row.example, row.time, gradient)?;
            sink(&row, value, gradient);
            Ok(())
        })
    })
}

/// Scores of all rows, handed to `sink` in their order.
pub(crate) fn stream_values<T>(
    score: &dyn Score,
    rows: impl Iterator<Item = Result<Row<T>>>,
    mut sink: impl FnMut(&Row<T>, f64),
) -> Result<()> {
    in_batches(score, rows, |stream| {
        stream.values(|row, value| {
            check_value(&row, value)?;
            sink(&row, value);
            Ok(())
        })
    })
}

fn in_batches<T>(
    score: &dyn Score,
    rows: impl Iterator<Item = Result<Row<T>>>,
    mut send: impl FnMut(&mut ScoreStream<Row<T>>) -> Result<()>,
) -> Result<()> {
    let mut stream = ScoreStream::new(score, MICRO_BATCH);
    for row in rows {
        let row = row?;
        error::expect_shape("a point to evaluate", &[score.features()], row.state.shape())?;
        error::expect_finite("state", row.example, row.time, &row.state)?;
        if stream.push(row.target, row, |row, mut to| to.assign(&row.state)) {
            send(&mut stream)?;
        }
    }
    send(&mut stream)
}

/// Refuses inputs and targets that do not fit the score or each other.
pub(crate) fn check_inputs(score: &dyn Score, inputs: ArrayView2<f64>, targets: &[usize]) -> Result<()> {
    error::expect_shape("the inputs", &[inputs.nrows(), score.features()], inputs.shape())?;
    error::expect_shape("the list of targets", &[inputs.nrows()], &[targets.len()])?;
    for (example, row) in inputs.rows().into_iter().enumerate() {
        error::expect_finite("input", example, 1.0, row)?;
    }
    Ok(())
}

/// The inputs themselves as rows.
pub(crate) fn input_rows<'a>(
    inputs: ArrayView2<'a, f64>,
    targets: &'a [usize],
) -> impl Iterator<Item = Result<Row<()>>> + 'a {
    targets.iter().enumerate().map(move |(example, &target)| {
        Ok(Row { example, target, time: 1.0, state: inputs.row(example).to_owned(), tag: () })
    })
}

fn check_value<T>(row: &Row<T>, value: f64) -> Result<()> {
    if value.is_finite() {
        return Ok(());
    }
    let place = format!("output {}", row.target);
    Err(Error::NonFinite { what: "score", example: row.example, time: row.time, place, value })
}
