//! The flows and diffusion models that were given, loaded beside the model itself: neither waits for the other.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use anyhow::{Result, bail};
use brenier::ModelFile;
use brenier::flow::{ClassFlows, FlowMetadata, NoisePredictor, Objective, OnnxFlow};

use crate::engine_args::EngineArgs;

/// A network that was given with `--flow`.
pub(crate) enum Network {
    Flow(OnnxFlow),
    Between(Box<ClassFlows>),
    Diffusion(NoisePredictor),
}

/// The flow of a run, where its folder is given.
pub(crate) fn in_run(file: PathBuf) -> PathBuf {
    let inside = ["flow.onnx", "ddpm.onnx"].map(|name| file.join(name));
    inside.into_iter().find(|flow| file.is_dir() && flow.exists()).unwrap_or(file)
}

/// The file of a flow that is to be changed or gone on from: that of a run, where its folder is given.
pub(crate) fn flow_file(given: &Path) -> Result<PathBuf> {
    let file = in_run(given.to_owned());
    if !file.is_file() {
        bail!("there is no flow {}\nhint: finish the run first, or give an ONNX file", file.display());
    }
    Ok(file)
}

/// A network with its file and the fingerprint of what was loaded.
pub(crate) struct Given {
    pub(super) file: PathBuf,
    pub(super) network: Network,
    pub(super) hash: String,
}

/// Networks on their way.
pub(crate) struct Networks(JoinHandle<Result<Vec<Given>>>);

impl Networks {
    /// Begins to load these files.
    pub(crate) fn load(files: &[PathBuf], engine: &EngineArgs) -> Networks {
        let (files, config) = (files.to_vec(), engine.config());
        Networks(thread::spawn(move || {
            let mut networks = Vec::with_capacity(files.len());
            for file in files {
                let file = in_run(file);
                if file.is_dir() {
                    bail!(
                        "there is no flow in the folder {}: it has no flow.onnx and no ddpm.onnx\nhint: give the folder of \
                         a finished run, or an ONNX file",
                        file.display()
                    );
                }
                let read = ModelFile::open(&file)?;
                let (model, hash) = (read.model()?.clone(), read.hash().to_string());
                let network = match FlowMetadata::of(&model)?.objective {
                    Some(Objective::Ddpm) => Network::Diffusion(NoisePredictor::new(model, &config)?),
                    _ => match ClassFlows::of(model)? {
                        Ok(flows) => Network::Between(Box::new(flows)),
                        Err(model) => Network::Flow(OnnxFlow::new(model, &config)?),
                    },
                };
                networks.push(Given { file, network, hash });
            }
            Ok(networks)
        }))
    }

    /// Waits for them.
    pub(super) fn loaded(self) -> Result<Vec<Given>> {
        self.0.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}
