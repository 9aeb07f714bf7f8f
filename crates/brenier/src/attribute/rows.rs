//! Rows on their way through a score, a micro-batch at a time.
//!
//! Every method that looks at many points asks for them through [`stream_gradients`]: an iterator makes the
//! points one by one, the score sees at most [`MICRO_BATCH`] of them together, and of each answer only what
//! the method adds up is kept. So memory does not grow with the number of samples or steps, and since answers
//! come in the order of the rows, sums do not depend on how the rows were grouped.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2};

use crate::predictor::Score;
use crate::{Error, Result, error};

/// The largest batch that a score is given, in rows.
pub(crate) const MICRO_BATCH: usize = 32;
/// Bytes that a batch of points may take: of large images it has fewer rows.
const BATCH_BYTES: usize = 64 << 20;

/// The rows of a batch of at most so many, given the features of each.
pub(crate) fn rows_at_once(most: usize, features: usize) -> usize {
    most.min((BATCH_BYTES / (8 * features.max(1))).max(1))
}

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
    in_batches(score, rows, |batch, x, targets| {
        let (values, gradients) = score.gradients(x, targets)?;
        error::expect_shape("the score's values", &[x.nrows()], values.shape())?;
        error::expect_shape("the score's gradients", x.shape(), gradients.shape())?;
        for (i, row) in batch.iter().enumerate() {
            check_value(row, values[i])?;
            error::expect_finite("gradient", row.example, row.time, gradients.row(i))?;
            sink(row, values[i], gradients.row(i));
        }
        Ok(())
    })
}

/// Scores of all rows, handed to `sink` in their order.
pub(crate) fn stream_values<T>(
    score: &dyn Score,
    rows: impl Iterator<Item = Result<Row<T>>>,
    mut sink: impl FnMut(&Row<T>, f64),
) -> Result<()> {
    in_batches(score, rows, |batch, x, targets| {
        let values = score.values(x, targets)?;
        error::expect_shape("the score's values", &[x.nrows()], values.shape())?;
        for (row, &value) in batch.iter().zip(&values) {
            check_value(row, value)?;
            sink(row, value);
        }
        Ok(())
    })
}

fn in_batches<T>(
    score: &dyn Score,
    mut rows: impl Iterator<Item = Result<Row<T>>>,
    mut run: impl FnMut(&[Row<T>], ArrayView2<f64>, &[usize]) -> Result<()>,
) -> Result<()> {
    let at_once = rows_at_once(MICRO_BATCH, score.features());
    loop {
        let batch = rows.by_ref().take(at_once).collect::<Result<Vec<_>>>()?;
        if batch.is_empty() {
            return Ok(());
        }
        let mut x = Array2::zeros((batch.len(), score.features()));
        for (mut state, row) in x.rows_mut().into_iter().zip(&batch) {
            error::expect_shape("a point to evaluate", state.shape(), row.state.shape())?;
            error::expect_finite("state", row.example, row.time, &row.state)?;
            state.assign(&row.state);
        }
        let targets: Vec<usize> = batch.iter().map(|row| row.target).collect();
        run(&batch, x.view(), &targets)?;
    }
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
