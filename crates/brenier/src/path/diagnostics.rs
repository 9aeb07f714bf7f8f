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
            hint: "sample the path with 50 steps".into(),
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

/// The Flow Consistency Error of each of several paths.
pub(crate) fn flow_consistency_errors(
    paths: &[&dyn Path],
    steps: usize,
    field: &dyn VelocityField,
) -> Result<Vec<f64>> {
    let time = |k| grid_time(0.0, 1.0, k, steps);
    mean_square_gaps(paths, steps, field, |path, k| {
        let now = path.at(time(k));
        let velocity = (path.at(time(k + 1)) - &now) * steps as f64;
        (time(k), now, velocity)
    })
}

/// The defect of each of several paths as solutions of the field,
/// `1/K sum_k |x'(t_k + dt/2) - v(x(t_k + dt/2), t_k + dt/2)|^2`, with the derivative of the path itself.
///
/// FCE has a difference in its place, so on a path that follows the field exactly it is not 0 but about
/// `dt^2/4 |x''|^2`. The defect is 0 there. Halfway between grid points, for paths have their corners on them.
pub(crate) fn flow_defects(paths: &[&dyn Path], steps: usize, field: &dyn VelocityField) -> Result<Vec<f64>> {
    mean_square_gaps(paths, steps, field, |path, k| {
        let time = grid_time(0.0, 1.0, 2 * k + 1, 2 * steps);
        (time, path.at(time), path.derivative(time))
    })
}

/// `1/K sum_k |u_k - v(x_k, t_k)|^2` for each path, where `along` says `(t_k, x_k, u_k)`.
///
/// A few grid times of all paths at a time: a field has enough rows to share among its workers, and what is held does
/// not grow with the number of steps.
fn mean_square_gaps(
    paths: &[&dyn Path],
    steps: usize,
    field: &dyn VelocityField,
    along: impl Fn(&dyn Path, usize) -> (f64, Array1<f64>, Array1<f64>),
) -> Result<Vec<f64>> {
    let mut sums = vec![0.0; paths.len()];
    if paths.is_empty() {
        return Ok(sums);
    }
    let together = (ROWS / paths.len()).max(1);
    for first in (0..steps).step_by(together) {
        let (mut times, mut states, mut moves) = (Vec::new(), Vec::new(), Vec::new());
        for k in first..(first + together).min(steps) {
            for path in paths {
                let (time, state, velocity) = along(*path, k);
                times.push(time);
                states.push(state);
                moves.push(velocity);
            }
        }
        let examples: Vec<usize> = (0..times.len()).map(|row| row % paths.len()).collect();
        let gaps = square_gaps(field, &examples, &times, &states, &moves)?;
        for (example, gap) in examples.into_iter().zip(gaps) {
            sums[example] += gap / steps as f64;
        }
    }
    Ok(sums)
}

/// `|u - v(x, t)|^2` for each row, with the number of the example that it belongs to.
pub(super) fn square_gaps(
    field: &dyn VelocityField,
    examples: &[usize],
    times: &[f64],
    states: &[Array1<f64>],
    moves: &[Array1<f64>],
) -> Result<Vec<f64>> {
    let states = stack_rows(states);
    let velocity = field.velocity(states.view(), times)?;
    error::expect_shape("the field's velocity", states.shape(), velocity.shape())?;
    let mut gaps = Vec::with_capacity(times.len());
    for (row, moved) in moves.iter().enumerate() {
        error::expect_finite("velocity", examples[row], times[row], velocity.row(row))?;
        gaps.push(square((moved - &velocity.row(row)).view()));
    }
    Ok(gaps)
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
