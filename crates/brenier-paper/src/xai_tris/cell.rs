//! One cell of the benchmark and one seed: images, classifiers, references, and what every method scores.

use brenier::attribute::{Method, Settings};
use brenier::classify::{ClassifierConfig, MlpClassifierConfig, ResnetConfig};
use brenier::data::{Dataset, ScalingConfig, ScalingMethod};
use brenier::engine::EngineConfig;
use brenier::evaluate::Metric;
use brenier::flow::{Coupling, MlpConfig, NetworkConfig, OnnxFlow, Reversed};
use brenier::problems::{Scenario, TETROMINO_SIDE, TetrominoImages, Tetrominoes};
use brenier::runs::{ClassifierRun, FlowRun, ReferenceKind, ReflowRun};
use brenier::transport::{GaussianConfig, GaussianMap};
use brenier::{Error, OnnxPredictor, Result, Store, VelocityField};
use ndarray::{Array2, Axis, s};

use super::super::compare::{Ways, along_lines, by_method, from_nearest, margins, mean, truth_scores};
use super::super::earth_mover::earth_mover_score;
use super::super::trained::{self, Classifier};
use super::super::{RULE, Tell};
use super::controls::blind;
use super::pattern_local::pattern_local;
use super::picture::picture;
use super::{Measured, Part, XaiTrisConfig};

/// Everything that is known of a cell before a method is asked.
pub(super) struct Cell {
    problem: Tetrominoes,
    pub(super) train: Dataset,
    networks: Vec<(&'static str, Classifier, OnnxPredictor)>,
    blind: Option<(Vec<bool>, OnnxPredictor, f64)>,
    flow: OnnxFlow,
    free: Option<OnnxFlow>,
    pub(super) examples: Examples,
}

/// The test images that are explained.
pub(super) struct Examples {
    pub(super) inputs: Array2<f64>,
    pub(super) targets: Vec<usize>,
    pub(super) truth: Array2<bool>,
    without: Array2<f64>,
    counterparts: Array2<f64>,
}

const BATCH: usize = 128;
/// Draws of surrogates are apart from those of images by their own seed.
const PATTERN_SEED: u64 = 0x9a77;

/// Mean 0 and variance 1 over all pixels: values lie between -1 and 1, and most are small.
pub(super) fn scaling() -> ScalingConfig {
    ScalingConfig { method: ScalingMethod::Standardise, ..ScalingConfig::default() }
}

impl Cell {
    /// Draws images and trains what explains them.
    pub(super) fn make(
        problem: Tetrominoes,
        config: &XaiTrisConfig,
        seed: u64,
        engine: &EngineConfig,
        store: &Store,
        tell: Tell,
    ) -> Result<Cell> {
        let XaiTrisConfig { rows, classifier_steps, flow_steps, reflow_steps, group, .. } = config;
        let trainings =
            format!("{classifier_steps}, {flow_steps} and {reflow_steps} steps, groups of {group}");
        let about = format!("{problem:?}, {rows} rows, {trainings}, seed {seed}");
        let about = [("the cell and the training".to_string(), about)];
        store.clone().replacing().claim(&about.into_iter().collect())?;
        // Twice as many: the second half gives images without tetrominoes, on backgrounds of their own.
        let made = problem.make(2 * config.rows, seed)?;
        let (learn, hold) = (config.rows * 8 / 10, config.rows * 9 / 10);
        let train = made.planted.data.rows(0..learn)?;
        let held_out = made.planted.data.rows(learn..hold)?;
        let test: Vec<usize> = (hold..config.rows).collect();
        let mut networks = Vec::new();
        for (name, network) in [("MLP", mlp()), ("CNN", cnn())] {
            let run = classifier_run(network, config, seed, engine);
            let folder = name.to_lowercase();
            let classifier = trained::classifier(&train, &held_out, &run, store, &folder, tell)?;
            let margin = margins(&classifier.network, engine)?;
            networks.push((name, classifier, margin));
        }
        let examples = examples(&made, &test, &networks, config.examples)?;
        let class = |label: usize| rows_of_class(&train, label);
        let (first, second) = (class(0)?, class(1)?);
        let flows = Flows { problem, config, seed, engine, store };
        let flow = flows.train(&first, &second, "flow", tell)?;
        let free = match problem.scenario {
            Scenario::Rigid => {
                let rows = made.without.slice(s![config.rows..config.rows + learn, ..]);
                let free = Dataset::from_rows("without tetrominoes", train.shape(), rows)?;
                Some(flows.train(&free, &train, "free", tell)?)
            }
            _ => None,
        };
        let blind = match problem.scenario {
            Scenario::Linear | Scenario::Multiplicative => {
                let run = classifier_run(mlp(), config, seed, engine);
                Some(blind(&made, (&train, &held_out), &run, store, tell)?)
            }
            _ => None,
        };
        Ok(Cell { problem, train, networks, blind, flow, free, examples })
    }

    /// How often the classifiers are right, in words.
    pub(super) fn accuracies(&self) -> String {
        let each = self.networks.iter().map(|(name, c, _)| format!("{name} {:.3}", c.accuracy));
        format!("accuracy {}", each.collect::<Vec<_>>().join(", "))
    }

    /// What every method scores.
    pub(super) fn measure(&self, config: &XaiTrisConfig, tell: Tell) -> Result<Part> {
        let Examples { inputs, targets, .. } = &self.examples;
        let by_class = self.references()?;
        let mut measured = Vec::new();
        let mut shown = None;
        for (name, classifier, model) in &self.networks {
            measured.push(Measured::new(&format!("{name}: classifier"), "accuracy", classifier.accuracy));
            let mut all: Vec<(String, Array2<f64>)> = Vec::new();
            for method in methods(config)? {
                let credit = by_method(&method, model, inputs.view(), targets, &self.train)?;
                all.push((method.name().to_string(), credit));
            }
            let others = self.per_class(|label, rows, targets| {
                let data = rows_of_class(&self.train, 1 - label)?;
                let method = Method::new("expected-gradients", &settings())?;
                let drawn = by_method(&method, model, rows.view(), targets, &data)?;
                let near = by_method(&from_nearest(config.nearest), model, rows.view(), targets, &data)?;
                Ok(vec![drawn, near])
            })?;
            let [drawn, near] = two(others);
            let train = self.train.to_f32()?.mapv(f64::from);
            let pattern = pattern_local(model, inputs.view(), targets, train.view(), PATTERN_SEED)?;
            all.push(("pattern-local".into(), pattern));
            all.push(("expected-gradients, other class".into(), drawn));
            all.push((format!("ig, {} nearest of the other class", config.nearest), near));
            for (method, references) in &by_class.lines {
                all.push((
                    method.to_string(),
                    along_lines(model, references.view(), inputs.view(), targets)?,
                ));
            }
            all.push(("flow, trace".into(), self.traced(model)?));
            if let Some(ways) = &by_class.free {
                all.push((
                    "free flow, line".into(),
                    along_lines(model, ways.references.view(), inputs.view(), targets)?,
                ));
                all.push(("free flow, trace".into(), ways.credit(model, targets)?));
            }
            for (method, references) in &by_class.lines {
                all.push((format!("displacement, {method}"), inputs - references));
            }
            for (method, credit) in &all {
                measured.extend(self.scores(&format!("{name}: {method}"), model, credit)?);
            }
            // Of how many references the model says that they are of the other class.
            for (method, references) in &by_class.lines {
                let margin = brenier::Score::values(model, references.view(), targets)?;
                let changed = margin.iter().filter(|m| **m < 0.0).count() as f64 / targets.len() as f64;
                measured.push(Measured::new(
                    &format!("{name}: {method}"),
                    "references of the other class",
                    changed,
                ));
            }
            tell(&format!("{name}: {} methods", all.len()));
            shown.get_or_insert(all);
        }
        measured.extend(self.blindness(&by_class)?);
        let picture = picture(self.problem, &self.examples, &shown.unwrap_or_default())?;
        Ok(Part { measured, picture })
    }

    /// What a model that cannot see one of the tetrominoes is credited there.
    fn blindness(&self, by_class: &References) -> Result<Vec<Measured>> {
        let Some((hidden, model, accuracy)) = &self.blind else { return Ok(Vec::new()) };
        let Examples { inputs, targets, .. } = &self.examples;
        let mut measured = vec![Measured::new("blind MLP: classifier", "accuracy", *accuracy)];
        let mut all = Vec::new();
        for (method, references) in &by_class.lines {
            all.push((method.to_string(), along_lines(model, references.view(), inputs.view(), targets)?));
            all.push((format!("displacement, {method}"), inputs - references));
        }
        all.push(("flow, trace".into(), self.traced(model)?));
        for (method, credit) in all {
            let (mut on, mut total) = (0.0, 0.0);
            for ((_, pixel), value) in credit.indexed_iter() {
                total += value.abs();
                on += if hidden[pixel] { value.abs() } else { 0.0 };
            }
            measured.push(Measured::new(
                &format!("blind MLP: {method}"),
                "mass on what it cannot see",
                on / total,
            ));
        }
        Ok(measured)
    }

    fn scores(&self, name: &str, model: &OnnxPredictor, credit: &Array2<f64>) -> Result<Vec<Measured>> {
        let Examples { inputs, truth, .. } = &self.examples;
        let mut measured = Vec::new();
        for (metric, called) in [("mass-accuracy", "mass"), ("rank-accuracy", "precision")] {
            let metric: Metric = metric.parse()?;
            let values = truth_scores(&metric, model, inputs.view(), credit, truth.view())?;
            measured.push(Measured::new(name, called, mean(&values)));
        }
        let distances = credit.rows().into_iter().zip(truth.rows()).map(|(map, truth)| {
            earth_mover_score(&map.to_vec(), &truth.to_vec(), [TETROMINO_SIDE, TETROMINO_SIDE])
        });
        let distances = distances.collect::<Result<Vec<_>>>()?;
        measured.push(Measured::new(name, "emd", mean(&distances)));
        Ok(measured)
    }

    /// Where every way of comparing begins.
    fn references(&self) -> Result<References> {
        let found = self.per_class(|label, rows, _| {
            let (own, other) = (rows_of_class(&self.train, label)?, rows_of_class(&self.train, 1 - label)?);
            let gaussian = GaussianMap::fit(&other, &own, &GaussianConfig::default())?.invert(rows.view())?;
            Ok(vec![gaussian, self.ways(label, &rows)?.references])
        })?;
        let [gaussian, flow] = two(found);
        let mut lines = vec![
            ("gaussian", gaussian),
            ("flow, line", flow),
            ("true counterpart", self.examples.counterparts.clone()),
        ];
        let free = match &self.free {
            Some(free) => {
                lines.push(("without tetromino", self.examples.without.clone()));
                Some(Ways::back(free, self.examples.inputs.view())?)
            }
            None => None,
        };
        Ok(References { lines, free })
    }

    fn ways(&self, label: usize, rows: &Array2<f64>) -> Result<Ways> {
        // The flow goes from class 0 to class 1.
        let reversed = Reversed(&self.flow);
        let field: &dyn VelocityField = if label == 1 { &self.flow } else { &reversed };
        Ways::back(field, rows.view())
    }

    fn traced(&self, model: &OnnxPredictor) -> Result<Array2<f64>> {
        let mut credit = self
            .per_class(|label, rows, targets| Ok(vec![self.ways(label, &rows)?.credit(model, targets)?]))?;
        Ok(credit.remove(0))
    }

    /// Asks for each class by itself, and puts the answers back into the order of the examples.
    fn per_class(
        &self,
        mut ask: impl FnMut(usize, Array2<f64>, &[usize]) -> Result<Vec<Array2<f64>>>,
    ) -> Result<Vec<Array2<f64>>> {
        let Examples { inputs, targets, .. } = &self.examples;
        let mut all: Vec<Array2<f64>> = Vec::new();
        for label in 0..2 {
            let rows: Vec<usize> = (0..targets.len()).filter(|&row| targets[row] == label).collect();
            if rows.is_empty() {
                continue;
            }
            let answers = ask(label, inputs.select(Axis(0), &rows), &vec![label; rows.len()])?;
            all.resize(answers.len(), Array2::zeros(inputs.raw_dim()));
            for (whole, answer) in all.iter_mut().zip(answers) {
                rows.iter().zip(answer.rows()).for_each(|(&row, values)| whole.row_mut(row).assign(&values));
            }
        }
        Ok(all)
    }
}

struct References {
    lines: Vec<(&'static str, Array2<f64>)>,
    free: Option<Ways>,
}

fn two(all: Vec<Array2<f64>>) -> [Array2<f64>; 2] {
    let mut all = all.into_iter();
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

fn mlp() -> ClassifierConfig {
    ClassifierConfig::Mlp(MlpClassifierConfig::default())
}

fn cnn() -> ClassifierConfig {
    ClassifierConfig::Resnet(ResnetConfig {
        width: 16,
        multipliers: vec![1, 2],
        groups: 4,
        ..ResnetConfig::default()
    })
}

fn settings() -> Settings {
    Settings { rule: Some(RULE), ..Settings::default() }
}

fn methods(config: &XaiTrisConfig) -> Result<Vec<Method>> {
    config.methods.iter().map(|name| Method::new(name, &settings())).collect()
}

fn classifier_run(
    network: ClassifierConfig,
    config: &XaiTrisConfig,
    seed: u64,
    engine: &EngineConfig,
) -> ClassifierRun {
    let training = trained::training(config.classifier_steps, BATCH, seed, engine);
    ClassifierRun { network: Some(network), scaling: scaling(), training, ..ClassifierRun::default() }
}

/// The rows of one of the two classes.
pub(super) fn rows_of_class(data: &Dataset, label: usize) -> Result<Dataset> {
    let labels = data.require_labels()?;
    data.select(&(0..data.len()).filter(|&row| labels[row] == label).collect::<Vec<_>>())
}

/// The first test images that every classifier gets right.
fn examples(
    made: &TetrominoImages,
    test: &[usize],
    networks: &[(&'static str, Classifier, OnnxPredictor)],
    count: usize,
) -> Result<Examples> {
    let labels = made.planted.data.require_labels()?;
    let rows = made.planted.data.rows_f64(test)?;
    let mut right = vec![true; test.len()];
    for (_, _, model) in networks {
        let predicted = model.values_only().predicted(rows.view())?;
        for (place, &row) in test.iter().enumerate() {
            right[place] &= predicted[place] == labels[row];
        }
    }
    let chosen: Vec<usize> =
        test.iter().zip(&right).filter(|(_, right)| **right).map(|(row, _)| *row).take(count).collect();
    if chosen.is_empty() {
        return Err(Error::Training {
            reason: "no test image is classified right by both classifiers".to_string(),
            remedy: "train them longer".into(),
        });
    }
    let wide = |all: &Array2<f32>| all.select(Axis(0), &chosen).mapv(f64::from);
    Ok(Examples {
        inputs: made.planted.data.rows_f64(&chosen)?,
        targets: chosen.iter().map(|&row| labels[row]).collect(),
        truth: made.planted.truth.select(Axis(0), &chosen),
        without: wide(&made.without),
        counterparts: wide(&made.counterparts),
    })
}

/// What the trainings of flows share.
struct Flows<'a> {
    problem: Tetrominoes,
    config: &'a XaiTrisConfig,
    seed: u64,
    engine: &'a EngineConfig,
    store: &'a Store,
}

impl Flows<'_> {
    /// A flow from the first data set to the second in an optimal coupling, and Reflow after it.
    fn train(&self, from: &Dataset, to: &Dataset, name: &str, tell: Tell) -> Result<OnnxFlow> {
        let (config, seed) = (self.config, self.seed);
        let network = match self.problem.scenario {
            // What may be anywhere is found by convolutions.
            Scenario::Rigid => trained::small_network(to.shape(), 32),
            _ => NetworkConfig::Mlp(MlpConfig::default()),
        };
        let run = FlowRun {
            network: Some(network),
            reference: ReferenceKind::Data,
            coupling: Coupling::OptimalTransport { group: config.group },
            scaling: scaling(),
            training: trained::training(config.flow_steps, BATCH, seed, self.engine),
            ..FlowRun::default()
        };
        let first = trained::flow_between(Some(from), to, &run, self.store, &format!("{name}-1"), tell)?;
        let run = ReflowRun {
            generated: to.len() / 2,
            inverted: to.len(),
            reference: ReferenceKind::Data,
            training: trained::training(config.reflow_steps, BATCH, seed, self.engine),
            ..ReflowRun::default()
        };
        trained::next_level_between(&first, from, to, &run, self.store, &format!("{name}-2"), tell)
    }
}
