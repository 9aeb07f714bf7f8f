//! A file per verb: its arguments and the function that does it.

pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod reproduce;
