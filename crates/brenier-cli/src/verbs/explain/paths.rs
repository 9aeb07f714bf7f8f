//! Paths that are there before a method is asked: points and saved traces.

use anyhow::{Result, bail};
use brenier::attribute::{Allocation, Method, Transport};
use brenier::runs::explain::Way;
use brenier::{Path, Polyline, load_traces};

use super::Explain;

/// Paths, and how credit is given along them.
pub(super) struct GivenPaths {
    method: &'static str,
    paths: Vec<Box<dyn Path>>,
    allocation: Allocation,
}

/// Paths that a user has: points or saved traces.
pub(super) fn given_paths(args: &Explain, method: &Method, inputs: usize) -> Result<Option<GivenPaths>> {
    if let Some(file) = &args.path {
        if inputs != 1 {
            bail!("--path is for one input, but {} are given", inputs);
        }
        let paths: Vec<Box<dyn Path>> = vec![Box::new(Polyline::read(file)?)];
        let allocation = Allocation::PathIntegral { rule: args.settings.rule()? };
        return Ok(Some(GivenPaths { method: "path", paths, allocation }));
    }
    let (Method::Transport(transport), Some(file)) = (method, &args.traces) else { return Ok(None) };
    let traces = load_traces(file)?;
    if traces.len() != inputs {
        let file = file.display();
        bail!("{file} holds {} traces, but there are {} inputs", traces.len(), inputs);
    }
    let paths = traces.into_iter().map(|trace| Box::new(trace) as Box<dyn Path>).collect();
    Ok(Some(GivenPaths { method: Transport::NAME, paths, allocation: transport.allocation }))
}

impl GivenPaths {
    /// Explains along them.
    pub(super) fn way(&self) -> Way<'_> {
        Way::Along { name: self.method, paths: &self.paths, allocation: self.allocation }
    }
}
