//! Why the mean score moved.

use brenier::attribute::{Remark, ShiftConfig, shift as explain_shift};
use brenier::data::Population;
use pyo3::prelude::*;

use crate::arrays::{Rows, dataset, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::methods::to_json;
use crate::model::Model;
use crate::watch::Watch;

/// A population: its name and its flat rows.
type Side<'py> = (String, Rows<'py>);

/// Why the mean score of a target moved from one population to another, as JSON, and what must be said first, in words.
#[pyfunction]
#[pyo3(signature = (model, target, before, after, columns, config))]
pub(crate) fn shift<'py>(
    py: Python<'py>,
    model: &Model,
    target: usize,
    before: Side<'py>,
    after: Side<'py>,
    columns: Option<Vec<String>>,
    config: &str,
) -> Answer<(String, Vec<String>)> {
    let config: ShiftConfig =
        serde_json::from_str(config).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
    let loaded = model.load(py, true)?;
    let side = |(name, rows): &Side| {
        Population::new(name, dataset(name, loaded.shape(), owned(rows).view(), columns.clone())?)
    };
    let (before, after) = (side(&before).or_raise(py)?, side(&after).or_raise(py)?);
    let watch = Watch::new();
    let found = py
        .detach(|| loaded.during(&watch, |score, _| explain_shift(score, target, &before, &after, &config)));
    let found = watch.answer(py, found)?;
    let remarks = found.remarks.iter().map(Remark::to_string).collect();
    Ok((to_json(py, &found)?, remarks))
}
