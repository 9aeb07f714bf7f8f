//! Is a flow good enough to explain with? Measured on data that it has not seen.
//!
//! - **Held-out loss**: the training loss there; if it is well above the training loss, the network overfits.
//! - **Straightness**: length over distance of traced paths, 1 for straight lines. What Reflow improves.
//! - **Round trip**: back to the reference and forward again, the distance from the input relative to the way.
//!   What makes a reference belong to its input.
//! - **Sliced Wasserstein distance** between samples of the flow and held-out data, beside the distance between
//!   two parts of the data themselves, which is what a perfect flow would have.

use ndarray::{Array1, Array2, ArrayView2, Axis, s};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

use super::{Path, geometric_path_straightness, sample};
use crate::error::{Result, expect_shape};

/// What was measured. Distances are in the space of the field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Mean loss on held-out data, per feature.
    pub held_out_loss: Option<f64>,
    /// Mean length over distance of the paths of held-out examples.
    pub straightness: f64,
    /// Median over held-out examples.
    pub relative_round_trip_error: f64,
    /// The largest of these.
    pub worst_relative_round_trip_error: f64,
    /// Held-out examples that were traced.
    pub traced: usize,
    /// Sliced Wasserstein-2 distance between samples and held-out data.
    pub sliced_wasserstein: f64,
    /// The same between two halves of the held-out data: the floor.
    pub sliced_wasserstein_of_data: f64,
    /// Samples on either side of these distances.
    pub samples: usize,
    /// The mean number of velocity evaluations of a trace.
    pub velocity_evaluations: f64,
}

/// Measures a generator by the paths of held-out examples and by samples.
///
/// `samples` are compared with the first half of `data` and the halves of `data` with each other, as many rows as
/// both sides have.
pub fn assess<P: Path>(
    paths: &[P],
    samples: ArrayView2<f64>,
    data: ArrayView2<f64>,
    seed: u64,
) -> Result<Quality> {
    let traced = paths.len();
    let mut errors: Vec<f64> = paths.iter().filter_map(|t| t.evidence().relative_round_trip_error).collect();
    errors.sort_by(f64::total_cmp);
    let (mut straightness, mut evaluations) = (0.0, 0.0);
    for path in paths {
        straightness += geometric_path_straightness(sample(path, 50).view())? / traced as f64;
        evaluations += path.evidence().velocity_evaluations.unwrap_or(0) as f64 / traced as f64;
    }
    let half = samples.nrows().min(data.nrows() / 2);
    let first = data.slice(s![..half, ..]);
    let second = data.slice(s![half..2 * half, ..]);
    Ok(Quality {
        held_out_loss: None,
        straightness,
        relative_round_trip_error: errors.get(errors.len() / 2).copied().unwrap_or(f64::NAN),
        worst_relative_round_trip_error: errors.last().copied().unwrap_or(f64::NAN),
        traced,
        sliced_wasserstein: sliced_wasserstein(samples.slice(s![..half, ..]), first, PROJECTIONS, seed)?,
        sliced_wasserstein_of_data: sliced_wasserstein(second, first, PROJECTIONS, seed)?,
        samples: half,
        velocity_evaluations: evaluations,
    })
}

/// Random directions of the sliced distance.
const PROJECTIONS: usize = 256;

/// The sliced Wasserstein-2 distance between two sets of as many rows (Bonneel et al., 2015).
///
/// ```text
/// SW^2 = mean over unit directions u of W2^2(<x, u>, <y, u>)
/// ```
///
/// in one dimension, optimal transport is sorting. Directions are drawn by the seed.
pub fn sliced_wasserstein(
    a: ArrayView2<f64>,
    b: ArrayView2<f64>,
    projections: usize,
    seed: u64,
) -> Result<f64> {
    expect_shape("the second set of rows", a.shape(), b.shape())?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut directions: Array2<f64> =
        Array2::zeros((a.ncols(), projections)).mapv(|_: f64| StandardNormal.sample(&mut rng));
    for mut u in directions.axis_iter_mut(Axis(1)) {
        let length = u.dot(&u).sqrt();
        u /= length;
    }
    let sorted = |x: ArrayView2<f64>| -> Array2<f64> {
        let mut shadows = x.dot(&directions).reversed_axes();
        for mut row in shadows.rows_mut() {
            let mut values = row.to_vec();
            values.sort_by(f64::total_cmp);
            row.assign(&Array1::from(values));
        }
        shadows
    };
    let gap = sorted(a) - sorted(b);
    Ok((gap.mapv(|v| v * v).sum() / gap.len().max(1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldFn, TraceConfig, trace};
    use ndarray::array;

    fn normal(rows: usize, seed: u64) -> Array2<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Array2::zeros((rows, 3)).mapv(|_: f64| StandardNormal.sample(&mut rng))
    }

    #[test]
    fn the_sliced_distance_of_a_shift_is_its_length_over_the_root_of_the_dimension() {
        let a = normal(400, 1);
        let b = &a + &array![3.0, 0.0, 0.0];
        let found = sliced_wasserstein(a.view(), b.view(), 20_000, 2).unwrap();
        assert!((found - 3.0 / 3.0_f64.sqrt()).abs() < 0.02, "{found}");
        assert_eq!(sliced_wasserstein(a.view(), a.view(), 10, 2).unwrap(), 0.0);
    }

    #[test]
    fn a_perfect_flow_is_straight_returns_and_samples_the_data() {
        // x -> x + (2, 0, 0), at constant speed.
        let shift =
            FieldFn::new(&[3], |x, _| Array1::from_shape_fn(x.len(), |i| if i == 0 { 2.0 } else { 0.0 }));
        let data = normal(2000, 3) + array![2.0, 0.0, 0.0];
        let paths = trace(&shift, data.slice(s![..10, ..]), &TraceConfig::default()).unwrap();
        let samples = normal(1000, 4) + array![2.0, 0.0, 0.0];
        let q = assess(&paths, samples.view(), data.view(), 0).unwrap();
        assert!((q.straightness - 1.0).abs() < 1e-9 && q.worst_relative_round_trip_error < 1e-9);
        assert!(q.sliced_wasserstein < 2.0 * q.sliced_wasserstein_of_data, "{q:?}");
        assert_eq!((q.traced, q.samples), (10, 1000));
        let bad = assess(&paths, normal(1000, 4).view(), data.view(), 0).unwrap();
        assert!(bad.sliced_wasserstein > 5.0 * q.sliced_wasserstein);
    }
}
