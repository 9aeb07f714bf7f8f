//! The experiments on images, small: what they say must be what closed forms say, or what their parts say.
#![allow(clippy::unwrap_used)]

use brenier::classify::{ClassifierConfig, ResnetConfig};
use brenier::data::{Dataset, Scaling};
use brenier::engine::EngineConfig;
use brenier::flow::{OnnxFlow, TrainConfig, UnetConfig};
use brenier::problems::{Backdrop, PlantedImages, Scenario};
use brenier::{OnnxPredictor, PredictorConfig, Store};
use brenier_paper::{
    ActionConfig, BenchmarkConfig, CompletenessConfig, ConvergenceConfig, NamedFlow, PlantedConfig,
    QualitativeConfig, ReferencesConfig, Row, Scale, StabilityConfig, Subject, Table, TrainedSubjectConfig,
    XaiTrisConfig, action, benchmark, completeness, convergence, planted, qualitative, references, stability,
    train_checkpoints, xai_tris,
};
use ndarray::Array2;

#[path = "../../../tests/straight_flow.rs"]
mod straight_flow;

use straight_flow::straight_flow;

const SHAPE: [usize; 3] = [3, 8, 8];

/// Smooth images of two kinds.
fn images(rows: usize) -> Dataset {
    let features = SHAPE.iter().product();
    let values = Array2::from_shape_fn((rows, features), |(i, j)| {
        0.5 + 0.4 * ((0.7 * i as f32) + 0.21 * j as f32 * (1 + i % 2) as f32).sin()
    });
    let labels = (0..rows).map(|i| i % 2).collect();
    let data = Dataset::from_rows("waves", &SHAPE, values.view()).unwrap();
    data.with_labels(labels, vec!["slow".into(), "fast".into()]).unwrap()
}

struct World {
    model: OnnxPredictor,
    flow: OnnxFlow,
    data: Dataset,
}

impl World {
    fn new() -> World {
        let resnet = ResnetConfig { patch: 1, width: 8, multipliers: vec![1, 2], blocks: 1, groups: 4 };
        let network =
            ClassifierConfig::Resnet(resnet).build(&Scaling::symmetric(&SHAPE).unwrap(), 2, 5).unwrap();
        let model = OnnxPredictor::new(&network, &PredictorConfig::default()).unwrap();
        World {
            model,
            flow: OnnxFlow::new(straight_flow(SHAPE), &EngineConfig::default()).unwrap(),
            data: images(24),
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            name: "CIFAR-10 in small",
            model: &self.model,
            train: &self.data,
            held_out: &self.data,
            flows: vec![NamedFlow { name: "1-RF", flow: &self.flow }],
            diffusion: None,
            identity: "waves".into(),
        }
    }
}

fn row<'a>(table: &'a Table, method: &str, metric: &str) -> &'a Row {
    let found = table.rows.iter().find(|row| row.method == method && row.metric == metric);
    found.unwrap_or_else(|| panic!("no {method}, {metric} in {:?}", table.rows))
}

fn silent(_: &str) {}

#[test]
fn the_left_rule_converges_with_order_one_and_the_paper_stands_beside_it() {
    let world = World::new();
    let config = CompletenessConfig { examples: 2, seed: 1 };
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let (table, figures) = completeness(&world.subject(), &config, &store, &mut silent).unwrap();
    let slope = row(&table, "left", "slope of log relative error over log K");
    assert!((slope.mean + 1.0).abs() < 0.25, "{}", slope.mean);
    assert!((slope.paper.unwrap() + 0.88).abs() < 0.01);
    let relative = |method: &str| row(&table, method, "relative error").mean;
    assert_eq!(row(&table, "left, K = 50", "relative error").paper, Some(0.0534));
    assert!(relative("adaptive, at most 50 gradients") < relative("left, K = 200"));
    assert_eq!(row(&table, "left, K = 10", "gradient evaluations").mean, 10.0);
    assert!(figures[0].svg.contains("left, paper"));
    // What is there is taken, to the bit.
    let again = completeness(&world.subject(), &config, &store, &mut silent).unwrap();
    assert_eq!(again, (table, figures));
}

#[test]
fn straight_paths_have_the_action_of_their_length() {
    let world = World::new();
    let (table, figures) = action(&world.subject(), &ActionConfig { examples: 24, seed: 0 }).unwrap();
    // From 2 x to x: the action is |x|^2, and so is that of the line from black.
    let rows = world.data.rows_f64(&(0..24).collect::<Vec<_>>()).unwrap();
    let expected = rows.rows().into_iter().map(|row| row.dot(&row)).sum::<f64>() / 24.0;
    for method in ["1-RF", "line from black"] {
        assert!((row(&table, method, "action").mean / expected - 1.0).abs() < 1e-4, "{method}");
        assert!((row(&table, method, "length over distance").mean - 1.0).abs() < 1e-6);
    }
    assert_eq!(row(&table, "1-RF", "action").paper, Some(3179.2));
    assert!(figures[0].svg.contains("action so far"));
}

#[test]
fn a_picture_of_every_method_and_a_table_beside_the_paper() {
    let world = World::new();
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let methods = names(&["ig", "ddim", "transport"]);
    let config = QualitativeConfig { examples: 2, methods: methods.clone(), seed: 0 };
    let mut said = Vec::new();
    let (_, figures) =
        qualitative(&world.subject(), &config, &mut |line| said.push(line.to_string())).unwrap();
    let svg = &figures[0].svg;
    assert!(svg.contains(">transport</text>") && svg.contains("data:image/png;base64,"));
    assert!(!svg.contains(">ddim</text>") && said[1].contains("ddim is left out"), "{said:?}");
    let metrics = names(&["gps", "fce", "deletion-zero", "deletion-blur"]);
    let config = BenchmarkConfig { examples: 5, methods, metrics, consistency_steps: 20, seed: 0 };
    let (table, figures) = benchmark(&[world.subject()], &config, &Store::nowhere(), &mut silent).unwrap();
    let cell = |method: &str, metric: &str| row(&table, &format!("CIFAR-10 in small: {method}"), metric);
    assert!(cell("transport", "fce").mean < 1e-5 && cell("ig", "fce").mean > 1.0);
    assert_eq!((cell("ig", "fce").paper, cell("ig", "gps").n), (Some(1e4), 5));
    assert!(table.scale.contains("FCE in 20 steps"), "{}", table.scale);
    assert_eq!(figures[0].file, "benchmark-cifar-10-in-small.svg");
    let nothing = Subject { flows: Vec::new(), ..world.subject() };
    let refused = benchmark(&[nothing], &config, &Store::nowhere(), &mut silent).unwrap_err().to_string();
    assert!(refused.contains("there is no flow to follow"), "{refused}");
}

fn short(steps: u64) -> TrainConfig {
    TrainConfig { steps, batch: 8, warmup_steps: 2, log_every: 5, ..TrainConfig::default() }
}

#[test]
fn flows_of_several_seeds_are_trained_once_and_compared() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let config = StabilityConfig {
        seeds: 2,
        network: UnetConfig {
            patch: 2,
            width: 8,
            multipliers: vec![1],
            attention_at: 0,
            ..UnetConfig::default()
        },
        first: short(6),
        second: short(3),
        pairs: 8,
        examples: 2,
        seed: 0,
    };
    assert!(stability(&world.subject(), &config, &Store::nowhere(), &mut silent).is_err());
    let (table, figures) = stability(&world.subject(), &config, &store, &mut silent).unwrap();
    assert_eq!((table.rows.len(), row(&table, "2-RF", "ssim").paper), (12, Some(0.911)));
    assert_eq!((row(&table, "1-RF", "action").n, row(&table, "1-RF", "rank-correlation").n), (4, 2));
    assert!(row(&table, "OT-coupled 1-RF", "rank-correlation").mean <= 1.0);
    assert!(folder.path().join("2-RF-seed-1/flow.onnx").exists());
    let mut said = Vec::new();
    let again = stability(&world.subject(), &config, &store, &mut |line| said.push(line.to_string()));
    assert_eq!(again.unwrap(), (table, figures));
    assert!(said.iter().all(|line| line.ends_with("measured")), "nothing is trained twice: {said:?}");
    let other = StabilityConfig { pairs: 9, ..config };
    let refused = stability(&world.subject(), &other, &store, &mut silent).unwrap_err().to_string();
    assert!(refused.contains("holds another run: the settings was"), "{refused}");
}

#[test]
fn attribution_error_follows_field_error_over_a_training() {
    let world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let config = ConvergenceConfig { examples: 2, seed: 0, steps: 20 };
    let data = images(64);
    let kept = train_checkpoints(&data, &world.data, &config, &EngineConfig::default(), &store, &mut silent)
        .unwrap();
    assert_eq!((kept.len(), kept[0].step, kept[9].step), (10, 2, 20));
    let (table, _) = convergence(&world.subject(), &kept, &config, &store, &mut silent).unwrap();
    let error = |step: u64, metric: &str| row(&table, &format!("step {step}"), metric).mean;
    assert!(error(2, "relative field error") > 2.0 * error(18, "relative field error"));
    let pearson = row(&table, "all checkpoints", "Pearson correlation of the means");
    assert!(pearson.mean > 0.8, "{}", pearson.mean);
}

#[test]
fn methods_are_ranked_by_a_planted_truth() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let noise = (0..12 * 3 * 64).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 26) as u8 + 96).collect();
    let backgrounds = Dataset::from_pixels("grey", &SHAPE, noise).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let config = PlantedConfig {
        train_rows: 192,
        examples: 4,
        images: PlantedImages { patch: 3, ..PlantedImages::default() },
        training: TrainedSubjectConfig {
            classifier_steps: 60,
            flow_steps: 5,
            width: 8,
            augment: false,
            seed: 0,
        },
        image_methods: names(&["gradient-input", "transport"]),
        table_methods: names(&["ig", "gradient-input"]),
        ..PlantedConfig::at(Scale::Quick)
    };
    let (table, figures) =
        planted(&backgrounds, &config, &EngineConfig::default(), &store, &mut silent).unwrap();
    let columns = |method: &str| row(&table, &format!("columns: {method}"), "mass-accuracy").mean;
    assert!(row(&table, "columns: classifier", "accuracy").mean > 0.6, "{:?}", table.rows);
    // A third of the columns decide: guessing would get a third of the mass.
    assert!(columns("gradient-input") > 0.4 && columns("ig") > 0.4, "{:?}", table.rows);
    for metric in ["mass-accuracy", "rank-accuracy", "pointing-game", "deletion-zero"] {
        assert_eq!(row(&table, "patches: transport", metric).n, 4);
    }
    assert_eq!(figures.len(), 2);
    assert!(figures[1].svg.contains("gradient-input"));
}

#[test]
fn tetrominoes_are_credited_and_a_blind_model_gets_nothing_where_it_cannot_see() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let config = XaiTrisConfig {
        cells: vec![(Scenario::Linear, Backdrop::White)],
        rows: 1000,
        examples: 8,
        classifier_steps: 100,
        flow_steps: 20,
        reflow_steps: 10,
        group: 64,
        nearest: 2,
        methods: vec!["ig".into()],
        first_seed: 3,
        seeds: 1,
    };
    let engine = EngineConfig::default();
    let (table, figures) = xai_tris(&config, &engine, &store, &mut silent).unwrap();
    let value = |method: &str, metric: &str| row(&table, &format!("linear white, {method}"), metric).mean;
    assert!(value("MLP: classifier", "accuracy") > 0.8, "{:?}", table.rows);
    // Eight of 64 pixels are true: guessing would get an eighth.
    assert!(value("MLP: gaussian", "mass") > 0.5, "{:?}", table.rows);
    assert!(value("MLP: true counterpart", "mass") > 1.0 - 1e-9);
    assert!(value("CNN: true counterpart", "mass") > 1.0 - 1e-9);
    for metric in ["mass", "precision", "emd"] {
        assert!((0.0..=1.0).contains(&value("CNN: flow, trace", metric)));
    }
    let hidden = "mass on what it cannot see";
    assert_eq!(value("blind MLP: gaussian", hidden), 0.0);
    assert_eq!(value("blind MLP: flow, trace", hidden), 0.0);
    assert!(value("blind MLP: displacement, gaussian", hidden) > 0.1);
    assert!(figures[0].file == "xai-tris-linear-white.svg" && figures[0].svg.contains("gaussian"));
    let again = xai_tris(&config, &engine, &store, &mut silent).unwrap();
    assert_eq!(again, (table, figures), "what is there is taken");
}

#[test]
fn every_reference_has_its_rows_and_both_models_theirs() {
    let backgrounds = images(400);
    let folder = tempfile::tempdir().unwrap();
    let store = Store::in_folder(folder.path());
    let config = ReferencesConfig {
        train_rows: 200,
        examples: 4,
        images: PlantedImages { patch: 3, ..PlantedImages::default() },
        classifier_steps: 60,
        flow_steps: 4,
        reflow_steps: 4,
        width: 8,
        groups: vec![1, 32],
        nearest: 2,
        methods: vec!["ig".into()],
        seed: 0,
    };
    let (table, _) =
        references(&backgrounds, &config, &EngineConfig::default(), &store, &mut silent).unwrap();
    let mass = |method: &str| row(&table, method, "mass");
    for name in [
        "ig",
        "ig, 2 nearest without patches",
        "free, groups of 1: trace",
        "free, groups of 32: line",
        "free, groups of 32, reflow: displacement, no model",
        "second model: free, groups of 32, reflow: trace",
        "other class, groups of 32, reflow: line",
        "other-middle class, groups of 32, reflow: line",
        "noise: trace",
        "lead of free, groups of 32, reflow: trace over ig",
        "columns: other class, gaussian",
        "columns: other class, flow: line",
        "lead of columns: other class, gaussian over columns: shapley-values",
    ] {
        let found = mass(name);
        assert!(found.half_width.is_some());
        assert!(found.n == 4 && (-1.0..=1.0).contains(&found.mean), "{name}: {found:?}");
    }
}
