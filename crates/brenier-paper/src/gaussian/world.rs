//! Two Gaussians, the exact flows between them, and what is measured of any other flow.
//!
//! ```text
//! action gap            (A - A*) / W2^2        A: action of the flow's paths, A*: of the oracle's from the same starts
//! endpoint gap          the same for the straight lines between the ends of the flow's paths
//! relative field error  |v - v*| / |v*|         over the states of a path, v*: the oracle's field
//! curvature proxy       sum_k |x_{k+1} - 2 x_k + x_{k-1}|^2 / dt^3
//! ```
//!
//! The expectation of `A*` is W2^2, so the gap is the paper's without the noise of which starts were drawn (0.2 for
//! a single path), most of all as the starts have exact first and second moments. The endpoint gap is what an exact
//! Reflow of the flow would have as its action gap: it separates *optimal* from *straight*.

use brenier::problems::{Gaussian, OptimalTransport, RectifiedTransport};
use brenier::{Result, Scheme, Solver, Trajectory, VelocityField, curvature, kinetic_action, solve};
use ndarray::{Array1, Array2, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::matching::matched;

/// The paper's W2^2.
pub(super) const SQUARED_DISTANCE: f64 = 27.8976;
/// The smallest and the largest deviation of the paper's target.
pub(super) const DEVIATIONS: (f64, f64) = (0.8, 2.0 + 1.0 / 15.0);
/// The number of dimensions of the paper's table.
pub(super) const DIMENSION: usize = 10;
/// Paths are measured on the paper's grid.
pub(super) const STEPS: usize = 50;

/// The two Gaussians and the exact flows between them.
#[derive(Clone)]
pub(super) struct World {
    pub(super) from: Gaussian,
    pub(super) to: Gaussian,
    pub(super) optimal: OptimalTransport,
    pub(super) rectified: RectifiedTransport,
    /// The covariance of `from`; its mean is 0.
    spread: Array2<f64>,
}

/// What is measured of a flow, averaged over paths.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Measures {
    pub(super) action_gap: f64,
    pub(super) endpoint_gap: f64,
    pub(super) field_error: f64,
    pub(super) curvature: f64,
}

/// A measure by the name that it has in tables.
type Metric = (&'static str, fn(&Measures) -> f64);

impl Measures {
    /// All measures.
    pub(super) const METRICS: [Metric; 4] = [
        ("action gap", |m| m.action_gap),
        ("relative field error", |m| m.field_error),
        ("curvature proxy", |m| m.curvature),
        ("endpoint gap", |m| m.endpoint_gap),
    ];
}

impl World {
    /// A world that begins at `N(0, spread)`.
    fn new(spread: Array2<f64>, to: Gaussian) -> Result<World> {
        let from = Gaussian::new(Array1::zeros(spread.nrows()).view(), spread.view())?;
        let optimal = OptimalTransport::new(from.clone(), to.clone())?;
        let rectified = RectifiedTransport::new(from.clone(), to.clone())?;
        Ok(World { from, to, optimal, rectified, spread })
    }

    /// `N(0, I) -> N(m, diag(s^2))` in ten dimensions, with the paper's W2^2.
    pub(super) fn paper() -> Result<World> {
        let (low, high) = DEVIATIONS;
        let step = (high - low) / (DIMENSION - 1) as f64;
        let deviations = Array1::from_shape_fn(DIMENSION, |i| low + step * i as f64);
        let spread: f64 = deviations.iter().map(|s| (s - 1.0).powi(2)).sum();
        let entry = ((SQUARED_DISTANCE - spread) / DIMENSION as f64).sqrt();
        let covariance = Array2::from_diag(&deviations.mapv(|s| s * s));
        World::new(
            Array2::eye(DIMENSION),
            Gaussian::new(Array1::from_elem(DIMENSION, entry).view(), covariance.view())?,
        )
    }

    /// The same kind of world in the plane, to look at: deviations 0.5 and 1.8, the mean at (4, 2).
    pub(super) fn plane() -> Result<World> {
        let covariance = Array2::from_diag(&Array1::from(vec![0.25, 3.24]));
        World::new(Array2::eye(2), Gaussian::new(Array1::from(vec![4.0, 2.0]).view(), covariance.view())?)
    }

    /// Covariances with different axes in each of so many planes: `diag(4, 1/4)` and `[[1, 0.9], [0.9, 1]]`,
    /// all means 0. Relative gaps of exact flows are the same for any number of planes.
    pub(super) fn rotated(planes: usize) -> Result<World> {
        let blocks = |block: [[f64; 2]; 2]| {
            Array2::from_shape_fn((2 * planes, 2 * planes), |(i, j)| {
                if i / 2 == j / 2 { block[i % 2][j % 2] } else { 0.0 }
            })
        };
        let centre = Array1::zeros(2 * planes);
        World::new(
            blocks([[4.0, 0.0], [0.0, 0.25]]),
            Gaussian::new(centre.view(), blocks([[1.0, 0.9], [0.9, 1.0]]).view())?,
        )
    }

    /// The number of dimensions.
    pub(super) fn dimension(&self) -> usize {
        self.from.dimension()
    }

    /// A batch of independent pairs whose references are [`matched`].
    pub(super) fn pairs(&self, rows: usize, rng: &mut ChaCha8Rng) -> Result<(Array2<f32>, Array2<f32>)> {
        let z0 = self.from.sample(rows, rng);
        let z1 = self.to.sample(rows, rng);
        let z0 = matched(z0, z1.view(), self.spread.view())?;
        Ok((z0.mapv(|v| v as f32), z1.mapv(|v| v as f32)))
    }

    /// Starting points for measurements. Their mean and covariance are exact, so the mean action of an affine flow
    /// does not depend on the draw.
    pub(super) fn starts(&self, count: usize, seed: u64) -> Result<Array2<f64>> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0001);
        let (z0, z1) = (self.from.sample(count, &mut rng), self.to.sample(count, &mut rng));
        matched(z0, z1.view(), self.spread.view())
    }

    /// The action gap of the exact Reflow of the exact 1-RF: straight lines between its ends.
    pub(super) fn reflow_gap(&self) -> Result<f64> {
        let d = self.dimension();
        let mut starts = Array2::zeros((d + 1, d));
        starts.slice_mut(ndarray::s![1.., ..]).assign(&Array2::<f64>::eye(d));
        let ends = solve(&self.rectified, starts.view(), 0.0, 1.0, &Solver::adaptive(1e-10))?;
        let images = Array2::from_shape_fn(starts.raw_dim(), |(i, j)| ends[i].end()[j]);
        Ok(self.rectified.endpoint_cost(images.view())? / self.optimal.squared_distance() - 1.0)
    }

    /// Runs the flow forward from `starts` on the paper's grid.
    pub(super) fn measure(&self, field: &dyn VelocityField, starts: ArrayView2<f64>) -> Result<Measures> {
        let paths = solve(field, starts, 0.0, 1.0, &Solver::fixed(Scheme::Rk4, STEPS))?;
        let count = paths.len() as f64;
        let (mut action, mut bend, mut ends, mut least) = (0.0, 0.0, 0.0, 0.0);
        for (path, start) in paths.iter().zip(starts.rows()) {
            action += kinetic_action(path.states.view())?;
            bend += curvature(path.states.view())?;
            let way = path.end() - start;
            ends += way.dot(&way);
            let best = self.optimal.map(start) - start;
            least += best.dot(&best);
        }
        let share = 1.0 / count / (self.optimal.squared_distance() + 1e-12);
        Ok(Measures {
            action_gap: (action - least) * share,
            endpoint_gap: (ends - least) * share,
            field_error: self.field_errors(&paths)?.iter().sum::<f64>() / count,
            curvature: bend / count,
        })
    }

    /// The relative field error of each path, all on one grid of [`STEPS`] steps, against the oracle.
    pub(super) fn field_errors(&self, paths: &[Trajectory]) -> Result<Vec<f64>> {
        let mut gaps = vec![0.0; paths.len()];
        let mut sizes = vec![0.0; paths.len()];
        // All paths at one time share the oracle's matrix.
        for k in 0..STEPS {
            let shape = (paths.len(), self.dimension());
            let states = Array2::from_shape_fn(shape, |(i, j)| paths[i].states[[k, j]]);
            let best = self.optimal.velocity(states.view(), &vec![paths[0].times[k]; paths.len()])?;
            for (i, path) in paths.iter().enumerate() {
                for j in 0..shape.1 {
                    gaps[i] += (path.velocities[[k, j]] - best[[i, j]]).powi(2);
                    sizes[i] += best[[i, j]].powi(2);
                }
            }
        }
        Ok(gaps.iter().zip(&sizes).map(|(gap, size)| gap.sqrt() / (size.sqrt() + 1e-12)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_is_the_papers_and_its_exact_flow_has_the_values_in_the_docs() {
        let world = World::paper().unwrap();
        assert!((world.optimal.squared_distance() - SQUARED_DISTANCE).abs() < 1e-9);
        let starts = world.starts(2000, 1).unwrap();
        let exact = world.measure(&world.rectified, starts.view()).unwrap();
        let deviations: f64 = (DEVIATIONS.0 + DEVIATIONS.1) * DIMENSION as f64 / 2.0;
        let gap = (2.0 - std::f64::consts::FRAC_PI_2) * deviations / SQUARED_DISTANCE;
        assert!((gap - 0.2205).abs() < 1e-4);
        assert!((exact.action_gap - gap).abs() < 2e-4, "{}", exact.action_gap);
        assert!((exact.field_error - 0.4726).abs() < 0.01, "{}", exact.field_error);
        assert!(exact.curvature > 60.7 && (exact.curvature - 74.0).abs() < 3.0, "{}", exact.curvature);
        assert!(exact.endpoint_gap.abs() < 1e-6, "the ends are optimally coupled: {}", exact.endpoint_gap);
        assert!(world.reflow_gap().unwrap().abs() < 1e-8);
        let oracle = world.measure(&world.optimal, starts.view()).unwrap();
        assert!(oracle.action_gap.abs() < 1e-9 && oracle.field_error < 1e-9 && oracle.curvature < 1e-9);
    }

    #[test]
    fn straight_lines_between_the_ends_of_the_exact_flow_cost_two_thirds_too_much_when_axes_differ() {
        let plane = World::rotated(1).unwrap();
        assert!((plane.optimal.squared_distance() - 1.7237).abs() < 1e-4);
        let gap = plane.reflow_gap().unwrap();
        assert!((gap - 0.6507).abs() < 1e-4, "{gap}");
        let exact = plane.measure(&plane.rectified, plane.starts(200, 2).unwrap().view()).unwrap();
        assert!((exact.endpoint_gap - gap).abs() < 1e-5, "{}", exact.endpoint_gap);
        assert!((exact.action_gap - 1.075).abs() < 2e-3, "{}", exact.action_gap);
        // Five planes at once: the same relative gap.
        let ten = World::rotated(5).unwrap();
        assert_eq!(ten.dimension(), 10);
        assert!((ten.optimal.squared_distance() - 5.0 * plane.optimal.squared_distance()).abs() < 1e-9);
        assert!((ten.reflow_gap().unwrap() - gap).abs() < 1e-6);
    }
}
