//! A file per verb: its arguments and the function that does it.

pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod reflow;
pub(crate) mod reproduce;
pub(crate) mod train;
