//! Measures of explanations, one file each with its equation.

mod attribution_error;

pub use attribution_error::relative_attribution_error;
