//! The model to explain, loaded for what the methods ask of it: gradients, or values only.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::data::{Column, OpenOptions, columns_of_features};
use brenier::runs::explain::Inputs;
use brenier::{
    ModelFile, OnnxPredictor, Packing, PredictorConfig, Preprocessing, Score, Scoring, Sidecar,
    ValuePredictor, fingerprint,
};
use clap::Args;
use serde::de::DeserializeOwned;

use super::inputs::input_shape;
use super::methods::MethodArgs;
use super::preprocessing::{PreprocessingArgs, unlike};
use super::surroundings::LOOKED_AT;
use crate::engine_args::EngineArgs;
use crate::output::print_progress;

/// Which model
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The model to explain: an ONNX file, or trees as XGBoost (.json, .ubj) and LightGBM (.txt) save them
    #[arg(short, long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// The output to explain, by name; default: the first
    #[arg(long, value_name = "NAME")]
    output_name: Option<String>,
    /// The names of the classes in the order of the model's outputs: with commas between, or a file with one a
    /// line; default: as the model says
    #[arg(long, value_name = "NAMES|FILE")]
    classes: Option<String>,
    /// A table whose columns are those of the model, such as its training data: rows are bound to them by name, and
    /// categories are coded by the values that occur there; default: as the model says
    #[arg(long, value_name = "TABLE")]
    pub(super) schema: Option<PathBuf>,
    /// The shape of one input where the file leaves it open, such as 3,224,224
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    input_shape: Option<Vec<usize>>,
    /// Explain probabilities as they are, not the logits before a final Softmax or Sigmoid
    #[arg(long)]
    keep_softmax: bool,
    #[command(flatten)]
    preprocessing: PreprocessingArgs,
    /// What becomes of inputs that are given by name.
    #[arg(skip)]
    packing: Option<Packing>,
    /// Which numbers of the output are scores, where it is not every number of a vector.
    #[arg(skip)]
    scoring: Option<Scoring>,
}

impl ModelArgs {
    /// The same, with the shape of these inputs where they are to be resized: only they tell.
    pub(crate) fn for_inputs(&self, inputs: &[PathBuf], options: &OpenOptions) -> Result<ModelArgs> {
        let mut args = self.clone();
        if let (None, Some(_), Some(first)) = (&self.input_shape, self.preprocessing()?.size, inputs.first())
        {
            args.input_shape = Some(input_shape(first, options)?);
        }
        Ok(args)
    }

    /// The names of the outputs: as given, or as the file beside the model says, or the model itself; else none.
    pub(crate) fn class_names(&self, model: &ValuePredictor) -> Result<Vec<String>> {
        if let Some(scoring) = self.scoring.as_ref().filter(|scoring| scoring.is_one_score()) {
            return Ok(vec![scoring.to_string()]);
        }
        let names = match &self.classes {
            Some(text) => listed(text)?,
            None => {
                let beside = Sidecar::beside(&self.model)?.classes;
                if beside.is_empty() {
                    // Of another output, the model's own names may not be.
                    let own: Vec<String> = entry(model, "brenier.classes").unwrap_or_default();
                    return Ok(if own.len() == model.outputs() { own } else { Vec::new() });
                }
                beside
            }
        };
        if !names.is_empty() && names.len() != model.outputs() {
            bail!(
                "{} class names are given, but the model has {} outputs\nhint: give one for each, in their order",
                names.len(),
                model.outputs()
            );
        }
        Ok(names)
    }

    /// The names of classes before the model is loaded: as given, or of the file beside it, or the model's own; else none.
    pub(super) fn names_beside(&self, file: &ModelFile) -> Result<Vec<String>> {
        if let Some(text) = &self.classes {
            return listed(text);
        }
        let beside = Sidecar::beside(&self.model)?.classes;
        if !beside.is_empty() {
            return Ok(beside);
        }
        let own = file.model().ok().and_then(|model| model.metadata.get("brenier.classes").cloned());
        Ok(own.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// The same with other scores.
    pub(crate) fn scored(&self, scoring: Option<Scoring>) -> ModelArgs {
        ModelArgs { scoring, ..self.clone() }
    }

    /// The target as it is among these scores.
    pub(crate) fn target<'a>(&self, typed: &'a str) -> &'a str {
        match &self.scoring {
            Some(scoring) if scoring.is_one_score() => "0",
            Some(scoring) if !scoring.target.is_empty() => "predicted",
            _ => typed,
        }
    }

    /// The same for inputs that are given by name.
    pub(super) fn packed(&self, packing: Packing) -> ModelArgs {
        ModelArgs { packing: Some(packing), ..self.clone() }
    }

    /// How the model is turned into a predictor.
    pub(super) fn config(&self, engine: &EngineArgs) -> Result<PredictorConfig> {
        Ok(PredictorConfig {
            engine: engine.config(),
            output: self.output_name.clone(),
            input_shape: self.input_shape.clone(),
            preprocessing: self.preprocessing()?,
            keep_final_activation: self.keep_softmax,
            packing: self.packing.clone(),
            scoring: self.scoring.clone(),
            ..PredictorConfig::default()
        })
    }

    fn preprocessing(&self) -> Result<Preprocessing> {
        Ok(self.preprocessing.preprocessing().or(Sidecar::beside(&self.model)?.preprocessing))
    }

    /// Says where inputs are in other units than the model's preprocessing expects.
    pub(crate) fn tell_of_units(&self, inputs: &dyn Inputs) -> Result<()> {
        // A row that cannot be read is told of when its turn comes.
        let Ok(some) = inputs.rows(0..inputs.count().min(LOOKED_AT)) else { return Ok(()) };
        if let Some(notice) = unlike(&self.preprocessing()?, &some) {
            print_progress(&notice);
        }
        Ok(())
    }
}

/// Names with commas between, or the lines of a file.
fn listed(text: &str) -> Result<Vec<String>> {
    let path = Path::new(text);
    let trimmed = |part: &str| part.trim().to_string();
    if !path.is_file() {
        return Ok(text.split(',').map(trimmed).collect());
    }
    let lines =
        brenier::readable::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(lines.lines().map(trimmed).filter(|line| !line.is_empty()).collect())
}

/// What a model that was trained here says of itself.
fn entry<T: DeserializeOwned>(model: &ValuePredictor, key: &str) -> Option<T> {
    serde_json::from_str(model.metadata().get(key)?).ok()
}

impl ModelArgs {
    /// Which output is explained, and how.
    fn output_in_words(&self) -> String {
        let name = self.output_name.as_deref().unwrap_or("the first");
        format!("{name}{}", if self.keep_softmax { ", with its softmax" } else { "" })
    }

    /// What is done to inputs before the model sees them.
    fn preprocessing_in_words(&self) -> Result<String> {
        Ok(format!("{:?}", self.preprocessing()?))
    }
}

impl ModelArgs {
    /// What results depend on besides inputs, targets and methods, by name. Files enter by their contents.
    pub(crate) fn made_from(&self, model: &Loaded, settings: &MethodArgs) -> Result<Vec<(String, String)>> {
        let engine = model.values().engine();
        let mut facts = vec![
            ("the model's fingerprint".to_string(), model.file_hash().to_string()),
            ("the engine".to_string(), engine.described()),
            ("the explained output".to_string(), self.output_in_words()),
            ("the preprocessing".to_string(), self.preprocessing_in_words()?),
        ];
        facts.extend(self.input_shape.as_ref().map(|s| ("the input shape".to_string(), format!("{s:?}"))));
        facts.extend(self.scoring.as_ref().map(|s| ("the score".to_string(), s.described())));
        facts.extend(settings.baseline_in_words().map(|words| ("the baseline".to_string(), words)));
        Ok(facts)
    }
}

/// The fingerprint of a file.
pub(crate) fn file_hash(file: &Path) -> Result<String> {
    let bytes = brenier::readable::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(fingerprint(&bytes))
}

/// A model that was loaded.
pub(crate) struct Loaded {
    kind: Kind,
    /// The fingerprint of its file with external data.
    file_hash: String,
    /// The fingerprint of the scores.
    hash: String,
}

enum Kind {
    WithGradients(Box<OnnxPredictor>),
    ValuesOnly(Box<ValuePredictor>),
}

impl Loaded {
    /// Loads the model; for its values only where nothing asks for more, so that any model will do.
    pub(crate) fn load(args: &ModelArgs, engine: &EngineArgs, needs_gradients: bool) -> Result<Loaded> {
        Loaded::load_with(args, engine, needs_gradients, |_| Ok(None))
    }

    /// The same, with every score minus that of the class that `contrast` names, where it names one.
    pub(crate) fn load_with(
        args: &ModelArgs,
        engine: &EngineArgs,
        needs_gradients: bool,
        contrast: impl FnOnce(&ValuePredictor) -> Result<Option<usize>>,
    ) -> Result<Loaded> {
        let config = args.config(engine)?;
        let file = ModelFile::open(&args.model)?;
        let kind = match ValuePredictor::trees_of(file.bytes(), &config)? {
            Some(trees) => Kind::ValuesOnly(Box::new(trees)),
            None if needs_gradients => {
                Kind::WithGradients(Box::new(OnnxPredictor::new(file.model()?, &config)?))
            }
            None => Kind::ValuesOnly(Box::new(ValuePredictor::of_file(&file, &config)?)),
        };
        let class = contrast(kind.values())?;
        let kind = match (kind, class) {
            (Kind::WithGradients(model), Some(class)) => {
                Kind::WithGradients(Box::new(model.with_contrast(class)?))
            }
            (Kind::ValuesOnly(model), Some(class)) => Kind::ValuesOnly(Box::new(model.with_contrast(class)?)),
            (kind, None) => kind,
        };
        Ok(Loaded { kind, file_hash: file.hash().to_string(), hash: file.hash_as(&config, class) })
    }

    /// The fingerprint of its file, with external data.
    pub(crate) fn file_hash(&self) -> &str {
        &self.file_hash
    }

    /// The fingerprint of the scores that are explained: the file, and all that is decided beside it.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// How the columns of its table were coded, where the model says, or what its features are called.
    pub(super) fn columns(&self) -> Vec<Column> {
        let coded: Vec<Column> = entry(self.values(), "brenier.columns").unwrap_or_default();
        let names: Vec<String> = entry(self.values(), "feature_names").unwrap_or_default();
        if coded.is_empty() { columns_of_features(&names) } else { coded }
    }

    /// The model for its values.
    pub(crate) fn values(&self) -> &ValuePredictor {
        self.kind.values()
    }

    /// The model with its gradients, where it was loaded with them.
    pub(crate) fn with_gradients(&self) -> Option<&OnnxPredictor> {
        match &self.kind {
            Kind::WithGradients(model) => Some(model),
            Kind::ValuesOnly(_) => None,
        }
    }

    /// The model as methods see it.
    pub(crate) fn score(&self) -> &dyn Score {
        match &self.kind {
            Kind::WithGradients(model) => model.as_ref(),
            Kind::ValuesOnly(model) => model.as_ref(),
        }
    }
}

impl Kind {
    fn values(&self) -> &ValuePredictor {
        match self {
            Kind::WithGradients(model) => model.values_only(),
            Kind::ValuesOnly(model) => model,
        }
    }
}
