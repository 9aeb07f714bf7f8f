//! Section 5.3: do straighter flows give steadier maps? Flows of three seeds, and what they agree on.
//!
//! ```text
//! for each kind of flow (1-RF, 2-RF, 1-RF on pairs coupled by optimal transport), over seeds s:
//! action of the traces;  pixel variance, SSIM and rank correlation of the maps of the seeds
//! ```
//!
//! The flows are trained here, alike but for the seed; the scale decides how large they are and for how long.
//! Action is measured in the flow's own coordinates, as the paper's figures are.

use brenier::attribute::Context;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Cases, Cell, Lead, MethodRow, Metric, MetricColumn, MetricTable, Summary};
use brenier::flow::{Coupling, NetworkConfig, OnnxFlow, TrainConfig, UnetConfig, VelocityField};
use brenier::report::ranking;
use brenier::runs::{FlowRun, ReflowRun};
use brenier::{Result, Store, kinetic_action, sample};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

use super::{Figure, Row, Scale as Size, Subject, Table, Tell, trained, transport};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StabilityConfig {
    /// Seeds of the trainings; the paper has 3.
    pub seeds: u64,
    /// The network of images; rows of tables have their usual one.
    pub network: UnetConfig,
    /// The training of first levels.
    pub first: TrainConfig,
    /// The training of second levels.
    pub second: TrainConfig,
    /// Pairs for a second level: so many generated, so many inverted.
    pub pairs: usize,
    /// Inputs that are explained.
    pub examples: usize,
    /// The seed that draws them.
    pub seed: u64,
}

impl StabilityConfig {
    /// The settings of a scale.
    pub fn at(scale: Size, engine: &EngineConfig) -> StabilityConfig {
        let (patch, width, multipliers, steps, pairs, examples) = match scale {
            Size::Quick => (4, 16, vec![1], 300, 512, 8),
            Size::Full => (4, 48, vec![1], 1500, 1500, 32),
        };
        let batch = 32;
        StabilityConfig {
            seeds: 3,
            network: UnetConfig { patch, width, multipliers, attention_at: 0, ..UnetConfig::default() },
            first: trained::training(steps, batch, 0, engine),
            second: trained::training(steps / 2, batch, 0, engine),
            pairs,
            examples,
            seed: 0,
        }
    }
}

/// The measures across seeds, by the names of their metrics, with the paper's figures for 1-RF and 2-RF.
const MEASURES: [(&str, [f64; 2]); 4] = [
    ("action", [3179.2, 3006.9]),
    ("pixel-variance", [0.0032, 0.0010]),
    ("ssim", [0.716, 0.911]),
    ("rank-correlation", [0.662, 0.882]),
];
const KINDS: [&str; 3] = ["1-RF", "2-RF", "OT-coupled 1-RF"];
const STEPS: usize = 50;

/// What a kind of flow gives: for each of the measures its values.
type Found = Vec<Vec<f64>>;

/// Runs the experiment; the subject's own flows are not looked at.
pub fn stability(
    subject: &Subject,
    config: &StabilityConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let examples = subject.examples(config.examples, config.seed)?;
    let mut plain = config.clone();
    for training in [&mut plain.first, &mut plain.second] {
        (training.engine.library, training.engine.workers) = (None, None);
    }
    let settings = format!("{plain:?}");
    let about = [("the data", subject.train.fingerprint()), ("the settings", settings)];
    store.claim(&about.map(|(name, value)| (name.to_string(), value)).into_iter().collect())?;
    let mut found: Vec<Found> = Vec::new();
    for kind in KINDS {
        let key = subject.key(examples.inputs.view());
        found.push(store.part(&format!("stability-{kind}"), &key, || {
            let mut flows = Vec::new();
            for seed in 0..config.seeds {
                flows.push(train(kind, seed, subject, config, store, tell)?);
            }
            measure(subject, &examples.inputs, &examples.targets, &flows)
        })?);
        tell(&format!("{kind}: measured"));
    }
    let mut rows = Vec::new();
    for (k, kind) in KINDS.iter().enumerate() {
        for (m, (metric, paper)) in MEASURES.iter().enumerate() {
            rows.push(Row::of(kind, metric, &found[k][m], paper.get(k).copied()));
        }
    }
    let table = Table {
        name: "stability".into(),
        scale: format!(
            "{}, {} seeds, first level {} steps, second {} on {} pairs, {} examples",
            subject.name,
            config.seeds,
            config.first.steps,
            config.second.steps,
            2 * config.pairs,
            examples.targets.len()
        ),
        rows,
    };
    Ok((table, vec![figure(subject.name, &found)?]))
}

/// The flow of a kind and a seed; a second level begins with the first level of its seed.
fn train(
    kind: &str,
    seed: u64,
    subject: &Subject,
    config: &StabilityConfig,
    store: &Store,
    tell: Tell,
) -> Result<OnnxFlow> {
    let (data, held_out) = (subject.train, subject.held_out);
    let network = match NetworkConfig::for_shape(data.shape()) {
        NetworkConfig::Unet(_) => NetworkConfig::Unet(config.network.clone()),
        other => other,
    };
    let first = TrainConfig { seed, ..config.first.clone() };
    let coupling = match kind {
        "OT-coupled 1-RF" => Coupling::OptimalTransport { group: first.batch },
        _ => Coupling::Independent,
    };
    let run = FlowRun { network: Some(network), coupling, training: first, ..FlowRun::default() };
    if kind != "2-RF" {
        return trained::flow(data, held_out, &run, store, &format!("{kind}-seed-{seed}"), tell);
    }
    let level_one = trained::flow(data, held_out, &run, store, &format!("1-RF-seed-{seed}"), tell)?;
    let run = ReflowRun {
        generated: config.pairs,
        inverted: config.pairs,
        training: TrainConfig { seed, ..config.second.clone() },
        ..ReflowRun::default()
    };
    trained::next_level(&level_one, data, held_out, &run, store, &format!("2-RF-seed-{seed}"), tell)
}

fn measure(subject: &Subject, inputs: &Array2<f64>, targets: &[usize], flows: &[OnnxFlow]) -> Result<Found> {
    let method = transport()?;
    let (mut actions, mut credit) = (Vec::new(), Vec::new());
    for flow in flows {
        let context = Context { flows: vec![flow as &dyn VelocityField], ..Context::default() };
        let (explanations, paths) =
            method.explain_with_paths(subject.model, inputs.view(), targets, &context)?;
        for path in &paths {
            actions.push(kinetic_action(flow.to_network(sample(path.as_ref(), STEPS).view()).view())?);
        }
        credit.push(Cases::of(subject.model, &explanations)?.values);
    }
    let mut credit = credit.into_iter();
    let values = credit.next().unwrap_or_default();
    let others: Vec<Array2<f64>> = credit.collect();
    let cases = Cases {
        repeats: others.iter().map(|values| values.view()).collect(),
        ..Cases::new(subject.model, inputs.clone(), targets.to_vec(), values)?
    };
    let mut found = vec![actions];
    for (name, _) in &MEASURES[1..] {
        let scores = name.parse::<Metric>()?.scores(&cases)?;
        found.push(scores.into_iter().flatten().collect());
    }
    Ok(found)
}

/// The kinds of flows by every measure: means with their intervals.
fn figure(name: &str, found: &[Found]) -> Result<Figure> {
    let column = |name: &str| -> Result<MetricColumn> {
        let direction = name.parse::<Metric>()?.direction();
        Ok(MetricColumn { name: name.to_string(), direction, lead: Lead::unknown() })
    };
    let metrics = MEASURES.iter().map(|(name, _)| column(name)).collect::<Result<_>>()?;
    let cell = |values: &Vec<f64>| match Summary::of(&values.iter().map(|v| Some(*v)).collect::<Vec<_>>()) {
        Some(summary) => Cell::Measured(summary),
        None => Cell::Absent("nothing was measured".to_string()),
    };
    let row = |(kind, values): (&&str, &Found)| MethodRow {
        method: kind.to_string(),
        cells: values.iter().map(cell).collect(),
        gradients: 0.0,
        scores: 0.0,
    };
    let table = MetricTable {
        examples: found.first().and_then(|measures| measures.last()).map_or(0, Vec::len),
        metrics,
        rows: KINDS.iter().zip(found).map(row).collect(),
        left_out: Vec::new(),
    };
    let title = format!("{name}: what flows of other seeds agree on");
    let svg = ranking(&title, &table, &MEASURES.map(|(metric, _)| metric));
    Ok(Figure { file: "stability.svg".into(), svg })
}
