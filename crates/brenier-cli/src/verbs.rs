//! A file per verb: its arguments and the function that does it.

pub(crate) mod calibrate;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod inspect;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod reflow;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod shift;
pub(crate) mod train;
pub(crate) mod verify;
