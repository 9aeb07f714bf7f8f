//! The one Runge-Kutta engine: any tableau, fixed or adaptive steps, batched.
//!
//! Every trajectory has its own time, step and error control:
//!
//! ```text
//! err = rms_i( error_i / (atol + rtol max(|x_i|, |x'_i|)) ),    accept if err <= 1
//! h'  = h 0.9 err^(-0.7/p) err_before^(0.4/p),  within [h/5, 10 h],   p = embedded order + 1
//! ```
//!
//! (the PI controller of Gustafsson and of Hairer and Wanner). A batch only shares the calls to the field:
//! each call holds the rows of the trajectories that still run. So a trajectory comes out the same, to the
//! bit, whoever travels with it, provided the field's rows do not depend on each other.

mod control;

use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::{Scheme, Tableau, Trajectory, grid_time, stack_rows};
use crate::{Error, Result, VelocityField, error};
use control::{Control, first_steps};

/// How the solver chooses its steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Stepping {
    /// So many equal steps.
    Fixed {
        /// The number of steps.
        steps: usize,
    },
    /// Steps as large as the local error allows.
    Adaptive {
        /// Local error allowed in proportion to the state.
        relative: f64,
        /// Local error allowed where the state is near zero.
        absolute: f64,
        /// Steps, rejected ones included, after which the solver gives up.
        max_steps: usize,
    },
}

/// A method together with its steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Solver {
    /// The Runge-Kutta method.
    pub scheme: Scheme,
    /// Its steps.
    pub stepping: Stepping,
}

impl Default for Solver {
    /// Dormand-Prince to a relative and absolute local error of 1e-5.
    fn default() -> Self {
        Self::adaptive(1e-5)
    }
}

impl Solver {
    /// `scheme` with so many equal steps.
    pub fn fixed(scheme: Scheme, steps: usize) -> Self {
        Self { scheme, stepping: Stepping::Fixed { steps } }
    }

    /// Dormand-Prince to a local error of `tolerance`, relative and absolute.
    pub fn adaptive(tolerance: f64) -> Self {
        Self {
            scheme: Scheme::DormandPrince,
            stepping: Stepping::Adaptive { relative: tolerance, absolute: tolerance, max_steps: 10_000 },
        }
    }

    /// The solver in words, for certificates.
    pub fn describe(&self) -> String {
        let name = self.scheme.tableau().name;
        match self.stepping {
            Stepping::Fixed { steps } => format!("{name}, {steps} steps"),
            Stepping::Adaptive { relative, absolute, .. } => {
                format!("{name}, rtol {relative:e}, atol {absolute:e}")
            }
        }
    }

    fn check(&self) -> Result<()> {
        match self.stepping {
            Stepping::Fixed { steps: 0 } => Err(Error::Setting {
                name: "the number of solver steps",
                value: "0".into(),
                needs: "a trajectory needs at least one step",
                hint: "50 steps is the paper's choice".into(),
            }),
            Stepping::Fixed { .. } => Ok(()),
            Stepping::Adaptive { relative, absolute, .. } => {
                if self.scheme.tableau().error.is_none() {
                    return Err(Error::NoErrorEstimate { method: self.scheme.tableau().name });
                }
                if !(relative.is_finite() && absolute.is_finite() && relative > 0.0 && absolute > 0.0) {
                    return Err(Error::Setting {
                        name: "the solver's tolerance",
                        value: format!("{relative:e} relative, {absolute:e} absolute"),
                        needs: "both must be positive and finite",
                        hint: "1e-5 suits most flows".into(),
                    });
                }
                Ok(())
            }
        }
    }
}

/// Solves dx/dt = v(x, t) for each row of `start`, from time `from` to time `to` (either may be the larger).
///
/// # Errors
/// A shape that does not fit, settings with which nothing can be solved, a velocity that is not finite, and
/// for adaptive steps a step size underflow or too many steps; each with the example and the time.
pub fn solve(
    field: &dyn VelocityField,
    start: ArrayView2<f64>,
    from: f64,
    to: f64,
    solver: &Solver,
) -> Result<Vec<Trajectory>> {
    solve_telling(field, start, from, to, solver, None)
}

/// Solves as [`solve`] does, and tells of every step that is made: the example, and the piece of its trajectory.
pub(super) fn solve_telling(
    field: &dyn VelocityField,
    start: ArrayView2<f64>,
    from: f64,
    to: f64,
    solver: &Solver,
    mut tell: Option<&mut dyn FnMut(usize, Trajectory)>,
) -> Result<Vec<Trajectory>> {
    solver.check()?;
    error::expect_shape("the batch of states", &[start.nrows(), field.features()], start.shape())?;
    if start.nrows() == 0 {
        return Ok(Vec::new());
    }
    let tableau = solver.scheme.tableau();
    let mut runs = Vec::with_capacity(start.nrows());
    for (example, row) in start.rows().into_iter().enumerate() {
        error::expect_finite("state", example, from, row)?;
        runs.push(Run::new(example, row.to_owned(), from));
    }
    evaluate_ends(field, &mut runs)?;
    match solver.stepping {
        Stepping::Fixed { steps } => {
            for k in 1..=steps {
                let next = grid_time(from, to, k, steps);
                let mut active: Vec<&mut Run> = runs.iter_mut().collect();
                for run in &mut active {
                    run.step = next - run.time;
                }
                try_steps(field, tableau, &mut active)?;
                for run in active {
                    run.accept(next);
                    if let Some(tell) = &mut tell {
                        tell(run.example, run.last_piece());
                    }
                }
            }
        }
        Stepping::Adaptive { relative, absolute, max_steps } => {
            let control = Control { relative, absolute, max_steps, from, to };
            first_steps(field, tableau, &mut runs, &control)?;
            loop {
                let mut active: Vec<&mut Run> = runs.iter_mut().filter(|run| run.time != to).collect();
                if active.is_empty() {
                    break;
                }
                for run in &mut active {
                    control.limit(run)?;
                }
                try_steps(field, tableau, &mut active)?;
                for run in active {
                    if control.judge(run, tableau)
                        && let Some(tell) = &mut tell
                    {
                        tell(run.example, run.last_piece());
                    }
                }
            }
        }
    }
    Ok(runs.into_iter().map(Run::finish).collect())
}

/// One trajectory under way: its accepted knots, and the step that is being tried.
struct Run {
    example: usize,
    time: f64,
    state: Array1<f64>,
    velocity: Array1<f64>,
    step: f64,
    error_before: f64,
    tried: usize,
    evaluations: usize,
    trial: Trial,
    knots: Vec<Knot>,
    quartics: Vec<Array1<f64>>,
}

#[derive(Default)]
struct Trial {
    state: Array1<f64>,
    velocity: Array1<f64>,
    error: Option<Array1<f64>>,
    quartic: Array1<f64>,
}

impl Run {
    fn new(example: usize, state: Array1<f64>, time: f64) -> Self {
        Self {
            example,
            time,
            velocity: Array1::zeros(state.len()),
            state,
            step: 0.0,
            error_before: 1.0,
            tried: 0,
            evaluations: 0,
            trial: Trial::default(),
            knots: Vec::new(),
            quartics: Vec::new(),
        }
    }

    fn accept(&mut self, time: f64) {
        let trial = std::mem::take(&mut self.trial);
        self.time = time;
        self.state = trial.state;
        self.velocity = trial.velocity;
        self.knots.push((time, self.state.clone(), self.velocity.clone()));
        self.quartics.push(trial.quartic);
    }

    /// What the last accepted step made.
    fn last_piece(&self) -> Trajectory {
        let (knots, pieces) = (self.knots.len(), self.quartics.len());
        trajectory(&self.knots[knots - 2..], &self.quartics[pieces - 1..], 0)
    }

    fn finish(self) -> Trajectory {
        trajectory(&self.knots, &self.quartics, self.evaluations)
    }
}

/// Time, state and velocity.
type Knot = (f64, Array1<f64>, Array1<f64>);

fn trajectory(knots: &[Knot], quartics: &[Array1<f64>], evaluations: usize) -> Trajectory {
    let times = knots.iter().map(|knot| knot.0).collect();
    let states: Vec<_> = knots.iter().map(|knot| knot.1.clone()).collect();
    let velocities: Vec<_> = knots.iter().map(|knot| knot.2.clone()).collect();
    Trajectory::from_knots(
        times,
        stack_rows(&states),
        stack_rows(&velocities),
        stack_rows(quartics),
        evaluations,
    )
}

/// One call to the field with a row per trajectory, checked for shape and finite values.
fn evaluate(field: &dyn VelocityField, rows: &[(usize, f64, Array1<f64>)]) -> Result<Array2<f64>> {
    let states: Vec<_> = rows.iter().map(|row| row.2.clone()).collect();
    let times: Vec<_> = rows.iter().map(|row| row.1).collect();
    for (example, time, state) in rows {
        error::expect_finite("state", *example, *time, state)?;
    }
    let states = stack_rows(&states);
    let velocity = field.velocity(states.view(), &times)?;
    error::expect_shape("the field's velocity", states.shape(), velocity.shape())?;
    for ((example, time, _), row) in rows.iter().zip(velocity.rows()) {
        error::expect_finite("velocity", *example, *time, row)?;
    }
    Ok(velocity)
}

/// The velocity at the start of every trajectory.
fn evaluate_ends(field: &dyn VelocityField, runs: &mut [Run]) -> Result<()> {
    let rows: Vec<_> = runs.iter().map(|run| (run.example, run.time, run.state.clone())).collect();
    let velocity = evaluate(field, &rows)?;
    for (run, row) in runs.iter_mut().zip(velocity.rows()) {
        run.velocity = row.to_owned();
        run.evaluations += 1;
        run.knots.push((run.time, run.state.clone(), run.velocity.clone()));
    }
    Ok(())
}

/// All stages of one step of each active trajectory, into its `trial`.
fn try_steps(field: &dyn VelocityField, tableau: &Tableau, active: &mut [&mut Run]) -> Result<()> {
    let mut stages: Vec<Vec<Array1<f64>>> = active.iter().map(|run| vec![run.velocity.clone()]).collect();
    for i in 1..tableau.c.len() {
        let rows: Vec<_> = active
            .iter()
            .zip(&stages)
            .map(|(run, k)| {
                let state = &run.state + &(run.step * combine(tableau.a[i], k));
                (run.example, run.time + tableau.c[i] * run.step, state)
            })
            .collect();
        let velocity = evaluate(field, &rows)?;
        for ((run, k), row) in active.iter_mut().zip(&mut stages).zip(velocity.rows()) {
            run.evaluations += 1;
            k.push(row.to_owned());
        }
    }
    for (run, k) in active.iter_mut().zip(&stages) {
        run.trial.state = &run.state + &(run.step * combine(tableau.b, k));
        run.trial.error = tableau.error.map(|weights| run.step * combine(weights, k));
        run.trial.quartic = match tableau.quartic {
            Some(weights) => run.step * combine(weights, k),
            None => Array1::zeros(run.state.len()),
        };
    }
    if tableau.last_is_next_first {
        for (run, mut k) in active.iter_mut().zip(stages) {
            run.trial.velocity = k.pop().unwrap_or_default();
        }
    } else {
        let rows: Vec<_> =
            active.iter().map(|run| (run.example, run.time + run.step, run.trial.state.clone())).collect();
        let velocity = evaluate(field, &rows)?;
        for (run, row) in active.iter_mut().zip(velocity.rows()) {
            run.evaluations += 1;
            run.trial.velocity = row.to_owned();
        }
    }
    Ok(())
}

/// The weighted sum of stages; zero weights are skipped, so that they cost nothing.
fn combine(weights: &[f64], stages: &[Array1<f64>]) -> Array1<f64> {
    let mut sum = Array1::zeros(stages[0].len());
    for (&weight, stage) in weights.iter().zip(stages) {
        if weight != 0.0 {
            sum.scaled_add(weight, stage);
        }
    }
    sum
}

#[cfg(test)]
mod tests;
