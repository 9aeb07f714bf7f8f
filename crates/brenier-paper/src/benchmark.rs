//! Section 5.4: methods by metrics on images, beside the paper's table.
//!
//! The table of [`Evaluation`], for one subject after the other. The paper's figures stand beside the same method and
//! metric on the same kind of data: CIFAR-10, and for faces those of CelebA-HQ, which is another set of faces. The
//! model is another one too, so figures in units of the score can be compared in order, not in size. Path methods take
//! 50 nodes each, as many gradients as the paper's.
//!
//! FCE holds a difference quotient over 1/K against the field. On a path that follows the field exactly that leaves
//! `1/(4 K^2)` times its squared acceleration, so K has to be so large that this does not count. The paper does not say
//! which K its FCE has; [`BenchmarkConfig::consistency_steps`] is ours.

use brenier::attribute::{Grouping, Method, Settings, Slic};
use brenier::classify::{Augment, ClassifierConfig, ResnetConfig};
use brenier::data::Dataset;
use brenier::engine::EngineConfig;
use brenier::evaluate::{Evaluation, Metric, MetricSettings, MetricTable};
use brenier::flow::OnnxFlow;
use brenier::report::ranking;
use brenier::runs::{ClassifierRun, FlowRun};
use brenier::{OnnxPredictor, Result, Store};
use serde::{Deserialize, Serialize};

use super::trained::{self, Classifier};
use super::{Figure, RULE, Row, Scale as Size, Subject, Table, Tell};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarkConfig {
    /// Inputs that are explained, of each subject.
    pub examples: usize,
    /// The methods by name; those that a subject has no network for are left out.
    pub methods: Vec<String>,
    /// The metrics by name.
    pub metrics: Vec<String>,
    /// Steps of the grid on which FCE and the flow's defect are measured.
    pub consistency_steps: usize,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl BenchmarkConfig {
    /// The settings of a scale: the paper's methods and metrics, or all that apply to images.
    pub fn at(scale: Size) -> BenchmarkConfig {
        let paper = ["smoothgrad", "guided-backprop", "gradient-shap", "ig", "ddim", "transport"];
        let others = [
            "gradient",
            "gradient-input",
            "deconvnet",
            "grad-cam",
            "smoothgrad-squared",
            "vargrad",
            "expected-gradients",
            "guided-ig",
            "blur-ig",
            "geodesic-ig",
            "ig+idgi",
            "transport+idgi",
            "kernel-shap",
            "occlusion",
            "rise",
            "lime",
        ];
        let metrics = ["gps", "fce", "satv", "eas", "deletion-zero", "deletion-blur"];
        let more = [
            "flow-defect",
            "insertion-zero",
            "insertion-blur",
            "relative-residual",
            "faithfulness-correlation",
            "infidelity",
        ];
        let (examples, methods, metrics) = match scale {
            Size::Quick => (8, paper.to_vec(), metrics.to_vec()),
            Size::Full => (200, [&paper[..], &others[..]].concat(), [&metrics[..], &more[..]].concat()),
        };
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_string).collect();
        let (methods, metrics) = (owned(methods), owned(metrics));
        BenchmarkConfig { examples, methods, metrics, consistency_steps: 400, seed: 0 }
    }

    /// The metrics with their settings.
    fn settled_metrics(&self) -> Result<Vec<Metric>> {
        let fine = MetricSettings { steps: Some(self.consistency_steps), ..MetricSettings::default() };
        let settings = |name: &str| match name {
            "fce" | "flow-defect" => fine.clone(),
            _ => MetricSettings::default(),
        };
        self.metrics.iter().map(|name| Metric::new(name, &settings(name))).collect()
    }
}

/// The methods of these names that a subject has everything for, with settings that suit images.
pub(super) fn methods(subject: &Subject, names: &[String], seed: u64) -> Result<Vec<Method>> {
    let images = subject.model.shape().len() == 3;
    // Single pixels are too many to ask about one by one.
    let groups = images.then(|| Grouping::Superpixels(Slic::default()));
    let settings = Settings { seed, groups, rule: Some(RULE), ..Settings::default() };
    let methods = names.iter().map(|name| Method::new(name, &settings)).collect::<Result<Vec<_>>>()?;
    Ok(methods.into_iter().filter(|method| subject.has_network_for(method)).collect())
}

/// Runs the experiment on one subject after the other.
pub fn benchmark(
    subjects: &[Subject],
    config: &BenchmarkConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let metrics = config.settled_metrics()?;
    let (mut rows, mut figures) = (Vec::new(), Vec::new());
    for subject in subjects {
        subject.best_flow("the benchmark")?;
        if subject.diffusion.is_none() && config.methods.iter().any(|name| name.starts_with("ddim")) {
            tell(&format!("{}: ddim is left out, there is no diffusion model", subject.name));
        }
        let examples = subject.examples(config.examples, config.seed)?;
        let methods = methods(subject, &config.methods, config.seed)?;
        let evaluation = Evaluation {
            score: subject.model,
            inputs: examples.inputs.view(),
            targets: &examples.targets,
            context: subject.context(),
            truth: None,
            metrics: &metrics,
            leave_out: false,
        };
        let made_from = [("the subject".to_string(), subject.identity.clone())];
        let table = evaluation.run(&methods, &store.within(subject.name), &made_from, &mut |done| {
            if !done.kept {
                tell(&format!("{}: {} of {} parts", subject.name, done.parts, done.of));
            }
            std::ops::ControlFlow::Continue(())
        })?;
        if let Some(table) = table {
            figures.push(figure(subject.name, &table));
            rows.extend(table_rows(subject.name, &table, |method, metric| {
                paper(subject.name, method, metric)
            }));
        }
    }
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name).collect();
    let table = Table {
        name: "benchmark".into(),
        scale: format!(
            "{}, {} examples each, FCE in {} steps, seed {}",
            names.join(" and "),
            config.examples,
            config.consistency_steps,
            config.seed
        ),
        rows,
    };
    Ok((table, figures))
}

/// The cells of a table as rows of an experiment, under the subject's name.
pub(super) fn table_rows(
    subject: &str,
    table: &MetricTable,
    paper: impl Fn(&str, &str) -> Option<f64>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for row in &table.rows {
        for (cell, metric) in row.cells.iter().zip(&table.metrics) {
            let Some(summary) = cell.summary() else { continue };
            rows.push(Row {
                method: format!("{subject}: {}", row.method),
                metric: metric.name.clone(),
                mean: summary.mean,
                std: summary.standard_deviation.unwrap_or(0.0),
                n: summary.n,
                half_width: summary.half_width(),
                paper: paper(&row.method, &metric.name),
            });
        }
    }
    rows
}

/// Faithfulness under both replacements.
fn figure(name: &str, table: &MetricTable) -> Figure {
    let title = format!("{name}: score left under deletion");
    let svg = ranking(&title, table, &["deletion-zero", "deletion-blur"]);
    let file = format!("benchmark-{}.svg", name.to_lowercase().replace(' ', "-"));
    Figure { file, svg }
}

/// The paper's table: GPS, FCE, SATV, EAS, deletion under zero and blur; `NAN` stands for its dashes.
fn paper(subject: &str, method: &str, metric: &str) -> Option<f64> {
    const DASH: f64 = f64::NAN;
    let figures = match (subject.contains("CIFAR"), method) {
        (true, "smoothgrad") => [DASH, DASH, 0.022, 0.363, 0.525, 1.216],
        (true, "guided-backprop") => [DASH, DASH, 0.040, 0.439, 0.966, 1.627],
        (true, "gradient-shap") => [DASH, DASH, 0.669, 0.116, 0.691, 1.978],
        (true, "ig") => [1.0, 1.0e4, 0.643, 0.114, 0.670, 1.931],
        (true, "ddim") => [1.059, 3.1e3, 0.073, 0.119, 0.444, 1.360],
        (true, "transport") => [1.023, 0.005, 0.062, 0.119, 0.456, 1.311],
        (false, "smoothgrad") => [DASH, DASH, 0.001, 0.232, 0.216, 0.631],
        (false, "guided-backprop") => [DASH, DASH, 0.001, 0.385, 0.222, 0.475],
        (false, "gradient-shap") => [DASH, DASH, 0.011, 0.061, 0.188, 1.107],
        (false, "ig") => [1.0, 1.3e6, 0.010, 0.060, 0.188, 1.108],
        (false, "ddim") => [1.047, 2.8e5, 0.003, 0.147, 0.175, 0.897],
        (false, "transport") => [1.011, 1.780, 0.003, 0.091, 0.184, 0.926],
        _ => return None,
    };
    let columns = ["gps", "fce", "satv", "eas", "deletion-zero", "deletion-blur"];
    columns.iter().position(|name| *name == metric).map(|place| figures[place]).filter(|f| f.is_finite())
}

/// How a classifier and a flow are trained on the spot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrainedSubjectConfig {
    /// Steps of the classifier.
    pub classifier_steps: u64,
    /// Steps of the flow.
    pub flow_steps: u64,
    /// Channels of both networks.
    pub width: usize,
    /// Mirror and move training images of the classifier, where its labels survive that.
    pub augment: bool,
    /// The seed of both.
    pub seed: u64,
}

impl TrainedSubjectConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> TrainedSubjectConfig {
        let (classifier_steps, flow_steps, width) = match scale {
            Size::Quick => (300, 300, 16),
            Size::Full => (1000, 2000, 24),
        };
        TrainedSubjectConfig { classifier_steps, flow_steps, width, augment: false, seed: 0 }
    }
}

/// A classifier and a flow that were trained on the spot.
pub struct TrainedSubject {
    /// The classifier.
    pub model: OnnxPredictor,
    /// The part of held-out rows that it gets right.
    pub accuracy: f64,
    /// The flow, of level 1.
    pub flow: OnnxFlow,
    /// The classifier's network.
    pub(super) network: onnx_grad::Model,
    /// What tells its files from those of another.
    pub identity: String,
}

/// Trains a classifier and a flow on labelled rows, or finds them in the store.
///
/// # Errors
/// A store without a folder, data without labels, and what training says.
pub fn train_subject(
    train: &Dataset,
    held_out: &Dataset,
    config: &TrainedSubjectConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<TrainedSubject> {
    let identity = format!("{} {config:?}", train.fingerprint());
    let about = [("the data and the training".to_string(), identity.clone())];
    store.claim(&about.into_iter().collect())?;
    let images = train.shape().len() == 3;
    let batch = 64.min(train.len());
    // Large images are seen in patches, which costs a classifier of this size little and is four times as fast.
    let patch = if train.shape().last().is_some_and(|side| *side >= 64) { 2 } else { 1 };
    let resnet = ResnetConfig { patch, width: config.width, ..ResnetConfig::default() };
    let classifier = images.then_some(ClassifierConfig::Resnet(resnet));
    let augment = match config.augment && images {
        true => Augment { flip: true, shift: 2 },
        false => Augment::default(),
    };
    let training = trained::training(config.classifier_steps, batch, config.seed, engine);
    let run = ClassifierRun { network: classifier, augment, training, ..ClassifierRun::default() };
    let Classifier { model, network: graph, accuracy } =
        trained::classifier(train, held_out, &run, store, "classifier", tell)?;
    let training = trained::training(config.flow_steps, batch.min(32), config.seed, engine);
    let network = trained::small_network(train.shape(), 2 * config.width);
    let run = FlowRun { network: Some(network), training, ..FlowRun::default() };
    let flow = trained::flow(train, held_out, &run, store, "flow", tell)?;
    Ok(TrainedSubject { model, accuracy, flow, network: graph, identity })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brenier::evaluate::{FlowConsistency, FlowDefect, PathGrid, Removal, Straightness};

    #[test]
    fn every_name_of_every_scale_is_a_method_or_a_metric() {
        for scale in [Size::Quick, Size::Full] {
            let config = BenchmarkConfig::at(scale);
            assert!(config.methods.iter().all(|name| name.parse::<Method>().is_ok()));
            assert!(config.metrics.iter().all(|name| name.parse::<Metric>().is_ok()));
        }
        assert_eq!(paper("CIFAR-10", "ddim", "fce"), Some(3.1e3));
        assert_eq!(paper("ORL faces", "transport", "gps"), Some(1.011));
        assert_eq!(paper("CIFAR-10", "smoothgrad", "gps"), None);
        assert_eq!(paper("CIFAR-10", "lime", "eas"), None);
    }

    #[test]
    fn only_what_holds_a_path_against_the_field_has_the_fine_grid() {
        for metric in BenchmarkConfig::at(Size::Full).settled_metrics().unwrap() {
            match metric {
                Metric::Fce(FlowConsistency(grid)) | Metric::FlowDefect(FlowDefect(grid)) => {
                    assert_eq!(grid.steps, 400)
                }
                Metric::Gps(Straightness(grid)) => assert_eq!(grid, PathGrid::default()),
                Metric::Removal(removal) => assert_eq!(removal.steps, Removal::default().steps),
                _ => {}
            }
        }
    }
}
