//! Transport flows: velocity fields that carry the reference distribution to the data.

mod velocity;

pub use velocity::{FieldFn, VelocityField};
