//! Appendix F.4: how far paths move, and when.
//!
//! ```text
//! A = sum_k |x_{k+1} - x_k|^2 / dt,    A(t) = the part of the sum up to t,    K = 50
//! ```
//!
//! In the flow's own coordinates, where noise has variance 1 and pixels lie between -1 and 1: there the paper's
//! figures are, and there flows are compared with each other. The straight line from a black image is shown beside
//! them: its action is its squared length, and says nothing of whether the line is a likely way.

use brenier::evaluate::Summary;
use brenier::report::{Chart, Mark, Scale, Series};
use brenier::{
    Line, Path, Result, TraceConfig, ddim, geometric_path_straightness, kinetic_action, sample, trace,
};
use ndarray::{Array2, ArrayView2};
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Scale as Size, Subject, Table};

/// The size of the experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionConfig {
    /// Inputs whose paths are measured.
    pub examples: usize,
    /// The seed that draws them.
    pub seed: u64,
}

impl ActionConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> ActionConfig {
        ActionConfig { examples: if scale == Size::Quick { 8 } else { 64 }, seed: 0 }
    }
}

/// The paper's grid, and the steps of DDIM.
const STEPS: usize = 50;
/// Paths that are drawn one by one.
const DRAWN: usize = 3;

/// The paths of one kind: states on the grid in the flow's coordinates, one array for each example.
struct Kind {
    name: String,
    states: Vec<Array2<f64>>,
    paper: Option<f64>,
}

/// Runs the experiment for all flows of the subject, its diffusion model and the straight line.
pub fn action(subject: &Subject, config: &ActionConfig) -> Result<(Table, Vec<Figure>)> {
    let best = subject.best_flow("action")?;
    let examples = subject.examples(config.examples, config.seed)?;
    let inputs = examples.inputs.view();
    let mut kinds = Vec::new();
    let mut push = |name: &str, paper, paths: Vec<&dyn Path>| {
        let states = paths.iter().map(|path| best.flow.to_network(sample(*path, STEPS).view())).collect();
        kinds.push(Kind { name: name.to_string(), states, paper });
    };
    for named in &subject.flows {
        let traces =
            trace(named.flow, inputs, &TraceConfig { consistency_steps: 0, ..TraceConfig::default() })?;
        push(named.name, paper(named.name), traces.iter().map(|t| t as &dyn Path).collect());
    }
    if let Some(diffusion) = subject.diffusion {
        let paths = ddim(diffusion, inputs, STEPS)?;
        push("DDIM", None, paths.iter().map(|path| path as &dyn Path).collect());
    }
    let black = Array2::zeros(inputs.raw_dim());
    let lines: Result<Vec<Line>> =
        black.rows().into_iter().zip(inputs.rows()).map(|(from, to)| Line::new(from, to)).collect();
    push("line from black", None, lines?.iter().map(|line| line as &dyn Path).collect());

    let mut rows = Vec::new();
    for kind in &kinds {
        let each = |measure: fn(ArrayView2<f64>) -> Result<f64>| -> Result<Vec<f64>> {
            kind.states.iter().map(|states| measure(states.view())).collect()
        };
        rows.push(Row::of(&kind.name, "action", &each(kinetic_action)?, kind.paper));
        rows.push(Row::of(&kind.name, "length over distance", &each(geometric_path_straightness)?, None));
    }
    let table = Table {
        name: "action".into(),
        scale: format!("{}, {} paths of {STEPS} steps, seed {}", subject.name, inputs.nrows(), config.seed),
        rows,
    };
    Ok((table, vec![figure(subject.name, &kinds)]))
}

/// Action so far over time: the mean of each kind, and a few single paths behind it.
fn figure(name: &str, kinds: &[Kind]) -> Figure {
    let mut series = Vec::new();
    for (colour, kind) in kinds.iter().enumerate() {
        let so_far: Vec<Vec<f64>> = kind.states.iter().map(|states| cumulative(states.view())).collect();
        let line = |values: &[f64]| -> Vec<(f64, f64)> {
            values.iter().enumerate().map(|(k, value)| (k as f64 / STEPS as f64, *value)).collect()
        };
        for path in so_far.iter().take(DRAWN) {
            series.push(Series { name: String::new(), points: line(path), mark: Mark::Thin, colour });
        }
        let mean: Vec<f64> = (0..=STEPS)
            .filter_map(|k| Summary::of(&so_far.iter().map(|path| Some(path[k])).collect::<Vec<_>>()))
            .map(|summary| summary.mean)
            .collect();
        series.push(Series { name: kind.name.clone(), points: line(&mean), mark: Mark::Line, colour });
    }
    let chart = Chart {
        title: format!("{name}: action along the path, from the reference to the input"),
        x: ("time".into(), Scale::Linear),
        y: ("action so far".into(), Scale::Linear),
        series,
    };
    Figure { file: "action.svg".into(), svg: chart.svg() }
}

/// The action up to each point of the grid.
fn cumulative(states: ArrayView2<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all = vec![0.0];
    for k in 1..states.nrows() {
        let step = &states.row(k) - &states.row(k - 1);
        sum += step.dot(&step) * (states.nrows() - 1) as f64;
        all.push(sum);
    }
    all
}

fn paper(name: &str) -> Option<f64> {
    match name {
        "1-RF" => Some(3179.2),
        "2-RF" => Some(3006.9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_action_so_far_ends_with_the_action() {
        let states = Array2::from_shape_fn((11, 3), |(k, j)| (0.3 * k as f64 + j as f64).sin());
        let so_far = cumulative(states.view());
        assert_eq!((so_far.len(), so_far[0]), (11, 0.0));
        assert!((so_far[10] - kinetic_action(states.view()).unwrap()).abs() < 1e-12);
        assert!(so_far.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}
