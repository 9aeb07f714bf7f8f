//! How inputs are explained: by a method, or along paths that are there already.

use std::ops::Range;

use ndarray::{ArrayView2, s};
use sha2::{Digest, Sha256};

use super::{Part, Question};
use crate::attribute::{
    Allocation, Context, Explanation, Frames, Method, Request, Setting, Transport, frames,
};
use crate::error::{Error, Result, expect_shape};
use crate::field::VelocityField;
use crate::packed::PackedInputs;
use crate::path::{Path, Trace};

/// Stills of each path.
const PIECES: usize = 20;

/// How inputs are explained.
pub enum Way<'a> {
    /// By a method.
    Method(&'a Method),
    /// Along paths, one for each input of the run.
    Along {
        /// The name in certificates.
        name: &'a str,
        /// The paths.
        paths: &'a [Box<dyn Path>],
        /// How credit is given along them.
        allocation: Allocation,
    },
}

/// An explanation, with stills of its path where they are asked for.
pub(super) type Shown = (Explanation, Option<Frames>);

impl Way<'_> {
    /// The name of the method.
    pub fn name(&self) -> String {
        match self {
            Way::Method(method) => method.name(),
            Way::Along { name, allocation, .. } => allocation.name(name),
        }
    }

    /// Whether it follows the flows of the context.
    pub(super) fn follows_flows(&self) -> bool {
        matches!(self, Way::Method(method) if method.spec().uses(Setting::Flow))
    }

    /// Whether it does work for all inputs of a part before it looks at the first: such parts are large.
    pub(super) fn prepares_for_many(&self) -> bool {
        matches!(self, Way::Method(Method::GeodesicIg(_)))
    }

    /// Explains the inputs of a part, for all rounds of targets.
    pub(super) fn explain(
        &self,
        question: &Question,
        rows: ArrayView2<f64>,
        range: Range<usize>,
        rounds: &[Vec<usize>],
    ) -> Result<Part> {
        let context = context_of(question, &range);
        // Held features are left out by the method, which keeps no trace then.
        let held = question.score.inputs().is_some_and(PackedInputs::has_held);
        let mut traces: Option<Vec<Trace>> = None;
        let mut found: Vec<std::vec::IntoIter<Shown>> = Vec::with_capacity(rounds.len());
        for targets in rounds {
            let shown = match (self, context.flows.as_slice(), &traces) {
                // One trace for all targets: made for the first of them.
                (Way::Method(Method::Transport(transport)), &[flow], None) if !held => {
                    let (shown, made) = traced(question, transport, flow, rows, &range, targets)?;
                    traces = Some(made);
                    shown
                }
                (Way::Method(Method::Transport(transport)), &[_], Some(traces)) => {
                    let paths: Vec<&dyn Path> = traces.iter().map(|trace| trace as &dyn Path).collect();
                    let name = Transport::NAME;
                    along(question, name, &paths, transport.allocation, range.start, targets)?
                }
                (Way::Method(method), ..) => {
                    let (explanations, paths) =
                        method.explain_with_paths(question.score, rows, targets, &context)?;
                    let paths: Vec<&dyn Path> = paths.iter().map(|path| path.as_ref()).collect();
                    with_stills(question, explanations, &paths)?
                }
                (Way::Along { name, paths, allocation }, ..) => {
                    let paths = paths.get(range.clone()).ok_or(Error::Shape {
                        what: "the list of paths".to_string(),
                        expected: vec![range.end],
                        found: vec![paths.len()],
                    })?;
                    let paths: Vec<&dyn Path> = paths.iter().map(|path| path.as_ref()).collect();
                    expect_ends(&paths, rows, range.start)?;
                    along(question, name, &paths, *allocation, range.start, targets)?
                }
            };
            found.push(shown.into_iter());
        }
        let mut by_input = Vec::with_capacity(range.len() * rounds.len());
        for _ in range.clone() {
            by_input.extend(found.iter_mut().filter_map(Iterator::next));
        }
        let (explanations, stills) = by_input.into_iter().unzip();
        Ok(Part { inputs: range, explanations, stills, traces })
    }
}

/// How far from its input a given path may end, relative to the largest feature: what is stored in 32 bits.
const END: f64 = 1e-5;

/// Refuses paths that end elsewhere than at their inputs: they belong to others.
fn expect_ends(paths: &[&dyn Path], rows: ArrayView2<f64>, first: usize) -> Result<()> {
    for (i, (path, row)) in paths.iter().zip(rows.rows()).enumerate() {
        let end = path.at(1.0);
        expect_shape("the end of a path", &[row.len()], &[end.len()])?;
        let size = row.iter().fold(1e-30_f64, |most, value| most.max(value.abs()));
        let far = |(found, expected): (&f64, &f64)| {
            let distance = (found - expected).abs();
            distance.is_nan() || distance > END * size
        };
        if let Some(feature) = end.iter().zip(&row).position(far) {
            let (found, expected) = (end[feature], row[feature]);
            return Err(Error::OtherPath { example: first + i, feature, found, expected });
        }
    }
    Ok(())
}

/// Points of each path that enter its fingerprint.
const LOOKED_AT: usize = 65;

/// A fingerprint of paths: of points on them, their corners, and how they came to be.
pub(super) fn fingerprint(paths: &[Box<dyn Path>]) -> String {
    let mut hash = Sha256::new();
    for path in paths {
        let corners = path.corners();
        let even = (0..LOOKED_AT).map(|k| k as f64 / (LOOKED_AT - 1) as f64);
        for time in even.chain(corners) {
            hash.update(time.to_le_bytes());
            let point: Vec<u8> = path.at(time).iter().flat_map(|value| value.to_le_bytes()).collect();
            hash.update(&point);
        }
        hash.update(format!("{:?}", path.evidence()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The context of a part: its own baselines, and its place in the run.
fn context_of<'a>(question: &'a Question, range: &Range<usize>) -> Context<'a> {
    let baselines = question.context.baselines.as_ref().map(|rows| match rows.nrows() {
        1 => rows.view(),
        _ => rows.slice(s![range.clone(), ..]),
    });
    Context { baselines, first_example: range.start, ..question.context.clone() }
}

/// Explains rows along a flow, and keeps the traces.
fn traced(
    question: &Question,
    transport: &Transport,
    flow: &dyn VelocityField,
    rows: ArrayView2<f64>,
    range: &Range<usize>,
    targets: &[usize],
) -> Result<(Vec<Shown>, Vec<Trace>)> {
    let (mut explanations, traces) = transport
        .explain_with_traces(question.score, rows, targets, flow)
        .map_err(|error| error.counted_from(range.start))?;
    explanations.iter_mut().for_each(|explanation| explanation.certificate.example += range.start);
    let paths: Vec<&dyn Path> = traces.iter().map(|trace| trace as &dyn Path).collect();
    let shown = with_stills(question, explanations, &paths)?;
    Ok((shown, traces))
}

/// Explains along paths, the first of which belongs to input `first` of the run.
fn along(
    question: &Question,
    name: &str,
    paths: &[&dyn Path],
    allocation: Allocation,
    first: usize,
    targets: &[usize],
) -> Result<Vec<Shown>> {
    let requests: Vec<Request> = paths
        .iter()
        .zip(targets)
        .enumerate()
        .map(|(i, (path, &target))| Request { example: first + i, path: *path, target })
        .collect();
    let explanations = allocation.explain_all(name, question.score, &requests)?;
    with_stills(question, explanations, paths)
}

/// Stills of the inputs that are to have them.
pub(super) fn with_stills(
    question: &Question,
    explanations: Vec<Explanation>,
    paths: &[&dyn Path],
) -> Result<Vec<Shown>> {
    let mut paths = paths.iter();
    let still = |explanation: Explanation| {
        let certificate = &explanation.certificate;
        let path = paths.next().filter(|_| certificate.example < question.stills);
        let frames = match path {
            Some(path) => {
                let found = frames(question.score, *path, certificate.target, PIECES)?;
                Some(found.ending_at(explanation.values.view(), question.score.shape()))
            }
            None => None,
        };
        Ok((explanation, frames))
    };
    explanations.into_iter().map(still).collect()
}
