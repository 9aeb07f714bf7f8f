//! What methods need besides the model, as it was read: data, baselines, flows.

use std::path::{Path as FilePath, PathBuf};

use anyhow::{Result, bail};
use brenier::attribute::{Baseline, Context};
use brenier::data::{Dataset, OpenOptions, Part};
use brenier::flow::{ClassFlows, FlowMetadata, NoisePredictor, OnnxFlow};
use brenier::runs::explain::Inputs;
use brenier::{OnnxPredictor, Score, ValuePredictor, VelocityField};
use ndarray::{Array2, ArrayView2};

use super::inputs;
use super::methods::{MethodArgs, baseline, constant};
use super::networks::{Given, Network, Networks};
use crate::output::print_progress;

/// What methods need besides the model, as it was read.
pub(crate) struct Surroundings {
    pub(crate) background: Option<Dataset>,
    baselines: Option<Array2<f64>>,
    pub(crate) flows: Vec<OnnxFlow>,
    /// A flow between all classes, which is only of use to a comparison.
    pub(crate) between: Option<ClassFlows>,
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
        if let Some(data) = &background
            && data.shape() == Score::shape(predictor)
        {
            tell_of_units(data, explained)?;
        }
        let baselines = match args.baseline.as_deref() {
            Some(name) if constant(name).is_some() => {
                Some(Array2::from_elem((1, predictor.features()), constant(name).unwrap_or_default()))
            }
            Some(file) if baseline(file) == Some(Baseline::Given) => {
                if !FilePath::new(file).exists() {
                    bail!(
                        "there is no baseline '{file}'\nhint: say zero, a number such as 0.5, mean, blur, noise or \
                         background, or give an .npy file"
                    );
                }
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
        // Of several inputs a flow carries those that are explained.
        let moving =
            predictor.inputs().map_or(predictor.features(), |inputs| inputs.explained_features().0.len());
        let (mut flows, mut hashes) = (Vec::new(), Vec::new());
        let (mut diffusion, mut between) = (None, None);
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
                        expect_same_scale(&file, flow.metadata(), some.view())?;
                    }
                    flows.push(flow);
                    shape
                }
                Network::Between(network) => {
                    let shape = network.shape().to_vec();
                    if shape.iter().product::<usize>() == predictor.features() {
                        let some = explained.rows(0..count.min(LOOKED_AT))?;
                        expect_same_scale(&file, network.metadata(), some.view())?;
                    }
                    between = Some(*network);
                    shape
                }
            };
            if shape.iter().product::<usize>() != moving {
                bail!(
                    "the flow {} is for inputs of shape {shape:?}, but the model takes {:?}\nhint: use a flow that was \
                     trained on this model's data",
                    file.display(),
                    Score::shape(predictor),
                );
            }
        }
        Ok(Surroundings { background, baselines, flows, between, diffusion, hashes })
    }

    /// The same, with rows to compare with that were read elsewhere.
    pub(crate) fn with_baselines(self, baselines: Option<Array2<f64>>) -> Surroundings {
        Surroundings { baselines: baselines.or(self.baselines), ..self }
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

    /// Refuses a flow between classes where nothing says between which.
    ///
    /// # Errors
    /// Such a flow.
    pub(crate) fn refuse_between(&self) -> Result<()> {
        match &self.between {
            Some(flows) => bail!(
                "the flow leads between {} classes, and nothing says what to compare with\nhint: brenier explain --against \
                 CLASS --background DATA, with one of {}",
                flows.classes().len(),
                flows.classes().join(", ")
            ),
            None => Ok(()),
        }
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

/// How many times larger inputs may be than the background before it is said.
const UNLIKE: f64 = 10.0;
/// Inputs whose scale is compared with that of a background, a flow's training data or a preprocessing.
pub(super) const LOOKED_AT: usize = 256;
/// Root mean square, in the flow's own units, above which inputs cannot be of the kind it was trained on: training
/// data have about 1.
const FAR: f64 = 20.0;

/// Says where inputs are in other units than the background, such as 0 to 255 instead of 0 to 1.
fn tell_of_units(background: &Dataset, explained: &dyn Inputs) -> Result<()> {
    // A row that cannot be read is told of when its turn comes.
    let Ok(some) = explained.rows(0..explained.count().min(LOOKED_AT)) else { return Ok(()) };
    let theirs = background.rows_f64(&(0..background.len().min(LOOKED_AT)).collect::<Vec<_>>())?;
    let size = |rows: &Array2<f64>| rows.mapv(|v| v * v).mean().unwrap_or(0.0).sqrt();
    let (ours, usual) = (size(&some), size(&theirs));
    if ours > UNLIKE * usual || usual > UNLIKE * ours {
        print_progress(&format!(
            "notice: the inputs do not look like the background: they are of size {ours:.3}, the background is of size \
             {usual:.3}; give both in the units that the model was trained on (--maximum 255 divides the inputs, \
             --scale 255 divides inside the model)"
        ));
    }
    Ok(())
}

/// Refuses inputs in other units than the flow's training data, such as 0 to 255 instead of 0 to 1.
fn expect_same_scale(file: &FilePath, flow: &FlowMetadata, inputs: ArrayView2<f64>) -> Result<()> {
    let Some(scaling) = &flow.scaling else { return Ok(()) };
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
