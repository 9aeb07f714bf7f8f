//! What to compare with: credit on a planted patch, by where the paths begin.
//!
//! ```text
//! noise            a flow from a normal distribution: the paper's reference
//! data             Expected Gradients, and the line from black
//! free             a flow from images without any patch, in groups of 1, 32, 256 and 1,024, and Reflow after the last
//! other class      a flow from the images of the other class; the patch anywhere, and in the middle
//! ```
//!
//! Images are those of [`planted`](super::planted), backgrounds of flows and of classifier do not meet, and the margin between the
//! two classes is explained, of test images that the classifier gets right. Of each flow the *trace* is followed, and the *line*
//! from its end.
//!
//! **Two models**: the same flow from images free of *both* patches explains a classifier that learned the first patch and one that learned the
//! second. Each must be credited on its own. The displacement alone, without a model, is the control: it has no way to tell them apart.
//!
//! **Tables** of [`PlantedTable`](brenier::problems::PlantedTable) have the same question, against the other class ([`columns`]).

mod columns;
mod explained;

use brenier::attribute::{Grouping, Method, Settings, Slic};
use brenier::classify::{ClassifierConfig, ResnetConfig};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::flow::{Coupling, NetworkConfig, OnnxFlow, Reversed, UnetConfig};
use brenier::problems::{DecidingPatch, PatchPlace, Planted, PlantedImages};
use brenier::runs::{ClassifierRun, FlowRun, ReferenceKind, ReflowRun};
use brenier::{Error, Result, Store, VelocityField};
use serde::{Deserialize, Serialize};

use self::columns::columns;
use self::explained::{Explained, Scores, explained, leads};
use super::compare::{by_method, from_nearest, margins, mean};
use super::{Figure, RULE, Row, Scale as Size, Table, Tell, trained};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferencesConfig {
    /// Rows that classifiers and flows learn from.
    pub train_rows: usize,
    /// Inputs that are explained.
    pub examples: usize,
    /// The patches.
    pub images: PlantedImages,
    /// Steps of each classifier.
    pub classifier_steps: u64,
    /// Steps of each flow.
    pub flow_steps: u64,
    /// Steps of the next level of a flow.
    pub reflow_steps: u64,
    /// Channels of a flow's network.
    pub width: usize,
    /// Pairs that are assigned together, of the flows from images without patches; the last one is straightened and used
    /// for the other references.
    pub groups: Vec<usize>,
    /// Rows in the methods with nearest ones.
    pub nearest: usize,
    /// The library's methods, by name.
    pub methods: Vec<String>,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl ReferencesConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> ReferencesConfig {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        let quick = ReferencesConfig {
            train_rows: 2000,
            examples: 8,
            images: PlantedImages::default(),
            classifier_steps: 300,
            flow_steps: 100,
            reflow_steps: 50,
            width: 16,
            groups: vec![1, 64],
            nearest: 20,
            methods: names(&["ig", "expected-gradients", "lime"]),
            seed: 0,
        };
        match scale {
            Size::Quick => quick,
            Size::Full => ReferencesConfig {
                train_rows: 20_000,
                examples: 64,
                classifier_steps: 1000,
                flow_steps: 1500,
                reflow_steps: 800,
                width: 48,
                groups: vec![1, 32, 256, 1024],
                methods: names(&["ig", "expected-gradients", "kernel-shap", "lime"]),
                ..quick
            },
        }
    }
}

const BATCH: usize = 32;
/// Batches of a classifier are larger: its network is small.
const CLASSIFIER_BATCH: usize = 64;
/// Runs the experiment on backgrounds that are colour images.
///
/// # Errors
/// A store without a folder, backgrounds that are no colour images, and what training says.
pub fn references(
    backgrounds: &Dataset,
    config: &ReferencesConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let ReferencesConfig {
        train_rows, images, classifier_steps, flow_steps, reflow_steps, width, seed, ..
    } = config;
    let about = format!(
        "{} {train_rows} rows, {images:?}, {classifier_steps} {flow_steps} {reflow_steps} steps, {width} channels, seed {seed}",
        backgrounds.fingerprint()
    );
    store.claim(&[("the backgrounds and the training".to_string(), about)].into_iter().collect())?;
    let world = World::make(backgrounds, config, engine, store, tell)?;
    let mut scores = world.models(config, tell)?;
    let rivals: Vec<String> =
        scores.iter().filter(|(_, metric, _)| metric == "mass").map(|(method, ..)| method.clone()).collect();
    scores.extend(world.flows(config, store, tell)?);
    let mut rows: Vec<Row> = scores
        .iter()
        .map(|(method, metric, values)| {
            let known: Vec<f64> = values.iter().flatten().copied().collect();
            Row::of(method, metric, &known, None)
        })
        .collect();
    let rivals: Vec<&str> = rivals.iter().map(String::as_str).chain(["noise: trace"]).collect();
    let largest = config.groups.last().copied().unwrap_or(1);
    rows.extend(leads(&scores, &format!("free, groups of {largest}, reflow: trace"), &rivals));
    rows.extend(columns(config, engine, store, tell)?);
    let scale = format!(
        "{train_rows} rows to learn from, {} explained, patches of {} pixels, seed {seed}",
        config.examples, images.patch
    );
    Ok((Table { name: "references".into(), scale, rows }, Vec::new()))
}

struct World<'a> {
    engine: &'a EngineConfig,
    /// Images to learn from, and such without patches.
    train: Planted,
    free: Dataset,
    /// The same with the deciding patch in the middle.
    middle: Planted,
    /// A classifier of the first patch, with its examples; of images with the patch in the middle; and a classifier of the second patch on
    /// the examples of the first.
    first: Explained,
    of_middle: Explained,
    second: Explained,
    accuracy: [f64; 2],
}

impl<'a> World<'a> {
    fn make(
        backgrounds: &Dataset,
        config: &ReferencesConfig,
        engine: &'a EngineConfig,
        store: &Store,
        tell: Tell,
    ) -> Result<World<'a>> {
        let (seed, rows) = (config.seed, config.train_rows);
        let (for_training, for_tests) = backgrounds.split(0.8, seed)?;
        let (with, without) = for_training.split(0.5, seed)?;
        let images = config.images;
        let train = images.make(&with, rows, seed)?;
        let free = images.without_patches(&without, rows, seed)?;
        let middle = PlantedImages { place: PatchPlace::Middle, ..images };
        let second = PlantedImages { deciding: DecidingPatch::BlueOrYellow, ..images };
        // What goes along with the label in training says nothing of it in tests.
        let independent = |images: PlantedImages| PlantedImages { agreement: 0.5, ..images };
        let test_rows = 2 * config.examples.max(64);
        let test = independent(images).make(&for_tests, test_rows, seed ^ 0x7e57)?;
        let test_middle = independent(middle).make(&for_tests, test_rows, seed ^ 0x7e57)?;
        let test_second = independent(second).make(&for_tests, test_rows, seed ^ 0x7e57)?;
        let resnet = ResnetConfig { width: 8, ..ResnetConfig::default() };
        let run = ClassifierRun {
            network: Some(ClassifierConfig::Resnet(resnet)),
            training: trained::training(config.classifier_steps, CLASSIFIER_BATCH, seed, engine),
            ..ClassifierRun::default()
        };
        let mut accuracy = [0.0; 2];
        let mut models = Vec::new();
        for (k, (maker, test)) in [(images, &test), (second, &test_second)].into_iter().enumerate() {
            let learn = maker.make(&with, rows, seed)?;
            let name = ["classifier-first", "classifier-second"][k];
            let made = trained::classifier(&learn.data, &test.data, &run, store, name, tell)?;
            tell(&format!("{name}: accuracy {:.3}", made.accuracy));
            accuracy[k] = made.accuracy;
            models.push(margins(&made.network, engine)?);
            if k == 0 {
                models.push(margins(&made.network, engine)?);
            }
        }
        let mut models = models.into_iter();
        let (Some(a), Some(b), Some(c)) = (models.next(), models.next(), models.next()) else {
            return Err(Error::Zero { what: "the number of classifiers" });
        };
        let first = explained(a, &test, config.examples)?;
        let of_middle = explained(b, &test_middle, config.examples)?;
        // The second model is asked about the same images, for the class that it sees.
        let targets = c.values_only().predicted(first.inputs.view())?;
        let second = Explained {
            model: c,
            inputs: first.inputs.clone(),
            targets,
            truth: first.others.clone(),
            others: first.truth.clone(),
        };
        let middle = middle.make(&with, rows, seed)?;
        Ok(World { engine, train, free, middle, first, of_middle, second, accuracy })
    }

    /// Methods of the library, without a flow.
    fn models(&self, config: &ReferencesConfig, tell: Tell) -> Result<Scores> {
        let Explained { model, inputs, targets, .. } = &self.first;
        let mut scores = Vec::new();
        for (k, name) in ["first patch", "second patch"].into_iter().enumerate() {
            scores.push((
                format!("classifier of the {name}"),
                "accuracy".into(),
                vec![Some(self.accuracy[k])],
            ));
        }
        let settings = Settings {
            seed: config.seed,
            groups: Some(Grouping::Superpixels(Slic::default())),
            rule: Some(RULE),
            ..Settings::default()
        };
        for name in &config.methods {
            let method = Method::new(name, &settings)?;
            let credit = by_method(&method, model, inputs.view(), targets, &self.train.data)?;
            add(&mut scores, self.first.scores(name, &credit)?, tell);
        }
        let method = Method::new("expected-gradients", &settings)?;
        let credit = by_method(&method, model, inputs.view(), targets, &self.free)?;
        scores.extend(self.first.scores("expected-gradients, without patches", &credit)?);
        let credit = by_method(&from_nearest(config.nearest), model, inputs.view(), targets, &self.free)?;
        scores
            .extend(self.first.scores(&format!("ig, {} nearest without patches", config.nearest), &credit)?);
        Ok(scores)
    }

    /// What follows a flow. Those that say most are trained first.
    fn flows(&self, config: &ReferencesConfig, store: &Store, tell: Tell) -> Result<Scores> {
        let largest = config.groups.last().copied().unwrap_or(1);
        let train = &self.train.data;
        let mut scores = Vec::new();
        let first = self.flow(Some(&self.free), train, largest, config, (store, "free"), tell)?;
        add(&mut scores, self.first.along(&format!("free, groups of {largest}"), &first)?, tell);
        let second = self.next(&first, &self.free, train, config, (store, "free-reflow"), tell)?;
        let name = format!("free, groups of {largest}, reflow");
        add(&mut scores, self.first.along(&name, &second)?, tell);
        add(&mut scores, self.second.along(&format!("second model: {name}"), &second)?, tell);
        let middle =
            self.other_class(&self.middle, &self.of_middle, largest, config, (store, "other-middle"), tell)?;
        add(&mut scores, middle, tell);
        for &group in config.groups.iter().rev().skip(1) {
            let flow =
                self.flow(Some(&self.free), train, group, config, (store, &format!("free-{group}")), tell)?;
            add(&mut scores, self.first.along(&format!("free, groups of {group}"), &flow)?, tell);
        }
        let anywhere = self.other_class(&self.train, &self.first, largest, config, (store, "other"), tell)?;
        add(&mut scores, anywhere, tell);
        let noise = self.flow(None, train, 1, config, (store, "noise"), tell)?;
        add(&mut scores, self.first.along("noise", &noise)?, tell);
        Ok(scores)
    }

    /// A flow from one class to the other, followed by each example from its own end.
    fn other_class(
        &self,
        data: &Planted,
        explained: &Explained,
        group: usize,
        config: &ReferencesConfig,
        (store, name): (&Store, &str),
        tell: Tell,
    ) -> Result<Scores> {
        let labels = data.data.require_labels()?;
        let class = |label: usize| {
            data.data.select(&(0..labels.len()).filter(|&row| labels[row] == label).collect::<Vec<_>>())
        };
        let (red, green) = (class(0)?, class(1)?);
        let flow = self.flow(Some(&red), &green, group, config, (store, name), tell)?;
        let flow = self.next(&flow, &red, &green, config, (store, &format!("{name}-reflow")), tell)?;
        let reversed = Reversed(&flow);
        let mut scores: Scores = Vec::new();
        for (label, field) in [(0, &reversed as &dyn VelocityField), (1, &flow)] {
            let part = explained.of_class(label);
            if part.targets.is_empty() {
                continue;
            }
            for (k, one) in part
                .along(&format!("{name} class, groups of {group}, reflow"), field)?
                .into_iter()
                .enumerate()
            {
                match scores.get_mut(k).filter(|_| label == 1) {
                    Some(known) => known.2.extend(one.2),
                    None => scores.push(one),
                }
            }
        }
        Ok(scores)
    }

    fn flow(
        &self,
        from: Option<&Dataset>,
        to: &Dataset,
        group: usize,
        config: &ReferencesConfig,
        (store, name): (&Store, &str),
        tell: Tell,
    ) -> Result<OnnxFlow> {
        let coupling = match group {
            1 => Coupling::Independent,
            group => Coupling::OptimalTransport { group },
        };
        let reference = if from.is_some() { ReferenceKind::Data } else { ReferenceKind::StandardNormal };
        let run = FlowRun {
            network: Some(network(to.shape(), config.width)),
            reference,
            coupling,
            training: trained::training(config.flow_steps, BATCH, config.seed, self.engine),
            ..FlowRun::default()
        };
        trained::flow_between(from, to, &run, store, name, tell)
    }

    fn next(
        &self,
        first: &OnnxFlow,
        from: &Dataset,
        to: &Dataset,
        config: &ReferencesConfig,
        (store, name): (&Store, &str),
        tell: Tell,
    ) -> Result<OnnxFlow> {
        // As many pairs as the steps see, and not more: each costs a dozen evaluations of the flow.
        let pairs = (config.reflow_steps as usize * BATCH / 8).clamp(BATCH, 4096);
        let run = ReflowRun {
            generated: pairs / 2,
            inverted: pairs / 2,
            reference: ReferenceKind::Data,
            training: trained::training(config.reflow_steps, BATCH, config.seed, self.engine),
            ..ReflowRun::default()
        };
        trained::next_level_between(first, from, to, &run, store, name, tell)
    }
}

/// Adds what one flow has, and says it.
fn add(scores: &mut Scores, more: Scores, tell: Tell) {
    for (method, _, values) in more.iter().filter(|(_, metric, _)| metric == "mass") {
        tell(&format!("{method}: mass {:.3}", mean(values)));
    }
    scores.extend(more);
}

/// A U-Net on squares of 4 pixels where the image is large enough for 8 of them.
fn network(shape: &[usize], width: usize) -> NetworkConfig {
    match trained::small_network(shape, width) {
        NetworkConfig::Unet(unet) => NetworkConfig::Unet(UnetConfig { blocks: 2, ..unet }),
        other => other,
    }
}
