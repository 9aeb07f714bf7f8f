//! The model to explain, loaded for what the methods ask of it: gradients, or values only.

use std::path::PathBuf;

use anyhow::Result;
use brenier::{OnnxPredictor, PredictorConfig, Score, ValuePredictor};
use clap::Args;

use crate::engine_args::EngineArgs;

/// Which model
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The ONNX model to explain
    #[arg(short, long, value_name = "FILE")]
    pub(crate) model: PathBuf,
    /// The output to explain, by name; the first where not given
    #[arg(long, value_name = "NAME")]
    output_name: Option<String>,
    /// The shape of one input where the file leaves it open, such as 3,224,224
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    input_shape: Option<Vec<usize>>,
    /// Explain probabilities as they are, not the logits before a final Softmax or Sigmoid
    #[arg(long)]
    keep_softmax: bool,
}

impl ModelArgs {
    /// Which output is explained, and how.
    pub(crate) fn output_in_words(&self) -> String {
        let name = self.output_name.as_deref().unwrap_or("the first");
        format!("{name}{}", if self.keep_softmax { ", with its softmax" } else { "" })
    }
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
            keep_final_activation: args.keep_softmax,
            ..PredictorConfig::default()
        };
        Ok(if needs_gradients {
            Loaded::WithGradients(Box::new(OnnxPredictor::load(&args.model, &config)?))
        } else {
            Loaded::ValuesOnly(Box::new(ValuePredictor::load(&args.model, &config)?))
        })
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
