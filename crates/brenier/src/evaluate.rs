//! Measures of explanations, one file each with its equation.
//!
//! ```text
//! metric (settings) + cases  ->  a number for each example, or none where it is not defined
//! ```
//!
//! [`Cases`] are the explanations that one method gave of some inputs, with what metrics need besides. A
//! [`Metric`] is a plain value, as a method is. It sees all cases at once, because most of the time goes into
//! evaluations of the score, and these are cheap only many at a time. [`Summary`] is what a table shows of the
//! numbers. No metric proves an explanation right; `docs/metrics.md` says what each does and does not say.

mod action;
mod attribution_error;
mod cases;
mod collected;
mod completeness;
mod completeness_residual;
mod edge_alignment;
mod edges;
mod faithfulness_correlation;
mod field_error;
mod flow_consistency;
mod flow_defect;
mod infidelity;
mod lead;
mod map;
mod mass_accuracy;
mod max_sensitivity;
mod metric;
mod neighbourhood;
mod path_geometry;
mod pixel_variance;
mod planted_truth;
mod pointing_game;
mod randomisation;
mod rank_accuracy;
mod rank_correlation;
mod relative_residual;
mod removal;
mod replacement;
mod row_stream;
mod satv;
mod spec;
mod ssim;
mod straightness;
mod subsets;
mod summary;
mod table;
mod units;

pub use action::Action;
pub use attribution_error::{AttributionError, relative_attribution_error};
pub use cases::{Cases, Explain, explain_with};
pub use completeness::ResidualSummary;
pub use completeness_residual::CompletenessResidual;
pub use edge_alignment::EdgeAlignment;
pub use edges::ImageEdges;
pub use faithfulness_correlation::FaithfulnessCorrelation;
pub use field_error::FieldError;
pub use flow_consistency::FlowConsistency;
pub use flow_defect::FlowDefect;
pub use infidelity::Infidelity;
pub use lead::{Comparable, Lead, Margin};
pub use map::{Channels, Normalisation};
pub use mass_accuracy::MassAccuracy;
pub use max_sensitivity::MaxSensitivity;
pub use metric::Metric;
pub use neighbourhood::neighbourhood_preservation;
pub use path_geometry::PathGrid;
pub use pixel_variance::PixelVariance;
pub use planted_truth::PlantedTruth;
pub use pointing_game::PointingGame;
pub use randomisation::{ModelRandomisation, RandomisedLayer, Spread, weight_layers};
pub use rank_accuracy::RankAccuracy;
pub use rank_correlation::{RankCorrelation, pearson, spearman};
pub use relative_residual::RelativeResidual;
pub use removal::{Order, Removal, ScoreCurve};
pub use satv::Satv;
pub use spec::{Direction, MetricNeed, MetricPage, MetricSetting, MetricSettings, MetricSpec, metric_tables};
pub use ssim::{Ssim, structural_similarity};
pub use straightness::Straightness;
pub use subsets::Subsets;
pub use summary::Summary;
pub use table::shard::{EVALUATION_SHARD, EvaluationShard};
pub use table::{CHUNK, Cell, Done, Evaluation, MethodRow, MetricColumn, MetricTable, draw_examples};
pub use units::Units;
