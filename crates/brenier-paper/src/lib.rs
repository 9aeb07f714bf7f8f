//! The paper's tables and figures, a file or a folder each, made with the library as a user would.
//!
//! Every experiment gives one long table, whatever it measures, with the paper's figure beside ours where the
//! paper has one; and its figures as SVG.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod action;
mod additive;
mod benchmark;
mod compare;
mod completeness;
mod convergence;
mod earth_mover;
mod gaussian;
mod natural;
mod planted;
mod qualitative;
mod references;
mod scale;
mod stability;
mod subject;
mod table;
mod trained;
mod xai_tris;

pub use natural::{NaturalConfig, natural};
pub use planted::{PlantedConfig, planted};
pub use qualitative::{QualitativeConfig, qualitative};
pub use references::{ReferencesConfig, references};
pub use scale::Scale;
pub use stability::{StabilityConfig, stability};
pub use subject::{NamedFlow, Subject};
pub use table::{Figure, Row, Table, Tell};
pub(crate) use table::{RULE, transport};
pub use xai_tris::{XaiTrisConfig, xai_tris};

pub use action::{ActionConfig, action};
pub use additive::{AdditiveConfig, additive};
pub use benchmark::{BenchmarkConfig, TrainedSubject, TrainedSubjectConfig, benchmark, train_subject};
pub use completeness::{CompletenessConfig, completeness};
pub use convergence::{ConvergenceConfig, Kept, convergence, kept_checkpoints, train_checkpoints};
pub use gaussian::{
    GaussianConfig, LevelsConfig, MismatchConfig, RotatedConfig, field_mismatch, gaussian, rotated_gaussian,
};
