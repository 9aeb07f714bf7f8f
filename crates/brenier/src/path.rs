//! Paths from a reference to an input, along which credit is integrated.
//!
//! ```text
//! gamma : [0, 1] -> R^d,    gamma(0) = reference,    gamma(1) = input
//! ```
//!
//! The integrator needs a point and a tangent at any time, and nothing else: whatever gives both is a path.
//! Straight lines give Integrated Gradients, traces of a flow give transport-geodesic credit, a blur that recedes
//! gives Blur IG, the cheapest way through the data Geodesic IG.

mod awaited;
mod blur;
mod chord;
mod consistency;
mod ddim;
mod diagnostics;
mod latent;
mod line;
mod neighbours;
mod ordinary;
mod polyline;
mod quality;
mod reflow;
mod reparameterised;
mod solver;
mod straight;
mod tableau;
mod trace;
mod trace_file;
mod trajectory;

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};

use crate::calibration::Ordinary;

pub use blur::{BlurPath, Border};
pub use chord::Chord;
pub use ddim::{DdimPath, ddim, ddim_ends};
pub use diagnostics::{
    curvature, flow_consistency_error, geometric_path_straightness, kinetic_action, reference_deviation,
    relative_field_error, sample,
};
pub(crate) use diagnostics::{flow_consistency_errors, flow_defects, geometry};
pub use latent::{LatentLine, latent_lines};
pub use line::Line;
pub use neighbours::{JoinedGraph, NeighbourGraph};
pub(crate) use ordinary::statistics_of;
pub use polyline::Polyline;
pub use quality::{Quality, assess, sliced_wasserstein};
pub use reflow::{flow_ends, reflow_pairs};
pub use reparameterised::Reparameterised;
pub use solver::{Solver, Stepping, solve};
pub use tableau::{Scheme, Tableau};
pub(crate) use trace::trace_and;
pub use trace::{Reference, Trace, TraceConfig, TraceMode, trace};
pub(crate) use trace_file::join_traces;
pub use trace_file::{load_traces, save_traces};
pub use trajectory::Trajectory;

/// A curve from the reference at time 0 to the input at time 1.
pub trait Path {
    /// The point at time `t` in `[0, 1]`, flat.
    fn at(&self, t: f64) -> Array1<f64>;

    /// The tangent, d gamma / dt, at time `t`. At a corner: the tangent of the piece that follows.
    fn derivative(&self, t: f64) -> Array1<f64>;

    /// The reference and the input.
    fn ends(&self) -> (Array1<f64>, Array1<f64>) {
        (self.at(0.0), self.at(1.0))
    }

    /// Inner times at which the tangent jumps, ascending. High-order rules do not integrate across them.
    fn corners(&self) -> Vec<f64> {
        Vec::new()
    }

    /// Whether the path is straight between its corners.
    fn is_straight(&self) -> bool {
        false
    }

    /// How the path came to be, for the certificate.
    fn evidence(&self) -> PathEvidence;
}

impl<P: Path + ?Sized> Path for &P {
    fn at(&self, t: f64) -> Array1<f64> {
        (**self).at(t)
    }
    fn derivative(&self, t: f64) -> Array1<f64> {
        (**self).derivative(t)
    }
    fn ends(&self) -> (Array1<f64>, Array1<f64>) {
        (**self).ends()
    }
    fn corners(&self) -> Vec<f64> {
        (**self).corners()
    }
    fn is_straight(&self) -> bool {
        (**self).is_straight()
    }
    fn evidence(&self) -> PathEvidence {
        (**self).evidence()
    }
}

/// How a path came to be. What does not apply to a kind of path is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PathEvidence {
    /// The kind of path: `line`, `polyline`, `trace`, ...
    pub kind: String,
    /// The ODE solver and its steps or tolerance, in words.
    pub solver: Option<String>,
    /// How the trace was stored: `reversed-backward` or `backward-forward`.
    pub mode: Option<String>,
    /// Velocity evaluations that made the stored path.
    pub velocity_evaluations: Option<usize>,
    /// Velocity evaluations spent on checking it: the way back, and FCE.
    pub check_evaluations: Option<usize>,
    /// Distance between the input and where the flow, run forward from the reference, really ends.
    pub round_trip_error: Option<f64>,
    /// The same, divided by the distance between reference and input.
    pub relative_round_trip_error: Option<f64>,
    /// Flow Consistency Error against the traced field, on the paper's uniform grid.
    pub flow_consistency_error: Option<f64>,
    /// How ordinary the reference is under p0, in standard deviations; see [`reference_deviation`].
    pub reference_deviation: Option<f64>,
    /// Whether input, way and reference are ordinary for the flow, where it was learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary: Option<Ordinary>,
    /// By how much of the way the reference was moved to keep its values within the data's bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_clipped: Option<f64>,
}

/// The time `k/K` between `start` and `end`, computed so that both directions give the same floats.
pub(crate) fn grid_time(start: f64, end: f64, k: usize, steps: usize) -> f64 {
    (start * (steps - k) as f64 + end * k as f64) / steps as f64
}

/// The points of a path at ascending knot times, used by the pieces of polylines and trajectories: the index
/// of the piece that holds `t`, where a knot belongs to the piece that follows it.
pub(crate) fn piece_of(times: &[f64], t: f64) -> usize {
    times.partition_point(|&knot| knot <= t).saturating_sub(1).min(times.len() - 2)
}

/// Several points as rows of one matrix.
pub(crate) fn stack_rows(rows: &[Array1<f64>]) -> Array2<f64> {
    let mut matrix = Array2::zeros((rows.len(), rows.first().map_or(0, |row| row.len())));
    for (mut target, row) in matrix.rows_mut().into_iter().zip(rows) {
        target.assign(row);
    }
    matrix
}
