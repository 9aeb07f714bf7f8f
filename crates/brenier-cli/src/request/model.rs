//! The model to explain, loaded for what the methods ask of it: gradients, or values only.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use brenier::data::{Column, OpenOptions, columns_of_features};
use brenier::{OnnxPredictor, PredictorConfig, Preprocessing, Score, Sidecar, ValuePredictor, fingerprint};
use clap::Args;
use serde::de::DeserializeOwned;

use super::inputs::input_shape;
use super::methods::MethodArgs;
use super::networks::in_run;
use super::preprocessing::PreprocessingArgs;
use crate::engine_args::EngineArgs;

/// Which model
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The model to explain: an ONNX file, or trees as XGBoost (.json, .ubj) and LightGBM (.txt) save them
    #[arg(short, long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// The output to explain, by name; the first where not given
    #[arg(long, value_name = "NAME")]
    output_name: Option<String>,
    /// The names of the classes in the order of the model's outputs: with commas between, or a file with one a
    /// line; as the model says where not given
    #[arg(long, value_name = "NAMES|FILE")]
    classes: Option<String>,
    /// A table whose columns are those of the model, such as its training data: rows are bound to them by name, and
    /// categories are coded by the values that occur there; as the model says where not given
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

    fn preprocessing(&self) -> Result<Preprocessing> {
        Ok(self.preprocessing.preprocessing().or(Sidecar::beside(&self.model)?.preprocessing))
    }
}

/// Names with commas between, or the lines of a file.
fn listed(text: &str) -> Result<Vec<String>> {
    let path = Path::new(text);
    let trimmed = |part: &str| part.trim().to_string();
    if !path.is_file() {
        return Ok(text.split(',').map(trimmed).collect());
    }
    let lines = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
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
    /// What results depend on besides inputs, targets and methods, by name.
    pub(crate) fn made_from(&self, model: &Loaded, settings: &MethodArgs) -> Result<Vec<(String, String)>> {
        let engine = model.values().engine();
        let mut facts = vec![
            ("the model's fingerprint".to_string(), file_hash(&self.model)?),
            ("the engine".to_string(), format!("{} {}", engine.name(), engine.version())),
            ("the explained output".to_string(), self.output_in_words()),
            ("the preprocessing".to_string(), self.preprocessing_in_words()?),
        ];
        for (number, flow) in settings.flow.iter().enumerate() {
            let flow = in_run(flow.clone());
            facts.push((format!("the fingerprint of flow {}", number + 1), file_hash(&flow)?));
        }
        facts.extend(settings.data_in_words().map(|words| ("the background".to_string(), words)));
        Ok(facts)
    }
}

/// The fingerprint of a file.
pub(crate) fn file_hash(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(fingerprint(&bytes))
}

/// A model that was loaded.
pub(crate) enum Loaded {
    WithGradients(Box<OnnxPredictor>),
    ValuesOnly(Box<ValuePredictor>),
}

impl Loaded {
    /// Loads the model; for its values only where nothing asks for more, so that any model will do.
    pub(crate) fn load(args: &ModelArgs, engine: &EngineArgs, needs_gradients: bool) -> Result<Loaded> {
        let config = PredictorConfig {
            engine: engine.config(),
            output: args.output_name.clone(),
            input_shape: args.input_shape.clone(),
            preprocessing: args.preprocessing()?,
            keep_final_activation: args.keep_softmax,
            ..PredictorConfig::default()
        };
        if let Some(trees) = ValuePredictor::load_trees(&args.model, &config)? {
            return Ok(Loaded::ValuesOnly(Box::new(trees)));
        }
        Ok(if needs_gradients {
            Loaded::WithGradients(Box::new(OnnxPredictor::load(&args.model, &config)?))
        } else {
            Loaded::ValuesOnly(Box::new(ValuePredictor::load(&args.model, &config)?))
        })
    }

    /// The same model with every score minus that of one class.
    pub(crate) fn with_contrast(self, class: usize) -> Result<Loaded> {
        Ok(match self {
            Loaded::WithGradients(model) => Loaded::WithGradients(Box::new(model.with_contrast(class)?)),
            Loaded::ValuesOnly(model) => Loaded::ValuesOnly(Box::new(model.with_contrast(class)?)),
        })
    }

    /// How the columns of its table were coded, where the model says, or what its features are called.
    pub(super) fn columns(&self) -> Vec<Column> {
        let coded: Vec<Column> = entry(self.values(), "brenier.columns").unwrap_or_default();
        let names: Vec<String> = entry(self.values(), "feature_names").unwrap_or_default();
        if coded.is_empty() { columns_of_features(&names) } else { coded }
    }

    /// The model for its values.
    pub(crate) fn values(&self) -> &ValuePredictor {
        match self {
            Loaded::WithGradients(model) => model.values_only(),
            Loaded::ValuesOnly(model) => model,
        }
    }

    /// The model with its gradients, where it was loaded with them.
    pub(crate) fn with_gradients(&self) -> Option<&OnnxPredictor> {
        match self {
            Loaded::WithGradients(model) => Some(model),
            Loaded::ValuesOnly(_) => None,
        }
    }

    /// The model as methods see it.
    pub(crate) fn score(&self) -> &dyn Score {
        match self {
            Loaded::WithGradients(model) => model.as_ref(),
            Loaded::ValuesOnly(model) => model.as_ref(),
        }
    }
}
