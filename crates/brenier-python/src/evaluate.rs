//! Methods by metrics.

use std::ops::ControlFlow;

use brenier::attribute::{Context, Method};
use brenier::evaluate::{Evaluation, Metric, MetricSettings};
use brenier::runs::explain::Targets;
use brenier::{EngineError, Error, Store, VelocityField};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use crate::arrays::{Rows, dataset, owned};
use crate::errors::{Answer, OrRaise, raise};
use crate::flow::{Flow, Network};
use crate::methods::{read, to_json};
use crate::model::Model;
use crate::watch::{Watch, WatchedField};

/// Settings of metrics; what is absent is each metric's own default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    steps: Option<usize>,
    samples: Option<usize>,
    sigma: Option<f64>,
    seed: u64,
}

/// What is known of every metric before it runs.
#[pyfunction]
pub(crate) fn metrics(py: Python<'_>) -> Answer<Vec<Bound<'_, PyDict>>> {
    let described = Metric::specs().map(|spec| {
        let entry = PyDict::new(py);
        entry.set_item("name", spec.name)?;
        entry.set_item("help", spec.help)?;
        entry.set_item("needs", spec.needs.iter().map(|need| need.in_words()).collect::<Vec<_>>())?;
        entry.set_item("direction", spec.direction.in_words())?;
        entry.set_item("usual", spec.usual)?;
        Ok(entry)
    });
    described.collect()
}

/// The table of methods by metrics over flat rows, as JSON.
#[pyfunction]
#[pyo3(signature = (model, rows, methods, metrics, settings, targets, *, baselines=None, background=None, flows=Vec::new(), progress=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    model: &Model,
    rows: Rows<'py>,
    methods: Vec<String>,
    metrics: Vec<String>,
    settings: &str,
    targets: Option<Vec<usize>>,
    baselines: Option<Rows<'py>>,
    background: Option<Rows<'py>>,
    flows: Vec<Bound<'py, Flow>>,
    progress: Option<Py<PyAny>>,
) -> Answer<String> {
    let given: Given =
        serde_json::from_str(settings).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
    let Given { steps, samples, sigma, seed } = given;
    let settings = MetricSettings { steps, samples, sigma, seed, ..MetricSettings::default() };
    let methods = methods.iter().map(|method| read(py, method)).collect::<Answer<Vec<Method>>>()?;
    let loaded = model.load(py, methods.iter().any(Method::needs_gradients))?;
    // Without names: the usual ones, as far as they apply.
    let leave_out = metrics.is_empty();
    let names = if leave_out {
        let with_flow = !flows.is_empty();
        Metric::usual(loaded.shape(), with_flow).into_iter().map(str::to_string).collect()
    } else {
        metrics
    };
    let metrics: brenier::Result<Vec<Metric>> =
        names.iter().map(|name| Metric::new(name, &settings)).collect();
    let metrics = metrics.or_raise(py)?;
    let (rows, baselines) = (owned(&rows), baselines.as_ref().map(owned));
    let data = background.map(|rows| dataset("background", loaded.shape(), owned(&rows).view(), None));
    let data = data.transpose().or_raise(py)?;
    for flow in &flows {
        flow.get().expect_like(loaded.shape(), rows.view()).or_raise(py)?;
    }
    let flows: Vec<&Flow> = flows.iter().map(|flow| flow.get()).collect();
    let store = Store::nowhere();
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
            let targets = match targets {
                Some(targets) => targets,
                None => {
                    let highest = Targets::Highest { model: outputs, count: 1 };
                    highest.of(rows.view(), 0..rows.nrows())?.into_iter().next().unwrap_or_default()
                }
            };
            let evaluation = Evaluation {
                score,
                inputs: rows.view(),
                targets: &targets,
                context: Context {
                    data: data.as_ref(),
                    baselines: baselines.as_ref().map(|rows| rows.view()),
                    flows: fields.iter().map(|field| field as &dyn VelocityField).collect(),
                    diffusion,
                    model: loaded.with_gradients(),
                    first_example: 0,
                    draw_as: None,
                },
                truth: None,
                metrics: &metrics,
                leave_out,
            };
            let mut stopped = None;
            let table = evaluation.run(&methods, &store, &[], &mut |done| {
                let told = watch.look().and_then(|()| match &progress {
                    Some(progress) => Python::attach(|py| progress.call1(py, (done.parts, done.of)))
                        .map(|_| ())
                        .map_err(|error| watch.keep(error)),
                    None => Ok(()),
                });
                match told {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => {
                        stopped = Some(error);
                        ControlFlow::Break(())
                    }
                }
            })?;
            match (stopped, table) {
                (Some(error), _) => Err(error),
                (None, Some(table)) => Ok(table),
                (None, None) => Err(Error::Engine(EngineError::Worker {
                    reason: "the evaluation was stopped".to_string(),
                })),
            }
        })
    });
    to_json(py, &watch.answer(py, found)?)
}
