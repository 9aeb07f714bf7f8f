//! The library's errors as exceptions.
//!
//! The classes are written in Python (`brenier/exceptions.py`), where they can be read, pickled and documented; here is
//! which error belongs to which, with its remedy worded as arguments.

use brenier::{EngineError, Error};
use pyo3::prelude::*;

use crate::wording::arguments;

/// A result whose error is an exception already.
pub(crate) type Answer<T> = PyResult<T>;

/// The exception of an error.
pub(crate) fn exception(py: Python, error: &Error) -> PyErr {
    raise(py, class(error), &error.worded(arguments))
}

/// An exception of a class of `brenier.exceptions`, by its name.
pub(crate) fn raise(py: Python, class: &str, message: &str) -> PyErr {
    let made = py
        .import("brenier.exceptions")
        .and_then(|module| module.getattr("_from_native"))
        .and_then(|make| make.call1((class, message)));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Results of the library as results of Python.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python) -> Answer<T>;
}

impl<T> OrRaise<T> for brenier::Result<T> {
    fn or_raise(self, py: Python) -> Answer<T> {
        self.map_err(|error| exception(py, &error))
    }
}

/// The name of the class that an error belongs to.
fn class(error: &Error) -> &'static str {
    match error {
        Error::Shape { .. } | Error::NotAnImage { .. } => "ShapeError",
        Error::Graph(graph) => graph_class(graph),
        Error::Data(_) => "DataError",
        Error::NonFinite { .. } | Error::PerturbedScore { .. } => "NotFiniteError",
        Error::NoGradient { .. } => "NoGradientError",
        Error::Engine(engine) => engine_class(engine),
        Error::Predictor { .. } | Error::Sidecar { .. } => "ModelError",
        Error::Flow { .. } | Error::StepUnderflow { .. } | Error::TooManySteps { .. } => "FlowError",
        Error::Target { .. } => "TargetError",
        Error::UnknownMethod { .. }
        | Error::Method { .. }
        | Error::TooManyGroups { .. }
        | Error::TooFewCoalitions { .. }
        | Error::NeverPresent { .. } => "MethodError",
        Error::UnknownMetric { .. } | Error::Metric { .. } => "MetricError",
        Error::Setting { .. }
        | Error::Zero { .. }
        | Error::UnknownChoice { .. }
        | Error::NoErrorEstimate { .. } => "SettingError",
        Error::Read { .. } | Error::Write { .. } | Error::NoExplanations { .. } | Error::Exists { .. } => {
            "FileError"
        }
        _ => "BrenierError",
    }
}

fn engine_class(error: &EngineError) -> &'static str {
    match error {
        EngineError::InputShape { .. } | EngineError::Rows { .. } => "ShapeError",
        EngineError::NoSuchInput { .. }
        | EngineError::InputCount { .. }
        | EngineError::InputType { .. }
        | EngineError::OutputType { .. }
        | EngineError::NoBatchAxis { .. } => "ModelError",
        EngineError::IntegerRange { .. } => "BrenierError",
        _ => "EngineError",
    }
}

fn graph_class(error: &onnx_grad::Error) -> &'static str {
    use onnx_grad::Error;
    match error {
        Error::File { .. } | Error::ExternalData { .. } => "FileError",
        Error::NotDifferentiable { .. } | Error::NoBackwardRule { .. } => "UnsupportedOperator",
        Error::NoGradient { .. } => "NoGradientError",
        _ => "ModelError",
    }
}
