//! Feature attribution along transport geodesics.

mod error;

pub use error::{Error, Result};
