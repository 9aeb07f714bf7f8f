//! What can be said of a path before any score is looked at: one function each, with its equation.
//!
//! All of them work on the paper's discrete path: states `x_0 .. x_K` on the uniform grid `t_k = k/K`, as the
//! rows of a matrix. [`sample`] takes them from any [`Path`]. `dt` is `1/K`.

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};

use super::{Path, grid_time, stack_rows};
use crate::{Error, Result, VelocityField, error};

/// States that a field is given at a time.
const ROWS: usize = 32;

/// The states of a path at the times `k/steps`, `[steps + 1, features]`.
pub fn sample(path: &dyn Path, steps: usize) -> Array2<f64> {
    let steps = steps.max(1);
    let states: Vec<_> = (0..=steps).map(|k| path.at(grid_time(0.0, 1.0, k, steps))).collect();
    stack_rows(&states)
}

fn increments(states: ArrayView2<f64>) -> Array2<f64> {
    &states.slice(s![1.., ..]) - &states.slice(s![..-1, ..])
}

fn steps_of(states: ArrayView2<f64>) -> Result<usize> {
    if states.nrows() < 2 {
        return Err(Error::Setting {
            name: "the number of states on the path",
            value: states.nrows().to_string(),
            needs: "a path has at least two",
            hint: "sample the path with 50 steps",
        });
    }
    Ok(states.nrows() - 1)
}

fn square(row: ArrayView1<f64>) -> f64 {
    row.iter().map(|v| v * v).sum()
}

/// Kinetic action, `A = sum_k |x_{k+1} - x_k|^2 / dt`. Averaged over inputs it is at least W2^2.
pub fn kinetic_action(states: ArrayView2<f64>) -> Result<f64> {
    let steps = steps_of(states)? as f64;
    Ok(increments(states).rows().into_iter().map(square).sum::<f64>() * steps)
}

/// Geometric Path Straightness, `GPS = sum_k |x_{k+1} - x_k| / |x_K - x_0|`: length over distance, 1 for a
/// straight path. Straight does not mean optimal. Infinite for a closed path that moves.
pub fn geometric_path_straightness(states: ArrayView2<f64>) -> Result<f64> {
    let steps = steps_of(states)?;
    let length: f64 = increments(states).rows().into_iter().map(|row| square(row).sqrt()).sum();
    if length == 0.0 {
        return Ok(1.0);
    }
    let distance = &states.row(steps) - &states.row(0);
    Ok(length / square(distance.view()).sqrt())
}

/// Curvature proxy, `Curv = sum_{k=1}^{K-1} |(x_{k+1} - 2 x_k + x_{k-1}) / dt^2|^2 dt`: squared acceleration
/// along the path, 0 for a straight path at constant speed.
pub fn curvature(states: ArrayView2<f64>) -> Result<f64> {
    let steps = steps_of(states)? as f64;
    let first = increments(states);
    let second = &first.slice(s![1.., ..]) - &first.slice(s![..-1, ..]);
    // dt^-4 dt = K^3
    Ok(second.rows().into_iter().map(square).sum::<f64>() * steps.powi(3))
}

/// Velocities of a field at the first `K` states of the path, checked.
fn velocities(states: ArrayView2<f64>, field: &dyn VelocityField) -> Result<Array2<f64>> {
    let steps = steps_of(states)?;
    error::expect_shape("the states of the path", &[steps + 1, field.features()], states.shape())?;
    let mut all = Array2::zeros((steps, states.ncols()));
    let times: Vec<f64> = (0..steps).map(|k| grid_time(0.0, 1.0, k, steps)).collect();
    // A few states at a time: what the field needs does not grow with the number of steps.
    for first in (0..steps).step_by(ROWS) {
        let last = (first + ROWS).min(steps);
        let velocity = field.velocity(states.slice(s![first..last, ..]), &times[first..last])?;
        error::expect_shape("the field's velocity", &[last - first, states.ncols()], velocity.shape())?;
        for (row, &time) in velocity.rows().into_iter().zip(&times[first..last]) {
            error::expect_finite("velocity", 0, time, row)?;
        }
        all.slice_mut(s![first..last, ..]).assign(&velocity);
    }
    Ok(all)
}

/// Flow Consistency Error (Eq. fce), `FCE = 1/K sum_k |(x_{k+1} - x_k)/dt - v(x_k, t_k)|^2`: how far the
/// path is from following the field. It says nothing about the data's manifold.
pub fn flow_consistency_error(states: ArrayView2<f64>, field: &dyn VelocityField) -> Result<f64> {
    let steps = steps_of(states)? as f64;
    let gap = increments(states) * steps - velocities(states, field)?;
    Ok(gap.rows().into_iter().map(square).sum::<f64>() / steps)
}

/// The Flow Consistency Error of so many paths at once, a few grid times at a time, so that a field has enough rows to
/// share among its workers and what is held does not grow with the number of steps.
pub(crate) fn flow_consistency_errors(
    count: usize,
    at: impl Fn(usize, f64) -> Array1<f64>,
    steps: usize,
    field: &dyn VelocityField,
) -> Result<Vec<f64>> {
    let mut sums = vec![0.0; count];
    if count == 0 {
        return Ok(sums);
    }
    let time = |k| grid_time(0.0, 1.0, k, steps);
    let together = (ROWS / count).max(1);
    for first in (0..steps).step_by(together) {
        let last = (first + together).min(steps);
        let rows = (first..=last).flat_map(|k| (0..count).map(move |path| (path, time(k))));
        let states = stack_rows(&rows.map(|(path, time)| at(path, time)).collect::<Vec<_>>());
        let (now, next) = (states.slice(s![..-(count as isize), ..]), states.slice(s![count.., ..]));
        let times: Vec<f64> = (first..last).flat_map(|k| std::iter::repeat_n(time(k), count)).collect();
        let velocity = field.velocity(now, &times)?;
        error::expect_shape("the field's velocity", now.shape(), velocity.shape())?;
        for (row, &time) in times.iter().enumerate() {
            let path = row % count;
            error::expect_finite("velocity", path, time, velocity.row(row))?;
            let gap = (&next.row(row) - &now.row(row)) * steps as f64 - velocity.row(row);
            sums[path] += square(gap.view()) / steps as f64;
        }
    }
    Ok(sums)
}

/// Relative field error (E_field, RFE) of `field` against `reference` on the states of a path,
/// `(sum_k |v(x_k) - v_ref(x_k)|^2)^(1/2) / ((sum_k |v_ref(x_k)|^2)^(1/2) + 1e-12)`.
pub fn relative_field_error(
    states: ArrayView2<f64>,
    field: &dyn VelocityField,
    reference: &dyn VelocityField,
) -> Result<f64> {
    let expected = velocities(states, reference)?;
    let gap = velocities(states, field)? - &expected;
    let size = |matrix: &Array2<f64>| matrix.iter().map(|v| v * v).sum::<f64>().sqrt();
    Ok(size(&gap) / (size(&expected) + 1e-12))
}

/// How ordinary a reference endpoint is under a standard normal p0, in standard deviations.
///
/// `|x0|^2` is chi-square with `d` degrees of freedom; its cube root is nearly normal (Wilson and Hilferty,
/// 1931): `z = ((|x0|^2 / d)^(1/3) - (1 - 2/(9d))) / sqrt(2/(9d))`. Beyond 3 either way the flow has not
/// carried this input to where its reference distribution has mass.
pub fn reference_deviation(reference: ArrayView1<f64>) -> f64 {
    let d = reference.len().max(1) as f64;
    let spread = 2.0 / (9.0 * d);
    ((square(reference) / d).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Action and straightness of a path on a grid, a point at a time: `(A, GPS)`.
pub(crate) fn geometry(path: &dyn Path, steps: usize) -> (f64, f64) {
    let start = path.at(0.0);
    let mut before = start.clone();
    let (mut action, mut length) = (0.0, 0.0);
    for k in 1..=steps {
        let now = path.at(grid_time(0.0, 1.0, k, steps));
        let step = square((&now - &before).view());
        action += step * steps as f64;
        length += step.sqrt();
        before = now;
    }
    let distance = square((&before - &start).view()).sqrt();
    (action, if length == 0.0 { 1.0 } else { length / distance })
}
