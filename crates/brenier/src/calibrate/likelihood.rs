//! The log-likelihood of rows under a flow.
//!
//! ```text
//! log p1(x) = log p0(x0) - int_0^1 div v(x_t, t) dt        (Chen et al., 2018)
//! div v  =  E[e^T J e],  e_i = +-1                          (Hutchinson, 1990)
//! ```
//!
//! `J e` is taken by central differences, for a network gives no products with its Jacobian. The step is large enough for
//! 32-bit floats: what it errs by is far below the spread over rows. References that are uniform count as normal ones
//! with the same variance, so that a reference just outside has a likelihood too.

use ndarray::{Array1, Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::attribute::gauss_legendre;
use crate::error::Result;
use crate::field::VelocityField;
use crate::path::Trajectory;

/// Nodes along the way. With few, the divergence near the data is missed.
const NODES: usize = 30;
/// The step of the differences, in the field's own units.
const STEP: f64 = 1e-2;

/// The log-likelihood of the end of each way, in the field's own units.
pub(super) fn log_likelihoods(
    field: &dyn VelocityField,
    ways: &[Trajectory],
    variance: f64,
    seed: u64,
) -> Result<Array1<f64>> {
    let features = field.features();
    let zero = field.own_units(Array2::zeros((1, features)).view());
    // By how much a step in the user's units counts in the field's own.
    let rate = (field.own_units(Array2::ones((1, features)).view()) - &zero).remove_axis(Axis(0));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut sums = Array1::zeros(ways.len());
    for (time, weight) in gauss_legendre(NODES) {
        let mut probes = Array2::zeros((ways.len(), features));
        probes.mapv_inplace(|_: f64| if rng.random::<bool>() { 1.0 } else { -1.0 });
        let states: Vec<_> = ways.iter().map(|way| way.at(time)).collect();
        let states = crate::path::stack_rows(&states);
        let step = (&probes * STEP) / &rate;
        let times = vec![time; ways.len()];
        let ahead = field.velocity((&states + &step).view(), &times)?;
        let behind = field.velocity((&states - &step).view(), &times)?;
        let divergence = ((ahead - behind) * &rate * &probes).sum_axis(Axis(1)) / (2.0 * STEP);
        sums.scaled_add(weight, &divergence);
    }
    let constant = features as f64 * (std::f64::consts::TAU * variance).ln();
    let starts: Array1<f64> = ways
        .iter()
        .map(|way| {
            let own = field.own_units(way.at(0.0).insert_axis(Axis(0)).view());
            -0.5 * (own.mapv(|v| v * v).sum() / variance + constant)
        })
        .collect();
    Ok(starts - sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldFn;
    use crate::path::{Solver, solve};
    use crate::transport::Gaussian;
    use ndarray::array;

    #[test]
    fn a_flow_between_gaussians_has_the_density_of_its_end() {
        // x_t = m t + (1 + t (s - 1)) x_0: from N(0, 1) to N(m, s^2), for each feature by itself.
        let (m, s) = (array![1.0, -2.0, 0.5], array![2.0, 0.25, 1.0]);
        let (mm, ss) = (m.clone(), s.clone());
        let flow = FieldFn::new(&[3], move |x, t| {
            let width = 1.0 + t * (&ss - 1.0);
            let start = (&x - &(t * &mm)) / &width;
            &mm + &((&ss - 1.0) * &start)
        });
        let rows = array![[1.0, -2.0, 0.5], [3.0, -1.9, -1.0]];
        let ways = solve(&flow, rows.view(), 1.0, 0.0, &Solver::default()).unwrap();
        let found = log_likelihoods(&flow, &ways, 1.0, 7).unwrap();
        let end = Gaussian::new(m.view(), Array2::from_diag(&s.mapv(|v| v * v)).view()).unwrap();
        let exact = end.log_densities(rows.view()).unwrap();
        assert!((&found - &exact).iter().all(|gap| gap.abs() < 1e-3), "{found} {exact}");
    }
}
