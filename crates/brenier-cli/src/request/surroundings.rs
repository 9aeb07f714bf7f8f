//! What methods need besides the model, as it was read: data, baselines, flows.

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Result, bail};
use brenier::attribute::{Baseline, Context};
use brenier::data::{Dataset, OpenOptions, Part};
use brenier::flow::{FlowMetadata, NoisePredictor, Objective, OnnxFlow};
use brenier::{OnnxPredictor, Score, ValuePredictor, VelocityField};
use ndarray::Array2;
use onnx_grad::Model;

use super::inputs;
use super::methods::{MethodArgs, baseline};
use crate::engine_args::EngineArgs;

/// What methods need besides the model, as it was read.
pub(crate) struct Surroundings {
    background: Option<Dataset>,
    baselines: Option<Array2<f64>>,
    pub(crate) flows: Vec<OnnxFlow>,
    diffusion: Option<NoisePredictor>,
}

impl Surroundings {
    pub(crate) fn read(
        args: &MethodArgs,
        engine: &EngineArgs,
        options: &OpenOptions,
        predictor: &ValuePredictor,
        count: usize,
    ) -> Result<Surroundings> {
        // The same kind of data as the inputs, all of it.
        let options = OpenOptions { limit: None, part: Part::Train, ..options.clone() };
        let open = |path: &PathBuf| Dataset::open(path, &options);
        let background = args.background.as_ref().map(open).transpose()?;
        let baselines = match args.baseline.as_deref() {
            Some(file) if baseline(file) == Some(Baseline::Given) => {
                let found = inputs::rows(FilePath::new(file), predictor)?;
                if found.nrows() != 1 && found.nrows() != count {
                    bail!(
                        "{file} holds {} references for {count} inputs\nhint: give one, or one for each",
                        found.nrows()
                    );
                }
                Some(found)
            }
            _ => None,
        };
        let mut flows = Vec::with_capacity(args.flow.len());
        let mut diffusion = None;
        for file in &args.flow {
            let model = Model::load(file)?;
            let shape = if FlowMetadata::of(&model)?.objective == Some(Objective::Ddpm) {
                if diffusion.is_some() {
                    bail!("{} is a second diffusion model\nhint: give one", file.display());
                }
                diffusion.insert(NoisePredictor::new(model, &engine.config())?).shape().to_vec()
            } else {
                let flow = OnnxFlow::new(model, &engine.config())?;
                let shape = flow.shape().to_vec();
                flows.push(flow);
                shape
            };
            if shape.iter().product::<usize>() != predictor.features() {
                bail!(
                    "the flow {} is for inputs of shape {shape:?}, which do not fit the model's\nhint: use a flow \
                     that was trained on this model's data",
                    file.display(),
                );
            }
        }
        Ok(Surroundings { background, baselines, flows, diffusion })
    }

    pub(crate) fn context<'a>(&'a self, model: Option<&'a OnnxPredictor>) -> Context<'a> {
        Context {
            data: self.background.as_ref(),
            baselines: self.baselines.as_ref().map(|rows| rows.view()),
            flows: self.flows.iter().map(|flow| flow as &dyn VelocityField).collect(),
            diffusion: self.diffusion.as_ref(),
            model,
            first_example: 0,
        }
    }
}
