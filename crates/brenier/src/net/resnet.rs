//! A small residual network for images: convolutions, group normalisation, ReLU, mean over the image.
//!
//! ```text
//! h = conv(x), stride patch
//! h = h + conv(relu(norm(conv(relu(norm(h))))))          blocks of a stage
//! h = conv(relu(norm(h))), stride 2                      between stages
//! logits = W mean(relu(norm(h)))
//! ```
//!
//! After He et al. (2016), activations before convolutions. Groups instead of batches are normalised, so a row's
//! result does not depend on its neighbours, neither in training nor later.

use onnx_grad::{Model, Value};
use serde::{Deserialize, Serialize};

use super::layers::{Init, Layers};
use super::model;
use super::room::expect_room;
use crate::data::Scaling;
use crate::{Error, Result};

/// A residual classifier for images `[C, H, W]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResnetConfig {
    /// Pixels that the first convolution moves by: 2 sees the image at half its resolution, for a quarter of the cost.
    pub patch: usize,
    /// Channels of the first stage; a multiple of `groups`.
    pub width: usize,
    /// Channels of each stage as multiples of `width`; every further stage halves the image.
    pub multipliers: Vec<usize>,
    /// Residual blocks per stage, of two convolutions each.
    pub blocks: usize,
    /// Groups of the normalisations.
    pub groups: usize,
}

impl Default for ResnetConfig {
    fn default() -> Self {
        Self { patch: 1, width: 32, multipliers: vec![1, 2, 4], blocks: 1, groups: 8 }
    }
}

impl ResnetConfig {
    /// The network for so many classes; `scaling` becomes part of it. Initial weights follow from the seed.
    pub fn build(&self, scaling: &Scaling, classes: usize, seed: u64) -> Result<Model> {
        let shape = scaling.shape();
        let refuse = |value: String, needs, hint: &'static str| {
            Err(Error::Setting { name: "the ResNet", value, needs, hint: hint.into() })
        };
        let &[channels, mut height, mut width] = shape else {
            return refuse(
                format!("given rows of shape {shape:?}"),
                "images have the shape [C, H, W]",
                "use the MLP for rows of other shapes",
            );
        };
        let sizes = [self.patch, self.width, self.multipliers.len(), self.blocks, self.groups, classes];
        let wide = self.multipliers.iter().all(|m| *m > 0) && self.width.is_multiple_of(self.groups.max(1));
        if sizes.contains(&0) || !wide {
            return refuse(
                format!("{self:?} for {classes} classes"),
                "all sizes are at least 1, and the width a multiple of the groups",
                "ResnetConfig::default() has 32 channels and 8 groups",
            );
        }
        let stages = self.multipliers.iter().map(|m| self.width.saturating_mul(*m));
        let stages: Vec<_> = stages.map(|wide| (wide, wide, 9, self.blocks.saturating_mul(2))).collect();
        expect_room(&stages)?;
        let mut l = Layers::new("resnet", seed);
        let x = l.input(super::INPUT, shape);
        let x = l.scaled(&x, scaling);
        // Odd, and no pixel is stepped over.
        let kernel = 3.max(self.patch | 1);
        let mut h = l.conv("stem", &x, (channels, self.width), kernel, self.patch, Init::He);
        (height, width) = (height.div_ceil(self.patch), width.div_ceil(self.patch));
        let mut from = self.width;
        for (stage, multiplier) in self.multipliers.iter().enumerate() {
            let to = self.width * multiplier;
            if stage > 0 {
                let inner = self.activate(&mut l, &format!("stages.{stage}.norm"), &h, [from, height, width]);
                h = l.conv(&format!("stages.{stage}.halve"), &inner, (from, to), 3, 2, Init::He);
                (height, width) = (height.div_ceil(2), width.div_ceil(2));
            } else if from != to {
                h = l.conv("stages.0.widen", &h, (from, to), 1, 1, Init::He);
            }
            for block in 0..self.blocks {
                let name = format!("stages.{stage}.{block}");
                let inner = self.activate(&mut l, &format!("{name}.norm0"), &h, [to, height, width]);
                let inner = l.conv(&format!("{name}.conv0"), &inner, (to, to), 3, 1, Init::He);
                let inner = self.activate(&mut l, &format!("{name}.norm1"), &inner, [to, height, width]);
                let inner = l.conv(&format!("{name}.conv1"), &inner, (to, to), 3, 1, Init::Zero);
                h = l.b.add(&h, &inner);
            }
            from = to;
        }
        let h = self.activate(&mut l, "norm", &h, [from, height, width]);
        let h = l.b.reduce_mean(&h, &[2, 3], false);
        let logits = l.linear("head", &h, from, classes, Init::LeCun);
        l.b.output("logits", &logits);
        Ok(model(l.b.finish()?))
    }

    fn activate(&self, l: &mut Layers, name: &str, h: &str, shape: [usize; 3]) -> Value {
        let normal = l.group_norm(name, h, shape, self.groups);
        l.b.op("Relu", &[&normal])
    }
}
