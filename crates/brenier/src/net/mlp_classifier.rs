//! A residual multi-layer perceptron that classifies rows of a table.
//!
//! ```text
//! h = W x
//! h = h + W relu(W relu(h))          as many blocks as asked for
//! logits = W relu(h)
//! ```

use onnx_grad::Model;
use serde::{Deserialize, Serialize};

use super::layers::{Init, Layers};
use super::model;
use super::room::expect_room;
use crate::data::Scaling;
use crate::{Error, Result};

/// A residual classifier for rows of any shape, which it sees flat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpClassifierConfig {
    /// Units of every layer.
    pub width: usize,
    /// Residual blocks, of two layers each.
    pub blocks: usize,
}

impl Default for MlpClassifierConfig {
    fn default() -> Self {
        Self { width: 64, blocks: 1 }
    }
}

impl MlpClassifierConfig {
    /// The network for so many classes; `scaling` becomes part of it. Initial weights follow from the seed.
    pub fn build(&self, scaling: &Scaling, classes: usize, seed: u64) -> Result<Model> {
        let features: usize = scaling.shape().iter().product();
        if self.width == 0 || classes == 0 {
            return Err(Error::Setting {
                name: "the MLP",
                value: format!("{self:?} for {classes} classes"),
                needs: "the width and the number of classes are at least 1",
                hint: "MlpClassifierConfig::default() has width 64".into(),
            });
        }
        expect_room(&[
            (self.width, self.width, 1, self.blocks.saturating_mul(2)),
            (features.saturating_add(classes), self.width, 1, 1),
        ])?;
        let mut l = Layers::new("mlp", seed);
        let x = l.input(super::INPUT, scaling.shape());
        let x = l.scaled(&x, scaling);
        let flat = if scaling.shape().len() == 1 { x } else { l.b.reshape(&x, &[-1, features as i64]) };
        let mut h = l.linear("input", &flat, features, self.width, Init::LeCun);
        for block in 0..self.blocks {
            let inner = l.b.op("Relu", &[&h]);
            let inner = l.linear(&format!("blocks.{block}.in"), &inner, self.width, self.width, Init::He);
            let inner = l.b.op("Relu", &[&inner]);
            let inner = l.linear(&format!("blocks.{block}.out"), &inner, self.width, self.width, Init::Zero);
            h = l.b.add(&h, &inner);
        }
        let h = l.b.op("Relu", &[&h]);
        let logits = l.linear("head", &h, self.width, classes, Init::LeCun);
        l.b.output("logits", &logits);
        Ok(model(l.b.finish()?))
    }
}
