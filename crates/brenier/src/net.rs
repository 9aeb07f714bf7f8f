//! Networks as graphs: velocity fields, and classifiers to explain.
//!
//! A configuration builds an ONNX graph with inputs `x [N, ...]` and `t [N]` and output `v [N, ...]`: the same
//! form in which any other flow comes from a file. Nothing else in the library knows what is inside.
//!
//! - [`MlpConfig`]: residual layers for tables and low dimensions.
//! - [`UnetConfig`]: convolutions over several resolutions for images.
//!
//! Initial weights follow from a seed. The last layer starts at zero, so an untrained field is at rest and the
//! first loss is the mean squared displacement: a number to compare later losses with.

mod layers;
mod mlp;
mod mlp_classifier;
mod resnet;
mod room;
mod unet;

use onnx_grad::{Graph, Model};
use serde::{Deserialize, Serialize};

pub use mlp::MlpConfig;
pub use mlp_classifier::MlpClassifierConfig;
pub use resnet::ResnetConfig;
pub use unet::UnetConfig;

use crate::Result;
use crate::data::Scaling;

/// The name of the state in a velocity graph.
pub(crate) const STATE: &str = "x";
/// The name of the time.
pub(crate) const TIME: &str = "t";
/// The name of what a network between classes is told of them: -1 at the class it comes from, 1 at the one it goes to.
pub(crate) const CLASSES: &str = "c";
/// The name of the velocity.
pub(crate) const VELOCITY: &str = "v";

/// The name of the input of a classifier.
pub(crate) const INPUT: &str = "input";

/// Operator set and file format of the graphs made here: what ONNX Runtime of the last years reads.
const OPSET: i64 = 18;
const IR_VERSION: i64 = 8;

/// A network to be built.
///
/// ```
/// use brenier::flow::{MlpConfig, NetworkConfig};
///
/// let model = NetworkConfig::Mlp(MlpConfig { width: 8, ..MlpConfig::default() }).build(&[2], 0)?;
/// assert_eq!(model.graph.outputs[0].name, "v");
/// assert_eq!(model.graph.initializers["output.weight"].shape(), [8, 2]);
/// # Ok::<(), brenier::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum NetworkConfig {
    /// Residual layers.
    Mlp(MlpConfig),
    /// Convolutions over several resolutions.
    Unet(UnetConfig),
}

impl NetworkConfig {
    /// What suits examples of this shape: a U-Net for `[C, H, W]`, residual layers otherwise.
    pub fn for_shape(shape: &[usize]) -> NetworkConfig {
        match shape {
            [_, _, _] => NetworkConfig::Unet(UnetConfig::suited_to(shape)),
            _ => NetworkConfig::Mlp(MlpConfig::default()),
        }
    }

    /// The graph for examples of this shape, with initial weights that follow from the seed.
    pub fn build(&self, shape: &[usize], seed: u64) -> Result<Model> {
        match self {
            NetworkConfig::Mlp(config) => config.build(shape, seed),
            NetworkConfig::Unet(config) => config.build(shape, seed),
        }
    }

    /// The same with an input more, `c [N, classes]`: between which classes the field leads.
    pub fn build_between(&self, shape: &[usize], classes: usize, seed: u64) -> Result<Model> {
        match self {
            NetworkConfig::Mlp(config) => config.build_with(shape, Some(classes), seed),
            NetworkConfig::Unet(config) => config.build_with(shape, Some(classes), seed),
        }
    }
}

/// A classifier to be built.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ClassifierConfig {
    /// Residual layers.
    Mlp(MlpClassifierConfig),
    /// Residual convolutions.
    Resnet(ResnetConfig),
}

impl ClassifierConfig {
    /// What suits examples of this shape: convolutions for `[C, H, W]`, residual layers otherwise.
    pub fn for_shape(shape: &[usize]) -> ClassifierConfig {
        match shape {
            [_, _, _] => ClassifierConfig::Resnet(ResnetConfig::default()),
            _ => ClassifierConfig::Mlp(MlpClassifierConfig::default()),
        }
    }

    /// The graph from rows as the user has them to logits; `scaling` becomes part of it.
    pub fn build(&self, scaling: &Scaling, classes: usize, seed: u64) -> Result<Model> {
        match self {
            ClassifierConfig::Mlp(config) => config.build(scaling, classes, seed),
            ClassifierConfig::Resnet(config) => config.build(scaling, classes, seed),
        }
    }
}

/// The graph as a model that can be saved.
fn model(graph: Graph) -> Model {
    Model {
        graph,
        ir_version: IR_VERSION,
        opset: OPSET,
        producer: format!("brenier {}", env!("CARGO_PKG_VERSION")),
        ..Model::default()
    }
}
