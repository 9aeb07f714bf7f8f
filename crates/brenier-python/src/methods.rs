//! Methods by name, with settings as Python says them.

use std::str::FromStr;

use brenier::Rule;
use brenier::attribute::{
    Absence, Baseline, Grouping, LrpRule, Meaning, Method, MethodSpec, Setting, Settings,
};
use brenier::compare::Comparison;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Deserialize;

use crate::errors::{Answer, OrRaise, raise};

/// Settings of methods; what is absent is each method's own default.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Given {
    samples: Option<usize>,
    noise: Option<f64>,
    baseline: Option<Baseline>,
    rule: Option<Rule>,
    steps: Option<usize>,
    layer: Option<String>,
    lrp_rule: Option<String>,
    neighbours: Option<usize>,
    solver_tolerance: Option<f64>,
    inversion_steps: Option<usize>,
    absence: Option<Absence>,
    groups: Option<Grouping>,
    window: Option<Vec<usize>>,
    stride: Option<Vec<usize>>,
    seed: u64,
}

/// What an argument of `explain` sets: any of these makes it useful.
const ARGUMENTS: [(&str, &[Setting]); 19] = [
    ("samples", &[Setting::Samples]),
    ("noise", &[Setting::Noise]),
    ("baseline", &[Setting::Baseline]),
    ("baseline='background'", &[Setting::Absence]),
    ("groups", &[Setting::Groups]),
    ("window", &[Setting::Window]),
    ("stride", &[Setting::Stride]),
    ("layer", &[Setting::Layer]),
    ("lrp_rule", &[Setting::LrpRule]),
    ("neighbours", &[Setting::Neighbours]),
    ("solver_tolerance", &[Setting::SolverTolerance]),
    ("inversion_steps", &[Setting::InversionSteps]),
    ("background", &[Setting::Data]),
    ("flow", &[Setting::Flow]),
    ("tolerance", &[Setting::Rule]),
    ("map_tolerance", &[Setting::Rule]),
    ("max_gradients", &[Setting::Rule]),
    ("rule", &[Setting::Rule]),
    ("steps", &[Setting::Rule, Setting::Steps]),
];

/// The method of a name with these settings, as JSON. `given` are the arguments that the user wrote: whoever gives one
/// expects something of it.
#[pyfunction]
pub(crate) fn method(py: Python, name: &str, settings: &str, given: Vec<String>) -> Answer<String> {
    let found: Given =
        serde_json::from_str(settings).map_err(|e| raise(py, "SettingError", &e.to_string()))?;
    let lrp_rule = found.lrp_rule.as_deref().map(LrpRule::from_str).transpose().or_raise(py)?;
    let settings = Settings {
        samples: found.samples,
        noise: found.noise,
        baseline: found.baseline,
        rule: found.rule,
        steps: found.steps,
        layer: found.layer,
        lrp_rule,
        neighbours: found.neighbours,
        solver_tolerance: found.solver_tolerance,
        inversion_steps: found.inversion_steps,
        absence: found.absence,
        groups: found.groups,
        window: found.window,
        stride: found.stride,
        seed: found.seed,
    };
    let method = Method::new(name, &settings).or_raise(py)?;
    for (argument, settings) in ARGUMENTS {
        let useful = settings.iter().any(|&setting| method.spec().uses(setting));
        if !useful && given.iter().any(|given| given == argument) {
            let name = method.name();
            let message = format!(
                "{argument} makes no difference to {name}\nhint: leave it out, or choose another method"
            );
            return Err(raise(py, "SettingError", &message));
        }
    }
    to_json(py, &method)
}

/// A method that was written down.
pub(crate) fn read(py: Python, method: &str) -> Answer<Method> {
    serde_json::from_str(method).map_err(|e| raise(py, "SettingError", &format!("{method}: {e}")))
}

pub(crate) fn to_json(py: Python, value: &impl serde::Serialize) -> Answer<String> {
    serde_json::to_string(value).map_err(|e| raise(py, "BrenierError", &e.to_string()))
}

/// What is known of every method before it runs.
#[pyfunction]
pub(crate) fn methods(py: Python<'_>) -> Answer<Vec<Bound<'_, PyDict>>> {
    Method::specs().map(|spec| described(py, spec)).collect()
}

fn described<'py>(py: Python<'py>, spec: &MethodSpec) -> Answer<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    let useful = |(argument, settings): &(&'static str, &[Setting])| {
        (!argument.contains('=') && settings.iter().any(|&s| spec.uses(s))).then_some(*argument)
    };
    entry.set_item("name", spec.name)?;
    entry.set_item("aliases", spec.aliases)?;
    entry.set_item("help", spec.help)?;
    entry.set_item("needs", spec.needs.iter().map(|need| need.in_words()).collect::<Vec<_>>())?;
    let mut arguments: Vec<&str> = ARGUMENTS.iter().filter_map(useful).collect();
    if Comparison::is_used_by(spec) {
        arguments.extend(["against", "among"]);
    }
    entry.set_item("arguments", arguments)?;
    let meaning = match spec.meaning {
        Meaning::Credit => "credit",
        Meaning::Sensitivity => "sensitivity",
    };
    entry.set_item("meaning", meaning)?;
    Ok(entry)
}
