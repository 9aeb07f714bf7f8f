//! What to try, found in an error and worded by those who show it.

use super::{Error, Remedy};

impl Error {
    /// What to try, where the error knows. Its wording is the end of the message.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Error::Predictor { remedy, .. }
            | Error::Comparison { remedy, .. }
            | Error::Inputs { remedy, .. }
            | Error::Flow { remedy, .. }
            | Error::Training { remedy, .. }
            | Error::Method { remedy, .. }
            | Error::Metric { remedy, .. }
            | Error::Setting { hint: remedy, .. } => Some(*remedy),
            Error::Engine(error) => error.remedy(),
            Error::Data(error) => error.remedy(),
            Error::Graph(error) => graph_remedy(error),
            Error::NoRecord { .. } | Error::NoExplanations { .. } => Some(Remedy::FolderOfExplanations),
            _ => None,
        }
    }

    /// The message with somebody's words for the remedy: flags for a command line, arguments for Python.
    pub fn worded(&self, words: impl Fn(&Remedy) -> String) -> String {
        let message = self.to_string();
        let Some(remedy) = self.remedy() else { return message };
        match message.strip_suffix(&remedy.to_string()) {
            Some(what) => format!("{what}{}", words(&remedy)),
            None => message,
        }
    }
}

/// What to try beside what `onnx-grad` says, which knows no program.
pub(super) fn graph_remedy(error: &onnx_grad::Error) -> Option<Remedy> {
    matches!(error, onnx_grad::Error::NotDifferentiable { .. }).then_some(Remedy::InspectOrNoGradients)
}

/// The end of a message, where there is something to try.
pub(super) fn try_this(remedy: Option<Remedy>) -> String {
    remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default()
}
