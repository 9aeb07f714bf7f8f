//! Results as people read them.

mod chart;
mod files;

pub use chart::{Chart, Mark, Scale, Series};
pub use files::save_explanations;
