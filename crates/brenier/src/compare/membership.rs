//! Whether a point is an ordinary member of a population.
//!
//! ```text
//! d(x) = mean distance to the five nearest rows;    p = 2 min(share of rows with d_i >= d(x), share with d_i <= d(x))
//! ```
//!
//! The population's own rows say what is ordinary: each is held against all the others. So a member that was not among
//! them has a `p` below 0.05 in one of twenty cases, whatever the distribution (conformal prediction; Vovk, Gammerman and
//! Shafer, 2005). Both sides count: a point that lies nearer to all rows than they lie to each other is an average of them,
//! and no row looks like it.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};

use super::pair::spread;
use crate::data::Dataset;
use crate::error::Result;
use crate::transport::{in_units, squared_distances};

/// Rows that stand for the population.
const ROWS: usize = 1000;
/// Nearest rows over which the distance is taken.
const NEAREST: usize = 5;

pub(super) struct Membership {
    rows: Array2<f64>,
    unit: Array1<f64>,
    /// The distances of the rows themselves, ascending.
    ordinary: Vec<f64>,
}

/// How a point lies among the members.
pub(super) struct Standing {
    pub(super) share: f64,
    pub(super) far: bool,
}

impl Membership {
    pub(super) fn new(data: &Dataset, unit: &Array1<f64>) -> Result<Self> {
        let rows = in_units(data.rows_f64(&spread(data.len(), ROWS))?.view(), unit);
        let distances = squared_distances(rows.view(), rows.view())?;
        let mut ordinary: Vec<f64> =
            distances.rows().into_iter().enumerate().map(|(i, row)| nearest(row, Some(i))).collect();
        ordinary.sort_by(f64::total_cmp);
        Ok(Self { rows, unit: unit.clone(), ordinary })
    }

    /// The distance of a typical row from its neighbours.
    pub(super) fn typical_distance(&self) -> f64 {
        self.ordinary[self.ordinary.len() / 2]
    }

    pub(super) fn standing(&self, x: ArrayView1<f64>) -> Result<Standing> {
        let x: ArrayView2<f64> = x.insert_axis(Axis(0));
        let distances = squared_distances(in_units(x, &self.unit).view(), self.rows.view())?;
        let distance = nearest(distances.row(0), None);
        let count = self.ordinary.len() as f64 + 1.0;
        let at_least = self.ordinary.iter().filter(|&&d| d >= distance).count() as f64 + 1.0;
        let at_most = self.ordinary.iter().filter(|&&d| d <= distance).count() as f64 + 1.0;
        let share = (2.0 * at_least.min(at_most) / count).min(1.0);
        Ok(Standing { share, far: at_least < at_most })
    }
}

/// The mean distance to the nearest, but for the point itself.
fn nearest(squares: ArrayView1<f64>, itself: Option<usize>) -> f64 {
    let others = squares.iter().enumerate().filter(|(i, _)| Some(*i) != itself);
    let mut distances: Vec<f64> = others.map(|(_, square)| square.sqrt()).collect();
    distances.sort_by(f64::total_cmp);
    distances.truncate(NEAREST);
    distances.iter().sum::<f64>() / distances.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    fn normal(rows: usize, features: usize, seed: u64) -> Array2<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        Array2::from_shape_fn((rows, features), |_| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            draw as f32
        })
    }

    #[test]
    fn members_pass_as_often_as_promised_and_others_do_not() {
        let data = Dataset::from_rows("normal", &[20], normal(800, 20, 1).view()).unwrap();
        let members = Membership::new(&data, &Array1::ones(20)).unwrap();
        let fresh = normal(1000, 20, 2).mapv(f64::from);
        let share = |limit: f64| {
            let rare = fresh.rows().into_iter().filter(|x| members.standing(*x).unwrap().share < limit);
            rare.count() as f64 / 1000.0
        };
        // Four standard errors.
        assert!((share(0.05) - 0.05).abs() < 0.03, "{}", share(0.05));
        assert!((share(0.2) - 0.2).abs() < 0.06, "{}", share(0.2));
        let far = members.standing(Array1::from_elem(20, 1.5).view()).unwrap();
        assert!(far.share < 0.01 && far.far);
        // The mean is nearer to everything than anything else is.
        let mean = members.standing(Array1::zeros(20).view()).unwrap();
        assert!(mean.share < 0.01 && !mean.far, "{}", mean.share);
    }
}
