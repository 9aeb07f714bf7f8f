//! Explanations in files, and as pictures.

use std::path::PathBuf;

use brenier::data::columns_of_features;
use brenier::report::{self, HeatMapGround, HeatMapStyle, ReasonsConfig, Side, Template};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Rows, owned};
use crate::errors::{Answer, OrRaise};
use crate::explain::{Found, gathered, rebuilt};

/// Writes `explanations.npz` and `explanations.jsonl` into a folder.
#[pyfunction]
#[pyo3(signature = (folder, shape, values, inputs, references, standard_errors, certificates))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn save(
    py: Python,
    folder: PathBuf,
    shape: Vec<usize>,
    values: Rows,
    inputs: Rows,
    references: Option<Rows>,
    standard_errors: Option<Rows>,
    certificates: &str,
) -> Answer<()> {
    let (references, standard_errors) = (references.as_ref().map(owned), standard_errors.as_ref().map(owned));
    let all = rebuilt(
        py,
        &shape,
        (owned(&values).view(), owned(&inputs).view()),
        references.as_ref().map(|rows| rows.view()),
        standard_errors.as_ref().map(|rows| rows.view()),
        certificates,
    )?;
    py.detach(|| report::save_explanations(&folder, &all)).or_raise(py)
}

/// Reads them again, with the shape of one.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, folder: PathBuf) -> Answer<(Vec<usize>, Found<'_>)> {
    let all = py.detach(|| report::load_explanations(&folder)).or_raise(py)?;
    let shape = all.first().map_or(Vec::new(), |explanation| explanation.shape.clone());
    let features = shape.iter().product();
    Ok((shape, gathered(py, all, features)?))
}

/// The reasons of every explanation of a table's rows, as JSON: the columns, with what of them speaks for or against.
#[pyfunction]
#[pyo3(signature = (values, inputs, references, standard_errors, certificates, features, classes, count, side, sentence))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn reasons(
    py: Python,
    values: Rows,
    inputs: Rows,
    references: Option<Rows>,
    standard_errors: Option<Rows>,
    certificates: &str,
    features: Vec<String>,
    classes: Vec<String>,
    count: usize,
    side: &str,
    sentence: Option<&str>,
) -> Answer<String> {
    let (references, standard_errors) = (references.as_ref().map(owned), standard_errors.as_ref().map(owned));
    let all = rebuilt(
        py,
        &[features.len()],
        (owned(&values).view(), owned(&inputs).view()),
        references.as_ref().map(|rows| rows.view()),
        standard_errors.as_ref().map(|rows| rows.view()),
        certificates,
    )?;
    let side = match side {
        "for" => Side::For,
        "against" => Side::Against,
        _ => Side::Change,
    };
    let template = sentence.map(str::parse::<Template>).transpose().or_raise(py)?.unwrap_or_default();
    let config = ReasonsConfig { count, side, template };
    let columns = columns_of_features(&features);
    let found: Vec<_> = all.iter().filter_map(|e| config.of(&columns, &classes, e)).collect();
    Ok(serde_json::to_string(&found).unwrap_or_default())
}

/// The heat map of one explanation of an image, as a PNG.
#[pyfunction]
pub(crate) fn heat_map<'py>(
    py: Python<'py>,
    shape: Vec<usize>,
    values: Rows<'py>,
    inputs: Rows<'py>,
    certificate: &str,
) -> Answer<Bound<'py, PyBytes>> {
    let all = rebuilt(py, &shape, (owned(&values).view(), owned(&inputs).view()), None, None, certificate)?;
    let style = HeatMapStyle { ground: HeatMapGround::Input, ..HeatMapStyle::default() };
    let mut pictures = all.iter().map(|e| report::heat_map(e, &style));
    let picture = pictures.next_back().transpose().or_raise(py)?;
    Ok(PyBytes::new(py, &picture.unwrap_or_default()))
}
