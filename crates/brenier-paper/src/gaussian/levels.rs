//! The levels of rectification between two Gaussians, each trained as its targets ask for.
//!
//! **The first level learns from noise.** Its target, the displacement of a random pair, is the field plus noise of
//! the size of the field, so a network with `p` weights that has seen `N` pairs is wrong by about
//!
//! ```text
//! E |v - v*|^2 = sigma^2 p / N          sigma^2 = E |z1 - z0 - v*|^2
//! ```
//!
//! Reflow keeps the ends of this flow, so their error goes through all later levels. Hence `p` is small (a single
//! hidden layer steered by the time: `silu(z) - silu(-z) = z`, so it holds every affine field whose axes do not
//! turn *exactly*), `N` is large, and the learning rate stays up while the weights are averaged over the last ninth
//! of the run: a rate that falls to nothing averages over the last few hundred steps only, and an average over half
//! of the run is biased, because the weights drift and a network is not linear in them.
//! References are matched to each batch ([`matched`](super::matching::matched)), which saves about half of the pairs.
//!
//! **Later levels learn from a flow's own ends**, which are a function of the start: there is no noise to average
//! away, and a short training from the last level's weights, with a rate that falls to nothing, is enough.

use std::ops::ControlFlow;

use brenier::engine::EngineConfig;
use brenier::flow::{Coupling, MlpConfig, OnnxFlow, Pairs, PairsFn, StoredPairs, TrainConfig, couple, train};
use brenier::{Error, Result, Scheme, Solver, reflow_pairs};
use ndarray::{Array2, s};
use onnx_grad::Model;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::world::World;

/// How the flows of a world are trained.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelsConfig {
    /// The network.
    pub network: MlpConfig,
    /// The training of the first level, on fresh independent pairs.
    pub first: TrainConfig,
    /// The training of later levels, and of flows on coupled pairs.
    pub later: TrainConfig,
    /// Pairs that are made for a later level, or coupled beforehand.
    pub pairs: usize,
}

impl LevelsConfig {
    /// A first level of so many steps and pairs a step; the rest to go with it.
    pub(super) fn sized(steps: u64, batch: usize, engine: &EngineConfig) -> LevelsConfig {
        let first = TrainConfig {
            steps,
            batch,
            learning_rate: 1e-2,
            warmup_steps: 100.min(steps / 4),
            final_rate: 0.2,
            ema_decay: averaged(steps, 9),
            log_every: 500,
            engine: engine.clone(),
            ..TrainConfig::default()
        };
        let later = TrainConfig {
            batch: batch.min(1024),
            learning_rate: 5e-3,
            final_rate: 0.0,
            ema_decay: averaged(steps, 30),
            ..first.clone()
        };
        let network = MlpConfig { width: 24, blocks: 0, time_features: 8, highest_frequency: 6.0 };
        LevelsConfig { network, first, later, pairs: 50_000 }
    }

    /// The same with another number of steps for later levels.
    pub(super) fn later_steps(mut self, steps: u64) -> LevelsConfig {
        (self.later.steps, self.later.ema_decay) = (steps, averaged(steps, 30));
        self
    }

    /// The settings that decide the result: not where the engine is and how many workers it has.
    pub(super) fn essential(&self) -> LevelsConfig {
        let mut essential = self.clone();
        for training in [&mut essential.first, &mut essential.later] {
            (training.engine.library, training.engine.workers) = (None, None);
        }
        essential
    }

    pub(super) fn check(&self) -> Result<()> {
        if self.pairs == 0 {
            return Err(Error::Zero { what: "the number of pairs that are made for a level" });
        }
        Ok(())
    }
}

/// The decay of an average over the last `1 / part` of a run.
fn averaged(steps: u64, part: u64) -> f64 {
    1.0 - part as f64 / steps.max(2 * part) as f64
}

/// A training in a world: which settings, and which seed.
pub(super) struct Levels<'a> {
    pub(super) world: &'a World,
    pub(super) config: &'a LevelsConfig,
    pub(super) seed: u64,
}

impl Levels<'_> {
    /// The untrained network.
    pub(super) fn initial(&self) -> Result<Model> {
        self.config.network.build(&[self.world.dimension()], self.seed)
    }

    /// Independent pairs, fresh in every step; `stream` tells trainings apart that must not see the same.
    pub(super) fn fresh_pairs(&self, stream: u64) -> impl Pairs {
        let world = self.world.clone();
        PairsFn::new(&[self.world.dimension()], self.seed ^ stream << 32, move |rng, rows| {
            world.pairs(rows, rng)
        })
    }

    /// Pairs assigned optimally in groups, made beforehand; and their mean squared distance.
    ///
    /// Every group has a generator of its own, so they can be made in any order.
    pub(super) fn coupled_pairs(&self, group: usize) -> Result<(StoredPairs, f64)> {
        if group == 0 {
            return Err(Error::Zero { what: "the number of pairs that are assigned together" });
        }
        let groups: Vec<(Array2<f32>, Array2<f32>)> = (0..self.config.pairs.div_ceil(group) as u64)
            .into_par_iter()
            .map(|index| {
                let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x5eed_0020);
                rng.set_stream(index);
                let z0 = self.world.from.sample(group, &mut rng).mapv(|v| v as f32);
                let z1 = self.world.to.sample(group, &mut rng).mapv(|v| v as f32);
                couple(Coupling::OptimalTransport { group }, z0, z1)
            })
            .collect::<Result<_>>()?;
        let shape = (group * groups.len(), self.world.dimension());
        let (mut z0, mut z1) = (Array2::zeros(shape), Array2::zeros(shape));
        for (i, (from, to)) in groups.iter().enumerate() {
            let rows = s![i * group..(i + 1) * group, ..];
            z0.slice_mut(rows).assign(from);
            z1.slice_mut(rows).assign(to);
        }
        let cost = (&z1 - &z0).iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / shape.0 as f64;
        Ok((StoredPairs::new(&[self.world.dimension()], z0, z1, self.seed)?, cost))
    }

    /// Pairs of the ends of a flow's paths.
    pub(super) fn reflow_pairs(&self, flow: &OnnxFlow, level: u64) -> Result<StoredPairs> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x5eed_0010 ^ level << 8);
        let references = self.world.from.sample(self.config.pairs, &mut rng);
        let none = Array2::zeros((0, self.world.dimension()));
        reflow_pairs(flow, references.view(), none.view(), &Solver::fixed(Scheme::Rk4, 20), self.seed)
    }

    /// Trains a network on pairs.
    pub(super) fn train(&self, model: &Model, pairs: &dyn Pairs, training: &TrainConfig) -> Result<OnnxFlow> {
        let training = TrainConfig { seed: self.seed, ..training.clone() };
        let trained = train(model, pairs, &training, None, &mut |_| ControlFlow::Continue(()))?;
        OnnxFlow::new(trained.model, &training.engine)
    }

    /// 1-RF: independent pairs.
    pub(super) fn first(&self) -> Result<OnnxFlow> {
        self.train(&self.initial()?, &self.fresh_pairs(0), &self.config.first)
    }

    /// The next level after a flow: its own ends, from its own weights.
    pub(super) fn next(&self, flow: &OnnxFlow, level: u64) -> Result<OnnxFlow> {
        self.train(flow.model(), &self.reflow_pairs(flow, level)?, &self.config.later)
    }

    /// 1-RF on pairs that were assigned in groups, and what these pairs cost.
    pub(super) fn coupled(&self, group: usize) -> Result<(OnnxFlow, f64)> {
        let (pairs, cost) = self.coupled_pairs(group)?;
        Ok((self.train(&self.initial()?, &pairs, &self.config.later)?, cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigned_pairs_cost_less_the_more_are_assigned_together_but_never_less_than_the_optimum() {
        let world = World::rotated(1).unwrap();
        let config = LevelsConfig { pairs: 4096, ..LevelsConfig::sized(10, 16, &EngineConfig::default()) };
        let levels = Levels { world: &world, config: &config, seed: 3 };
        let best = world.optimal.squared_distance();
        let gaps: Vec<f64> =
            [1, 8, 64].map(|group| levels.coupled_pairs(group).unwrap().1 / best - 1.0).into();
        // Alone, pairs are independent: (tr S0 + tr S1) / W2^2 - 1.
        assert!((gaps[0] - (6.25 / best - 1.0)).abs() < 0.2, "{gaps:?}");
        assert!(gaps[0] > 3.0 * gaps[1] && gaps[1] > 2.0 * gaps[2] && gaps[2] > 0.0, "{gaps:?}");
        let (pairs, again) = (levels.coupled_pairs(8).unwrap().0, levels.coupled_pairs(8).unwrap().0);
        assert_eq!(pairs.rows(), again.rows());
        assert!(levels.coupled_pairs(0).is_err());
    }
}
