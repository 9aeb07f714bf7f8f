//! Which network is trained, as it is typed.

use std::path::Path;

use anyhow::{Result, bail};
use brenier::classify::{ClassifierConfig, MlpClassifierConfig, ResnetConfig};
use brenier::flow::{MlpConfig, NetworkConfig, UnetConfig};
use clap::Args;
use onnx_grad::Model;

/// The network
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Network")]
pub(super) struct NetworkArgs {
    /// mlp, unet, resnet, or an ONNX file to begin from; default: unet or resnet for images, mlp for tables
    #[arg(long, value_name = "mlp|unet|resnet|FILE")]
    network: Option<String>,
    /// Units or channels
    #[arg(long, value_name = "N")]
    width: Option<usize>,
    /// Residual blocks
    #[arg(long, value_name = "N")]
    blocks: Option<usize>,
    /// Channels of each level as multiples of the width, such as 1,2,2 (unet, resnet)
    #[arg(long, value_name = "MULTIPLES", value_delimiter = ',')]
    levels: Option<Vec<usize>>,
    /// Work on squares of so many pixels a side (unet), or begin with steps of so many pixels (resnet)
    #[arg(long, value_name = "PIXELS")]
    patch: Option<usize>,
    /// The highest frequency of the time embedding, in radians per unit of time (unet, mlp; flow and ddpm)
    #[arg(long, value_name = "RADIANS")]
    time_frequency: Option<f64>,
}

impl NetworkArgs {
    /// The file to begin from, where the name is one.
    pub(super) fn model(&self) -> Result<Option<Model>> {
        match self.network.as_deref() {
            None | Some("mlp" | "unet" | "resnet") => Ok(None),
            Some(file) if !Path::new(file).exists() => {
                bail!("there is no network '{file}'\nhint: choose mlp, unet or resnet, or give an ONNX file")
            }
            Some(file) => Ok(Some(Model::load(file)?)),
        }
    }

    pub(super) fn flow(&self, shape: &[usize]) -> Result<Option<NetworkConfig>> {
        let kind = self.network.as_deref().unwrap_or(if shape.len() == 3 { "unet" } else { "mlp" });
        Ok(match kind {
            "mlp" => {
                self.refuse_levels("mlp")?;
                let d = MlpConfig::default();
                let (width, blocks) = (self.width.unwrap_or(d.width), self.blocks.unwrap_or(d.blocks));
                let highest_frequency = self.time_frequency.unwrap_or(d.highest_frequency);
                Some(NetworkConfig::Mlp(MlpConfig { width, blocks, highest_frequency, ..d }))
            }
            "unet" => {
                // Levels of one's own are those of pixels, unless patches are given too.
                let d = match (&self.levels, self.patch) {
                    (Some(_), None) => UnetConfig::default(),
                    _ => UnetConfig::suited_to(shape),
                };
                Some(NetworkConfig::Unet(UnetConfig {
                    width: self.width.unwrap_or(d.width),
                    blocks: self.blocks.unwrap_or(d.blocks),
                    multipliers: self.levels.clone().unwrap_or(d.multipliers.clone()),
                    patch: self.patch.unwrap_or(d.patch),
                    highest_frequency: self.time_frequency.unwrap_or(d.highest_frequency),
                    ..d
                }))
            }
            "resnet" => bail!("a resnet classifies\nhint: flows are learned by mlp or unet"),
            _ => None,
        })
    }

    pub(super) fn classifier(&self, shape: &[usize]) -> Result<Option<ClassifierConfig>> {
        if self.time_frequency.is_some() {
            bail!("--time-frequency means nothing to a classifier\nhint: leave it out");
        }
        let kind = self.network.as_deref().unwrap_or(if shape.len() == 3 { "resnet" } else { "mlp" });
        Ok(match kind {
            "mlp" => {
                self.refuse_levels("mlp")?;
                let d = MlpClassifierConfig::default();
                let (width, blocks) = (self.width.unwrap_or(d.width), self.blocks.unwrap_or(d.blocks));
                Some(ClassifierConfig::Mlp(MlpClassifierConfig { width, blocks }))
            }
            "resnet" => {
                let d = ResnetConfig::default();
                Some(ClassifierConfig::Resnet(ResnetConfig {
                    patch: self.patch.unwrap_or(d.patch),
                    width: self.width.unwrap_or(d.width),
                    blocks: self.blocks.unwrap_or(d.blocks),
                    multipliers: self.levels.clone().unwrap_or(d.multipliers.clone()),
                    ..d
                }))
            }
            "unet" => bail!("a unet does not classify\nhint: use mlp or resnet"),
            _ => None,
        })
    }

    fn refuse_levels(&self, network: &str) -> Result<()> {
        if self.levels.is_some() || self.patch.is_some() {
            bail!("--levels and --patch mean nothing to the {network}\nhint: leave them out");
        }
        Ok(())
    }
}
