//! Data: reading what users have, and the map to the space a flow is trained in.
//!
//! A [`Dataset`] holds its values as they are seen: pixels from 0 to 1, table cells raw. What a flow sees is
//! a separate value, a [`Scaling`], fitted on the training rows and kept with the flow. [`Dataset::open`]
//! decides by what it finds which of the formats it has before it; each format is one file of this module and
//! ends in the same `Dataset`.
//!
//! [`problems`](crate::problems) has data whose answers are known.

mod changed;
mod cifar;
mod coding;
mod csv;
mod dataset;
mod file;
mod idx;
mod images;
mod npy_rows;
mod numpy;
mod open;
mod options;
mod parquet;
mod population;
mod scaling;
mod table;
mod texts;

pub use crate::error::DataError;
pub(crate) use coding::with_features as columns_with_features;
pub use coding::{Column, ColumnKind, columns_of_features};
pub use dataset::Dataset;
pub use npy_rows::{NpyRows, expect_honest_npy};
pub use open::learn_columns;
pub use options::{Color, Layout, Missing, OpenOptions, Part, Transform};
pub use population::Population;
pub use scaling::{Constants, Real, Scaling, ScalingConfig, ScalingMethod, ScalingUnit};
pub use texts::read_texts;
