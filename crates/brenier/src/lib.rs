//! Feature attribution along transport geodesics.
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod engine;
mod error;

pub use error::{Error, Result};
