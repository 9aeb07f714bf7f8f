//! A solved trajectory with dense output: what a solver returns and what a trace stores.
//!
//! Between knots, with `theta = (t - t_k) / h`, `D = x_{k+1} - x_k` and velocities `v`,
//!
//! ```text
//! x(theta) = x_k + theta D + theta (1 - theta) [ (1 - theta) (h v_k - D) + theta (D - h v_{k+1}) ]
//!                + theta^2 (1 - theta)^2 q_k
//! ```
//!
//! The first line is the cubic Hermite polynomial, `q` the quartic term of methods that have one. The formula
//! reads the same from either end, so reversing a backward solution means reversing its arrays.

use ndarray::{Array1, Array2, Axis, s};

use super::{Path, PathEvidence, piece_of};

/// Knots of a solution, ascending in time, with what is needed to evaluate it in between.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// The knots' times, ascending.
    pub times: Vec<f64>,
    /// The states at the knots, `[knots, features]`.
    pub states: Array2<f64>,
    /// The velocities at the knots, `[knots, features]`.
    pub velocities: Array2<f64>,
    /// The quartic terms of the pieces, `[knots - 1, features]`; zero for purely cubic methods.
    pub quartics: Array2<f64>,
    /// How often the field was evaluated for this trajectory, rejected steps included.
    pub velocity_evaluations: usize,
}

impl Trajectory {
    /// The state at `t`. At a knot it is the knot's state, to the bit.
    pub fn at(&self, t: f64) -> Array1<f64> {
        let k = piece_of(&self.times, t);
        if t == self.times[k + 1] {
            return self.states.row(k + 1).to_owned();
        }
        let h = self.times[k + 1] - self.times[k];
        let theta = (t - self.times[k]) / h;
        let rest = 1.0 - theta;
        let mut x = self.states.row(k).to_owned();
        for i in 0..x.len() {
            let rise = self.states[[k + 1, i]] - self.states[[k, i]];
            let first = h * self.velocities[[k, i]] - rise;
            let last = rise - h * self.velocities[[k + 1, i]];
            x[i] += theta * rise
                + theta * rest * (rest * first + theta * last)
                + (theta * rest).powi(2) * self.quartics[[k, i]];
        }
        x
    }

    /// The derivative of the interpolated state at `t`.
    pub fn derivative(&self, t: f64) -> Array1<f64> {
        let k = piece_of(&self.times, t);
        let h = self.times[k + 1] - self.times[k];
        let theta = (t - self.times[k]) / h;
        let rest = 1.0 - theta;
        Array1::from_shape_fn(self.states.ncols(), |i| {
            let rise = self.states[[k + 1, i]] - self.states[[k, i]];
            let first = h * self.velocities[[k, i]] - rise;
            let last = rise - h * self.velocities[[k + 1, i]];
            let slope = rise
                + (1.0 - 2.0 * theta) * (rest * first + theta * last)
                + theta * rest * (last - first)
                + 2.0 * theta * rest * (1.0 - 2.0 * theta) * self.quartics[[k, i]];
            slope / h
        })
    }

    /// The state at the last knot.
    pub fn end(&self) -> Array1<f64> {
        self.states.row(self.states.nrows() - 1).to_owned()
    }

    /// From knots in the order in which they were solved; a backward solution is turned around.
    pub(super) fn from_knots(
        mut times: Vec<f64>,
        mut states: Array2<f64>,
        mut velocities: Array2<f64>,
        mut quartics: Array2<f64>,
        velocity_evaluations: usize,
    ) -> Self {
        if times[0] > times[times.len() - 1] {
            times.reverse();
            states.invert_axis(Axis(0));
            velocities.invert_axis(Axis(0));
            quartics.invert_axis(Axis(0));
            // Standard layout again, so that rows are contiguous.
            states = states.as_standard_layout().to_owned();
            velocities = velocities.as_standard_layout().to_owned();
            quartics = quartics.as_standard_layout().to_owned();
        }
        Self { times, states, velocities, quartics, velocity_evaluations }
    }

    /// The same trajectory with its last state replaced.
    pub(super) fn ending_at(mut self, state: &Array1<f64>) -> Self {
        let last = self.states.nrows() - 1;
        self.states.slice_mut(s![last, ..]).assign(state);
        self
    }
}

impl Path for Trajectory {
    fn at(&self, t: f64) -> Array1<f64> {
        self.at(t)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        self.derivative(t)
    }

    fn evidence(&self) -> PathEvidence {
        PathEvidence { kind: "trajectory".into(), ..PathEvidence::default() }
    }
}
