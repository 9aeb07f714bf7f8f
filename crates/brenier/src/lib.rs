//! Feature attribution along transport geodesics.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod attribute;
pub mod data;
mod error;
mod evaluate;
pub mod experiments;
mod flow;
mod path;
mod predictor;
pub mod report;

pub use attribute::{
    Certificate, Explanation, Limits, PathIntegral, Request, Rule, Verdict, gauss_legendre,
};
pub use error::{Error, Result};
pub use evaluate::relative_attribution_error;
pub use flow::{FieldFn, VelocityField};
pub use path::{
    Line, Method, Path, PathEvidence, Polyline, Reference, Reparameterised, Solver, Stepping,
    Tableau, Trace, TraceConfig, TraceMode, Trajectory, curvature, flow_consistency_error,
    geometric_path_straightness, kinetic_action, load_traces, reference_deviation,
    relative_field_error, sample, save_traces, solve, trace,
};
pub use predictor::{Score, ScoreFn};
