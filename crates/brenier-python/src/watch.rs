//! Ctrl-C while the library works.
//!
//! Python's handler only sets a flag; somebody has to look at it. A [`Watch`] looks between batches of the score and of the
//! field, at most every twentieth of a second, and cuts long batches so that there are such places. Cutting changes
//! nothing in the results: the library's numbers do not depend on batches.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use brenier::calibration::Standard;
use brenier::{EngineError, Error, PackedInputs, Result, Score, StraightStarts, Trees, VelocityField};
use ndarray::{Array1, Array2, ArrayView2, s};
use pyo3::prelude::*;

use crate::errors::{Answer, exception};

/// How often signals are looked for.
const EVERY: Duration = Duration::from_millis(50);
/// How long a batch may take.
const BATCH: Duration = Duration::from_millis(300);
/// Rows of the first batch, before anything is known of the speed.
const FIRST_ROWS: usize = 32;
/// Rows of the smallest batch: some for each worker.
const FEWEST_ROWS: usize = 8;

/// Looks for signals, and keeps what Python raised.
pub(crate) struct Watch {
    looked: Mutex<Instant>,
    raised: Mutex<Option<PyErr>>,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { looked: Mutex::new(Instant::now()), raised: Mutex::new(None) }
    }

    /// Looks for signals, if it is time to.
    pub(crate) fn look(&self) -> Result<()> {
        {
            let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
            if looked.elapsed() < EVERY {
                return Ok(());
            }
            *looked = Instant::now();
        }
        Python::attach(|py| py.check_signals()).map_err(|error| self.keep(error))
    }

    /// Keeps what Python raised, and gives the error with which the library comes back.
    pub(crate) fn keep(&self, error: PyErr) -> Error {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        Error::Engine(EngineError::Worker { reason: "Python stopped it".to_string() })
    }

    /// What the library found, or what Python raised meanwhile.
    pub(crate) fn answer<T>(self, py: Python, found: Result<T>) -> Answer<T> {
        match (found, self.raised.into_inner().unwrap_or_else(PoisonError::into_inner)) {
            (Ok(found), _) => Ok(found),
            (Err(_), Some(raised)) => Err(raised),
            (Err(error), None) => Err(exception(py, &error)),
        }
    }
}

/// A score that can be stopped.
pub(crate) struct WatchedScore<'a> {
    score: &'a dyn Score,
    watch: &'a Watch,
    rows: Mutex<usize>,
}

impl<'a> WatchedScore<'a> {
    pub(crate) fn new(score: &'a dyn Score, watch: &'a Watch) -> WatchedScore<'a> {
        WatchedScore { score, watch, rows: Mutex::new(FIRST_ROWS) }
    }

    /// Does the work for some rows at a time.
    fn in_pieces(
        &self,
        rows: usize,
        mut work: impl FnMut(std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut from = 0;
        while from < rows {
            self.watch.look()?;
            let size = *self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            let range = from..(from + size).min(rows);
            let (count, began) = (range.len(), Instant::now());
            work(range)?;
            from += count;
            let fitting = count as f64 * BATCH.as_secs_f64() / began.elapsed().as_secs_f64().max(1e-6);
            let next = (fitting as usize).clamp(FEWEST_ROWS, 8 * size.max(count));
            *self.rows.lock().unwrap_or_else(PoisonError::into_inner) = next;
        }
        Ok(())
    }
}

impl Score for WatchedScore<'_> {
    fn shape(&self) -> &[usize] {
        self.score.shape()
    }

    fn inputs(&self) -> Option<&PackedInputs> {
        self.score.inputs()
    }

    fn trees(&self) -> Option<&dyn Trees> {
        self.score.trees()
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        let mut values = Array1::zeros(x.nrows());
        self.in_pieces(x.nrows(), |rows| {
            let found = self.score.values(x.slice(s![rows.clone(), ..]), &targets[rows.clone()])?;
            values.slice_mut(s![rows]).assign(&found);
            Ok(())
        })?;
        Ok(values)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let (mut values, mut gradients) = (Array1::zeros(x.nrows()), Array2::zeros(x.raw_dim()));
        self.in_pieces(x.nrows(), |rows| {
            let found = self.score.gradients(x.slice(s![rows.clone(), ..]), &targets[rows.clone()])?;
            values.slice_mut(s![rows.clone()]).assign(&found.0);
            gradients.slice_mut(s![rows, ..]).assign(&found.1);
            Ok(())
        })?;
        Ok((values, gradients))
    }
}

/// A field that can be stopped.
pub(crate) struct WatchedField<'a> {
    pub(crate) field: &'a dyn VelocityField,
    pub(crate) watch: &'a Watch,
}

impl VelocityField for WatchedField<'_> {
    fn shape(&self) -> &[usize] {
        self.field.shape()
    }

    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        self.watch.look()?;
        self.field.velocity(x, times)
    }

    fn normal_coordinates(&self, x: ArrayView2<f64>) -> Option<Array2<f64>> {
        self.field.normal_coordinates(x)
    }

    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.field.own_units(x)
    }

    fn standard(&self) -> Standard<'_> {
        self.field.standard()
    }

    fn straight_starts(&self, x: ArrayView2<f64>) -> Option<Result<StraightStarts>> {
        self.field.straight_starts(x)
    }
}
