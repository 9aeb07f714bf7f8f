//! The work of a run: every method on every input for every target.

use std::ops::Range;
use std::path::Path as FilePath;

use anyhow::{Context as _, Result};
use brenier::attribute::{Frames, Method, Transport, frames};
use brenier::{Explanation, Path, Trace, VelocityField, save_traces};
use ndarray::{Array2, s};

use super::parts::Parts;
use super::paths::GivenPaths;
use crate::output::print_progress;
use crate::request::{Loaded, Surroundings};
use crate::verbs::report::SHOWN;

/// Stills of each path.
const PIECES: usize = 20;

/// What is to be explained.
pub(super) struct Work<'a> {
    pub(super) model: &'a Loaded,
    pub(super) surroundings: &'a Surroundings,
    pub(super) inputs: &'a Array2<f64>,
    /// The targets of all inputs, one list for each round.
    pub(super) rounds: &'a [Vec<usize>],
    /// Whether stills of the paths are wanted.
    pub(super) stills: bool,
}

/// An explanation, with stills of its path where the method follows one and the report shows it.
type Shown = (Explanation, Option<Frames>);

impl Work<'_> {
    /// What a method says of all inputs, the targets of one input after another. Traces that it makes are kept in
    /// the folder.
    pub(super) fn explain(
        &self,
        method: &Method,
        mut given: Option<GivenPaths>,
        folder: Option<&FilePath>,
    ) -> Result<Vec<Shown>> {
        let count = self.inputs.nrows();
        let mut parts = Parts::new("explaining", count, self.rounds.len(), &method.name());
        let mut rounds = Vec::with_capacity(self.rounds.len());
        for targets in self.rounds {
            let found = match (method, &given, self.surroundings.flows.as_slice()) {
                (Method::Transport(transport), None, [flow]) => {
                    // One trace for all targets: made for the first, and kept. Where, is known before the work begins.
                    if let Some(folder) = folder {
                        std::fs::create_dir_all(folder)
                            .with_context(|| format!("cannot make {}", folder.display()))?;
                    }
                    let mut traces = Vec::with_capacity(count);
                    let found = parts
                        .round(count, |part| self.traced_part(transport, flow, part, targets, &mut traces))?;
                    keep_traces(&traces, folder)?;
                    given = Some(GivenPaths::traces(traces, transport));
                    found
                }
                // Its graph of neighbours is made for all inputs at once.
                (Method::GeodesicIg(_), ..) => self.part(method, None, 0..count, targets)?,
                _ => parts.round(count, |part| self.part(method, given.as_ref(), part, targets))?,
            };
            rounds.push(found.into_iter());
        }
        let mut all = Vec::with_capacity(count * rounds.len());
        for _ in 0..count {
            all.extend(rounds.iter_mut().filter_map(Iterator::next));
        }
        Ok(all)
    }

    fn part(
        &self,
        method: &Method,
        given: Option<&GivenPaths>,
        part: Range<usize>,
        targets: &[usize],
    ) -> Result<Vec<Shown>> {
        let score = self.model.score();
        if let Some(given) = given {
            let explanations = given.explain(score, part.clone(), targets)?;
            let paths: Vec<&dyn Path> = given.paths()[part].iter().map(|path| path.as_ref()).collect();
            return self.with_stills(explanations, &paths);
        }
        let context = self.surroundings.context(self.model.with_gradients(), &part);
        let inputs = self.inputs.slice(s![part.clone(), ..]);
        let (explanations, paths) = method.explain_with_paths(score, inputs, &targets[part], &context)?;
        let paths: Vec<&dyn Path> = paths.iter().map(|path| path.as_ref()).collect();
        self.with_stills(explanations, &paths)
    }

    /// Explains a part along a flow, and adds the traces to the others.
    fn traced_part(
        &self,
        transport: &Transport,
        flow: &dyn VelocityField,
        part: Range<usize>,
        targets: &[usize],
        traces: &mut Vec<Trace>,
    ) -> Result<Vec<Shown>> {
        let first = part.start;
        let inputs = self.inputs.slice(s![part.clone(), ..]);
        let (mut explanations, made) = transport
            .explain_with_traces(self.model.score(), inputs, &targets[part], flow)
            .map_err(|error| error.counted_from(first))?;
        explanations.iter_mut().for_each(|explanation| explanation.certificate.example += first);
        let paths: Vec<&dyn Path> = made.iter().map(|trace| trace as &dyn Path).collect();
        let shown = self.with_stills(explanations, &paths)?;
        traces.extend(made);
        Ok(shown)
    }

    /// Stills for the report, of the examples that it shows.
    fn with_stills(&self, explanations: Vec<Explanation>, paths: &[&dyn Path]) -> Result<Vec<Shown>> {
        let mut paths = paths.iter();
        let still = |explanation: Explanation| {
            let certificate = &explanation.certificate;
            let path = paths.next().filter(|_| self.stills && certificate.example < SHOWN);
            let frames = match path {
                Some(path) => Some(frames(self.model.score(), *path, certificate.target, PIECES)?),
                None => None,
            };
            Ok((explanation, frames))
        };
        explanations.into_iter().map(still).collect()
    }
}

/// Writes traces into the folder, for they serve other models as well.
fn keep_traces(traces: &[Trace], folder: Option<&FilePath>) -> Result<()> {
    let Some(folder) = folder else { return Ok(()) };
    let saved = folder.join("traces.npz");
    save_traces(&saved, traces)?;
    print_progress(&format!("wrote {}", saved.display()));
    Ok(())
}
