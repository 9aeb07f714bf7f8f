//! The model to explain, loaded for what the methods ask of it: gradients, or values only.

use anyhow::Result;
use brenier::attribute::Method;
use brenier::{OnnxPredictor, PredictorConfig, Score, ValuePredictor};

use super::Explain;

/// A model that was loaded.
pub(super) enum Loaded {
    WithGradients(Box<OnnxPredictor>),
    ValuesOnly(Box<ValuePredictor>),
}

impl Loaded {
    /// Loads the model; for its values only where no method asks for more, so that any model will do.
    pub(super) fn load(args: &Explain, methods: &[Method]) -> Result<Loaded> {
        let config = PredictorConfig {
            engine: args.engine.config(),
            output: args.output_name.clone(),
            input_shape: args.input_shape.clone(),
            keep_final_activation: args.keep_softmax,
            ..PredictorConfig::default()
        };
        Ok(if args.path.is_some() || methods.iter().any(Method::needs_gradients) {
            Loaded::WithGradients(Box::new(OnnxPredictor::load(&args.model, &config)?))
        } else {
            Loaded::ValuesOnly(Box::new(ValuePredictor::load(&args.model, &config)?))
        })
    }

    /// The model for its values.
    pub(super) fn values(&self) -> &ValuePredictor {
        match self {
            Loaded::WithGradients(model) => model.values_only(),
            Loaded::ValuesOnly(model) => model,
        }
    }

    /// The model with its gradients, where it was loaded with them.
    pub(super) fn with_gradients(&self) -> Option<&OnnxPredictor> {
        match self {
            Loaded::WithGradients(model) => Some(model),
            Loaded::ValuesOnly(_) => None,
        }
    }

    /// The model as methods see it.
    pub(super) fn score(&self) -> &dyn Score {
        match self {
            Loaded::WithGradients(model) => model.as_ref(),
            Loaded::ValuesOnly(model) => model.as_ref(),
        }
    }
}
