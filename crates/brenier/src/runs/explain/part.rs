//! What a part of a run gave, and what it was made from.

use std::ops::Range;

use super::{Inputs, Way};
use crate::attribute::{Explanation, Frames};
use crate::fingerprint_row;
use crate::path::Trace;

/// Finished explanations of consecutive inputs.
pub struct Part {
    /// Which inputs.
    pub inputs: Range<usize>,
    /// What was found: all targets of one input, then those of the next.
    pub explanations: Vec<Explanation>,
    /// Stills of the path of each, where they were asked for and there is a path.
    pub stills: Vec<Option<Frames>>,
    /// The trace of each input, where the method follows one flow: traces serve other models as well.
    pub traces: Option<Vec<Trace>>,
}

/// What results are made from, for their certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The engine and its version.
    pub engine: Option<String>,
    /// Fingerprint of the model.
    pub model: Option<String>,
    /// Fingerprints of the flows, with commas between.
    pub flows: Option<String>,
}

impl Provenance {
    /// Writes into certificates what they rest on.
    pub(super) fn sign(&self, explanations: &mut [Explanation], inputs: &dyn Inputs, way: &Way) {
        for explanation in explanations {
            let certificate = &mut explanation.certificate;
            certificate.engine.clone_from(&self.engine);
            certificate.model_hash.clone_from(&self.model);
            certificate.flow_hash = self.flows.clone().filter(|_| way.follows_flows());
            certificate.input_hash = Some(fingerprint_row(explanation.input.view()));
            certificate.name = inputs.name(certificate.example);
            certificate.text = inputs.tokens(certificate.example);
        }
    }
}
