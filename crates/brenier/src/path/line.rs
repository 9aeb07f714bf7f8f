//! The straight line from a baseline to the input: the path of Integrated Gradients.
//!
//! ```text
//! gamma(t) = (1 - t) x0 + t x1,    gamma'(t) = x1 - x0
//! ```

use ndarray::{Array1, ArrayView1};

use super::{Path, PathEvidence};
use crate::{Result, error};

/// The straight line between two points.
#[derive(Debug, Clone)]
pub struct Line {
    reference: Array1<f64>,
    input: Array1<f64>,
}

impl Line {
    /// The line from `reference` (time 0) to `input` (time 1).
    pub fn new(reference: ArrayView1<f64>, input: ArrayView1<f64>) -> Result<Self> {
        error::expect_shape("the line's reference", input.shape(), reference.shape())?;
        error::expect_finite("reference", 0, 0.0, reference)?;
        error::expect_finite("input", 0, 1.0, input)?;
        Ok(Self { reference: reference.to_owned(), input: input.to_owned() })
    }
}

impl Path for Line {
    fn at(&self, t: f64) -> Array1<f64> {
        (1.0 - t) * &self.reference + t * &self.input
    }

    fn derivative(&self, _t: f64) -> Array1<f64> {
        &self.input - &self.reference
    }

    fn is_straight(&self) -> bool {
        true
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: "line".into(), ..PathEvidence::default() }
    }
}
