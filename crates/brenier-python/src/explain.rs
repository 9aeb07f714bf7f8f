//! Explanations of any number of inputs.

use std::ops::ControlFlow;

use brenier::VelocityField;
use brenier::attribute::{Context, Explanation};
use brenier::compare::{Comparison, Route};
use brenier::data::Population;
use brenier::runs::explain::{Question, Targets, Way};
use ndarray::{Array1, Array2, ArrayView2};
use numpy::{IntoPyArray, PyArray2};
use pyo3::prelude::*;

use crate::arrays::{Rows, dataset, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::flow::{Flow, Network};
use crate::methods::read;
use crate::model::Model;
use crate::watch::{Watch, WatchedField};
use crate::wording::arguments;

/// Arrays and certificates: values, inputs, references, standard errors (flat), and a certificate a line.
pub(crate) type Found<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Option<Bound<'py, PyArray2<f64>>>,
    Option<Bound<'py, PyArray2<f64>>>,
    String,
);

/// Explains flat rows. `targets` are `("same", list)`, `("each", list)` or `("highest", [count])`; `progress` is called
/// with the number of inputs that are done. `against` are rows to compare with, and rows like the inputs.
#[pyfunction]
#[pyo3(signature = (model, rows, method, targets, *, baselines=None, background=None, flows=Vec::new(), against=None, progress=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Rows<'py>,
    method: &str,
    targets: (String, Vec<usize>),
    baselines: Option<Rows<'py>>,
    background: Option<Rows<'py>>,
    flows: Vec<Bound<'py, Flow>>,
    against: Option<(Rows<'py>, Rows<'py>)>,
    progress: Option<Py<PyAny>>,
) -> Answer<Found<'py>> {
    let method = read(py, method)?;
    let loaded = model.load(py, method.needs_gradients())?;
    let (rows, baselines) = (owned(&rows), baselines.as_ref().map(owned));
    let data = background.map(|rows| dataset("background", loaded.shape(), owned(&rows).view(), None));
    let data = data.transpose().or_raise(py)?;
    let population = |name: &str, rows: &Rows<'py>| {
        Population::new(name, dataset(name, loaded.shape(), owned(rows).view(), None)?)
    };
    let populations = against
        .map(|(against, among)| Ok((population("against", &against)?, population("among", &among)?)))
        .transpose()
        .or_raise(py)?;
    let mut provenance = model.provenance(&loaded);
    let hashes: Vec<&str> = flows.iter().map(|flow| flow.get().hash.as_str()).collect();
    provenance.flows = (!hashes.is_empty()).then(|| hashes.join(","));
    for flow in &flows {
        flow.get().expect_like(loaded.shape(), rows.view()).or_raise(py)?;
    }
    let flows: Vec<&Flow> = flows.iter().map(|flow| flow.get()).collect();
    let watch = Watch::new();
    let found = py.detach(|| {
        let fields: Vec<WatchedField> = flows
            .iter()
            .filter_map(|flow| Some(WatchedField { field: flow.field()?, watch: &watch }))
            .collect();
        let diffusion = flows.iter().find_map(|flow| match &flow.network {
            Network::Diffusion(model) => Some(model),
            Network::Flow(_) => None,
        });
        loaded.during(&watch, |score, outputs| {
            let route = match fields.first() {
                Some(field) => Route::Flow(field),
                None => Route::default(),
            };
            let comparison = populations
                .map(|(against, among)| Comparison::between(against, &among, route))
                .transpose()?
                .map(|comparison| comparison.seen_by(outputs));
            let question = Question {
                score,
                inputs: &rows.view(),
                targets: match (targets.0.as_str(), targets.1) {
                    ("each", list) => Targets::Each(list),
                    ("highest", list) => {
                        Targets::Highest { model: outputs, count: list.first().copied().unwrap_or(1) }
                    }
                    (_, list) => Targets::Same(list),
                },
                context: Context {
                    data: data.as_ref(),
                    baselines: baselines.as_ref().map(|rows| rows.view()),
                    flows: fields.iter().map(|field| field as &dyn VelocityField).collect(),
                    diffusion,
                    model: loaded.with_gradients(),
                    first_example: 0,
                    draw_as: None,
                },
                stills: 0,
                provenance,
                comparison: comparison.as_ref(),
            };
            let mut all = Vec::with_capacity(rows.nrows());
            question.explain(&Way::Method(&method), 0, &mut |part| {
                let done = part.inputs.end;
                all.extend(part.explanations);
                watch.look()?;
                if let Some(progress) = &progress {
                    Python::attach(|py| progress.call1(py, (done,))).map_err(|error| watch.keep(error))?;
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(all)
        })
    });
    gathered(py, watch.answer(py, found)?, rows.ncols())
}

/// Explanations as arrays.
pub(crate) fn gathered(py: Python<'_>, all: Vec<Explanation>, features: usize) -> Answer<Found<'_>> {
    let mut lines = String::new();
    for explanation in &all {
        lines.push_str(&crate::methods::to_json(py, &explanation.certificate.clone().worded(arguments))?);
        lines.push('\n');
    }
    let stacked = |pick: fn(&Explanation) -> Option<&Array1<f64>>| -> Option<Array2<f64>> {
        let mut stack = Array2::zeros((all.len(), features));
        for (mut row, explanation) in stack.rows_mut().into_iter().zip(&all) {
            row.assign(pick(explanation)?);
        }
        Some(stack)
    };
    let empty = || Array2::zeros((0, features));
    let values = stacked(|e| Some(&e.values)).unwrap_or_else(empty).into_pyarray(py);
    let inputs = stacked(|e| Some(&e.input)).unwrap_or_else(empty).into_pyarray(py);
    let optional = |pick: fn(&Explanation) -> Option<&Array1<f64>>| match all.is_empty() {
        true => None,
        false => stacked(pick).map(|stack| stack.into_pyarray(py)),
    };
    let references = optional(|e| e.reference.as_ref());
    let standard_errors = optional(|e| e.standard_errors.as_ref());
    Ok((values, inputs, references, standard_errors, lines))
}

/// Explanations from arrays.
pub(crate) fn rebuilt(
    py: Python,
    shape: &[usize],
    (values, inputs): (ArrayView2<f64>, ArrayView2<f64>),
    references: Option<ArrayView2<f64>>,
    standard_errors: Option<ArrayView2<f64>>,
    certificates: &str,
) -> Answer<Vec<Explanation>> {
    let wrong =
        |reason: String| raise(py, "DataError", &format!("the certificates cannot be read: {reason}"));
    let lines: Vec<&str> = certificates.lines().collect();
    if lines.len() != values.nrows() || inputs.shape() != values.shape() {
        return Err(wrong(format!("there are {} for {} explanations", lines.len(), values.nrows())));
    }
    let row = |rows: &Option<ArrayView2<f64>>, i: usize| rows.as_ref().map(|rows| rows.row(i).to_owned());
    lines
        .iter()
        .enumerate()
        .map(|(i, line)| {
            Ok(Explanation {
                values: values.row(i).to_owned(),
                shape: shape.to_vec(),
                reference: row(&references, i),
                input: inputs.row(i).to_owned(),
                standard_errors: row(&standard_errors, i),
                certificate: serde_json::from_str(line).map_err(|e| wrong(e.to_string()))?,
            })
        })
        .collect()
}
