//! What replaces the inputs of all cases.
//!
//! A baseline draws noise by an example's place among the rows it is given. Cases may be a chunk of a run, and what
//! an example is replaced by must not depend on how the run was cut; so noise is drawn one example at a time.

use ndarray::{Array2, Axis};

use super::Cases;
use crate::Result;
use crate::attribute::{Baseline, Context};

/// The replacement of each input, `[examples, features]`.
pub(super) fn replacements(baseline: &Baseline, cases: &Cases, seed: u64) -> Result<Array2<f64>> {
    let baselines = cases.baselines.as_ref().map(|rows| rows.view());
    let context = Context { data: cases.data, baselines, ..Context::default() };
    if *baseline != Baseline::Noise {
        return baseline.of(cases.inputs.view(), cases.shape(), seed, &context);
    }
    let mut replaced = Array2::zeros(cases.inputs.raw_dim());
    for (example, mut row) in replaced.rows_mut().into_iter().enumerate() {
        let input = cases.inputs.row(example).insert_axis(Axis(0));
        let seed = seed.wrapping_add((cases.first_example + example) as u64);
        row.assign(&baseline.of(input, cases.shape(), seed, &context)?.row(0));
    }
    Ok(replaced)
}
