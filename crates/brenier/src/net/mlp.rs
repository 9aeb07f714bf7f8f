//! A residual multi-layer perceptron whose layers are steered by the time.
//!
//! ```text
//! e = silu(W features(t))                              time, as sines and cosines
//! h = W x + W e
//! h = h + W silu((1 + W e) * (W silu(h)) + W e)        as many blocks as asked for
//! v = W silu((1 + W e) * h + W e)                      begins at zero
//! ```
//!
//! Every `W` is an affine map of its own. There is no normalisation between the layers: it would take away
//! the size of the state, on which velocities of tables and low dimensions depend almost linearly.

use onnx_grad::{Model, Value};
use serde::{Deserialize, Serialize};

use super::layers::{Init, Layers};
use super::room::expect_room;
use super::{STATE, TIME, VELOCITY, model};
use crate::{Error, Result};

/// A residual network for examples of any shape, which it sees flat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MlpConfig {
    /// Units of every layer.
    pub width: usize,
    /// Residual blocks, of two layers each.
    pub blocks: usize,
    /// Sines and cosines in which the time is told; even.
    pub time_features: usize,
    /// The highest frequency of these, in radians per unit of time. Higher ones allow faster change in time.
    pub highest_frequency: f64,
}

impl Default for MlpConfig {
    fn default() -> Self {
        Self { width: 128, blocks: 2, time_features: 16, highest_frequency: 12.0 }
    }
}

impl MlpConfig {
    /// The network for examples of this shape, with initial weights that follow from the seed.
    pub fn build(&self, shape: &[usize], seed: u64) -> Result<Model> {
        self.build_with(shape, None, seed)
    }

    /// The same, steered by `classes` beside the time where there are some.
    pub(super) fn build_with(&self, shape: &[usize], classes: Option<usize>, seed: u64) -> Result<Model> {
        let features: usize = shape.iter().product();
        let even = self.time_features >= 2 && self.time_features.is_multiple_of(2);
        if self.width == 0 || features == 0 || !even || self.highest_frequency < 1.0 {
            return Err(Error::Setting {
                name: "the MLP",
                value: format!("{self:?} for examples of shape {shape:?}",),
                needs: "widths and sizes are at least 1, time features even, the highest frequency at least 1",
                hint: "MlpConfig::default() has width 128 and 16 time features".into(),
            });
        }
        expect_room(&[
            (self.width, self.width, 1, self.blocks.saturating_mul(4).saturating_add(2)),
            (features.saturating_add(self.time_features), self.width, 1, 2),
        ])?;
        let mut l = Layers::new("mlp", seed);
        let x = l.input(STATE, shape);
        let t = l.input(TIME, &[]);
        let flat = if shape.len() == 1 { x } else { l.b.reshape(&x, &[-1, features as i64]) };
        let time = l.time_features(&t, self.time_features, self.highest_frequency);
        let time = l.linear("time", &time, self.time_features, self.width, Init::He);
        let time = l.with_classes(time, classes, self.width);
        let time = l.silu(&time);
        let state = l.linear("input", &flat, features, self.width, Init::LeCun);
        let shift = l.linear("input.time", &time, self.width, self.width, Init::LeCun);
        let mut h = l.b.add(&state, &shift);
        for block in 0..self.blocks {
            let name = format!("blocks.{block}");
            let inner = l.silu(&h);
            let inner = l.linear(&format!("{name}.in"), &inner, self.width, self.width, Init::He);
            let inner = self.steer(&mut l, &name, &inner, &time);
            let inner = l.silu(&inner);
            let inner = l.linear(&format!("{name}.out"), &inner, self.width, self.width, Init::LeCun);
            h = l.b.add(&h, &inner);
        }
        let h = self.steer(&mut l, "output.steer", &h, &time);
        let h = l.silu(&h);
        let v = l.linear("output", &h, self.width, features, Init::Zero);
        let v = if shape.len() == 1 {
            v
        } else {
            let sizes: Vec<i64> = std::iter::once(-1).chain(shape.iter().map(|&n| n as i64)).collect();
            l.b.reshape(&v, &sizes)
        };
        l.b.output(VELOCITY, &v);
        Ok(model(l.b.finish()?))
    }

    /// `(1 + scale(e)) h + shift(e)`
    fn steer(&self, l: &mut Layers, name: &str, h: &str, time: &str) -> Value {
        let scale = l.linear(&format!("{name}.scale"), time, self.width, self.width, Init::LeCun);
        let shift = l.linear(&format!("{name}.shift"), time, self.width, self.width, Init::LeCun);
        let scale = l.b.shift(&scale, 1.0);
        let scaled = l.b.mul(h, &scale);
        l.b.add(&scaled, &shift)
    }
}
