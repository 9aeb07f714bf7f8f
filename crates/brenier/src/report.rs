//! Results as people read them.

mod chart;

pub use chart::{Chart, Mark, Scale, Series};
