//! What the library claims, checked against closed forms.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod axioms;
mod convergence;
mod files;
mod flows;
mod gaussians;
mod refusals;
mod shared;
mod stability;
mod streaming;
