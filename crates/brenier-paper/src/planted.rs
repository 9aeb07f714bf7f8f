//! Planted truth: methods ranked by whether their credit falls on what is known to decide.
//!
//! ```text
//! mass accuracy, rank accuracy, pointing game        on images with a deciding patch, and on tables with deciding columns
//! ```
//!
//! A classifier learns the label, and only examples that it gets right are explained. That it learned the deciding
//! feature, and not the one that goes along with it, is measured too: its accuracy on data in which the two never
//! agree. Deletion stands beside the truth, to see how far such measures can be trusted where there is no truth.

use std::ops::ControlFlow;

use brenier::classify::accuracy;
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Evaluation, Metric, MetricTable};
use brenier::problems::{Planted, PlantedImages, PlantedTable};
use brenier::report::ranking;
use brenier::{Error, Result, Store};
use ndarray::Axis;
use serde::{Deserialize, Serialize};

use super::benchmark::{TrainedSubject, TrainedSubjectConfig, methods, table_rows, train_subject};
use super::{Figure, NamedFlow, Row, Scale as Size, Subject, Table, Tell};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedConfig {
    /// Rows that classifier and flow learn from.
    pub train_rows: usize,
    /// Inputs that are explained.
    pub examples: usize,
    /// The patches.
    pub images: PlantedImages,
    /// The columns.
    pub table: PlantedTable,
    /// The trainings.
    pub training: TrainedSubjectConfig,
    /// Methods on images, by name.
    pub image_methods: Vec<String>,
    /// Methods on tables, by name.
    pub table_methods: Vec<String>,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl PlantedConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> PlantedConfig {
        let gradients = ["gradient", "gradient-input", "smoothgrad", "ig", "transport", "expected-gradients"];
        let images = ["guided-backprop", "grad-cam", "blur-ig", "occlusion"];
        let more = [
            "deconvnet",
            "smoothgrad-squared",
            "vargrad",
            "gradient-shap",
            "guided-ig",
            "ig+idgi",
            "transport+idgi",
        ];
        let sampled = ["kernel-shap", "lime", "rise"];
        let tables = ["kernel-shap", "shapley-values", "lime"];
        let (train_rows, examples) = if scale == Size::Quick { (2000, 16) } else { (20_000, 200) };
        let owned = |lists: &[&[&str]]| lists.concat().into_iter().map(str::to_string).collect();
        let (image_methods, table_methods) = match scale {
            Size::Quick => (owned(&[&gradients, &images]), owned(&[&gradients, &tables])),
            Size::Full => (
                owned(&[&gradients, &images, &more, &sampled]),
                owned(&[&gradients, &tables, &["gradient-shap", "guided-ig", "geodesic-ig", "ig+idgi"]]),
            ),
        };
        let training = TrainedSubjectConfig { width: 8, ..TrainedSubjectConfig::at(scale) };
        PlantedConfig {
            train_rows,
            examples,
            images: PlantedImages::default(),
            table: PlantedTable::default(),
            training,
            image_methods,
            table_methods,
            seed: 0,
        }
    }
}

const METRICS: [&str; 4] = ["mass-accuracy", "rank-accuracy", "pointing-game", "deletion-zero"];
const IMAGES: &str = "patches";
const TABLE: &str = "columns";

/// Runs the experiment on backgrounds that are colour images, and on tables.
pub fn planted(
    backgrounds: &Dataset,
    config: &PlantedConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    // Nothing that is explained was seen in training: other draws, and other backgrounds.
    let (for_training, for_tests) = backgrounds.split(0.8, config.seed)?;
    let test_rows = 2 * config.examples.max(64);
    let independent = PlantedImages { agreement: 0.5, ..config.images };
    let against = PlantedImages { agreement: 0.0, ..config.images };
    let (seed, other) = (config.seed, config.seed ^ 0x7e57);
    let images = World {
        name: IMAGES,
        train: config.images.make(&for_training, config.train_rows, seed)?,
        test: independent.make(&for_tests, test_rows, other)?,
        against: against.make(&for_tests, test_rows, other)?,
        methods: &config.image_methods,
    };
    let free = PlantedTable { correlation: 0.0 };
    let opposed = PlantedTable { correlation: -config.table.correlation };
    let tables = World {
        name: TABLE,
        train: config.table.make(config.train_rows, seed)?,
        test: free.make(test_rows, other)?,
        against: opposed.make(test_rows, other)?,
        methods: &config.table_methods,
    };
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for world in [images, tables] {
        let (more, figure) = world.run(config, engine, &store.within(world.name), tell)?;
        rows.extend(more);
        figures.push(figure);
    }
    let scale = format!(
        "{} rows to learn from, {} explained, patches of {} pixels, seed {seed}",
        config.train_rows, config.examples, config.images.patch
    );
    Ok((Table { name: "planted".into(), scale, rows }, figures))
}

/// One kind of planted data.
struct World<'a> {
    name: &'static str,
    train: Planted,
    /// Here what goes along with the label in training says nothing of it.
    test: Planted,
    /// Here it says the opposite.
    against: Planted,
    methods: &'a [String],
}

impl World<'_> {
    fn run(
        &self,
        config: &PlantedConfig,
        engine: &EngineConfig,
        store: &Store,
        tell: Tell,
    ) -> Result<(Vec<Row>, Figure)> {
        let trained =
            train_subject(&self.train.data, &self.test.data, &config.training, engine, store, tell)?;
        let opposed = accuracy(&trained.network, &self.against.data, engine)?;
        let one =
            |metric: &str, value: f64| Row::of(&format!("{}: classifier", self.name), metric, &[value], None);
        let mut rows = vec![one("accuracy", trained.accuracy), one("accuracy, distractors opposed", opposed)];
        tell(&format!(
            "{}: accuracy {:.3}, with distractors opposed {opposed:.3}",
            self.name, trained.accuracy
        ));
        let table = self.evaluate(&trained, config, store, tell)?;
        rows.extend(table_rows(self.name, &table, |_, _| None));
        Ok((rows, figure(self.name, &table)))
    }

    fn evaluate(
        &self,
        trained: &TrainedSubject,
        config: &PlantedConfig,
        store: &Store,
        tell: Tell,
    ) -> Result<MetricTable> {
        let all: Vec<usize> = (0..self.test.data.len()).collect();
        let labels = self.test.data.require_labels()?;
        let predicted = trained.model.values_only().predicted(self.test.data.rows_f64(&all)?.view())?;
        let right = all.into_iter().filter(|&row| predicted[row] == labels[row]);
        let chosen: Vec<usize> = right.take(config.examples).collect();
        if chosen.is_empty() {
            return Err(Error::Training {
                reason: "the classifier of the planted data gets no example right".to_string(),
                remedy: "train it longer".into(),
            });
        }
        let inputs = self.test.data.rows_f64(&chosen)?;
        let targets: Vec<usize> = chosen.iter().map(|&row| labels[row]).collect();
        let truth = self.test.truth.select(Axis(0), &chosen);
        let subject = Subject {
            name: self.name,
            model: &trained.model,
            train: &self.train.data,
            held_out: &self.test.data,
            flows: vec![NamedFlow { name: "1-RF", flow: &trained.flow }],
            diffusion: None,
            identity: trained.identity.clone(),
        };
        let metrics: Vec<Metric> = METRICS.iter().map(|name| name.parse()).collect::<Result<_>>()?;
        let evaluation = Evaluation {
            score: &trained.model,
            inputs: inputs.view(),
            targets: &targets,
            context: subject.context(),
            truth: Some(truth.view()),
            metrics: &metrics,
            leave_out: false,
        };
        let methods = methods(&subject, self.methods, config.seed)?;
        let made_from = [("the subject".to_string(), trained.identity.clone())];
        let table = evaluation.run(&methods, &store.within("methods"), &made_from, &mut |done| {
            if !done.kept {
                tell(&format!("{}: {} of {} parts", self.name, done.parts, done.of));
            }
            ControlFlow::Continue(())
        })?;
        table.ok_or(Error::Zero { what: "the number of finished parts" })
    }
}

/// Methods by the truth: how much of the credit, and whether the highest is true.
fn figure(name: &str, table: &MetricTable) -> Figure {
    let svg = ranking(
        &format!("Planted {name}: credit on what decides"),
        table,
        &["mass-accuracy", "rank-accuracy", "pointing-game"],
    );
    Figure { file: format!("planted-{name}.svg"), svg }
}
