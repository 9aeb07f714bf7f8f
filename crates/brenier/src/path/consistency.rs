//! Flow Consistency Error of solutions that are still being made.
//!
//! ```text
//! FCE = 1/K sum_k |(x_{k+1} - x_k) K - v(x_k, k/K)|^2
//! ```
//!
//! A solver's steps wait for each other, so while it goes back from the input there is a core to spare. Every piece of the
//! way that it has made is sent here, and held against the field on another thread. When it arrives at the reference, this
//! is done as well, or nearly.

use std::sync::mpsc::Receiver;

use ndarray::Array1;

use super::{Trajectory, grid_time, stack_rows};
use crate::{Result, VelocityField, error};

/// The way of one example, as far as it is known: from its end, at time 1, backward.
#[derive(Clone)]
struct Way {
    /// The next grid time to be reached, as its number; none when all are.
    next: Option<usize>,
    /// The state at the grid time before that.
    ahead: Array1<f64>,
    /// The gap at each grid time, squared.
    gaps: Vec<f64>,
}

/// A state on the grid whose velocity is wanted.
struct Wanted {
    example: usize,
    k: usize,
    state: Array1<f64>,
    moved: Array1<f64>,
}

/// The errors of `examples` trajectories, whose pieces arrive each in the order from time 1 to time 0. Ends when nothing
/// arrives any more; then the errors are right only if all of the way was there.
pub(super) fn consistency_of_pieces(
    pieces: &Receiver<(usize, Trajectory)>,
    examples: usize,
    steps: usize,
    field: &dyn VelocityField,
) -> Result<Vec<f64>> {
    let mut ways =
        vec![Way { next: Some(steps), ahead: Array1::default(0), gaps: vec![0.0; steps] }; examples];
    for (example, piece) in pieces {
        let wanted = ways[example].reach(example, &piece, steps);
        // A row for each example at a time: of a single one, the solver itself must not wait for long.
        for rows in wanted.chunks(examples) {
            measure(rows, &mut ways, steps, field)?;
        }
    }
    Ok(ways.iter().map(|way| way.gaps.iter().map(|gap| gap / steps as f64).sum()).collect())
}

impl Way {
    /// The states on the grid that a new piece reaches.
    fn reach(&mut self, example: usize, piece: &Trajectory, steps: usize) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        while let Some(k) = self.next {
            let time = grid_time(0.0, 1.0, k, steps);
            if time < piece.times[0] {
                break;
            }
            let state = piece.at(time);
            if k < steps {
                let moved = (&self.ahead - &state) * steps as f64;
                wanted.push(Wanted { example, k, state: state.clone(), moved });
            }
            self.ahead = state;
            self.next = k.checked_sub(1);
        }
        wanted
    }
}

fn measure(rows: &[Wanted], ways: &mut [Way], steps: usize, field: &dyn VelocityField) -> Result<()> {
    let states: Vec<_> = rows.iter().map(|row| row.state.clone()).collect();
    let times: Vec<f64> = rows.iter().map(|row| grid_time(0.0, 1.0, row.k, steps)).collect();
    let states = stack_rows(&states);
    let velocity = field.velocity(states.view(), &times)?;
    error::expect_shape("the field's velocity", states.shape(), velocity.shape())?;
    for ((row, velocity), &time) in rows.iter().zip(velocity.rows()).zip(&times) {
        error::expect_finite("velocity", row.example, time, velocity)?;
        ways[row.example].gaps[row.k] = (&row.moved - &velocity).iter().map(|gap| gap * gap).sum();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::solver::solve_telling;
    use super::super::{Path, PathEvidence, Scheme, Solver, Trace, flow_consistency_errors};
    use super::*;
    use crate::FieldFn;
    use ndarray::array;

    #[test]
    fn pieces_on_their_way_give_what_the_whole_path_gives() {
        let made = FieldFn::new(&[2], |x, t| array![x[1] + t, -3.0 * x[0] * t]);
        let held_against = FieldFn::new(&[2], |x, t| array![x[1] + t, -3.0 * x[0]]);
        let starts = array![[1.0, 0.5], [-0.3, 2.0], [0.2, 0.1]];
        for solver in [Solver::adaptive(1e-4), Solver::fixed(Scheme::Rk4, 7), Solver::fixed(Scheme::Heun, 50)]
        {
            let (sender, pieces) = channel();
            let mut tell = |example, piece| sender.send((example, piece)).unwrap();
            let whole = solve_telling(&made, starts.view(), 1.0, 0.0, &solver, Some(&mut tell)).unwrap();
            drop(sender);
            let found = consistency_of_pieces(&pieces, 3, 50, &held_against).unwrap();
            let traces =
                whole.into_iter().map(|trajectory| Trace { trajectory, evidence: PathEvidence::default() });
            let traces: Vec<_> = traces.collect();
            let paths: Vec<&dyn Path> = traces.iter().map(|trace| trace as &dyn Path).collect();
            assert_eq!(found, flow_consistency_errors(&paths, 50, &held_against).unwrap());
            assert!(found[1] > 1.0, "{found:?}");
        }
    }

    #[test]
    fn a_velocity_that_is_no_number_is_told_with_its_place() {
        let (sender, pieces) = channel();
        let still = FieldFn::new(&[1], |_, _| array![0.0]);
        let mut tell = |example, piece| sender.send((example, piece)).unwrap();
        let start = array![[1.0], [2.0]];
        solve_telling(&still, start.view(), 1.0, 0.0, &Solver::fixed(Scheme::Euler, 4), Some(&mut tell))
            .unwrap();
        let broken = FieldFn::new(&[1], |x, t| array![if x[0] > 1.5 && t < 0.6 { f64::NAN } else { 0.0 }]);
        let message = consistency_of_pieces(&pieces, 2, 10, &broken).unwrap_err().to_string();
        assert!(message.contains("example 1") && message.contains("0.5"), "{message}");
    }
}
