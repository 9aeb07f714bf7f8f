//! XAI-TRIS: tetrominoes on noise, where it is known which pixels tell two classes apart.
//!
//! ```text
//! mass        share of the absolute credit on the truth
//! precision   share of the truth among as many highest pixels
//! emd         1 - earth mover's distance to the truth / diagonal
//! ```
//!
//! Eight cells (linear, multiplicative, xor, rigid; white and correlated backgrounds), an MLP and a CNN that are trained here, and
//! test images that both get right, as the benchmark has it. Methods against a population compare an image with the other class:
//! optimal transport between two fitted Gaussians, a rectified flow from class to class with its trace and the line from its end,
//! rows of the other class drawn or nearest. Beside them PatternLocal, which leads the benchmark ([`pattern_local`]). Controls: the displacement alone, without a model; the true counterpart, which only
//! the generator knows; and a model that cannot see one of the tetrominoes.
//!
//! A number of the table is the mean over images of one seed, averaged over seeds; a seed draws images, networks and flows anew.

mod cell;
mod controls;
mod pattern_local;
mod picture;

use std::collections::BTreeMap;

use brenier::engine::EngineConfig;
use brenier::problems::{Backdrop, Scenario, Tetrominoes};
use brenier::{Result, Store};
use serde::{Deserialize, Serialize};

use self::cell::Cell;
use super::{Figure, Row, Scale as Size, Table, Tell};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct XaiTrisConfig {
    /// The cells: how the label is made, and what it lies on.
    pub cells: Vec<(Scenario, Backdrop)>,
    /// Images of a cell: eight of ten to learn from, one of ten held out in training, one of ten to explain.
    pub rows: usize,
    /// Test images that are explained, of those that both classifiers get right.
    pub examples: usize,
    /// Steps of each classifier.
    pub classifier_steps: u64,
    /// Steps of each flow.
    pub flow_steps: u64,
    /// Steps of the next level of a flow.
    pub reflow_steps: u64,
    /// Pairs of which the assignment is exact.
    pub group: usize,
    /// Rows of the other class in the methods with nearest ones.
    pub nearest: usize,
    /// The library's methods, by name.
    pub methods: Vec<String>,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds.
    pub seeds: u64,
}

impl XaiTrisConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> XaiTrisConfig {
        let few = ["gradient-input", "ig", "expected-gradients", "lime"];
        let all = [
            "gradient",
            "gradient-input",
            "smoothgrad",
            "guided-backprop",
            "deconvnet",
            "deeplift",
            "lrp",
            "ig",
            "ig+idgi",
            "guided-ig",
            "blur-ig",
            "gradient-shap",
            "expected-gradients",
            "deep-shap",
            "occlusion",
            "kernel-shap",
            "lime",
        ];
        let names: &[&str] = if scale == Size::Quick { &few } else { &all };
        let methods = names.iter().map(|name| name.to_string()).collect();
        let both = |scenario| Backdrop::ALL.map(|backdrop| (scenario, backdrop));
        let quick = XaiTrisConfig {
            cells: Scenario::ALL.into_iter().flat_map(both).collect(),
            rows: 4000,
            examples: 24,
            classifier_steps: 400,
            flow_steps: 400,
            reflow_steps: 200,
            group: 256,
            nearest: 10,
            methods,
            first_seed: 0,
            seeds: scale.seeds(),
        };
        match scale {
            Size::Quick => quick,
            Size::Full => XaiTrisConfig {
                rows: 10_000,
                examples: 100,
                classifier_steps: 2000,
                flow_steps: 2500,
                reflow_steps: 1500,
                group: 1024,
                ..quick
            },
        }
    }
}

/// One number of one seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    method: String,
    metric: String,
    value: f64,
}

impl Measured {
    fn new(method: &str, metric: &str, value: f64) -> Measured {
        Measured { method: method.to_string(), metric: metric.to_string(), value }
    }
}

/// Methods that transport between populations; those that the rest is compared with.
const AGAINST: [&str; 3] = ["gaussian", "flow, line", "flow, trace"];
/// What the lead is not counted over: controls, and flows from images without tetrominoes, which the benchmark does not have.
const CONTROLS: [&str; 5] =
    ["displacement", "true counterpart", "without tetromino", "free flow", "classifier"];

/// Runs the experiment.
///
/// # Errors
/// A store without a folder, and what training and explaining say.
pub fn xai_tris(
    config: &XaiTrisConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for &(scenario, backdrop) in &config.cells {
        let problem = Tetrominoes::of_benchmark(scenario, backdrop);
        let name = format!("{} {}", scenario.name(), backdrop.name());
        let mut seeds: Vec<Vec<Measured>> = Vec::new();
        for seed in config.first_seed..config.first_seed + config.seeds {
            let folder = store.within(&format!("{}-{}-{seed}", scenario.name(), backdrop.name()));
            // Which other cells and seeds there are says nothing of this one.
            let alone = XaiTrisConfig { cells: Vec::new(), first_seed: 0, seeds: 0, ..config.clone() };
            let part = folder.part("measured", &(alone, seed), || {
                let cell = Cell::make(problem, config, seed, engine, &folder, tell)?;
                tell(&format!("{name}, seed {seed}: {}", cell.accuracies()));
                cell.measure(config, tell)
            })?;
            seeds.push(part.measured);
            if seed == config.first_seed {
                let file = format!("xai-tris-{}.svg", name.replace(' ', "-"));
                figures.push(Figure { file, svg: part.picture });
            }
        }
        rows.extend(summarised(&name, &seeds));
    }
    let scale = format!(
        "8x8, {} images a cell, {} explained, seeds {} to {}",
        config.rows,
        config.examples,
        config.first_seed,
        config.first_seed + config.seeds - 1
    );
    Ok((Table { name: "xai-tris".into(), scale, rows }, figures))
}

/// What a part of the store holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    measured: Vec<Measured>,
    picture: String,
}

/// Means over seeds, and by how much the best transport between populations leads all other methods, seed by seed.
fn summarised(cell: &str, seeds: &[Vec<Measured>]) -> Vec<Row> {
    let mut order: Vec<(String, String)> = Vec::new();
    let mut values: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for measured in seeds.iter().flatten() {
        let key = (measured.method.clone(), measured.metric.clone());
        if !values.contains_key(&key) {
            order.push(key.clone());
        }
        values.entry(key).or_default().push(measured.value);
    }
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let mut rows: Vec<Row> =
        order.iter().map(|key| Row::of(&format!("{cell}, {}", key.0), &key.1, &values[key], None)).collect();
    for network in ["MLP", "CNN"] {
        for metric in ["mass", "precision", "emd"] {
            let best = |wanted: &dyn Fn(&str) -> bool| {
                let methods = order.iter().filter(|(method, of)| {
                    let name = method.strip_prefix(network).and_then(|rest| rest.strip_prefix(": "));
                    of == metric
                        && name.is_some_and(wanted)
                        && values[&(method.clone(), of.clone())].len() == seeds.len()
                });
                methods.max_by(|a, b| mean(&values[*a]).total_cmp(&mean(&values[*b])))
            };
            let control = |name: &str| CONTROLS.iter().any(|control| name.starts_with(control));
            let ours = best(&|name| AGAINST.contains(&name));
            let others = best(&|name| !AGAINST.contains(&name) && !control(name));
            if let (Some(ours), Some(others)) = (ours, others) {
                let lead: Vec<f64> = values[ours].iter().zip(&values[others]).map(|(a, b)| a - b).collect();
                let short = |key: &(String, String)| key.0.replace(&format!("{network}: "), "");
                let name = format!("{cell}, {network}: lead of {} over {}", short(ours), short(others));
                rows.push(Row::of(&name, metric, &lead, None));
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use brenier::attribute::Method;

    #[test]
    fn every_name_of_every_scale_is_a_method() {
        for scale in [Size::Quick, Size::Full] {
            assert!(XaiTrisConfig::at(scale).methods.iter().all(|name| name.parse::<Method>().is_ok()));
        }
    }

    #[test]
    fn the_lead_is_that_of_the_best_transport_over_the_best_other_seed_by_seed() {
        let seed = |gaussian: f64, ig: f64| {
            let of = |method: &str, value| Measured::new(method, "mass", value);
            vec![
                of("MLP: gaussian", gaussian),
                of("MLP: flow, line", 0.1),
                of("MLP: ig", ig),
                of("MLP: gradient", 0.2),
                of("MLP: true counterpart", 1.0),
                of("MLP: free flow, line", 0.95),
            ]
        };
        let rows = summarised("linear white", &[seed(0.9, 0.5), seed(0.7, 0.5)]);
        let lead = rows.last().unwrap();
        assert_eq!(lead.method, "linear white, MLP: lead of gaussian over ig");
        assert!((lead.mean - 0.3).abs() < 1e-12 && lead.n == 2);
    }
}
