//! Arrays on their way in and out.

use brenier::Error;
use brenier::data::Dataset;
use ndarray::{Array2, ArrayD, ArrayView2, IxDyn};
use numpy::{IntoPyArray, PyArrayDyn, PyReadonlyArray2};
use pyo3::prelude::*;

/// Rows as Python hands them over: `[rows, features]` in float64.
pub(crate) type Rows<'py> = PyReadonlyArray2<'py, f64>;

/// A copy that outlives the interpreter's lock.
pub(crate) fn owned(rows: &Rows) -> Array2<f64> {
    let rows = rows.as_array();
    // NumPy's strides of an array without rows are not those that ndarray copies.
    if rows.is_empty() { Array2::zeros(rows.raw_dim()) } else { rows.to_owned() }
}

/// Flat rows in the shape of an example.
pub(crate) fn folded<'py>(
    py: Python<'py>,
    rows: Array2<f64>,
    shape: &[usize],
) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
    let whole: Vec<usize> = std::iter::once(rows.nrows()).chain(shape.iter().copied()).collect();
    let found = rows.shape().to_vec();
    let folded: Result<ArrayD<f64>, _> = rows.into_shape_with_order(IxDyn(&whole));
    match folded {
        Ok(array) => Ok(array.into_pyarray(py)),
        Err(_) => {
            let error = Error::Shape { what: "the answer".to_string(), expected: whole, found };
            Err(crate::errors::exception(py, &error))
        }
    }
}

/// Rows as data, with the names of their columns where they have them.
pub(crate) fn dataset(
    origin: &str,
    shape: &[usize],
    rows: ArrayView2<f64>,
    columns: Option<Vec<String>>,
) -> brenier::Result<Dataset> {
    let data = Dataset::from_rows(origin, shape, rows.mapv(|value| value as f32).view())?;
    match columns {
        Some(names) => data.with_column_names(names),
        None => Ok(data),
    }
}
