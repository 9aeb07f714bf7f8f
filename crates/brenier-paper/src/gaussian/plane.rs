//! Pictures of flows in the plane: some trajectories, and the cloud of states at times 0, 1/2 and 1.
//!
//! The cloud is the density as it can be seen without a choice of bandwidth. All panels start from the same points,
//! so that flows are compared and not draws.

use brenier::report::{Axes, Chart, Mark, Panels, Scale, Series};
use brenier::{Result, Scheme, Solver, VelocityField, solve};
use ndarray::ArrayView2;
use serde::{Deserialize, Serialize};

use crate::Figure;

/// Points of a cloud.
pub(super) const POINTS: usize = 300;
/// Of these, how many have their trajectory drawn.
const PATHS: usize = 24;
/// Steps that are solved, and every how many are drawn.
const STEPS: usize = 50;
const EVERY: usize = 2;

/// What is drawn of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Sketch {
    name: String,
    /// Points of each trajectory.
    paths: Vec<Vec<(f64, f64)>>,
    /// The cloud at times 0, 1/2 and 1.
    clouds: [Vec<(f64, f64)>; 3],
}

impl Sketch {
    /// Runs a flow of the plane from starting points.
    pub(super) fn of(name: &str, field: &dyn VelocityField, starts: ArrayView2<f64>) -> Result<Sketch> {
        let solved = solve(field, starts, 0.0, 1.0, &Solver::fixed(Scheme::Rk4, STEPS))?;
        // Four decimals are more than a picture shows.
        let round = |v: f64| (v * 1e4).round() / 1e4;
        let point = |i: usize, k: usize| {
            let state = solved[i].states.row(k);
            (round(state[0]), round(state[1]))
        };
        let cloud = |k: usize| (0..solved.len()).map(|i| point(i, k)).collect();
        Ok(Sketch {
            name: name.to_owned(),
            paths: (0..PATHS.min(solved.len()))
                .map(|i| (0..=STEPS).step_by(EVERY).map(|k| point(i, k)).collect())
                .collect(),
            clouds: [cloud(0), cloud(STEPS / 2), cloud(STEPS)],
        })
    }

    fn chart(&self) -> Chart {
        let clouds = self.clouds.iter().zip(["t = 0", "t = 1/2", "t = 1"]).zip([0, 4, 2]);
        let mut series: Vec<Series> = clouds
            .map(|((points, name), colour)| Series {
                name: name.into(),
                points: points.clone(),
                mark: Mark::Dots,
                colour,
            })
            .collect();
        series.extend(self.paths.iter().map(|points| Series {
            name: String::new(),
            points: points.clone(),
            mark: Mark::Thin,
            colour: 6,
        }));
        Chart {
            title: self.name.clone(),
            x: ("first coordinate".into(), Scale::Linear),
            y: ("second coordinate".into(), Scale::Linear),
            series,
        }
    }
}

/// The flows side by side.
pub(super) fn figure(file: &str, title: &str, sketches: &[Sketch]) -> Figure {
    let charts = sketches.iter().map(Sketch::chart).collect();
    Figure { file: file.into(), svg: Panels { title: title.into(), charts, axes: Axes::Equal }.svg() }
}
