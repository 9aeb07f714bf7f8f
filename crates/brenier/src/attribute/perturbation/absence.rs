//! What stands in for features that are left out.
//!
//! ```text
//! f_S(x) = (1 / B) sum_b f(x on S, r_b elsewhere)          B rows r_b; B = 1 but for a background
//! ```
//!
//! A model takes no holes, so something must be put where a feature is absent, and the answer depends on what. A
//! baseline is one row. A background is rows of data, over which the expectation is taken, as the shap package
//! does: what is left out is not set to anything, but averaged away.

use ndarray::{Array2, ArrayView2, Axis};
use rand::seq::index::sample;
use serde::{Deserialize, Serialize};

use crate::attribute::draws::{Key, generator};
use crate::attribute::{Baseline, Context};
use crate::{Error, Result, error};

/// What stands in for absent features.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "absence", rename_all = "kebab-case")]
pub enum Absence {
    /// The baseline of the input.
    Baseline(Baseline),
    /// The expectation over rows of the data. The cost grows with their number.
    Background {
        /// The most rows; drawn by the seed, without replacement, where the data have more.
        rows: usize,
    },
}

impl Default for Absence {
    /// Zero.
    fn default() -> Self {
        Absence::Baseline(Baseline::Zero)
    }
}

/// The rows that stand in, for every example.
pub(super) enum StandIns {
    /// One row for each.
    Each(Array2<f64>),
    /// The same rows for all.
    Shared(Array2<f64>),
}

impl StandIns {
    /// The rows `[B, features]` that stand in for what is absent of an example.
    pub(super) fn of(&self, example: usize) -> ArrayView2<'_, f64> {
        match self {
            StandIns::Each(rows) => rows.row(example).insert_axis(Axis(0)),
            StandIns::Shared(rows) => rows.view(),
        }
    }
}

impl Absence {
    /// How many rows stand in, at most.
    pub(in crate::attribute) fn rows(&self) -> usize {
        match *self {
            Absence::Baseline(_) => 1,
            Absence::Background { rows } => rows,
        }
    }

    /// What stands in for absent features of each input.
    pub(super) fn stand_ins(
        &self,
        inputs: ArrayView2<f64>,
        shape: &[usize],
        seed: u64,
        context: &Context,
    ) -> Result<StandIns> {
        match *self {
            Absence::Baseline(baseline) => Ok(StandIns::Each(baseline.of(inputs, shape, seed, context)?)),
            Absence::Background { rows: 0 } => Err(Error::Zero { what: "the number of background rows" }),
            Absence::Background { rows } => {
                let data = context.require_data("a background")?;
                data.require_rows(1, "a background")?;
                error::expect_shape("a row of the background", shape, data.shape())?;
                let chosen: Vec<usize> = if data.len() <= rows {
                    (0..data.len()).collect()
                } else {
                    sample(&mut generator(seed, Key::SHARED, BACKGROUND_DRAW), data.len(), rows).into_vec()
                };
                Ok(StandIns::Shared(data.rows_f64(&chosen)?))
            }
        }
    }
}

/// The background is the same for all examples, and not what any of them draws.
const BACKGROUND_DRAW: usize = 0xffff_ffff;

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::data::Dataset;

    #[test]
    fn baselines_are_one_for_each_input_and_a_background_is_shared() {
        let inputs = array![[1.0, 2.0], [3.0, 4.0]];
        let given = array![[5.0, 6.0], [7.0, 8.0]];
        let rows: Vec<f32> = (0..20).map(|v| v as f32).collect();
        let data = Dataset::from_rows("rows", &[2], ArrayView2::from_shape((10, 2), &rows).unwrap()).unwrap();
        let context = Context { data: Some(&data), baselines: Some(given.view()), ..Context::default() };
        let stand_ins =
            |absence: Absence, seed| absence.stand_ins(inputs.view(), &[2], seed, &context).unwrap();
        assert_eq!(stand_ins(Absence::Baseline(Baseline::Given), 0).of(1), array![[7.0, 8.0]]);
        assert_eq!(stand_ins(Absence::Baseline(Baseline::Mean), 0).of(1), array![[9.0, 10.0]]);
        assert_eq!(
            stand_ins(Absence::Background { rows: 10 }, 0).of(1),
            data.rows_f64(&(0..10).collect::<Vec<_>>()).unwrap()
        );
        let few = |seed| stand_ins(Absence::Background { rows: 4 }, seed).of(0).to_owned();
        assert_eq!(few(1).nrows(), 4);
        assert_eq!(few(1), few(1));
        assert_ne!(few(1), few(2));
        let refused =
            |absence: Absence| absence.stand_ins(inputs.view(), &[2], 0, &Context::default()).is_err();
        assert!(refused(Absence::Background { rows: 10 }) && refused(Absence::Background { rows: 0 }));
    }
}
