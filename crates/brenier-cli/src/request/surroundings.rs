//! What methods need besides the model, as it was read: data, baselines, flows.

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Result, bail};
use brenier::attribute::{Baseline, Context};
use brenier::data::{Dataset, OpenOptions, Part};
use brenier::flow::{NoisePredictor, OnnxFlow};
use brenier::runs::explain::Inputs;
use brenier::{OnnxPredictor, Score, ValuePredictor, VelocityField};
use ndarray::{Array2, ArrayView2};

use super::inputs;
use super::methods::{MethodArgs, baseline};
use super::networks::{Given, Network, Networks};

/// What methods need besides the model, as it was read.
pub(crate) struct Surroundings {
    pub(crate) background: Option<Dataset>,
    baselines: Option<Array2<f64>>,
    pub(crate) flows: Vec<OnnxFlow>,
    diffusion: Option<NoisePredictor>,
    /// The fingerprints of flows and diffusion models, in the order in which they were given.
    hashes: Vec<String>,
}

impl Surroundings {
    pub(crate) fn read(
        args: &MethodArgs,
        networks: Networks,
        options: &OpenOptions,
        predictor: &ValuePredictor,
        explained: &dyn Inputs,
    ) -> Result<Surroundings> {
        let count = explained.count();
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
        let (mut flows, mut hashes) = (Vec::new(), Vec::new());
        let mut diffusion = None;
        for Given { file, network, hash } in networks.loaded()? {
            hashes.push(hash);
            let shape = match network {
                Network::Diffusion(_) if diffusion.is_some() => {
                    bail!("{} is a second diffusion model\nhint: give one", file.display())
                }
                Network::Diffusion(network) => diffusion.insert(network).shape().to_vec(),
                Network::Flow(flow) => {
                    let shape = flow.shape().to_vec();
                    if shape.iter().product::<usize>() == predictor.features() {
                        let some = explained.rows(0..count.min(LOOKED_AT))?;
                        expect_same_scale(&file, &flow, some.view())?;
                    }
                    flows.push(flow);
                    shape
                }
            };
            if shape.iter().product::<usize>() != predictor.features() {
                bail!(
                    "the flow {} is for inputs of shape {shape:?}, but the model takes {:?}\nhint: use a flow that was \
                     trained on this model's data",
                    file.display(),
                    Score::shape(predictor),
                );
            }
        }
        Ok(Surroundings { background, baselines, flows, diffusion, hashes })
    }

    /// The fingerprints of the networks that were given, with commas between.
    pub(crate) fn network_hashes(&self) -> Option<String> {
        (!self.hashes.is_empty()).then(|| self.hashes.join(","))
    }

    /// What results depend on here, by name and by content.
    pub(crate) fn made_from(&self) -> Vec<(String, String)> {
        let name = |number: usize| format!("the fingerprint of flow {}", number + 1);
        let flows = self.hashes.iter().enumerate().map(|(i, hash)| (name(i), hash.clone()));
        let background = self
            .background
            .as_ref()
            .map(|data| ("the fingerprint of the background".to_string(), data.fingerprint()));
        flows.chain(background).collect()
    }

    /// What methods need for all inputs.
    pub(crate) fn context<'a>(&'a self, model: Option<&'a OnnxPredictor>) -> Context<'a> {
        Context {
            data: self.background.as_ref(),
            baselines: self.baselines.as_ref().map(|rows| rows.view()),
            flows: self.flows.iter().map(|flow| flow as &dyn VelocityField).collect(),
            diffusion: self.diffusion.as_ref(),
            model,
            first_example: 0,
            draw_as: None,
        }
    }
}

/// Inputs whose scale is held against that of a flow's training data.
const LOOKED_AT: usize = 256;
/// Root mean square, in the flow's own units, above which inputs cannot be of the kind it was trained on: training
/// data have about 1.
const FAR: f64 = 20.0;

/// Refuses inputs in other units than the flow's training data, such as 0 to 255 instead of 0 to 1.
fn expect_same_scale(file: &FilePath, flow: &OnnxFlow, inputs: ArrayView2<f64>) -> Result<()> {
    let Some(scaling) = &flow.metadata().scaling else { return Ok(()) };
    let scaled = scaling.apply(inputs)?;
    let size = scaled.mapv(|v| v * v).mean().unwrap_or(0.0).sqrt();
    if size > FAR {
        bail!(
            "the inputs do not look like what the flow {} was trained on: in its units they are of size {size:.0}, where \
             its training data are of size 1\nhint: give the inputs in the units of the training data (--scale 255 \
             then divides inside the model), or use a flow that was trained on such data",
            file.display()
        );
    }
    Ok(())
}
