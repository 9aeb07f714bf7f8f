//! Paths that are followed while they are still being checked.
//!
//! Credit needs the path; the certificate needs the evidence, which takes about as long to gather. Both are made
//! at once, the evidence on a thread of its own: whoever asks a path for it waits until it is there. So one
//! explanation keeps two cores busy, although the steps of a solver come one after the other.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

use ndarray::Array1;

use super::{Path, PathEvidence, Trace, Trajectory};
use crate::Result;

/// A solution of a flow whose evidence is on its way.
pub(super) struct Awaited<'a> {
    pub(super) trajectory: &'a Trajectory,
    coming: Mutex<Receiver<PathEvidence>>,
    arrived: OnceLock<PathEvidence>,
}

impl Path for Awaited<'_> {
    fn at(&self, t: f64) -> Array1<f64> {
        self.trajectory.at(t)
    }

    fn derivative(&self, t: f64) -> Array1<f64> {
        self.trajectory.derivative(t)
    }

    /// Waits for the evidence. If gathering it failed, there is none; then nobody gets to see the path either.
    fn evidence(&self) -> PathEvidence {
        let receive =
            || self.coming.lock().unwrap_or_else(PoisonError::into_inner).recv().unwrap_or_default();
        self.arrived.get_or_init(receive).clone()
    }
}

/// Has `follow` follow the paths while `gather` gathers their evidence.
pub(super) fn follow_while(
    trajectories: Vec<Trajectory>,
    follow: &mut dyn FnMut(&[&dyn Path]),
    gather: impl FnOnce(&[Awaited]) -> Result<Vec<PathEvidence>> + Send,
) -> Result<Vec<Trace>> {
    let mut senders = Vec::with_capacity(trajectories.len());
    let mut awaited = Vec::with_capacity(trajectories.len());
    for trajectory in &trajectories {
        let (sender, receiver) = channel();
        senders.push(sender);
        awaited.push(Awaited { trajectory, coming: Mutex::new(receiver), arrived: OnceLock::new() });
    }
    let evidence = thread::scope(|scope| -> Result<Vec<PathEvidence>> {
        let awaited = &awaited;
        let gathering = scope.spawn(move || {
            // The senders are dropped in any case, so that nobody waits for ever.
            let evidence = gather(awaited)?;
            for (sender, evidence) in senders.into_iter().zip(&evidence) {
                // Not every path is asked for its evidence.
                let _ = sender.send(evidence.clone());
            }
            Ok(evidence)
        });
        let paths: Vec<&dyn Path> = awaited.iter().map(|path| path as &dyn Path).collect();
        follow(&paths);
        gathering.join().unwrap_or_else(|panic| resume_unwind(panic))
    })?;
    drop(awaited);
    let pairs = trajectories.into_iter().zip(evidence);
    Ok(pairs.map(|(trajectory, evidence)| Trace { trajectory, evidence }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Solver, solve};
    use crate::{Error, FieldFn};
    use ndarray::array;

    fn trajectories() -> Vec<Trajectory> {
        let drift = FieldFn::new(&[1], |_, _| array![2.0]);
        solve(&drift, array![[0.0], [1.0]].view(), 0.0, 1.0, &Solver::default()).unwrap()
    }

    #[test]
    fn paths_can_be_followed_before_their_evidence_is_there() {
        let (followed, wait) = channel();
        let mut told = Vec::new();
        let traces = follow_while(
            trajectories(),
            &mut |paths| {
                followed.send(()).unwrap();
                assert!((paths[1].at(1.0)[0] - 3.0).abs() < 1e-12);
                // Twice, as for two targets along one path.
                told = paths.iter().chain(paths).map(|path| path.evidence()).collect();
            },
            move |paths| {
                // Does not begin before the paths are followed: fails if that waits for this.
                wait.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
                let kinds = (0..paths.len()).map(|i| format!("path {i}"));
                Ok(kinds.map(|kind| PathEvidence { kind, ..PathEvidence::default() }).collect())
            },
        )
        .unwrap();
        assert_eq!(told[..2], traces.iter().map(|trace| trace.evidence()).collect::<Vec<_>>());
        assert_eq!(told[..2], told[2..]);
        assert_eq!(told[1].kind, "path 1");
    }

    #[test]
    fn nobody_waits_for_evidence_that_cannot_be_had() {
        let mut follow = |paths: &[&dyn Path]| assert_eq!(paths[0].evidence(), PathEvidence::default());
        let failed = follow_while(trajectories(), &mut follow, |_| Err(Error::Zero { what: "the check" }));
        assert_eq!(failed.unwrap_err().to_string(), "the check must be at least 1");
        let panicked = std::panic::catch_unwind(|| {
            let mut follow = |paths: &[&dyn Path]| drop(paths[0].evidence());
            follow_while(trajectories(), &mut follow, |_| panic!("in the check"))
        });
        assert!(panicked.is_err());
    }
}
