//! What the library claims, checked against closed forms.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod axioms;
mod calibrate;
mod compare;
mod convergence;
mod data_formats;
mod data_real;
mod data_refusals;
mod data_scaling;
mod ddim;
mod files;
mod flows;
mod foreign_flows;
mod frames;
#[path = "../fuzz_body/mod.rs"]
mod fuzz_body;
#[cfg(target_os = "linux")]
mod fuzz_readers;
mod gaussians;
mod manifold;
mod methods;
mod metrics;
mod perturbation;
mod perturbation_axioms;
mod pipelines;
#[path = "../common/planted_shift.rs"]
mod planted_shift;
mod refusals;
mod registry;
mod shared;
mod shift;
mod stability;
mod streaming;
mod transport;
mod trees;
