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

use super::diagnostics::square_gaps;
use super::{Trajectory, grid_time};
use crate::{Result, VelocityField};

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

/// States on the grid of one example, where they are, and how the path moves on from there.
#[derive(Default)]
struct Reached {
    grid: Vec<usize>,
    states: Vec<Array1<f64>>,
    moves: Vec<Array1<f64>>,
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
    // Alone, an example has one worker left beside its solver, which must not wait.
    let rows = if examples == 1 { 1 } else { steps };
    for (example, piece) in pieces {
        let way = &mut ways[example];
        let reached = way.reach(&piece, steps);
        let parts =
            reached.grid.chunks(rows).zip(reached.states.chunks(rows)).zip(reached.moves.chunks(rows));
        for ((grid, states), moves) in parts {
            let times: Vec<f64> = grid.iter().map(|&k| grid_time(0.0, 1.0, k, steps)).collect();
            let gaps = square_gaps(field, &vec![example; grid.len()], &times, states, moves)?;
            for (&k, gap) in grid.iter().zip(gaps) {
                way.gaps[k] = gap;
            }
        }
    }
    Ok(ways.iter().map(|way| way.gaps.iter().map(|gap| gap / steps as f64).sum()).collect())
}

impl Way {
    /// What a new piece reaches of the grid.
    fn reach(&mut self, piece: &Trajectory, steps: usize) -> Reached {
        let mut reached = Reached::default();
        while let Some(k) = self.next {
            let time = grid_time(0.0, 1.0, k, steps);
            if time < piece.times[0] {
                break;
            }
            let state = piece.at(time);
            if k < steps {
                reached.grid.push(k);
                reached.moves.push((&self.ahead - &state) * steps as f64);
                reached.states.push(state.clone());
            }
            self.ahead = state;
            self.next = k.checked_sub(1);
        }
        reached
    }
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
