//! Natural tasks, without a planted truth: why this and not that, to be looked at.
//!
//! Two classes of real images. Each is fitted by a Gaussian, and an image is carried to the other class by the optimal map between
//! the two: its counterpart. Credit for the margin between the two classes is shared out along the line from there. Beside it, the
//! same from the nearest real image of the other class, and from black (Integrated Gradients).
//!
//! There is no truth to be held against, so the table says what can be measured: whether the model takes counterparts for the other class, and
//! whether their margins are such as real images have. **A map between Gaussians overshoots** where classes are not Gaussian: pixels leave
//! 0 to 1, and margins go beyond those of real images. Counterparts are therefore cut off at 0 and 1.

use brenier::classify::{ClassifierConfig, ResnetConfig};
use brenier::data::{Dataset, Population};
use brenier::engine::EngineConfig;
use brenier::report::{PictureCell, picture_grid};
use brenier::runs::ClassifierRun;
use brenier::transport::{GaussianConfig, GaussianMap, squared_distances};
use brenier::{Error, OnnxPredictor, PredictorConfig, Result, Score, Store};
use ndarray::{Array2, Axis};
use onnx_grad::Model;
use serde::{Deserialize, Serialize};

use super::compare::along_lines;
use super::{Figure, Row, Scale as Size, Table, Tell, trained};

/// The size of the experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NaturalConfig {
    /// Pairs of classes, by name or number: images of the first are compared with the second.
    pub pairs: Vec<(String, String)>,
    /// Images in the picture.
    pub shown: usize,
    /// Images in the table.
    pub examples: usize,
    /// Steps of the classifier.
    pub classifier_steps: u64,
    /// The seed of everything that is drawn.
    pub seed: u64,
}

impl NaturalConfig {
    /// The settings of a scale.
    pub fn at(scale: Size) -> NaturalConfig {
        let (examples, classifier_steps) = if scale == Size::Quick { (32, 200) } else { (200, 800) };
        NaturalConfig { pairs: Vec::new(), shown: 6, examples, classifier_steps, seed: 0 }
    }
}

/// Compares images of one class with another class, for each pair, by a classifier that is given or trained here.
///
/// # Errors
/// Data that are no images with labels, a class that there is not, a store without a folder, and what training says.
pub fn natural(
    train: &Dataset,
    held_out: &Dataset,
    network: Option<Model>,
    config: &NaturalConfig,
    engine: &EngineConfig,
    store: &Store,
    tell: Tell,
) -> Result<(Table, Vec<Figure>)> {
    let [_, height, width] = train.shape()[..] else {
        return Err(Error::NotAnImage { what: "a natural task", shape: train.shape().to_vec() });
    };
    if config.pairs.is_empty() {
        return Err(Error::Setting {
            name: "the pairs of classes",
            value: "none".to_string(),
            needs: "there is a class to explain and one to compare it with",
            hint: "--pair 4:9".into(),
        });
    }
    let classifier = match network {
        Some(network) => given(network, held_out, engine)?,
        None => {
            let about = format!("{} {} {}", train.fingerprint(), config.classifier_steps, config.seed);
            store.claim(&[("the data and the training".to_string(), about)].into_iter().collect())?;
            let resnet =
                ResnetConfig { patch: 2, width: 16, multipliers: vec![1, 2], ..ResnetConfig::default() };
            let run = ClassifierRun {
                network: Some(ClassifierConfig::Resnet(resnet)),
                training: trained::training(config.classifier_steps, 64, config.seed, engine),
                ..ClassifierRun::default()
            };
            trained::classifier(train, held_out, &run, store, "classifier", tell)?
        }
    };
    tell(&format!("the classifier gets {:.3} of held-out images right", classifier.accuracy));
    let mut rows = vec![Row::of("classifier", "accuracy", &[classifier.accuracy], None)];
    let mut figures = Vec::new();
    for (own, other) in &config.pairs {
        let task = Task::new(train, held_out, (own.as_str(), other.as_str()), &classifier, config)?;
        let name = format!("{} against {}", task.own.name(), task.other.name());
        rows.extend(task.rows(&name)?);
        let file = format!("natural-{}.svg", name.to_lowercase().replace([' ', '/'], "-"));
        figures.push(Figure { file, svg: task.picture(&name, [height, width], config.shown)? });
        tell(&format!("{name} is done"));
    }
    let scale =
        format!("{} images to learn from, {} compared, seed {}", train.len(), config.examples, config.seed);
    Ok((Table { name: "natural".into(), scale, rows }, figures))
}

/// Held-out images on which a classifier that is given is measured.
const MEASURED: usize = 1000;

fn given(network: Model, held_out: &Dataset, engine: &EngineConfig) -> Result<trained::Classifier> {
    let config = PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() };
    let model = OnnxPredictor::new(&network, &config)?;
    let labels = held_out.require_labels()?;
    let rows: Vec<usize> = (0..held_out.len().min(MEASURED)).collect();
    let predicted = model.values_only().predicted(held_out.rows_f64(&rows)?.view())?;
    let right = rows.iter().filter(|&&row| predicted[row] == labels[row]).count();
    Ok(trained::Classifier { model, network, accuracy: right as f64 / rows.len().max(1) as f64 })
}

/// Images of one class and what they are compared with.
struct Task<'a> {
    own: Population,
    other: Population,
    model: &'a OnnxPredictor,
    margin: OnnxPredictor,
    inputs: Array2<f64>,
    /// Carried to the other class, and cut off at 0 and 1.
    counterparts: Array2<f64>,
    /// How much was cut off, as a part of the squared displacement.
    cut: Vec<f64>,
    nearest: Array2<f64>,
    /// The numbers of the inputs' class and of the other.
    target: usize,
    class: usize,
    /// Margins of held-out images of the other class.
    usual: Vec<f64>,
}

impl<'a> Task<'a> {
    fn new(
        train: &Dataset,
        held_out: &Dataset,
        (own, other): (&str, &str),
        classifier: &'a trained::Classifier,
        config: &NaturalConfig,
    ) -> Result<Task<'a>> {
        let (own, other) = (Population::of_class(train, own)?, Population::of_class(train, other)?);
        let number = |population: &Population| {
            train.classes().iter().position(|name| name == population.name()).unwrap_or_default()
        };
        let (target, class) = (number(&own), number(&other));
        let margin = classifier.model.with_contrast(class)?;
        let labels = held_out.require_labels()?;
        let of_class = |wanted: usize| -> Vec<usize> {
            (0..labels.len()).filter(|&row| labels[row] == wanted).collect()
        };
        let all = held_out.rows_f64(&of_class(target))?;
        let predicted = classifier.model.values_only().predicted(all.view())?;
        let right: Vec<usize> =
            (0..predicted.len()).filter(|&row| predicted[row] == target).take(config.examples).collect();
        if right.is_empty() {
            return Err(Error::Training {
                reason: format!("the classifier gets no held-out image of class '{}' right", own.name()),
                remedy: "train it longer".into(),
            });
        }
        let inputs = all.select(Axis(0), &right);
        let map =
            GaussianMap::fit(other.rows(), own.rows(), &GaussianConfig::default())?.with_bounds(0.0, 1.0);
        let starts = map.starts(inputs.view())?;
        let cut = starts.clipped.iter().flatten().map(|part| part * part).collect();
        let counterparts = starts.states;
        let rows = other.rows().rows_f64(&(0..other.rows().len()).collect::<Vec<_>>())?;
        let distances = squared_distances(inputs.view(), rows.view())?;
        let nearest: Vec<usize> = distances
            .rows()
            .into_iter()
            .map(|row| (0..row.len()).min_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap_or_default())
            .collect();
        let nearest = rows.select(Axis(0), &nearest);
        let real = held_out.rows_f64(&of_class(class))?;
        let usual = margin.values(real.view(), &vec![target; real.nrows()])?.to_vec();
        Ok(Task {
            own,
            other,
            model: &classifier.model,
            margin,
            inputs,
            counterparts,
            cut,
            nearest,
            target,
            class,
            usual,
        })
    }

    fn targets(&self) -> Vec<usize> {
        vec![self.target; self.inputs.nrows()]
    }

    fn rows(&self, name: &str) -> Result<Vec<Row>> {
        let margins = |rows: &Array2<f64>| self.margin.values(rows.view(), &self.targets());
        let taken = |rows: &Array2<f64>| -> Result<Vec<f64>> {
            let predicted = self.model.values_only().predicted(rows.view())?;
            Ok(predicted.iter().map(|&class| f64::from(u8::from(class == self.class))).collect())
        };
        // The score of the lowest of a hundred real images: what lies beyond is more of the other class than any of them.
        let mut usual = self.usual.clone();
        usual.sort_by(f64::total_cmp);
        let lowest = usual[usual.len() / 100];
        let counterparts = margins(&self.counterparts)?;
        let beyond = counterparts.iter().map(|m| f64::from(u8::from(*m < lowest))).collect::<Vec<_>>();
        let moved = |to: &Array2<f64>| -> Vec<f64> {
            (&self.inputs - to).rows().into_iter().map(|row| row.dot(&row)).collect()
        };
        let row = |metric: &str, values: &[f64]| Row::of(name, metric, values, None);
        Ok(vec![
            row("counterparts that the model takes for the other class", &taken(&self.counterparts)?),
            row("margin of inputs", &margins(&self.inputs)?.to_vec()),
            row("margin of counterparts", &counterparts.to_vec()),
            row("margin of real images of the other class", &self.usual),
            row("counterparts beyond 99 of 100 real images", &beyond),
            row("squared distance to the counterpart", &moved(&self.counterparts)),
            row("squared distance to the nearest real image", &moved(&self.nearest)),
            row("cut off at 0 and 1, part of the squared displacement", &self.cut),
        ])
    }

    fn picture(&self, name: &str, size: [usize; 2], shown: usize) -> Result<String> {
        let targets = self.targets();
        let black = Array2::zeros(self.inputs.raw_dim());
        let credit = |references: &Array2<f64>| {
            along_lines(&self.margin, references.view(), self.inputs.view(), &targets)
        };
        let all = [credit(&self.counterparts)?, credit(&self.nearest)?, credit(&black)?];
        let channels = self.inputs.ncols() / (size[0] * size[1]);
        let margins = self.margin.values(self.counterparts.view(), &targets)?;
        let (mut cells, mut rows) = (Vec::new(), Vec::new());
        for row in 0..self.inputs.nrows().min(shown) {
            rows.push(format!("counterpart {:.1}", margins[row]));
            let image = |from: &Array2<f64>| PictureCell::Image { channels, values: from.row(row).to_vec() };
            let signed = |from: &Array2<f64>| {
                let map =
                    brenier::evaluate::Channels::SignedSum.map(from.row(row), self.margin.shape()).to_vec();
                let scale = map.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
                PictureCell::Signed { values: map, scale }
            };
            cells.push(image(&self.inputs));
            cells.push(image(&self.counterparts));
            cells.push(signed(&(&self.inputs - &self.counterparts)));
            cells.push(signed(&all[0]));
            cells.push(image(&self.nearest));
            cells.push(signed(&all[1]));
            cells.push(signed(&all[2]));
        }
        let heads = ["input", "counterpart", "difference", "credit", "nearest real", "credit", "from black"];
        let title = format!("{name}: credit for the margin, and the margin of the counterpart");
        picture_grid(&title, &heads.map(str::to_string), &rows, &cells, size)
    }
}
