//! Credit for the features of an input: how much each had to do with a score.
//!
//! Path methods share out the score's change along a path ([`PathIntegral`]); others look at gradients at the
//! input or around it, or only at scores of inputs with parts left out. A file for each method, all with the same [`Explanation`] and all behind [`Method`].

mod adaptive;
mod allocation;
mod baseline;
mod blur_ig;
mod coalitions;
mod comparison;
mod context;
mod ddim;
mod deeplift;
mod draws;
mod expected_gradients;
mod explanation;
mod frames;
mod geodesic_ig;
mod grad_cam;
mod gradient;
mod gradient_input;
mod gradient_shap;
mod groups;
mod guided_backprop;
mod guided_ig;
mod idgi;
mod integrated_gradients;
mod kernel_shap;
mod lime;
mod lrp;
mod mean_of;
mod method;
mod moments;
mod nearest_ig;
mod occlusion;
mod path_integral;
mod perturbation;
mod rise;
mod rows;
mod rule;
mod segments;
mod settings;
mod shapley_values;
mod shift;
mod smooth_grad;
mod spec;
mod transport;
mod transport_line;
mod tree_path;
mod tree_shap;
mod verdict;

pub use allocation::Allocation;
pub use baseline::Baseline;
pub use blur_ig::BlurIg;
pub use comparison::{ComparisonCertificate, ComparisonLimits};
pub use context::Context;
pub use ddim::Ddim;
pub use deeplift::{DeepLift, DeepShap};
pub(crate) use draws::{Key, generator};
pub use expected_gradients::{Draw, ExpectedGradients};
pub use explanation::{Certificate, Completeness, Explanation, PathCertificate, Sampling};
pub use frames::{Frames, frames};
pub use geodesic_ig::{GeodesicIg, GeodesicMetric};
pub use grad_cam::GradCam;
pub use gradient::Gradient;
pub use gradient_input::GradientInput;
pub use gradient_shap::GradientShap;
pub(crate) use groups::image;
pub use groups::{Grouping, Groups, Slic};
pub(crate) use guided_backprop::expect_relu;
pub use guided_backprop::{Deconvnet, GuidedBackprop};
pub use guided_ig::{GuidedIg, StepCredit};
pub use idgi::Idgi;
pub use integrated_gradients::IntegratedGradients;
pub use kernel_shap::{Coalitions, KernelShap};
pub use lime::{Distance, Lime, Surrogate};
pub use lrp::{Lrp, LrpRule};
use method::boxed;
pub use method::{Method, WithPaths};
pub use nearest_ig::NearestIg;
pub use occlusion::Occlusion;
pub use path_integral::{PathIntegral, Request};
pub use perturbation::Absence;
pub use rise::Rise;
pub use rule::{Rule, gauss_legendre};
pub use settings::Settings;
pub use shapley_values::ShapleyValues;
pub use shift::{
    ColumnShift, Estimate, GroupShift, GroupedShift, Interval, MatchedExample, Remark, Shift, ShiftConfig,
    Side, Subgroups, shift, shift_by, shift_watched,
};
pub use smooth_grad::{SmoothGrad, Smoothing};
pub use spec::{Meaning, MethodPage, MethodSpec, Need, Setting, method_tables};
pub use transport::Transport;
pub use transport_line::TransportLine;
pub use tree_shap::TreeShap;
pub use verdict::{Check, Checks, Limits, Verdict};
