//! The trace of an input: its way back through a flow to the reference, as a path.
//!
//! ```text
//! d gamma / dt = v(gamma, t),    gamma(1) = x1        (Eq. geodesic_ode, solved from t = 1 to t = 0)
//! ```
//!
//! Appendix C of the paper offers two ways to store it. The default keeps the backward solution and reads it
//! in reverse: it ends at the input exactly and every point of it lies on one solution. The other runs forward
//! again from the recovered reference and sets the last point to the input. In both, how far the forward run
//! ends from the input is measured and kept: it is the evidence that the reference belongs to the input.
//!
//! The path does not depend on the model that is explained, so a saved trace serves every target and model.

use std::panic::resume_unwind;
use std::sync::mpsc::sync_channel;
use std::thread;

use ndarray::{Array1, Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::awaited::{Awaited, follow_while};
use super::consistency::consistency_of_pieces;
use super::diagnostics::flow_consistency_errors;
use super::ordinary::ordinary;
use super::solver::solve_telling;
use super::straight::straight_traces;
use super::{Path, PathEvidence, Solver, Trajectory, reference_deviation, solve};
use crate::{Result, VelocityField};

/// Pieces of a way that may wait to be held against the field, so that what is held does not grow with its length.
const AHEAD: usize = 4;

/// Which of the two solutions becomes the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceMode {
    /// The backward solution, reversed. No mismatch at the input.
    #[default]
    ReversedBackward,
    /// Forward again from the recovered reference, the last point set to the input.
    BackwardForward,
}

/// What is known of the distribution at time 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reference {
    /// A standard normal distribution in the flow's own coordinates, which is what flows usually start from. A flow
    /// that says otherwise of itself ([`VelocityField::normal_coordinates`]) is believed.
    #[default]
    StandardNormal,
    /// Something else: how ordinary a reference is cannot be said.
    Other,
}

/// How to trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TraceConfig {
    /// Solver for both directions.
    pub solver: Solver,
    /// What to store.
    pub mode: TraceMode,
    /// Steps of the uniform grid on which FCE is measured (the paper has 50); 0 leaves it out.
    pub consistency_steps: usize,
    /// The distribution at time 0.
    pub reference: Reference,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            solver: Solver::default(),
            mode: TraceMode::default(),
            consistency_steps: 50,
            reference: Reference::default(),
        }
    }
}

/// A traced path with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    pub(super) trajectory: Trajectory,
    pub(super) evidence: PathEvidence,
}

impl Trace {
    /// The stored solution.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }
}

impl Path for Trace {
    fn at(&self, t: f64) -> Array1<f64> {
        self.trajectory.at(t)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        self.trajectory.derivative(t)
    }

    fn evidence(&self) -> PathEvidence {
        self.evidence.clone()
    }
}

/// Traces each row of `inputs` (`[examples, features]`) back to its reference.
///
/// A field whose ways are straight lines with known starts ([`VelocityField::straight_starts`]) costs nothing more; any
/// other costs the backward solution, the forward one, and `consistency_steps` evaluations of the field per
/// example. The stored path is the only thing whose size grows with the number of solver steps.
pub fn trace(field: &dyn VelocityField, inputs: ArrayView2<f64>, config: &TraceConfig) -> Result<Vec<Trace>> {
    trace_and(field, inputs, config, &mut |_| {})
}

/// Traces as [`trace`] does, and has `follow` follow the paths as soon as they are there, while they are checked.
pub(crate) fn trace_and(
    field: &dyn VelocityField,
    inputs: ArrayView2<f64>,
    config: &TraceConfig,
    follow: &mut dyn FnMut(&[&dyn Path]),
) -> Result<Vec<Trace>> {
    if inputs.nrows() == 0 {
        return Ok(Vec::new());
    }
    if let Some(starts) = field.straight_starts(inputs) {
        return straight_traces(inputs, &starts?, follow);
    }
    match config.mode {
        TraceMode::ReversedBackward => thread::scope(|scope| {
            let steps = config.consistency_steps;
            let (sender, pieces) = sync_channel(AHEAD * inputs.nrows());
            let measuring = (steps > 0)
                .then(|| scope.spawn(move || consistency_of_pieces(&pieces, inputs.nrows(), steps, field)));
            // Nobody is there to hear of it if measuring has failed.
            let mut tell = |example, piece| drop(sender.send((example, piece)));
            let tell: Option<&mut dyn FnMut(usize, Trajectory)> =
                if steps > 0 { Some(&mut tell) } else { None };
            let backward = solve_telling(field, inputs, 1.0, 0.0, &config.solver, tell);
            drop(sender);
            let backward = backward?;
            let check = Check::new(field, inputs, &backward, config);
            follow_while(backward, follow, |kept| {
                let trips = check.return_trips()?;
                let consistency = measuring
                    .map(|errors| errors.join().unwrap_or_else(|panic| resume_unwind(panic)))
                    .transpose()?;
                let evaluations = trips
                    .iter()
                    .zip(kept)
                    .map(|(trip, kept)| (kept.trajectory.velocity_evaluations, trip.velocity_evaluations));
                Ok(check.evidence(kept, consistency, trips.iter().map(|trip| trip.end()), evaluations))
            })
        }),
        TraceMode::BackwardForward => {
            let backward = solve(field, inputs, 1.0, 0.0, &config.solver)?;
            let check = Check::new(field, inputs, &backward, config);
            let trips = check.return_trips()?;
            // Here the way back is part of making the path, and the mismatch comes for free.
            let made: Vec<_> = trips
                .iter()
                .zip(&backward)
                .map(|(trip, back)| (trip.velocity_evaluations + back.velocity_evaluations, 0))
                .collect();
            let ends: Vec<_> = trips.iter().map(|trip| trip.end()).collect();
            let kept = trips.into_iter().zip(inputs.rows());
            let kept = kept.map(|(trip, input)| trip.ending_at(&input.to_owned())).collect();
            follow_while(kept, follow, |kept| {
                Ok(check.evidence(kept, check.consistency(kept)?, ends.into_iter(), made.into_iter()))
            })
        }
    }
}

/// What there is to check traces with.
struct Check<'a> {
    field: &'a dyn VelocityField,
    inputs: ArrayView2<'a, f64>,
    references: Array2<f64>,
    config: &'a TraceConfig,
}

impl<'a> Check<'a> {
    fn new(
        field: &'a dyn VelocityField,
        inputs: ArrayView2<'a, f64>,
        backward: &[Trajectory],
        config: &'a TraceConfig,
    ) -> Self {
        let references: Vec<_> = backward.iter().map(|trajectory| trajectory.at(0.0)).collect();
        Check { field, inputs, references: super::stack_rows(&references), config }
    }

    /// The ways forward from the references.
    fn return_trips(&self) -> Result<Vec<Trajectory>> {
        solve(self.field, self.references.view(), 0.0, 1.0, &self.config.solver)
    }

    /// Flow Consistency Error of each path, where it is asked for.
    fn consistency(&self, paths: &[Awaited]) -> Result<Option<Vec<f64>>> {
        let steps = self.config.consistency_steps;
        let paths: Vec<&dyn Path> = paths.iter().map(|path| path as &dyn Path).collect();
        (steps > 0).then(|| flow_consistency_errors(&paths, steps, self.field)).transpose()
    }

    /// The evidence for each path, given its consistency, where its return trip ended and how many evaluations it took
    /// to make and to check.
    fn evidence(
        &self,
        paths: &[Awaited],
        consistency: Option<Vec<f64>>,
        ends: impl Iterator<Item = Array1<f64>>,
        evaluations: impl Iterator<Item = (usize, usize)>,
    ) -> Vec<PathEvidence> {
        let normal = match self.config.reference {
            Reference::StandardNormal => self.field.normal_coordinates(self.references.view()),
            Reference::Other => None,
        };
        let steps = self.config.consistency_steps;
        let mut gathered = Vec::with_capacity(self.inputs.nrows());
        for (example, (end, (made, spent))) in ends.zip(evaluations).enumerate() {
            let input = self.inputs.row(example);
            let gap = norm(&(end - input));
            let length = norm(&(&input - &self.references.row(example)));
            gathered.push(PathEvidence {
                kind: "trace".into(),
                solver: Some(self.config.solver.describe()),
                mode: Some(match self.config.mode {
                    TraceMode::ReversedBackward => "reversed-backward".into(),
                    TraceMode::BackwardForward => "backward-forward".into(),
                }),
                velocity_evaluations: Some(made),
                check_evaluations: Some(spent + steps),
                round_trip_error: Some(gap),
                relative_round_trip_error: Some(gap / length.max(f64::MIN_POSITIVE)),
                flow_consistency_error: consistency.as_ref().map(|errors| errors[example]),
                reference_deviation: normal.as_ref().map(|rows| reference_deviation(rows.row(example))),
                ordinary: ordinary(self.field, &paths[example]),
                reference_clipped: None,
            });
        }
        gathered
    }
}

fn norm(x: &Array1<f64>) -> f64 {
    x.dot(x).sqrt()
}
