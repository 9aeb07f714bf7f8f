//! A Python function as a score.
//!
//! ```text
//! scores(x [N, ...]) -> [N, C] or [N]
//! gradients(x [N, ...], targets [N]) -> [N, ...], or (scores, gradients)
//! ```

use std::sync::Arc;

use brenier::runs::explain::Outputs;
use brenier::{Error, Result, Score};
use ndarray::{Array1, Array2, ArrayView2, IxDyn};
use numpy::{AllowTypeChange, IntoPyArray, PyArrayLikeDyn};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::watch::Watch;

/// The functions, and the shape of what they take.
#[derive(Clone)]
pub(crate) struct Function {
    pub(crate) shape: Vec<usize>,
    pub(crate) scores: Arc<Py<PyAny>>,
    pub(crate) gradients: Option<Arc<Py<PyAny>>>,
}

/// The functions for the time of one call.
pub(crate) struct Called<'a> {
    pub(crate) function: &'a Function,
    pub(crate) watch: &'a Watch,
}

impl Called<'_> {
    /// Rows in the shape of the input, as an array of Python.
    fn batch<'py>(&self, py: Python<'py>, x: ArrayView2<f64>) -> PyResult<Bound<'py, PyAny>> {
        crate::arrays::folded(py, x.to_owned(), &self.function.shape).map(Bound::into_any)
    }

    /// Runs some Python, and keeps what it raises.
    fn run<T>(&self, work: impl for<'py> FnOnce(Python<'py>) -> PyResult<T>) -> Result<T> {
        Python::attach(work).map_err(|error| self.watch.keep(error))
    }
}

/// Numbers that a function returned.
fn numbers(value: &Bound<PyAny>) -> PyResult<ndarray::ArrayD<f64>> {
    let array: PyArrayLikeDyn<f64, AllowTypeChange> = value.extract()?;
    Ok(array.as_array().to_owned())
}

/// Scores as a matrix.
fn matrix(found: ndarray::ArrayD<f64>, rows: usize) -> Result<Array2<f64>> {
    let shape = found.shape().to_vec();
    let refuse = || Error::Shape {
        what: "what the function returned as scores".to_string(),
        expected: vec![rows, shape.get(1).copied().unwrap_or(1)],
        found: shape.clone(),
    };
    if shape.first() != Some(&rows) || shape.len() > 2 {
        return Err(refuse());
    }
    let columns = shape.get(1).copied().unwrap_or(1);
    found.into_shape_with_order((rows, columns)).map_err(|_| refuse())
}

/// The score of every row's target.
pub(crate) fn pick(scores: &Array2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
    let pick = |(row, &target): (usize, &usize)| {
        scores.get((row, target)).copied().ok_or(Error::Target { target, outputs: scores.ncols(), row })
    };
    targets.iter().enumerate().map(pick).collect()
}

impl Outputs for Called<'_> {
    fn outputs(&self, x: ArrayView2<f64>) -> Result<Array2<f64>> {
        let found = self.run(|py| numbers(&self.function.scores.bind(py).call1((self.batch(py, x)?,))?))?;
        matrix(found, x.nrows())
    }
}

impl Score for Called<'_> {
    fn shape(&self) -> &[usize] {
        &self.function.shape
    }

    fn values(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<Array1<f64>> {
        pick(&self.outputs(x)?, targets)
    }

    fn gradients(&self, x: ArrayView2<f64>, targets: &[usize]) -> Result<(Array1<f64>, Array2<f64>)> {
        let Some(function) = &self.function.gradients else {
            return Err(Error::NoGradient { reason: "it is a function that gives scores only".to_string() });
        };
        let (scores, gradients) = self.run(|py| {
            let wanted = Array1::from_iter(targets.iter().map(|&target| target as i64)).into_pyarray(py);
            let found = function.bind(py).call1((self.batch(py, x)?, wanted))?;
            match found.cast::<PyTuple>() {
                Ok(pair) if pair.len() == 2 => {
                    Ok((Some(numbers(&pair.get_item(0)?)?), numbers(&pair.get_item(1)?)?))
                }
                _ => Ok((None, numbers(&found)?)),
            }
        })?;
        let scores = match scores {
            Some(scores) => matrix(scores, x.nrows())?,
            None => self.outputs(x)?,
        };
        let whole: Vec<usize> =
            std::iter::once(x.nrows()).chain(self.function.shape.iter().copied()).collect();
        if gradients.shape() != whole {
            let what = "what the function returned as gradients".to_string();
            return Err(Error::Shape { what, expected: whole, found: gradients.shape().to_vec() });
        }
        let found = gradients.shape().to_vec();
        let flat = gradients.as_standard_layout().into_owned().into_shape_with_order(IxDyn(x.shape()));
        let flat = flat.ok().and_then(|flat| flat.into_dimensionality().ok());
        let what = "what the function returned as gradients".to_string();
        let flat = flat.ok_or(Error::Shape { what, expected: x.shape().to_vec(), found })?;
        Ok((pick(&scores, targets)?, flat))
    }
}
