//! Traces in a file: an input's way through a flow serves every model and target, so it is worth keeping.

use std::path::{Path as FilePath, PathBuf};

use ndarray::{Array1, Array2, Axis, concatenate, s};
use ndarray_npy::NpzReader;

use super::{PathEvidence, Trace, Trajectory};
use crate::npz::{self, Whole};
use crate::whole_file::{Failure, Packing, write_arrays};
use crate::{Error, Result};

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

/// Joins files of traces into one, in their order. What is in memory at a time is a few numbers for each trace.
pub(crate) fn join_traces(parts: &[PathBuf], into: &FilePath) -> Result<()> {
    let mut offsets = vec![0_u64];
    let mut evidence: Vec<(PathEvidence, usize)> = Vec::new();
    for part in parts {
        let mut read = || -> std::result::Result<(), Failure> {
            let mut npz = NpzReader::new(crate::readable::open(part)?)?;
            let own: Array1<u64> = npz.by_name("offsets")?;
            let first = offsets.last().copied().unwrap_or(0);
            offsets.extend(own.iter().skip(1).map(|offset| first + offset));
            let text: Array1<u8> = npz.by_name("evidence")?;
            evidence.extend(serde_json::from_slice::<Vec<_>>(&text.to_vec())?);
            Ok(())
        };
        read().map_err(|source| Error::Read { path: part.clone(), source })?;
    }
    let whole = || -> std::result::Result<[Whole; 2], Failure> {
        let text = serde_json::to_vec(&evidence)?;
        Ok([Whole::new("offsets", &Array1::from(offsets))?, Whole::new("evidence", &Array1::from(text))?])
    };
    let whole = whole().map_err(|source| Error::Write { path: into.to_owned(), source })?;
    npz::join(parts, &whole, Packing::Plain, into)
}

/// Loads what [`save_traces`] saved, to the bit.
pub fn load_traces(file: &FilePath) -> Result<Vec<Trace>> {
    let unreadable =
        |source: Box<dyn std::error::Error + Send + Sync>| Error::Read { path: file.to_owned(), source };
    npz::expect_honest(file).map_err(unreadable)?;
    let mut npz = NpzReader::new(crate::readable::open(file).map_err(|e| unreadable(e.into()))?)
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
