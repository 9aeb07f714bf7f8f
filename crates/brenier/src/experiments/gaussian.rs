//! Appendix F.2: learned transport between Gaussians, where the optimal one is known.
//!
//! ```text
//! N(0, I) -> N(m, diag(s^2)),   d = 10,   W2^2 = |m|^2 + sum_i (s_i - 1)^2 = 27.8976
//! ```
//!
//! The paper gives only the dimension and W2^2. Ours has deviations `s_i` in equal steps from 0.8 to 2.0667 and
//! a mean with equal entries that makes W2^2 exact. The sum of the deviations is the one that the paper's action
//! gap asks for: the exact 1-RF has action
//!
//! ```text
//! A = W2^2 + (2 - pi/2) sum_i s_i          (r_i(t)^2 = (1-t)^2 + s_i^2 t^2,  int r_i'^2 = (s_i - 1)^2 + (2 - pi/2) s_i)
//! ```
//!
//! so a gap of 0.2205 is `sum_i s_i = 14.333`. The other columns then have no freedom left, and **two of the
//! paper's figures for 1-RF do not follow from its own formulas**:
//!
//! - *Curvature proxy*, 0.0763 in the paper. A trajectory with mean velocity `u` has
//!   `int |x''|^2 >= pi^2 int |x' - u|^2` (Wirtinger), and the right side is at least `pi^2` times the excess
//!   action when the ends are optimally coupled, as they are here. With the paper's own gap and W2^2 that is at
//!   least 60.7, whatever the covariance; the exact value here is 74. The oracle's 3.45e-5 is 0 in exact
//!   arithmetic: it is rounding, multiplied by `K^3`.
//! - *Relative field error*, 0.2933 in the paper. For every flow that carries p0 to p1, optimal transport's
//!   Hamilton-Jacobi equation gives `E int |v - v*|^2 = A - W2^2`. So the squared error, pooled over paths, is
//!   `gap W2^2 / E int |v*|^2`, and the last integral is at most W2^2 here: at least `sqrt(0.2205) = 0.47`. The
//!   mean of the ratios of single paths, which is what is reported, is 0.4726 for the exact 1-RF.
//!
//! **The action gap** is measured against the oracle's action on the same starting points, whose mean is W2^2:
//! the same quantity as the paper's, without the noise of which points were drawn (which is 0.2 for a single
//! path; the paper's +-0.0014 is of the size that some twenty thousand paths would leave).
//!
//! At full scale (6 million pairs a level) seed 0 has a field error of 0.0090 after one Reflow and 0.0089 after
//! two: above the paper's 0.003. That a second Reflow does not change it points to the endpoint map of the 1-RF,
//! which learns from noisy targets and which Reflow keeps; longer training of the first level is not yet tried.

use std::ops::ControlFlow;

use ndarray::{Array1, Array2, ArrayView2};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Row, Table};
use crate::data::synthetic::{Gaussian, OptimalTransport, RectifiedTransport};
use crate::engine::EngineConfig;
use crate::flow::{Coupling, MlpConfig, OnnxFlow, Pairs, PairsFn, TrainConfig, couple, reflow_pairs, train};
use crate::path::{Method, Solver, curvature, kinetic_action, solve};
use crate::{Error, Result, VelocityField};

/// The paper's W2^2.
const SQUARED_DISTANCE: f64 = 27.8976;
/// The number of dimensions of its table.
const DIMENSION: usize = 10;
/// The smallest and the largest deviation of the target.
const DEVIATIONS: (f64, f64) = (0.8, 2.0 + 1.0 / 15.0);
/// Paths are measured on the paper's grid.
const STEPS: usize = 50;

/// How much is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// One seed and short trainings: to see that it works.
    Quick,
    /// Five seeds, as in the paper.
    #[default]
    Full,
}

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GaussianConfig {
    /// How large it is, in a word.
    pub scale: Scale,
    /// The number of seeds; the paper has 5.
    pub seeds: u64,
    /// The first seed.
    pub first_seed: u64,
    /// The network.
    pub network: MlpConfig,
    /// How every level is trained.
    pub training: TrainConfig,
    /// Pairs that a flow makes for the next level.
    pub pairs: usize,
    /// Pairs that are assigned together in the OT-coupled flow.
    pub group: usize,
    /// Paths on which flows are measured.
    pub paths: usize,
}

impl GaussianConfig {
    /// The settings of a scale.
    pub fn at(scale: Scale, engine: EngineConfig) -> GaussianConfig {
        let training = TrainConfig {
            batch: 1024,
            learning_rate: 3e-3,
            warmup_steps: 100,
            ema_decay: 0.995,
            log_every: 500,
            engine,
            ..TrainConfig::default()
        };
        let network = MlpConfig { width: 64, blocks: 1, ..MlpConfig::default() };
        match scale {
            Scale::Quick => GaussianConfig {
                scale,
                seeds: 1,
                first_seed: 0,
                network: MlpConfig { width: 48, ..network },
                training: TrainConfig { steps: 300, batch: 256, ..training },
                pairs: 2048,
                group: 64,
                paths: 256,
            },
            Scale::Full => GaussianConfig {
                scale,
                seeds: 5,
                first_seed: 0,
                network,
                training: TrainConfig { steps: 6000, ..training },
                pairs: 50_000,
                group: 256,
                paths: 2000,
            },
        }
    }
}

/// Runs the experiment; `progress` is told what has been done.
pub fn gaussian(config: &GaussianConfig, progress: &mut dyn FnMut(&str)) -> Result<Table> {
    if config.seeds == 0 || config.paths == 0 || config.pairs == 0 {
        return Err(Error::Setting {
            name: "the size of the experiment",
            value: format!("{} seeds, {} paths, {} pairs", config.seeds, config.paths, config.pairs),
            needs: "all are at least 1",
            hint: "the paper has 5 seeds",
        });
    }
    let world = World::new()?;
    let mut measured: Vec<(&str, Vec<Measures>)> =
        ["OT oracle", "1-RF exact", "1-RF", "2-RF", "3-RF", "OT-coupled 1-RF"]
            .map(|name| (name, vec![]))
            .into();
    for seed in config.first_seed..config.first_seed + config.seeds {
        let starts = world.from.sample(config.paths, &mut ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0001));
        let mut note = |method: usize, field: &dyn VelocityField| -> Result<()> {
            let (name, all) = &mut measured[method];
            let found = world.measure(field, starts.view())?;
            progress(&format!(
                "seed {seed}, {name}: action gap {:.5}, relative field error {:.5}, curvature {:.4}",
                found.action_gap, found.field_error, found.curvature
            ));
            all.push(found);
            Ok(())
        };
        note(0, &world.optimal)?;
        note(1, &world.rectified)?;
        let initial = config.network.build(&[DIMENSION], seed)?;
        let mut flow = world.train(config, &initial, &world.pairs(seed, Coupling::Independent), seed)?;
        note(2, &flow)?;
        for level in [2, 3] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x5eed_0010 ^ level << 8);
            let references = world.from.sample(config.pairs, &mut rng);
            let none = Array2::zeros((0, DIMENSION));
            let solver = Solver::fixed(Method::Rk4, 20);
            let pairs = reflow_pairs(&flow, references.view(), none.view(), &solver, seed)?;
            flow = world.train(config, flow.model(), &pairs, seed)?;
            note(level as usize + 1, &flow)?;
        }
        let coupling = Coupling::OptimalTransport { group: config.group };
        let coupled = world.train(config, &initial, &world.pairs(seed, coupling), seed)?;
        note(5, &coupled)?;
    }
    let mut rows =
        vec![Row::of("OT oracle", "W2^2", &[world.optimal.squared_distance()], Some(SQUARED_DISTANCE))];
    for (name, all) in &measured {
        let paper = paper(name);
        let mut row = |metric: &str, value: fn(&Measures) -> f64, paper| {
            rows.push(Row::of(name, metric, &all.iter().map(value).collect::<Vec<_>>(), paper));
        };
        row("action gap", |m| m.action_gap, paper.map(|p| p[0]));
        row("relative field error", |m| m.field_error, paper.map(|p| p[1]));
        row("curvature proxy", |m| m.curvature, paper.map(|p| p[2]));
    }
    let scale = match config.scale {
        Scale::Quick => "quick",
        Scale::Full => "full",
    };
    Ok(Table {
        name: "gaussian".into(),
        scale: format!(
            "{scale}: d = {DIMENSION}, {} seeds, {} steps of {} pairs a level, {} paths of {STEPS} steps",
            config.seeds, config.training.steps, config.training.batch, config.paths
        ),
        rows,
    })
}

/// Action gap, relative field error and curvature proxy in the paper's table.
fn paper(method: &str) -> Option<[f64; 3]> {
    match method {
        "OT oracle" => Some([0.0, 0.0, 3.45e-5]),
        "1-RF" => Some([0.2205, 0.2933, 0.0763]),
        "2-RF" => Some([0.00189, 0.00284, 4.85e-4]),
        "3-RF" => Some([0.00199, 0.00276, 4.35e-4]),
        _ => None,
    }
}

/// The two Gaussians and the exact flows between them.
struct World {
    from: Gaussian,
    to: Gaussian,
    optimal: OptimalTransport,
    rectified: RectifiedTransport,
}

/// What is measured of a flow, averaged over paths.
struct Measures {
    action_gap: f64,
    field_error: f64,
    curvature: f64,
}

impl World {
    fn new() -> Result<World> {
        let (low, high) = DEVIATIONS;
        let deviations =
            Array1::from_shape_fn(DIMENSION, |i| low + (high - low) * i as f64 / (DIMENSION - 1) as f64);
        let spread: f64 = deviations.iter().map(|s| (s - 1.0).powi(2)).sum();
        let entry = ((SQUARED_DISTANCE - spread) / DIMENSION as f64).sqrt();
        let covariance = Array2::from_diag(&deviations.mapv(|s| s * s));
        let from = Gaussian::isotropic(DIMENSION, 1.0)?;
        let to = Gaussian::new(Array1::from_elem(DIMENSION, entry).view(), covariance.view())?;
        let optimal = OptimalTransport::new(from.clone(), to.clone())?;
        let rectified = RectifiedTransport::new(from.clone(), to.clone())?;
        Ok(World { from, to, optimal, rectified })
    }

    /// Fresh pairs in every step.
    fn pairs(&self, seed: u64, coupling: Coupling) -> impl Pairs {
        let (from, to) = (self.from.clone(), self.to.clone());
        PairsFn::new(&[DIMENSION], seed, move |rng, rows| {
            let z0 = from.sample(rows, rng).mapv(|v| v as f32);
            let z1 = to.sample(rows, rng).mapv(|v| v as f32);
            couple(coupling, z0, z1)
        })
    }

    fn train(
        &self,
        config: &GaussianConfig,
        model: &onnx_grad::Model,
        pairs: &dyn Pairs,
        seed: u64,
    ) -> Result<OnnxFlow> {
        let training = TrainConfig { seed, ..config.training.clone() };
        let trained = train(model, pairs, &training, None, &mut |_| ControlFlow::Continue(()))?;
        OnnxFlow::new(trained.model, &training.engine)
    }

    /// Runs the flow forward from `starts` on the paper's grid.
    fn measure(&self, field: &dyn VelocityField, starts: ArrayView2<f64>) -> Result<Measures> {
        let paths = solve(field, starts, 0.0, 1.0, &Solver::fixed(Method::Rk4, STEPS))?;
        let count = paths.len() as f64;
        let (mut action, mut bend, mut least) = (0.0, 0.0, 0.0);
        for (path, start) in paths.iter().zip(starts.rows()) {
            action += kinetic_action(path.states.view())?;
            bend += curvature(path.states.view())?;
            let way = self.optimal.map(start) - start;
            least += way.dot(&way);
        }
        // All paths at one time share the oracle's matrix.
        let mut gaps = vec![0.0; paths.len()];
        let mut sizes = vec![0.0; paths.len()];
        for k in 0..STEPS {
            let states = Array2::from_shape_fn(starts.raw_dim(), |(i, j)| paths[i].states[[k, j]]);
            let best = self.optimal.velocity(states.view(), &vec![paths[0].times[k]; paths.len()])?;
            for (i, path) in paths.iter().enumerate() {
                for j in 0..DIMENSION {
                    gaps[i] += (path.velocities[[k, j]] - best[[i, j]]).powi(2);
                    sizes[i] += best[[i, j]].powi(2);
                }
            }
        }
        let error: f64 = gaps.iter().zip(&sizes).map(|(gap, size)| gap.sqrt() / (size.sqrt() + 1e-12)).sum();
        Ok(Measures {
            action_gap: (action - least) / count / (SQUARED_DISTANCE + 1e-12),
            field_error: error / count,
            curvature: bend / count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_world_is_the_papers_and_its_exact_flow_has_the_values_in_the_docs() {
        let world = World::new().unwrap();
        assert!((world.optimal.squared_distance() - SQUARED_DISTANCE).abs() < 1e-9);
        let starts = world.from.sample(2000, &mut ChaCha8Rng::seed_from_u64(1));
        let exact = world.measure(&world.rectified, starts.view()).unwrap();
        let deviations: f64 = (DEVIATIONS.0 + DEVIATIONS.1) * DIMENSION as f64 / 2.0;
        let gap = (2.0 - std::f64::consts::FRAC_PI_2) * deviations / SQUARED_DISTANCE;
        assert!((gap - 0.2205).abs() < 1e-4);
        assert!((exact.action_gap - gap).abs() < 0.003, "{}", exact.action_gap);
        assert!((exact.field_error - 0.4726).abs() < 0.01, "{}", exact.field_error);
        assert!(exact.curvature > 60.7 && (exact.curvature - 74.0).abs() < 3.0, "{}", exact.curvature);
        let oracle = world.measure(&world.optimal, starts.view()).unwrap();
        assert!(oracle.action_gap.abs() < 1e-9 && oracle.field_error < 1e-9 && oracle.curvature < 1e-9);
    }

    #[test]
    fn a_short_training_has_the_papers_order() {
        let config = GaussianConfig::at(Scale::Quick, EngineConfig::default());
        let mut lines = 0;
        let table = gaussian(&config, &mut |_| lines += 1).unwrap();
        assert_eq!((lines, table.rows.len()), (6, 19));
        let value = |method: &str, metric: &str| {
            table.rows.iter().find(|r| r.method == method && r.metric == metric).unwrap().mean
        };
        for metric in ["relative field error", "curvature proxy"] {
            assert!(value("2-RF", metric) < 0.7 * value("1-RF", metric), "{metric}");
            assert!(value("OT-coupled 1-RF", metric) < value("1-RF", metric), "{metric}");
        }
    }
}
