//! The function being explained.

mod score;

pub use score::{Score, ScoreFn};
