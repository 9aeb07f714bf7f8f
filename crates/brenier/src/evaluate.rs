//! Measures of explanations, one file each with its equation.

mod attribution_error;
mod neighbourhood;

pub use attribution_error::relative_attribution_error;
pub use neighbourhood::neighbourhood_preservation;
