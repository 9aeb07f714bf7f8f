//! Training a classifier from labelled data.

use std::path::Path;

use onnx_grad::Model;
use serde::{Deserialize, Serialize};

use super::generator::model_fingerprint;
use super::objective::{Goal, ObjectiveSpec};
use super::{Event, Outcome, Watch, files};
use crate::classify::{Augment, Classification, ClassifierConfig, accuracy};
use crate::data::{Dataset, Scaling, ScalingConfig};
use crate::error::Result;
use crate::train::{TrainConfig, fit};

/// The objective of a classifier.
pub(super) static SPEC: ObjectiveSpec = ObjectiveSpec {
    name: "classify",
    help: "The class of each row",
    file: "classifier.onnx",
    goal: Goal::Classifier,
};

/// What to train, and how.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClassifierRun {
    /// The network; what suits the data where not given. Not used where a model is given.
    pub network: Option<ClassifierConfig>,
    /// Random changes of training images.
    pub augment: Augment,
    /// Probability spread over all classes, 0 for none.
    pub smoothing: f64,
    /// How the scaling is fitted, which becomes part of the network.
    pub scaling: ScalingConfig,
    /// Store weights in 16 bits.
    pub half_weights: bool,
    /// How it is trained.
    pub training: TrainConfig,
}

/// Trains a classifier in a run folder; goes on where a run of the same settings was stopped.
pub fn train_classifier(
    data: &Dataset,
    held_out: &Dataset,
    start: Option<Model>,
    run: &ClassifierRun,
    folder: &Path,
    watch: Watch,
) -> Result<(Outcome, Option<Model>)> {
    data.require_rows(run.training.batch.max(1), "a batch")?;
    held_out.require_labels()?;
    let seed = run.training.seed;
    let task = Classification::new(data.clone(), run.augment, run.smoothing, seed)?;
    let made_from = [
        ("fingerprint of the data", data.fingerprint()),
        ("fingerprint of the held-out data", held_out.fingerprint()),
        ("fingerprint of the network", start.as_ref().map(model_fingerprint).unwrap_or_default()),
    ];
    let network = run.network.clone().unwrap_or_else(|| ClassifierConfig::for_shape(data.shape()));
    let mut model = match start {
        Some(model) => model,
        None => network.build(&Scaling::fit(data, &run.scaling)?, data.classes().len(), seed)?,
    };
    let lasting = ClassifierRun { training: run.training.lasting(), ..run.clone() };
    let entries = [
        ("brenier.objective", serde_json::to_string(SPEC.name)),
        ("brenier.classes", serde_json::to_string(data.classes())),
        ("brenier.training", serde_json::to_string(&lasting)),
        ("brenier.data", serde_json::to_string(&data.fingerprint())),
    ];
    for (key, value) in entries {
        if let Ok(value) = value {
            model.metadata.insert(key.to_string(), value);
        }
    }
    files::write_columns(&mut model, data);
    let _lock = files::claim(folder, run, &made_from)?;
    let steps = run.training.steps;
    let mut watch_lines = |p: &crate::train::Progress| watch(Event::Training(*p, steps));
    let trained = fit(&model, &task, &run.training, Some(folder), &mut watch_lines)?;
    let loss = trained.progress.map(|p| p.loss);
    if trained.step < steps {
        return Ok((Outcome::stopped(trained.step, loss), None));
    }
    let model = files::save_network(trained.model, run.half_weights, &folder.join(SPEC.file))?;
    files::draw_loss(folder, SPEC.file)?;
    _ = watch(Event::Measuring);
    let outcome = Outcome {
        file: Some(SPEC.file.to_string()),
        step: trained.step,
        loss,
        quality: None,
        calibrated: None,
        accuracy: Some(accuracy(&model, held_out, &run.training.engine)?),
    };
    outcome.save(folder)?;
    Ok((outcome, Some(model)))
}
