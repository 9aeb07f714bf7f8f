//! What replaces the inputs of all cases.
//!
//! Cases may be a chunk of a run, and what an example is replaced by must not depend on how the run was cut; so noise
//! is drawn by the example's number in the run.

use ndarray::Array2;

use super::Cases;
use crate::Result;
use crate::attribute::Baseline;

/// The replacement of each input, `[examples, features]`.
pub(super) fn replacements(baseline: &Baseline, cases: &Cases, seed: u64) -> Result<Array2<f64>> {
    baseline.of(cases.inputs.view(), cases.shape(), seed, &cases.context)
}
