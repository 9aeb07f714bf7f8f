//! Explanations in files, and as pictures.

use std::path::PathBuf;

use brenier::data::columns_of_features;
use brenier::report::{self, HeatMapGround, HeatMapStyle, ReasonsConfig, ResultFormat, Side, Template};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::{Rows, owned};
use crate::errors::{Answer, OrRaise};
use crate::explain::{Found, gathered, rebuilt};

/// Writes `explanations.npz` and `explanations.jsonl` into a folder, or one Parquet file with the names where these are given.
#[pyfunction]
#[pyo3(signature = (place, shape, values, inputs, references, standard_errors, certificates, parquet_names=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn save(
    py: Python,
    place: PathBuf,
    shape: Vec<usize>,
    values: Rows,
    inputs: Rows,
    references: Option<Rows>,
    standard_errors: Option<Rows>,
    certificates: &str,
    parquet_names: Option<&str>,
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
    let written = py.detach(|| match parquet_names {
        Some(names) => report::save_parquet(&place, &all, Some(names)),
        None => report::save_explanations_as(&place, &all, ResultFormat::Npz),
    });
    written.or_raise(py)
}

/// Reads them again from a folder or a Parquet file: the shape of one, what was found, and the names where a file has them.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, place: PathBuf) -> Answer<(Vec<usize>, Found<'_>, Option<String>)> {
    let read = || {
        let reader = report::ExplanationReader::open(&place)?;
        let (shape, names) = (reader.shape().to_vec(), reader.names().map(str::to_string));
        Ok::<_, brenier::Error>((shape, names, reader.collect::<brenier::Result<Vec<_>>>()?))
    };
    let (shape, names, all) = py.detach(read).or_raise(py)?;
    let features = shape.iter().product();
    Ok((shape, gathered(py, all, features)?, names))
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
