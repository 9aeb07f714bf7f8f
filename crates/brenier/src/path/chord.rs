//! The straight line between the two ends of a trace.

use ndarray::Array1;

use super::{Path, PathEvidence, Trace};

/// The line from the reference that a trace led to, with the trace's evidence for that reference.
#[derive(Debug, Clone)]
pub struct Chord {
    reference: Array1<f64>,
    input: Array1<f64>,
    evidence: PathEvidence,
}

impl Chord {
    /// The line between the ends of a trace.
    pub fn of(trace: &Trace) -> Chord {
        let (reference, input) = trace.ends();
        // The trace's consistency with its field is that of another curve.
        let evidence =
            PathEvidence { kind: "chord".into(), flow_consistency_error: None, ..trace.evidence() };
        Chord { reference, input, evidence }
    }
}

impl Path for Chord {
    fn at(&self, t: f64) -> Array1<f64> {
        (1.0 - t) * &self.reference + t * &self.input
    }

    fn derivative(&self, _t: f64) -> Array1<f64> {
        &self.input - &self.reference
    }

    fn is_straight(&self) -> bool {
        true
    }

    fn evidence(&self) -> PathEvidence {
        self.evidence.clone()
    }
}
