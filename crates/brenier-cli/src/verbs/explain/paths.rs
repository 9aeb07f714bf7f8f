//! Paths that are there before a method is asked: points, saved traces, and the traces of one flow, which are
//! kept because they serve other models as well.

use std::ops::Range;
use std::path::Path as FilePath;

use anyhow::{Context as _, Result, bail};
use brenier::attribute::{Allocation, Method, Transport};
use brenier::{Explanation, Path, Polyline, Request, Score, load_traces, save_traces, trace};
use ndarray::{Array2, s};

use super::Explain;
use super::parts::Parts;
use crate::output::print_progress;
use crate::request::Surroundings;

/// Paths, and how credit is given along them.
pub(super) struct GivenPaths {
    method: &'static str,
    paths: Vec<Box<dyn Path>>,
    allocation: Allocation,
}

/// Paths that a user has made, or that are worth keeping: points, saved traces, the traces of one flow.
pub(super) fn given_paths(
    args: &Explain,
    method: &Method,
    surroundings: &Surroundings,
    inputs: &Array2<f64>,
    folder: Option<&FilePath>,
) -> Result<Option<GivenPaths>> {
    if let Some(file) = &args.path {
        if inputs.nrows() != 1 {
            bail!("--path is for one input, but {} are given", inputs.nrows());
        }
        let paths: Vec<Box<dyn Path>> = vec![Box::new(Polyline::read(file)?)];
        let allocation = Allocation::PathIntegral { rule: args.settings.rule()? };
        return Ok(Some(GivenPaths { method: "path", paths, allocation }));
    }
    let Method::Transport(transport) = method else { return Ok(None) };
    let traces = match (&args.traces, surroundings.flows.as_slice()) {
        (Some(file), _) => {
            let traces = load_traces(file)?;
            if traces.len() != inputs.nrows() {
                let file = file.display();
                bail!("{file} holds {} traces, but there are {} inputs", traces.len(), inputs.nrows());
            }
            traces
        }
        (None, [flow]) => {
            let mut parts = Parts::new("tracing", inputs.nrows(), 1, "");
            let traces = parts.round(inputs.nrows(), |part| {
                let first = part.start;
                trace(flow, inputs.slice(s![part, ..]), &transport.trace)
                    .map_err(|e| e.counted_from(first).into())
            })?;
            drop(parts);
            // They serve other models as well.
            if let Some(folder) = folder {
                std::fs::create_dir_all(folder)
                    .with_context(|| format!("cannot make {}", folder.display()))?;
                let saved = folder.join("traces.npz");
                save_traces(&saved, &traces)?;
                print_progress(&format!("wrote {}", saved.display()));
            }
            traces
        }
        _ => return Ok(None),
    };
    let paths = traces.into_iter().map(|trace| Box::new(trace) as Box<dyn Path>).collect();
    Ok(Some(GivenPaths { method: Transport::NAME, paths, allocation: transport.allocation }))
}

impl GivenPaths {
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
