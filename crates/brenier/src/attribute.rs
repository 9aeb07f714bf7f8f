//! Credit for the features of an input: how much of the score's change along a path each one made.

mod adaptive;
mod explanation;
mod path_integral;
mod rule;

pub use explanation::{Certificate, Completeness, Explanation, Limits, PathCertificate, Sampling, Verdict};
pub use path_integral::{PathIntegral, Request};
pub use rule::{Rule, gauss_legendre};
