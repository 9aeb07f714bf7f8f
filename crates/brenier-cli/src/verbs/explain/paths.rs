//! Paths that are there before a method is asked: points, saved traces, and the traces of one flow that the first
//! targets were explained along.

use std::ops::Range;

use anyhow::{Result, bail};
use brenier::attribute::{Allocation, Method, Transport};
use brenier::{Explanation, Path, Polyline, Request, Score, Trace, load_traces};
use ndarray::Array2;

use super::Explain;

/// Paths, and how credit is given along them.
pub(super) struct GivenPaths {
    method: &'static str,
    paths: Vec<Box<dyn Path>>,
    allocation: Allocation,
}

/// Paths that a user has: points or saved traces.
pub(super) fn given_paths(
    args: &Explain,
    method: &Method,
    inputs: &Array2<f64>,
) -> Result<Option<GivenPaths>> {
    if let Some(file) = &args.path {
        if inputs.nrows() != 1 {
            bail!("--path is for one input, but {} are given", inputs.nrows());
        }
        let paths: Vec<Box<dyn Path>> = vec![Box::new(Polyline::read(file)?)];
        let allocation = Allocation::PathIntegral { rule: args.settings.rule()? };
        return Ok(Some(GivenPaths { method: "path", paths, allocation }));
    }
    let (Method::Transport(transport), Some(file)) = (method, &args.traces) else { return Ok(None) };
    let traces = load_traces(file)?;
    if traces.len() != inputs.nrows() {
        let file = file.display();
        bail!("{file} holds {} traces, but there are {} inputs", traces.len(), inputs.nrows());
    }
    Ok(Some(GivenPaths::traces(traces, transport)))
}

impl GivenPaths {
    /// Traces, one for each input.
    pub(super) fn traces(traces: Vec<Trace>, transport: &Transport) -> GivenPaths {
        let paths = traces.into_iter().map(|trace| Box::new(trace) as Box<dyn Path>).collect();
        GivenPaths { method: Transport::NAME, paths, allocation: transport.allocation }
    }

    /// The paths, one for each input.
    pub(super) fn paths(&self) -> &[Box<dyn Path>] {
        &self.paths
    }

    /// Credit along those of this part, for the targets of all inputs.
    pub(super) fn explain(
        &self,
        score: &dyn Score,
        part: Range<usize>,
        targets: &[usize],
    ) -> Result<Vec<Explanation>> {
        let request =
            |example| Request { example, path: self.paths[example].as_ref(), target: targets[example] };
        let requests: Vec<Request> = part.map(request).collect();
        Ok(self.allocation.explain_all(self.method, score, &requests)?)
    }
}
