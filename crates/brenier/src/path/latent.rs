//! Latent lines: what is a straight line between two states where a flow comes from.
//!
//! ```text
//! gamma(s) = F((1 - s) z_b + s z_x),    F = the flow from time 0 to time 1,    z = F^-1(.)
//! ```
//!
//! `F` is invertible, so the Euclidean metric at time 0 is a metric at time 1 as well, `g = J^-T J^-1` with the Jacobian `J`
//! of `F`, and `gamma` is its geodesic: short steps lead through what the flow makes often. (The other way round nothing is
//! gained: the metric that `F` pulls back from the data is flat, and its geodesics are straight lines in the data.)
//!
//! The flow carries points at equal steps of `s`; between them the path is the cubic polynomial through them with central
//! differences as tangents. Its ends are the given states, to the bit.

use ndarray::{Array1, Array2, ArrayView2};

use super::neighbours::distance;
use super::ordinary::ordinary;
use super::{Path, PathEvidence, Solver, Trajectory, grid_time, reference_deviation, solve, stack_rows};
use crate::{Error, Result, VelocityField, error};

/// A latent line with its evidence.
#[derive(Debug, Clone)]
pub struct LatentLine {
    curve: Trajectory,
    evidence: PathEvidence,
}

impl LatentLine {
    /// What the certificate calls it.
    pub(crate) const KIND: &'static str = "latent-line";
}

impl Path for LatentLine {
    fn at(&self, t: f64) -> Array1<f64> {
        self.curve.at(t)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        self.curve.derivative(t)
    }

    fn evidence(&self) -> PathEvidence {
        self.evidence.clone()
    }
}

/// The latent line from each row of `starts` to that of `inputs`, through points at so many steps.
///
/// Both ends are traced back to time 0, and `steps + 1` points forward from there, those at the ends to measure how far the
/// flow misses what it came from.
///
/// # Errors
/// No steps, rows that do not fit, and what the solver says.
pub fn latent_lines(
    field: &dyn VelocityField,
    starts: ArrayView2<f64>,
    inputs: ArrayView2<f64>,
    steps: usize,
    solver: &Solver,
) -> Result<Vec<LatentLine>> {
    if steps == 0 {
        return Err(Error::Zero { what: "the number of steps of a latent line" });
    }
    error::expect_shape("the starts of latent lines", inputs.shape(), starts.shape())?;
    if inputs.nrows() == 0 {
        return Ok(Vec::new());
    }
    let back_from_starts = solve(field, starts, 1.0, 0.0, solver)?;
    let back = solve(field, inputs, 1.0, 0.0, solver)?;
    let mut made: Vec<usize> = back_from_starts
        .iter()
        .zip(&back)
        .map(|(a, b)| a.velocity_evaluations + b.velocity_evaluations)
        .collect();
    let latent = |found: &[Trajectory]| stack_rows(&found.iter().map(|way| way.at(0.0)).collect::<Vec<_>>());
    let (from, to) = (latent(&back_from_starts), latent(&back));
    // Of each way forward only its end is kept, so one step of all rows is carried at a time.
    let mut points: Vec<Array2<f64>> =
        inputs.rows().into_iter().map(|x| Array2::zeros((steps + 1, x.len()))).collect();
    for k in 0..=steps {
        let s = grid_time(0.0, 1.0, k, steps);
        let between = (1.0 - s) * &from + s * &to;
        for (i, way) in solve(field, between.view(), 0.0, 1.0, solver)?.iter().enumerate() {
            points[i].row_mut(k).assign(&way.end());
            made[i] += way.velocity_evaluations;
        }
    }
    let normal = field.normal_coordinates(to.view());
    let lines = points.into_iter().enumerate().map(|(i, mut points)| {
        let (start, input) = (starts.row(i), inputs.row(i));
        let missed = distance(points.row(0), start).max(distance(points.row(steps), input));
        let length = distance(start, input);
        points.row_mut(0).assign(&start);
        points.row_mut(steps).assign(&input);
        let evidence = PathEvidence {
            kind: LatentLine::KIND.into(),
            solver: Some(format!("{}, {steps} steps of a latent line", solver.describe())),
            velocity_evaluations: Some(made[i]),
            round_trip_error: Some(missed),
            relative_round_trip_error: Some(if missed == 0.0 {
                0.0
            } else {
                missed / length.max(f64::MIN_POSITIVE)
            }),
            reference_deviation: normal.as_ref().map(|rows| reference_deviation(rows.row(i))),
            ordinary: ordinary(field, &back[i]),
            ..PathEvidence::default()
        };
        LatentLine { curve: through(points), evidence }
    });
    Ok(lines.collect())
}

/// The cubic pieces through points at equal steps. Tangents are differences of second order.
fn through(points: Array2<f64>) -> Trajectory {
    let steps = points.nrows() - 1;
    let scale = steps as f64;
    let mut velocities = Array2::zeros(points.raw_dim());
    for k in 0..=steps {
        let tangent = match (k, steps) {
            (_, 1) => (&points.row(1) - &points.row(0)) * scale,
            (0, _) => one_sided(&points, [0, 1, 2]) * scale,
            (k, _) if k == steps => one_sided(&points, [k, k - 1, k - 2]) * -scale,
            (k, _) => (&points.row(k + 1) - &points.row(k - 1)) * (0.5 * scale),
        };
        velocities.row_mut(k).assign(&tangent);
    }
    Trajectory {
        times: (0..=steps).map(|k| grid_time(0.0, 1.0, k, steps)).collect(),
        quartics: Array2::zeros((steps, points.ncols())),
        states: points,
        velocities,
        velocity_evaluations: 0,
    }
}

/// The slope at the first of three points, per step: exact for parabolas.
fn one_sided(points: &Array2<f64>, [here, next, third]: [usize; 3]) -> Array1<f64> {
    -1.5 * &points.row(here) + 2.0 * &points.row(next) - 0.5 * &points.row(third)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldFn;
    use ndarray::{ArrayView1, array};

    /// The flow turns a state by its squared norm, which stays as it is: `F(z) = R(|z|^2) z`.
    fn swirl() -> FieldFn<impl Fn(ArrayView1<f64>, f64) -> Array1<f64>> {
        FieldFn::new(&[2], |x, _| x.dot(&x) * array![-x[1], x[0]])
    }

    fn turned(z: Array1<f64>) -> Array1<f64> {
        let (sine, cosine) = z.dot(&z).sin_cos();
        array![cosine * z[0] - sine * z[1], sine * z[0] + cosine * z[1]]
    }

    #[test]
    fn points_are_those_of_the_line_where_the_flow_comes_from() {
        let (from, to) = (array![0.2, -0.4], array![-0.5, 1.1]);
        let ends = [turned(from.clone()), turned(to.clone())];
        let error = |steps: usize| {
            let starts = stack_rows(&ends[..1]);
            let line = latent_lines(
                &swirl(),
                starts.view(),
                stack_rows(&ends[1..]).view(),
                steps,
                &Solver::adaptive(1e-10),
            )
            .unwrap()
            .remove(0);
            assert_eq!((line.at(0.0), line.at(1.0)), (ends[0].clone(), ends[1].clone()));
            assert!(line.evidence().relative_round_trip_error.unwrap() < 1e-8);
            let off = (0..=1000).map(|k| k as f64 / 1000.0).map(|s| {
                let exact = turned((1.0 - s) * &from + s * &to);
                distance(line.at(s).view(), exact.view())
            });
            off.fold(0.0, f64::max)
        };
        let (coarse, fine) = (error(16), error(32));
        assert!(fine < 1e-3, "{coarse:e} {fine:e}");
        // Tangents of second order at the ends leave the third order.
        assert!(coarse / fine > 6.0, "{coarse:e} {fine:e}");
    }

    /// Where nothing moves a latent line is the straight line.
    #[test]
    fn without_a_flow_it_is_straight() {
        let still = FieldFn::new(&[2], |x, _| 0.0 * &x);
        let (start, input) = (array![[1.0, 2.0]], array![[-3.0, 4.0]]);
        for steps in [1, 2, 5] {
            let line = latent_lines(&still, start.view(), input.view(), steps, &Solver::default())
                .unwrap()
                .remove(0);
            assert!(distance(line.at(0.3).view(), array![-0.2, 2.6].view()) < 1e-12);
            assert!(distance(line.derivative(0.9).view(), array![-4.0, 2.0].view()) < 1e-12);
        }
        assert!(latent_lines(&still, start.view(), input.view(), 0, &Solver::default()).is_err());
    }
}
