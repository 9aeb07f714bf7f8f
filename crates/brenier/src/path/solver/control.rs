//! How long a step may be: the first from the size of the acceleration, every other from the error of the last.

use ndarray::ArrayView1;

use super::{Run, evaluate};
use crate::path::Tableau;
use crate::{Error, Result, VelocityField};

/// Error control of the adaptive solver.
pub(super) struct Control {
    pub(super) relative: f64,
    pub(super) absolute: f64,
    pub(super) max_steps: usize,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Control {
    /// Keeps the step inside the interval; refuses steps that no longer move the time.
    pub(super) fn limit(&self, run: &mut Run) -> Result<()> {
        let smallest = 16.0 * f64::EPSILON * run.time.abs().max(self.to.abs()).max(self.from.abs());
        let left = self.to - run.time;
        if run.step.abs() < smallest && left.abs() > smallest {
            return Err(Error::StepUnderflow {
                example: run.example,
                time: run.time,
                step: run.step.abs(),
                speed: run.velocity.iter().fold(0.0, |m: f64, v| m.max(v.abs())),
            });
        }
        if run.tried >= self.max_steps {
            return Err(Error::TooManySteps { example: run.example, time: run.time, steps: run.tried });
        }
        run.tried += 1;
        // A last step that would leave a sliver is stretched to the end.
        if run.step.abs() * 1.01 >= left.abs() {
            run.step = left;
        }
        Ok(())
    }

    /// Accepts or rejects the tried step, chooses the next, and says whether it was accepted.
    pub(super) fn judge(&self, run: &mut Run, tableau: &Tableau) -> bool {
        let Some(estimate) = &run.trial.error else {
            return false;
        };
        let error = self.norm(estimate.view(), run.state.view(), run.trial.state.view()).max(1e-10);
        let order = (tableau.embedded_order + 1) as f64;
        if error <= 1.0 {
            let factor = 0.9 * error.powf(-0.7 / order) * run.error_before.powf(0.4 / order);
            run.error_before = error;
            let step = run.step;
            let last = step == self.to - run.time;
            run.accept(if last { self.to } else { run.time + step });
            run.step = step * factor.clamp(0.2, 10.0);
        } else {
            run.step *= (0.9 * error.powf(-1.0 / order)).clamp(0.2, 0.9);
        }
        error <= 1.0
    }

    fn norm(&self, value: ArrayView1<f64>, before: ArrayView1<f64>, after: ArrayView1<f64>) -> f64 {
        let mut sum = 0.0;
        for i in 0..value.len() {
            let scale = self.absolute + self.relative * before[i].abs().max(after[i].abs());
            sum += (value[i] / scale).powi(2);
        }
        (sum / value.len().max(1) as f64).sqrt()
    }
}

/// A first step for each trajectory from the sizes of the state, its velocity and its acceleration
/// (Hairer, Norsett, Wanner, Solving ODEs I, II.4).
pub(super) fn first_steps(
    field: &dyn VelocityField,
    tableau: &Tableau,
    runs: &mut [Run],
    control: &Control,
) -> Result<()> {
    let span = control.to - control.from;
    let mut rows = Vec::with_capacity(runs.len());
    let mut guesses = Vec::with_capacity(runs.len());
    for run in runs.iter() {
        let size = control.norm(run.state.view(), run.state.view(), run.state.view());
        let speed = control.norm(run.velocity.view(), run.state.view(), run.state.view());
        let guess = if size < 1e-5 || speed < 1e-5 { 1e-6 } else { 0.01 * size / speed };
        let guess = guess.min(span.abs());
        rows.push((
            run.example,
            run.time + guess * span.signum(),
            &run.state + &(guess * span.signum() * &run.velocity),
        ));
        guesses.push((guess, speed));
    }
    let velocity = evaluate(field, &rows)?;
    for ((run, (guess, speed)), row) in runs.iter_mut().zip(guesses).zip(velocity.rows()) {
        run.evaluations += 1;
        let change = &row - &run.velocity;
        let bend = control.norm(change.view(), run.state.view(), run.state.view()) / guess;
        let largest = speed.max(bend);
        let step = if largest <= 1e-15 {
            (guess * 1e-3).max(1e-6)
        } else {
            (0.01 / largest).powf(1.0 / (tableau.embedded_order + 1) as f64)
        };
        run.step = step.min(100.0 * guess).min(span.abs()) * span.signum();
    }
    Ok(())
}
