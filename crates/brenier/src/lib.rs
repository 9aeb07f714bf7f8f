//! Feature attribution along transport geodesics.
//!
//! Credit for a score's change is split along a path from a reference to the input,
//!
//! ```text
//! Phi_i(f, gamma) = int_0^1 d_i f(gamma(t)) gamma_i'(t) dt
//! ```
//!
//! The axioms leave no choice in the integral, only in the path. So there is one integrator,
//! [`PathIntegral`], and many [`Path`]s: a [`Line`] gives Integrated Gradients, the [`trace`] of an input
//! through a flow gives transport-geodesic credit. What is explained is a [`Score`], what is traced a
//! [`VelocityField`]; closures can be both. Every [`Explanation`] carries its [`Certificate`].
//!
//! ```
//! use brenier::problems::{Gaussian, OptimalTransport, SineSum};
//! use brenier::{PathIntegral, Rule, TraceConfig, Verdict, trace};
//! use ndarray::array;
//!
//! // The flow that carries N(0, I) to N(0, 4 I), the score sin(x0) + sin(x1), and one input.
//! let flow = OptimalTransport::new(Gaussian::isotropic(2, 1.0)?, Gaussian::isotropic(2, 4.0)?)?;
//! let paths = trace(&flow, array![[2.0, 1.0]].view(), &TraceConfig::default())?;
//! let explanation = PathIntegral::new(Rule::adaptive(1e-3)).explain(&SineSum::new(2), &paths[0], 0)?;
//!
//! // The input came from (1, 0.5), and an additive score is credited feature by feature.
//! assert!((explanation.values[0] - (2.0_f64.sin() - 1.0_f64.sin())).abs() < 1e-5);
//! assert_eq!(explanation.certificate.verdict, Verdict::Pass);
//! # Ok::<(), brenier::Error>(())
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod attribute;
pub mod calibrate;
pub mod calibration;
pub mod classify;
pub mod compare;
pub mod data;
pub mod engine;
mod error;
pub mod evaluate;
pub mod export;
mod field;
mod fingerprint;
pub mod flow;
mod lock;
pub mod memory;
mod nearest;
mod net;
mod npy;
mod npz;
mod packed;
mod path;
mod predictor;
pub mod problems;
mod ranking;
pub mod readable;
mod registry;
pub mod report;
pub mod runs;
mod score;
mod store;
mod student;
pub mod text;
pub mod train;
pub mod transport;
mod whole_file;

pub use attribute::{
    Certificate, Completeness, Explanation, Limits, Method, PathCertificate, PathIntegral, Request, Rule,
    Sampling, Verdict, gauss_legendre,
};
pub use data::Dataset;
pub use error::{Disagreement, EngineError, Error, Notice, Remedy, Result};
pub use evaluate::{Metric, neighbourhood_preservation, relative_attribution_error};
pub use field::{FieldFn, StraightStarts, VelocityField};
pub use fingerprint::{fingerprint, fingerprint_row};
pub use flow::OnnxFlow;
pub use lock::Lock;
pub use nearest::nearest_name;
pub use packed::{PackedInput, PackedInputs, Role};
pub use path::{
    BlurPath, Border, Chord, DdimPath, JoinedGraph, LatentLine, Line, NeighbourGraph, Path, PathEvidence,
    Polyline, Quality, Reference, Reparameterised, Scheme, Solver, Stepping, Tableau, Trace, TraceConfig,
    TraceMode, Trajectory, assess, curvature, ddim, ddim_ends, flow_consistency_error, flow_ends,
    geometric_path_straightness, kinetic_action, latent_lines, load_traces, reference_deviation,
    reflow_pairs, relative_field_error, sample, save_traces, sliced_wasserstein, solve, trace,
};
pub use predictor::{
    Along, BlockedNode, ChannelOrder, Embedding, Inspection, InterfaceValue, LayerPredictor, LayerValues,
    Layout, Minus, ModelFile, Multipliers, NamedInputs, OnnxPredictor, Packing, PairPredictor,
    PredictorConfig, Preprocessing, Reduce, Scoring, Sidecar, SidecarColumn, TextBaseline, TextInputs,
    ValueAndGradient, ValuePredictor, Within, embeddings, resampling, score_axes,
};
pub use ranking::highest_first;
pub use score::{Score, ScoreFn, Trees, ValueFn, Watched};
pub use store::Store;

// The README's Rust example compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

// So does that of the page on metrics.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/metrics.md")]
struct MetricsPage;

// And that of the page on many inputs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/many-inputs.md")]
struct ManyInputsPage;

// And that of the page on several inputs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/inputs.md")]
struct InputsPage;

// And that of the page on comparisons.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/against.md")]
struct AgainstPage;
