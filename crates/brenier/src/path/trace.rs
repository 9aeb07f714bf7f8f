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

use std::fs::File;
use std::path::Path as FilePath;

use ndarray::{Array1, Array2, ArrayView2, Axis, concatenate, s};
use ndarray_npy::NpzReader;
use serde::{Deserialize, Serialize};

use super::diagnostics::flow_consistency_errors;
use super::{Path, PathEvidence, Solver, Trajectory, reference_deviation, solve};
use crate::whole_file::{Packing, write_arrays};
use crate::{Error, Result, VelocityField};

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
    trajectory: Trajectory,
    evidence: PathEvidence,
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
/// Costs the backward solution, the forward one, and `consistency_steps` evaluations of the field per
/// example. The stored path is the only thing whose size grows with the number of solver steps.
pub fn trace(field: &dyn VelocityField, inputs: ArrayView2<f64>, config: &TraceConfig) -> Result<Vec<Trace>> {
    if inputs.nrows() == 0 {
        return Ok(Vec::new());
    }
    let backward = solve(field, inputs, 1.0, 0.0, &config.solver)?;
    let references: Vec<_> = backward.iter().map(|trajectory| trajectory.at(0.0)).collect();
    let starts = super::stack_rows(&references);
    let forward = solve(field, starts.view(), 0.0, 1.0, &config.solver)?;
    let normal = match config.reference {
        Reference::StandardNormal => field.normal_coordinates(starts.view()),
        Reference::Other => None,
    };
    let mut traces = Vec::with_capacity(backward.len());
    for (example, (backward, forward)) in backward.into_iter().zip(forward).enumerate() {
        let input = inputs.row(example).to_owned();
        let gap = norm(&(forward.end() - &input));
        let length = norm(&(&input - &references[example]));
        let (kept, checked) = match config.mode {
            TraceMode::ReversedBackward => (backward, forward),
            TraceMode::BackwardForward => (forward.ending_at(&input), backward),
        };
        let (made, spent) = match config.mode {
            TraceMode::ReversedBackward => (kept.velocity_evaluations, checked.velocity_evaluations),
            // Here the way back is part of making the path, and the mismatch comes for free.
            TraceMode::BackwardForward => (kept.velocity_evaluations + checked.velocity_evaluations, 0),
        };
        let evidence = PathEvidence {
            kind: "trace".into(),
            solver: Some(config.solver.describe()),
            mode: Some(match config.mode {
                TraceMode::ReversedBackward => "reversed-backward".into(),
                TraceMode::BackwardForward => "backward-forward".into(),
            }),
            velocity_evaluations: Some(made),
            check_evaluations: Some(spent + config.consistency_steps),
            round_trip_error: Some(gap),
            relative_round_trip_error: Some(gap / length.max(f64::MIN_POSITIVE)),
            flow_consistency_error: None,
            reference_deviation: normal.as_ref().map(|rows| reference_deviation(rows.row(example))),
        };
        traces.push(Trace { trajectory: kept, evidence });
    }
    if config.consistency_steps > 0 {
        let paths: Vec<&dyn Path> = traces.iter().map(|trace| trace as &dyn Path).collect();
        let errors = flow_consistency_errors(&paths, config.consistency_steps, field)?;
        for (trace, error) in traces.iter_mut().zip(errors) {
            trace.evidence.flow_consistency_error = Some(error);
        }
    }
    Ok(traces)
}

fn norm(x: &Array1<f64>) -> f64 {
    x.dot(x).sqrt()
}

/// Saves traces in one npz file that numpy reads.
///
/// Arrays: `offsets` (`[traces + 1]`, where each trace's knots begin), `times` (`[knots]`), `states`,
/// `velocities`, `quartics` (`[knots, features]`, the last quartic of a trace being zero), and `evidence`
/// (the bytes of a JSON text).
pub fn save_traces(file: &FilePath, traces: &[Trace]) -> Result<()> {
    let features = traces.first().map_or(0, |trace| trace.trajectory.states.ncols());
    let mut offsets = vec![0_u64];
    let mut times: Vec<f64> = Vec::new();
    let mut blocks: [Vec<Array2<f64>>; 3] = Default::default();
    for trace in traces {
        let trajectory = &trace.trajectory;
        times.extend(&trajectory.times);
        offsets.push(times.len() as u64);
        let mut quartics = Array2::zeros(trajectory.states.raw_dim());
        quartics.slice_mut(s![..trajectory.quartics.nrows(), ..]).assign(&trajectory.quartics);
        blocks[0].push(trajectory.states.clone());
        blocks[1].push(trajectory.velocities.clone());
        blocks[2].push(quartics);
    }
    let evidence: Vec<_> = traces.iter().map(|t| (&t.evidence, t.trajectory.velocity_evaluations)).collect();
    write_arrays(file, Packing::Plain, |npz| {
        npz.add_array("offsets", &Array1::from(offsets))?;
        npz.add_array("times", &Array1::from(times))?;
        for (name, block) in ["states", "velocities", "quartics"].into_iter().zip(&blocks) {
            let views: Vec<_> = block.iter().map(|array| array.view()).collect();
            let joined = concatenate(Axis(0), &views).unwrap_or_else(|_| Array2::zeros((0, features)));
            npz.add_array(name, &joined)?;
        }
        npz.add_array("evidence", &Array1::from(serde_json::to_vec(&evidence)?))?;
        Ok(())
    })
}

/// Loads what [`save_traces`] saved, to the bit.
pub fn load_traces(file: &FilePath) -> Result<Vec<Trace>> {
    let unreadable =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Read { path: file.to_owned(), source };
    let mut npz = NpzReader::new(File::open(file).map_err(|e| unreadable(e.into()))?)
        .map_err(|e| unreadable(e.into()))?;
    let offsets: Array1<u64> = npz.by_name("offsets").map_err(|e| unreadable(e.into()))?;
    let times: Array1<f64> = npz.by_name("times").map_err(|e| unreadable(e.into()))?;
    let mut matrix = |name: &str| npz.by_name::<_, ndarray::Ix2>(name).map_err(|e| unreadable(e.into()));
    let states: Array2<f64> = matrix("states")?;
    let velocities: Array2<f64> = matrix("velocities")?;
    let quartics: Array2<f64> = matrix("quartics")?;
    let evidence: Array1<u8> = npz.by_name("evidence").map_err(|e| unreadable(e.into()))?;
    let evidence: Vec<(PathEvidence, usize)> =
        serde_json::from_slice(&evidence.to_vec()).map_err(|e| unreadable(e.into()))?;
    crate::error::expect_shape("states in the trace file", &[times.len(), states.ncols()], states.shape())?;
    crate::error::expect_shape("velocities in the trace file", states.shape(), velocities.shape())?;
    crate::error::expect_shape("quartics in the trace file", states.shape(), quartics.shape())?;
    crate::error::expect_shape("offsets in the trace file", &[evidence.len() + 1], &[offsets.len()])?;
    let mut traces = Vec::with_capacity(evidence.len());
    for (i, (evidence, velocity_evaluations)) in evidence.into_iter().enumerate() {
        let (from, to) = (offsets[i] as usize, offsets[i + 1] as usize);
        let ascending =
            from + 2 <= to && to <= times.len() && (from + 1..to).all(|k| times[k - 1] < times[k]);
        if !ascending || times[from] != 0.0 || times[to - 1] != 1.0 {
            return Err(unreadable(
                format!("the knots {from}..{to} of trace {i} do not ascend from 0 to 1").into(),
            ));
        }
        traces.push(Trace {
            trajectory: Trajectory {
                times: times.slice(s![from..to]).to_vec(),
                states: states.slice(s![from..to, ..]).to_owned(),
                velocities: velocities.slice(s![from..to, ..]).to_owned(),
                quartics: quartics.slice(s![from..to - 1, ..]).to_owned(),
                velocity_evaluations,
            },
            evidence,
        });
    }
    Ok(traces)
}
