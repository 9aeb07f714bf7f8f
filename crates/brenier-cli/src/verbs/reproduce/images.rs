//! What the experiments on images are run on, as it was read: data, a classifier, flows, a diffusion model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use brenier::data::{Color, Dataset, OpenOptions, Transform};
use brenier::engine::EngineConfig;
use brenier::flow::{NoisePredictor, OnnxFlow};
use brenier::{OnnxPredictor, PredictorConfig};
use brenier_paper::{NamedFlow, Scale, Subject};
use clap::Args;

use crate::output::print_progress;
use crate::request::file_hash;

/// What experiments on images are run on
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Experiments on images")]
pub(super) struct ImageArgs {
    /// The images: CIFAR-10's folder, or other labelled images of one size
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The classifier; default: assets/cifar10/classifier.onnx
    #[arg(long, value_name = "FILE")]
    pub(super) model: Option<PathBuf>,
    /// The flow of level 1; default: assets/cifar10/flow-1rf.onnx
    #[arg(long, value_name = "FILE")]
    flow: Option<PathBuf>,
    /// The flow of level 2; default: assets/cifar10/flow-2rf.onnx
    #[arg(long, value_name = "FILE")]
    flow2: Option<PathBuf>,
    /// The diffusion model; default: assets/cifar10/ddpm.onnx
    #[arg(long, value_name = "FILE")]
    ddpm: Option<PathBuf>,
    /// benchmark: a folder of faces, a folder for each person; a classifier and a flow are trained on them
    #[arg(long, value_name = "DIR")]
    pub(super) faces: Option<PathBuf>,
    /// convergence: the folder of a training with --keep-every; default: a small one is trained
    #[arg(long, value_name = "DIR")]
    pub(super) run: Option<PathBuf>,
    /// natural: two classes by name or number, THIS:THAT; may be given several times
    #[arg(long = "pair", value_name = "THIS:THAT", value_parser = pair)]
    pub(super) pairs: Vec<(String, String)>,
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once(':') {
        Some((own, other)) if !own.is_empty() && !other.is_empty() => Ok((own.into(), other.into())),
        _ => Err("two classes with a colon between them are needed, such as 4:9".into()),
    }
}

/// Where the project keeps its own networks.
const ASSETS: &str = "assets/cifar10";

/// Everything that was read.
pub(super) struct Images {
    name: String,
    pub(super) train: Dataset,
    pub(super) held_out: Dataset,
    model: OnnxPredictor,
    flows: Vec<(String, OnnxFlow)>,
    diffusion: Option<NoisePredictor>,
    identity: String,
}

impl ImageArgs {
    /// The images in two parts.
    pub(super) fn open_data(&self) -> Result<(Dataset, Dataset)> {
        let Some(path) = &self.data else {
            bail!(
                "this experiment needs images, and none are given\nhint: name CIFAR-10's folder with --data DIR; \
                 docs/data.md says how to get it"
            );
        };
        Ok(Dataset::open_split(path, &OpenOptions::default(), 0.9, 0)?)
    }

    /// Reads everything there is; what is named must be there, what is not may be missing.
    pub(super) fn open(&self, engine: &EngineConfig) -> Result<Images> {
        let (train, held_out) = self.open_data()?;
        let name = match (train.shape(), train.classes().len(), &self.data) {
            ([3, 32, 32], 10, _) => "CIFAR-10".to_string(),
            (_, _, Some(path)) => {
                path.file_name().map_or("images".into(), |n| n.to_string_lossy().into_owned())
            }
            _ => "images".to_string(),
        };
        let Some(model_file) = named_or_kept(self.model.as_deref(), "classifier.onnx") else {
            bail!(
                "there is no classifier to explain: {ASSETS}/classifier.onnx is not here\nhint: give one with --model \
                 FILE; 'brenier train DATA -o run --objective classify' trains one"
            );
        };
        let config = PredictorConfig { engine: engine.clone(), ..PredictorConfig::default() };
        let model = OnnxPredictor::load(&model_file, &config)?;
        let mut identity = file_hash(&model_file)?;
        let mut flows = Vec::new();
        for (level, given, file) in
            [("1-RF", &self.flow, "flow-1rf.onnx"), ("2-RF", &self.flow2, "flow-2rf.onnx")]
        {
            if let Some(file) = named_or_kept(given.as_deref(), file) {
                let flow = OnnxFlow::load(&file, engine)
                    .with_context(|| format!("cannot use {} as the flow {level}", file.display()))?;
                identity.push_str(&file_hash(&file)?);
                flows.push((level.to_string(), flow));
            }
        }
        let diffusion = match named_or_kept(self.ddpm.as_deref(), "ddpm.onnx") {
            Some(file) => {
                identity.push_str(&file_hash(&file)?);
                Some(NoisePredictor::load(&file, engine)?)
            }
            None => None,
        };
        let levels: Vec<&str> = flows.iter().map(|(name, _)| name.as_str()).collect();
        print_progress(&format!(
            "{name}: {} rows to learn from, {} held out; classifier {}; flows: {}; diffusion model: {}",
            train.len(),
            held_out.len(),
            model_file.display(),
            if levels.is_empty() { "none".to_string() } else { levels.join(", ") },
            if diffusion.is_some() { "yes" } else { "none" }
        ));
        Ok(Images { name, train, held_out, model, flows, diffusion, identity })
    }

    /// Faces in two parts, as small grey squares.
    pub(super) fn open_faces(&self, scale: Scale) -> Result<Option<(Dataset, Dataset)>> {
        let Some(path) = &self.faces else { return Ok(None) };
        let side = if scale == Scale::Quick { 32 } else { 64 };
        let options = OpenOptions {
            transforms: vec![Transform::CenterSquare, Transform::Resize { height: side, width: side }],
            color: Color::Gray,
            ..OpenOptions::default()
        };
        Ok(Some(Dataset::open_split(path, &options, 0.8, 0)?))
    }
}

impl Images {
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            name: &self.name,
            model: &self.model,
            train: &self.train,
            held_out: &self.held_out,
            flows: self.flows.iter().map(|(name, flow)| NamedFlow { name, flow }).collect(),
            diffusion: self.diffusion.as_ref(),
            identity: self.identity.clone(),
        }
    }
}

/// The file that was named, or the project's own where it is there.
fn named_or_kept(named: Option<&Path>, file: &str) -> Option<PathBuf> {
    match named {
        Some(path) => Some(path.to_path_buf()),
        None => Some(Path::new(ASSETS).join(file)).filter(|path| path.exists()),
    }
}
