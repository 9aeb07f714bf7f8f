//! What is held against the certificate: a flow, its calibration, inputs, and what counts as passed.

use brenier::calibration::{Calibration, Ordinary, Standard, statistic_names};
use brenier::engine::EngineConfig;
use brenier::flow::OnnxFlow;
use brenier::{Limits, Path, Result, Solver, TraceConfig, VelocityField, trace};
use ndarray::{Array2, ArrayView2, Axis};
use onnx_grad::Model;

pub(crate) type Change<'a> =
    Box<dyn Fn(&OnnxFlow, ArrayView2<f64>, &[f64]) -> Result<Array2<f64>> + Sync + 'a>;

/// A flow with a fault, judged by the calibration of the sound one.
pub(crate) struct Spoilt<'a> {
    flow: OnnxFlow,
    change: Change<'a>,
    calibration: &'a Calibration,
}

impl VelocityField for Spoilt<'_> {
    fn shape(&self) -> &[usize] {
        self.flow.shape()
    }
    fn velocity(&self, x: ArrayView2<f64>, times: &[f64]) -> Result<Array2<f64>> {
        (self.change)(&self.flow, x, times)
    }
    fn own_units(&self, x: ArrayView2<f64>) -> Array2<f64> {
        self.flow.own_units(x)
    }
    fn standard(&self) -> Standard<'_> {
        Standard::Calibrated(self.calibration)
    }
}

pub(crate) struct Bench {
    pub(crate) model: Model,
    pub(crate) calibration: Calibration,
    pub(crate) shape: Vec<usize>,
    pub(crate) inputs: Array2<f64>,
    pub(crate) labels: Vec<usize>,
}

pub(crate) fn opened(model: Model) -> OnnxFlow {
    OnnxFlow::new(model, &EngineConfig { unchecked: true, ..EngineConfig::default() }).unwrap()
}

pub(crate) fn as_it_is() -> Change<'static> {
    Box::new(|flow, x, t| flow.velocity(x, t))
}

/// The kinetic action, as the certificate measures it.
fn action(path: &dyn Path) -> f64 {
    let points: Vec<_> = (0..=50).map(|k| path.at(f64::from(k) / 50.0)).collect();
    50.0 * points.windows(2).map(|pair| (&pair[1] - &pair[0]).mapv(|v| v * v).sum()).sum::<f64>()
}

/// What came of inputs: how many pass, and what is known of their traces.
pub(crate) struct Found {
    pub(crate) passed: usize,
    pub(crate) statistics: Vec<Vec<f32>>,
}

impl Bench {
    pub(crate) fn new(
        model: Model,
        calibration: Calibration,
        shape: Vec<usize>,
        inputs: Array2<f64>,
        labels: Vec<usize>,
    ) -> Bench {
        Bench { model, calibration, shape, inputs, labels }
    }

    pub(crate) fn sound(&self) -> Spoilt<'_> {
        self.spoilt(self.model.clone(), as_it_is())
    }

    pub(crate) fn spoilt<'a>(&'a self, model: Model, change: Change<'a>) -> Spoilt<'a> {
        Spoilt { flow: opened(model), change, calibration: &self.calibration }
    }

    /// The inputs that pass.
    pub(crate) fn judged(&self, field: &Spoilt, inputs: &Array2<f64>, solver: Option<Solver>) -> Found {
        let config = TraceConfig::default();
        let config = TraceConfig { solver: solver.unwrap_or(config.solver), ..config };
        let mut found = Found { passed: 0, statistics: Vec::new() };
        for part in inputs.axis_chunks_iter(Axis(0), 20) {
            // What cannot be traced does not pass.
            let Ok(traces) = trace(field, part, &config) else { continue };
            for (path, evidence) in traces.iter().map(|path| (path, path.evidence())) {
                let limits = Limits::default();
                let closes = evidence.relative_round_trip_error.unwrap() <= limits.round_trip;
                let off = evidence.flow_consistency_error.unwrap() / action(path);
                let follows = off <= limits.consistency;
                let Some(Ordinary::Calibrated { standing, quality }) = evidence.ordinary else {
                    unreachable!()
                };
                found.passed +=
                    usize::from(closes && follows && !standing.is_rare() && quality.objection().is_none());
                found.statistics.push(standing.statistics);
            }
        }
        found
    }

    /// A line of the table.
    pub(crate) fn tell(&self, name: &str, found: &Found, of: usize) {
        let names = statistic_names(&self.shape);
        let set = match self.calibration.standing_together(&found.statistics, &names) {
            Some(together) if together.is_rare() => format!("told: {}", together.furthest[0].0),
            Some(_) => "not told".to_string(),
            None => "-".to_string(),
        };
        println!("| {name} | {} of {of} | {set} |", found.passed);
    }

    pub(crate) fn tell_passed(&self, name: &str, passed: usize, of: usize) {
        println!("| {name} | {passed} of {of} | - |");
    }

    /// Sound inputs: how many pass, and how many sets of them are told wrongly.
    pub(crate) fn good(&self, inputs: &Array2<f64>) {
        let found = self.judged(&self.sound(), inputs, None);
        self.tell("nothing", &found, inputs.nrows());
        for size in [20, 40] {
            let sets = found.statistics.chunks_exact(size);
            let (all, mut alarms) = (sets.len(), 0);
            for set in sets {
                let together = self.calibration.standing_together(set, &[]);
                alarms += usize::from(together.is_some_and(|together| together.is_rare()));
            }
            println!("| nothing, in sets of {size} | - | {alarms} of {all} told |");
        }
    }
}
