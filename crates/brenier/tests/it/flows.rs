//! Training, against what is known in closed form.

use std::cell::Cell;
use std::ops::ControlFlow;

use brenier::data::Scaling;
use brenier::engine::{EngineConfig, EngineKind};
use brenier::flow::{
    CoupledPairs, Coupling, FlowMetadata, MatrixRows, MlpConfig, OnnxFlow, Pairs, PairsFn, Source,
    TrainConfig, Trained, train,
};
use brenier::problems::{Gaussian, OptimalTransport, RectifiedTransport};
use brenier::runs::ReflowRun;
use brenier::{Error, Result, Scheme, Solver, VelocityField, flow_ends, reflow_pairs};
use ndarray::{Array2, array};
use onnx_grad::Model;

use crate::shared::normal;

fn steady() -> impl FnMut(&brenier::flow::Progress) -> ControlFlow<()> {
    |_| ControlFlow::Continue(())
}

fn gaussians() -> (Gaussian, Gaussian) {
    let to = Gaussian::new(array![1.5, -0.5].view(), array![[2.0, 0.6], [0.6, 0.5]].view()).unwrap();
    (Gaussian::isotropic(2, 1.0).unwrap(), to)
}

/// Fresh independent pairs in every step.
fn fresh(seed: u64) -> impl Pairs {
    let (from, to) = gaussians();
    PairsFn::new(&[2], seed, move |rng, rows| {
        let (z0, z1) = (from.sample(rows, rng), to.sample(rows, rng));
        Ok((z0.mapv(|v| v as f32), z1.mapv(|v| v as f32)))
    })
}

fn small() -> Model {
    MlpConfig { width: 48, blocks: 1, time_features: 8, ..MlpConfig::default() }.build(&[2], 1).unwrap()
}

/// Root mean square of the difference, relative to the reference, over states on the way.
fn field_error(field: &dyn VelocityField, exact: &dyn VelocityField) -> f64 {
    let (from, _) = gaussians();
    let starts = normal(200, from.dimension(), 5);
    let (mut gap, mut size) = (0.0, 0.0);
    for t in [0.05, 0.3, 0.5, 0.7, 0.95] {
        let states = flow_ends(exact, starts.view(), 0.0, t, &Solver::fixed(Scheme::Rk4, 20)).unwrap();
        let expected = exact.velocity(states.view(), &[t; 200]).unwrap();
        let found = field.velocity(states.view(), &[t; 200]).unwrap();
        gap += (&found - &expected).mapv(|v| v * v).sum();
        size += expected.mapv(|v| v * v).sum();
    }
    (gap / size).sqrt()
}

#[test]
fn training_finds_the_rectified_flow_and_reflow_the_optimal_one() {
    let (from, to) = gaussians();
    let config = TrainConfig { steps: 1500, batch: 512, learning_rate: 4e-3, ..TrainConfig::default() };
    let first = train(&small(), &fresh(2), &config, None, &mut steady()).unwrap();
    let exact = RectifiedTransport::new(from.clone(), to.clone()).unwrap();
    let flow = OnnxFlow::new(first.model, &EngineConfig::default()).unwrap();
    let error = field_error(&flow, &exact);
    assert!(error < 0.06, "1-RF is {error} away from its closed form");
    // Covariances commute with the identity, so the endpoint map is optimal, and Reflow straightens the way.
    let references = normal(4096, 2, 8);
    let none = Array2::zeros((0, 2));
    let pairs =
        reflow_pairs(&flow, references.view(), none.view(), &Solver::fixed(Scheme::Rk4, 12), 3).unwrap();
    let config = TrainConfig { steps: 800, ..config };
    let second = train(flow.model(), &pairs, &config, None, &mut steady()).unwrap();
    let optimal = OptimalTransport::new(from, to).unwrap();
    let flow = OnnxFlow::new(second.model, &EngineConfig::default()).unwrap();
    let error = field_error(&flow, &optimal);
    assert!(error < 0.06, "2-RF is {error} away from optimal transport");
    assert!(second.progress.unwrap().loss < 0.02 * first.progress.unwrap().loss);
}

#[test]
fn the_pairs_of_reflow_are_the_ends_of_the_flow() {
    // Data with a tenth of the noise's spread: near them the flow changes fast, as it does near images.
    let from = Gaussian::isotropic(3, 1.0).unwrap();
    let to = Gaussian::isotropic(3, 0.01).unwrap();
    let flow = RectifiedTransport::new(from, to).unwrap();
    let references = normal(64, 3, 1);
    let error = |solver: &Solver| {
        let found = flow_ends(&flow, (0.1 * &references).view(), 1.0, 0.0, solver).unwrap();
        let size = |m: &Array2<f64>| m.iter().map(|v| v * v).sum::<f64>().sqrt();
        size(&(&found - &references)) / size(&references)
    };
    let (usual, coarse) = (error(&ReflowRun::default().solver), error(&Solver::fixed(Scheme::Heun, 10)));
    assert!(usual < 0.02 && coarse > 10.0 * usual, "{usual} {coarse}");
}

/// Pairs that fail at a step, as a run does that is killed there.
struct Killed<P> {
    pairs: P,
    at: Cell<u64>,
}

impl<P: Pairs> Pairs for Killed<P> {
    fn shape(&self) -> &[usize] {
        self.pairs.shape()
    }

    fn draw(&self, step: u64, rows: usize) -> Result<(Array2<f32>, Array2<f32>)> {
        if step == self.at.get() {
            return Err(Error::Zero { what: "the rest of this life" });
        }
        self.pairs.draw(step, rows)
    }
}

fn weights(trained: &Trained) -> Vec<u8> {
    [&trained.model, &trained.last]
        .iter()
        .flat_map(|m| m.graph.initializers.values().flat_map(|t| t.bytes().to_vec()))
        .collect()
}

#[test]
fn a_run_that_is_killed_and_resumed_ends_with_the_same_bits() {
    let data = normal(37, 2, 1).mapv(|v| v as f32);
    let rows = MatrixRows::new(data.view(), &[2]).unwrap();
    let pairs = || {
        CoupledPairs::new(&rows, Source::StandardNormal, Coupling::OptimalTransport { group: 8 }, 4).unwrap()
    };
    let model =
        MlpConfig { width: 16, blocks: 1, time_features: 4, ..MlpConfig::default() }.build(&[2], 1).unwrap();
    for kind in [EngineKind::Rten, EngineKind::Ort] {
        let engine = EngineConfig { kind, workers: Some(2), ..EngineConfig::default() };
        if engine.build().is_err() && std::env::var_os("BRENIER_TEST_WITHOUT_ORT").is_some() {
            continue;
        }
        let config = TrainConfig {
            steps: 60,
            batch: 24,
            micro_batch: Some(5),
            warmup_steps: 5,
            log_every: 4,
            checkpoint_every: 7,
            engine,
            ..TrainConfig::default()
        };
        let whole_folder = tempfile::tempdir().unwrap();
        let whole = train(&model, &pairs(), &config, Some(whole_folder.path()), &mut steady()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let killed = Killed { pairs: pairs(), at: Cell::new(0) };
        for (i, at) in [3, 12, 13, 41, 58].into_iter().enumerate() {
            killed.at.set(at);
            // The number of workers may change as well.
            let mut config = config.clone();
            config.engine.workers = Some(1 + i % 3);
            assert!(train(&model, &killed, &config, Some(folder.path()), &mut steady()).is_err());
        }
        killed.at.set(u64::MAX);
        let resumed = train(&model, &killed, &config, Some(folder.path()), &mut steady()).unwrap();
        assert_eq!(weights(&whole), weights(&resumed), "{kind}");
        let metrics =
            |f: &tempfile::TempDir| std::fs::read_to_string(f.path().join("metrics.jsonl")).unwrap();
        assert_eq!(metrics(&whole_folder), metrics(&folder));
        assert_eq!(metrics(&folder).lines().count(), 15);
        assert_ne!(whole.first_loss, whole.progress.unwrap().loss);
        // A training that is over stays as it is; other settings are refused.
        let again = train(&model, &pairs(), &config, Some(folder.path()), &mut steady()).unwrap();
        assert_eq!(weights(&again), weights(&whole));
        let other = TrainConfig { learning_rate: 1e-2, ..config.clone() };
        let refused = train(&model, &pairs(), &other, Some(folder.path()), &mut steady()).unwrap_err();
        assert!(refused.to_string().contains("differs in its settings"), "{refused}");
    }
}

#[test]
fn a_stopped_training_tells_how_far_it_came_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let config = TrainConfig { steps: 40, batch: 16, log_every: 10, ..TrainConfig::default() };
    let mut stop = |p: &brenier::flow::Progress| {
        if p.step == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let stopped = train(&small(), &fresh(0), &config, Some(folder.path()), &mut stop).unwrap();
    assert_eq!(stopped.step, 20);
    let done = train(&small(), &fresh(0), &config, Some(folder.path()), &mut stop).unwrap();
    let whole = train(&small(), &fresh(0), &config, None, &mut steady()).unwrap();
    assert_eq!(weights(&done), weights(&whole));
}

#[test]
fn a_diverging_loss_stops_with_a_hint() {
    let config = TrainConfig {
        steps: 3000,
        batch: 16,
        learning_rate: 5.0,
        warmup_steps: 1,
        clip_norm: 0.0,
        ..TrainConfig::default()
    };
    let error = train(&small(), &fresh(0), &config, None, &mut steady()).unwrap_err().to_string();
    assert!(error.contains("diverged") && error.contains("hint: lower the learning rate"), "{error}");
}

#[test]
fn a_flow_file_keeps_its_history_and_works_in_the_users_units() {
    let config = TrainConfig { steps: 5, batch: 16, ..TrainConfig::default() };
    let mut trained = train(&small(), &fresh(0), &config, None, &mut steady()).unwrap();
    let metadata = FlowMetadata {
        shape: Some(vec![2]),
        scaling: Some(Scaling::new(&[2], vec![10.0; 2], vec![3.0; 2]).unwrap()),
        level: Some(1),
        training: serde_json::to_value(&config).ok(),
        seed: Some(0),
        ..FlowMetadata::default()
    };
    metadata.write(&mut trained.model).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.onnx");
    trained.model.save(&file).unwrap();
    let flow = OnnxFlow::load(&file, &EngineConfig::default()).unwrap();
    assert_eq!(flow.metadata(), &metadata);
    FlowMetadata::default().write(&mut trained.model).unwrap();
    let plain = OnnxFlow::new(trained.model, &EngineConfig::default()).unwrap();
    let u = normal(70, 2, 3);
    let times = vec![0.4; 70];
    let expected = 3.0 * plain.velocity(u.view(), &times).unwrap();
    let found = flow.velocity(flow.to_user(u.view()).view(), &times).unwrap();
    assert!((found - expected).iter().all(|gap| gap.abs() < 1e-5));
}
