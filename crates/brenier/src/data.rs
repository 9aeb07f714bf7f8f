//! Data: for now, the synthetic problems whose answers are known.

pub mod synthetic;
