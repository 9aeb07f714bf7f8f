//! Reflow: a trained flow makes the pairs on which the next level is trained (Liu et al., 2022).
//!
//! ```text
//! z0 ~ p0,   z1 = z0 + int_0^1 v(x_t, t) dt             generated: forward from the reference
//! z1 ~ data, z0 = z1 - int_0^1 v(x_t, t) dt             inverted: backward from real data
//! ```
//!
//! The ends of trajectories of one flow do not cross, so the next flow can connect them by straighter lines; the
//! cost of the coupling does not rise. On generated pairs alone, later levels learn the generator's own idea of
//! the data and drift away from real inputs, which are what we explain: inverted pairs keep them in.

use ndarray::{Array2, ArrayView2, Axis, concatenate, s};

use super::{Solver, solve};
use crate::error::{Error, Result, expect_shape};
use crate::field::VelocityField;
use crate::flow::StoredPairs;

/// Trajectories that are solved at a time: memory does not grow with the number of pairs.
const ROWS: usize = 1024;

/// Pairs from a flow: one for every row of `references`, run forward, and one for every row of `data`, run
/// backward; either may be empty. The order of the pairs within an epoch follows from the seed.
pub fn reflow_pairs(
    field: &dyn VelocityField,
    references: ArrayView2<f64>,
    data: ArrayView2<f64>,
    solver: &Solver,
    seed: u64,
) -> Result<StoredPairs> {
    let features = field.features();
    expect_shape("the references", &[references.nrows(), features], references.shape())?;
    expect_shape("the data", &[data.nrows(), features], data.shape())?;
    let ends = flow_ends(field, references, 0.0, 1.0, solver)?;
    let starts = flow_ends(field, data, 1.0, 0.0, solver)?;
    let join = |a: ArrayView2<f64>, b: ArrayView2<f64>| -> Result<Array2<f32>> {
        let joined = concatenate(Axis(0), &[a, b]);
        joined.map(|z| z.mapv(|v| v as f32)).map_err(|_| Error::Shape {
            what: "the pairs".to_string(),
            expected: a.shape().to_vec(),
            found: b.shape().to_vec(),
        })
    };
    let z0 = join(references, starts.view())?;
    let z1 = join(ends.view(), data)?;
    StoredPairs::new(field.shape(), z0, z1, seed)
}

/// Where the flow takes each row between two times.
pub fn flow_ends(
    field: &dyn VelocityField,
    start: ArrayView2<f64>,
    from: f64,
    to: f64,
    solver: &Solver,
) -> Result<Array2<f64>> {
    let mut ends = Array2::zeros(start.raw_dim());
    for first in (0..start.nrows()).step_by(ROWS) {
        let last = (first + ROWS).min(start.nrows());
        let solved = solve(field, start.slice(s![first..last, ..]), from, to, solver)?;
        for (i, trajectory) in solved.iter().enumerate() {
            ends.row_mut(first + i).assign(&trajectory.at(to));
        }
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldFn;
    use crate::flow::Pairs;
    use ndarray::array;

    #[test]
    fn pairs_are_the_ends_of_trajectories_both_ways() {
        // dx/dt = x: the flow multiplies by e.
        let growth = FieldFn::new(&[2], |x, _| x.to_owned());
        let e = std::f64::consts::E;
        let (z0, z1) = (array![[1.0, -2.0]], array![[e, 2.0 * e], [0.0, e]]);
        let pairs = reflow_pairs(&growth, z0.view(), z1.view(), &Solver::adaptive(1e-9), 3).unwrap();
        let (starts, ends) = pairs.rows();
        assert_eq!(starts.nrows(), 3);
        for (a, b) in starts.iter().zip(ends) {
            assert!((f64::from(*a) * e - f64::from(*b)).abs() < 1e-5, "{a} {b}");
        }
        assert_eq!(ends.row(1), array![e as f32, 2.0 * e as f32]);
        let (a, b) = pairs.draw(5, 2).unwrap();
        assert_eq!(a.shape(), [2, 2]);
        assert!((a * e as f32 - b).iter().all(|gap| gap.abs() < 1e-5));
        let none = Array2::zeros((0, 2));
        assert!(reflow_pairs(&growth, none.view(), none.view(), &Solver::default(), 0).is_err());
    }
}
