//! Credit for the features of an input: how much of the score's change along a path each one made.

mod adaptive;
mod coalitions;
mod explanation;
mod groups;
mod kernel_shap;
mod lime;
mod occlusion;
mod path_integral;
mod perturbation;
mod rise;
mod rule;
mod shapley_values;

pub use explanation::{Certificate, Completeness, Explanation, Limits, PathCertificate, Sampling, Verdict};
pub use groups::{Grouping, Groups, Slic};
pub use kernel_shap::{Coalitions, KernelShap};
pub use lime::{Distance, Lime, Surrogate};
pub use occlusion::Occlusion;
pub use path_integral::{PathIntegral, Request};
pub use perturbation::Absence;
pub use rise::Rise;
pub use rule::{Rule, gauss_legendre};
pub use shapley_values::ShapleyValues;
